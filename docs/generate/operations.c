/* operations.c -- operations.md, from the rows of compiler/ops. */
#include "made.h"
#include "reference.h"
#include "tool/manual.h"
#include <string.h>

#define ROW(p, ...) page_row(p, (const char *const[]){__VA_ARGS__})
#define TABLE(p, ...) page_table(p, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), (const char *const[]){__VA_ARGS__})
enum { WIDTH = 100 };

static bool shown(const Op *op)
{
    return !(op->flags & OP_HIDDEN);
}

static void arguments(Page *p, const Op *op)
{
    for (const OpArg *g = op->arg; g < op->arg + OP_ARGS && g->name; g++) {
        const bool open = g->fallback && strcmp(g->fallback, "none") == 0;
        const char *by = !g->fallback              ? ""
                         : open                    ? ", may be left out"
                         : g->type == ARG_STRING   ? made(", default `\"%s\"`", g->fallback)
                                                   : made(", default `%s`", g->fallback);
        const char *about = g->about ? g->about : "", *tensor = "a tensor";
        if (g->type == ARG_TENSOR && strncmp(about, tensor, strlen(tensor)) == 0)
            page_define(p, g->name, NULL, made("tensor%s%s.", about + strlen(tensor), by));
        else
            page_define(p, g->name, NULL, made("%s%s. %s", manual_type(g->type), by, made_sentence(about)));
    }
}

/* A phrase that says how programs compute the operation, from the fields of its row. */
static const char *form(const Op *op)
{
    if (op->flags & OP_ELEMENTWISE)
        return "Computed on the processor and on a GPU by generated loops, together with neighbouring operations.";
    if (op->flags & OP_VIEW)
        return "Takes no time: the same memory is read with another shape.";
    if (op->move)
        return "Computed by generated loops. No loop is needed where the neighbours can read or write in place.";
    if (op->kernel)
        return "Computed by a kernel, on the processor and on a GPU.";
    if (op->build && op->flags & OP_INPLACE)
        return "Computed by a generated loop, or inside the kernel of the operation before it.";
    if (op->parts || op->build)
        return "Expanded into other operations when the model is compiled.";
    return NULL;
}

static void lines(Page *p, const char *heading, const char *text)
{
    if (!text)
        return;
    page_paragraph(p, "%s:", heading);
    page_code(p, "text", text);
}

static void operation(Page *p, const Op *op)
{
    page_section(p, op->name);
    page_paragraph(p, "%s", made_sentence(op->brief));
    page_code(p, "text", manual_signature(made_arena(), op, WIDTH));
    arguments(p, op);
    lines(p, "Shapes", op->shapes);
    lines(p, "Formula", op->formula);
    lines(p, "Gradient", manual_derivative(made_arena(), op));
    if (op->note)
        page_paragraph(p, "%s", made_coded(op->note));
    if (form(op) && !(op->note && strstr(op->note, "On a GPU")))
        page_paragraph(p, "%s", form(op));
    page_paragraph(p, "Example:");
    page_code(p, "tenon", op->example);
}

void reference_operations(Page *p)
{
    page_paragraph(p, "`tenon ops` lists the operations, and `tenon ops NAME` prints an entry of this page. Every example is a complete model file. "
                      "The tests compile each of them and compare its gradients with central differences.");
    page_paragraph(p, "N is the number of samples. Shapes are written with it, and axes are counted without it: axis 0 is the first dimension after N. "
                      "C, H and W are channels, rows and columns of images, T is the number of steps of a sequence, F the number of features. "
                      "dy is the gradient of the loss with respect to y. An argument in brackets may be left out. The operators + - * / and ** of "
                      "the language are add, sub, mul, div and pow, a minus before a value is neg.");
    TABLE(p, "Operation", "What it computes");
    for (int i = 0; i < op_count(); i++)
        if (shown(op_at(i)))
            ROW(p, made("[%s](#%s)", op_at(i)->name, op_at(i)->name), op_at(i)->brief);
    page_table_end(p);
    for (int i = 0; i < op_count(); i++)
        if (shown(op_at(i)))
            operation(p, op_at(i));
}
