/* manual.c -- `tenon ops`: the operations, from the same table that the compiler uses. */
#include "tool/manual.h"
#include "base/text.h"
#include "ops/op.h"
#include "tool/option.h"
#include <stdio.h>
#include <string.h>

static const Span nowhere;

static const char *const type_name[] = {
    [ARG_TENSOR] = "tensor", [ARG_INT] = "int", [ARG_FLOAT] = "float", [ARG_BOOL] = "bool", [ARG_STRING] = "string",
    [ARG_PAIR] = "int or [int, int]", [ARG_PAD] = "int, [int, int], \"same\" or \"valid\"", [ARG_INTS] = "list of ints",
    [ARG_PLACES] = "list of ints, or tensor",
    [ARG_TENSORS] = "tensors, or lists of them"};

/* "max_pool(x, kernel, [stride], pad = 0)": what stands in brackets may be left out and has no
 * default that could be written. */
static const char *signature(Arena *a, const Op *op)
{
    Text t = text_new(a);
    text_printf(&t, "%s(", op->name);
    for (const OpArg *g = op->arg; g < op->arg + OP_ARGS && g->name; g++) {
        const bool open = g->fallback && strcmp(g->fallback, "none") == 0;
        text_printf(&t, open ? "%s[%s]" : "%s%s", g > op->arg ? ", " : "", g->name);
        if (g->fallback && !open)
            text_printf(&t, " = %s", g->fallback);
    }
    text_add(&t, ")");
    return t.s;
}

static void list_all(Arena *a)
{
    for (int i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        if (!(op->flags & OP_HIDDEN))
            help_row(signature(a, op), 58, op->brief ? op->brief : "");
    }
    puts("\ntenon ops NAME prints one of them with its arguments and an example");
}

static const Op *find(Arena *a, const char *name, Diag *d)
{
    const Op *op = op_find(name);
    const char **known = NULL;
    int n = 0;
    if (op && !(op->flags & OP_HIDDEN))
        return op;
    for (int i = 0; i < op_count(); i++)
        if (!(op_at(i)->flags & OP_HIDDEN))
            ARENA_PUSH(a, known, n, op_at(i)->name);
    diag_error(d, nowhere, "there is no operation '%s'", name);
    diag_suggest(d, name, known, n);
    diag_help(d, "`tenon ops` lists them");
    return NULL;
}

bool manual_print(const Command *c, Diag *d)
{
    Arena *a = diag_arena(d);
    if (!c->file) {
        list_all(a);
        return true;
    }
    const Op *op = find(a, c->file, d);
    if (!op)
        return false;
    if (!c->example) {
        printf("%s\n%s\n\n", signature(a, op), op->brief ? op->brief : "");
        for (const OpArg *g = op->arg; g < op->arg + OP_ARGS && g->name; g++)
            printf("  %-20s %-36s %s\n", g->name, type_name[g->type], g->about ? g->about : "");
        puts("\nExample:\n");
    }
    fputs(op->example ? op->example : "", stdout);
    return true;
}
