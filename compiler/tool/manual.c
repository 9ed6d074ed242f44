/* manual.c -- `tenon ops`: the operations, from the same table that the compiler uses. */
#include "tool/manual.h"
#include "base/text.h"
#include "front/parse.h"
#include "ops/elementwise.h"
#include "tool/manual_recipe.h"
#include "tool/option.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

static const Span nowhere;

const char *manual_type(ArgType type)
{
    static const char *const name[] = {[ARG_TENSOR] = "tensor",
                                       [ARG_INT] = "int",
                                       [ARG_FLOAT] = "float",
                                       [ARG_BOOL] = "bool",
                                       [ARG_STRING] = "string",
                                       [ARG_PAIR] = "int or [int, int]",
                                       [ARG_PAD] = "int, [int, int], \"same\" or \"valid\"",
                                       [ARG_PAD_STEPS] = "int, \"same\" or \"valid\"",
                                       [ARG_INTS] = "list of ints",
                                       [ARG_REALS] = "list of floats",
                                       [ARG_PLACES] = "list of ints, or tensor",
                                       [ARG_TENSORS] = "tensors, or lists of them"};
    return name[type];
}

const char *manual_signature(Arena *a, const Op *op, int width)
{
    Text t = text_new(a);
    text_printf(&t, "%s(", op->name);
    const size_t parenthesis = t.len;
    size_t line = 0;
    for (const OpArg *g = op->arg; g < op->arg + OP_ARGS && g->name; g++) {
        const bool open = g->fallback && strcmp(g->fallback, "none") == 0;
        const char *word = open ? arena_printf(a, "[%s]", g->name)
                           : !g->fallback
                               ? g->name
                               : arena_printf(a, g->type == ARG_STRING ? "%s = \"%s\"" : "%s = %s",
                                              g->name, g->fallback);
        text_add_argument(&t, parenthesis, &line, word, width);
    }
    text_add(&t, ")");
    return t.s;
}

/* "focal(output, label, [gamma])": an argument in brackets can be left out. */
static void add_block(Text *t, const Decl *d)
{
    text_printf(t, "%s%s(", t->len ? ", " : "", d->name);
    for (int i = 0; i < d->params.n; i++) {
        const ParamDecl *p = &d->params.v[i];
        text_printf(t, p->fallback ? "%s[%s]" : "%s%s", i ? ", " : "", p->name);
    }
    text_add(t, ")");
}

/* "focal(output, label, [gamma]), ...": the blocks of a file, or the one with the name `only`. */
static const char *blocks_of(Diag *d, const char *directory, const char *file, const char *only)
{
    Arena *a = diag_arena(d);
    const char *why;
    const Source *s = source_read(a, arena_printf(a, "%s/%s", directory, file), &why);
    const Decls all = s ? parse_file(a, d, s) : (Decls){0};
    Text t = text_new(a);
    for (int k = 0; k < all.n; k++)
        if ((all.v[k]->kind == DECL_BLOCK || all.v[k]->kind == DECL_OP) &&
            (!only || strcmp(all.v[k]->name, only) == 0))
            add_block(&t, all.v[k]);
    return t.s;
}

/* Lists the files of Tenon's library, each with its blocks and operations. */
static void list_library(Diag *d, const char *directory)
{
    int n = 0;
    const char **file = directory ? source_list(diag_arena(d), directory, &n) : NULL;
    if (n)
        puts("\nBlocks of Tenon's library, after `import \"FILE\"`:\n");
    for (int i = 0; i < n; i++)
        help_row(file[i], 48, blocks_of(d, directory, file[i], NULL));
}

/* Prints a file of Tenon's library, or a block of one; false if none has this name. */
static bool print_library(Diag *d, const char *directory, const char *name)
{
    int n = 0;
    const char **file = directory ? source_list(diag_arena(d), directory, &n) : NULL;
    for (int i = 0; i < n; i++) {
        const bool whole = strcmp(file[i], name) == 0;
        const char *blocks = blocks_of(d, directory, file[i], whole ? NULL : name);
        if (!*blocks)
            continue;
        puts(whole ? name : blocks);
        printf("a %s of Tenon's library: import \"%s\"\n", whole ? "file" : "block", file[i]);
        if (whole)
            help_row("blocks", 18, blocks);
        return true;
    }
    return false;
}

static void list_all(Diag *d, const char *library)
{
    Arena *a = diag_arena(d);
    puts("Operations of a model:\n");
    for (int i = 0; i < op_count(); i++) {
        const Op *op = op_at(i);
        if (!(op->flags & OP_HIDDEN))
            help_row(manual_signature(a, op, INT_MAX), 48, op->brief ? op->brief : "");
    }
    list_library(d, library);
    puts("\nKeys of a train block:\n");
    manual_recipe_list(a);
    puts("\ntenon ops NAME prints the arguments, formulas and an example of one operation, and the "
         "arguments of one form");
}

const char **manual_names(Arena *a, int *n)
{
    const char **name = NULL;
    *n = 0;
    for (int i = 0; i < op_count(); i++)
        if (!(op_at(i)->flags & OP_HIDDEN))
            ARENA_PUSH(a, name, *n, op_at(i)->name);
    manual_recipe_names(a, &name, n);
    return name;
}

static bool unknown(Arena *a, const char *name, Diag *d)
{
    int n;
    const char **known = manual_names(a, &n);
    diag_error(d, nowhere, "there is no operation '%s', and no such word of a train block", name);
    if (foreign_loss(name))
        diag_help(d, "import \"losses.tn\" has the loss '%s'", foreign_loss(name));
    else
        diag_suggest(d, name, known, n);
    diag_help(d, "`tenon ops` lists them");
    return false;
}

/* Prints a heading, and each line of the text indented. */
static void print_lines(const char *heading, const char *text)
{
    if (!text)
        return;
    printf("\n%s:\n\n", heading);
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
}

const char *manual_derivative(Arena *a, const Op *op)
{
    return op->derivative ? op->derivative : elementwise_derivative(a, op);
}

static void print_op(Arena *a, const Op *op)
{
    printf("%s\n%s\n\n", manual_signature(a, op, HELP_WIDTH), op->brief ? op->brief : "");
    for (const OpArg *g = op->arg; g < op->arg + OP_ARGS && g->name; g++)
        help_row(arena_printf(a, "%-18s %s", g->name, manual_type(g->type)), 52,
                 g->about ? g->about : "");
    print_lines("Shapes", op->shapes);
    print_lines("Formula", op->formula);
    print_lines("Gradient", manual_derivative(a, op));
    if (op->note) {
        puts("");
        help_text(op->note, 0);
    }
    puts("\nExample:\n");
}

static bool is_recipe(Arena *a, const char *name)
{
    const char **known = NULL;
    int n = 0, i = 0;
    manual_recipe_names(a, &known, &n);
    while (i < n && strcmp(known[i], name) != 0)
        i++;
    return i < n;
}

bool manual_print(const Command *c, Diag *d)
{
    Arena *a = diag_arena(d);
    if (!c->file) {
        list_all(d, c->front.shipped);
        return true;
    }
    const Op *found = op_find(c->file), *op = found && found->flags & OP_HIDDEN ? NULL : found;
    const bool recipe = is_recipe(a, c->file);
    if (!op && !recipe && !c->example && print_library(d, c->front.shipped, c->file))
        return true;
    if (!op && !recipe)
        return unknown(a, c->file, d);
    if (!op && c->example) {
        diag_error(d, nowhere, "'%s' is a word of a train block: only operations have an example",
                   c->file);
        diag_help(d, "leave --example out");
        return false;
    }
    if (op && !c->example)
        print_op(a, op);
    if (op)
        fputs(op->example ? op->example : "", stdout);
    if (!recipe || c->example)
        return true;
    if (op)
        puts("");
    return manual_recipe_print(a, c->file);
}
