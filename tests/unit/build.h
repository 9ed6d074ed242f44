/* build.h -- for the unit tests: makes a graph and nodes in one line each, and prints values for a
 * failing Check test. */
#ifndef TEST_BUILD_H
#define TEST_BUILD_H
#include "ops/op.h"
#include "passes/pass.h"
#include "suite.h"
#include <stdlib.h>
#include <string.h>

typedef struct Bench {
    Arena *a;
    Diag  *d;
    Graph *g;
} Bench;

static inline Bench bench_new(void)
{
    Bench b = {.a = arena_new()};
    b.d = diag_new(b.a, DIAG_NEVER);
    b.g = graph_new(b.a, "test", true);
    b.g->recipe = (Recipe){.present = true, .batch = 8, .optimizer = {.lr = 0.1},
                           .init = {.kind = INIT_GLOROT}};
    return b;
}

static inline Shape dims(bool batched, int rank, const int64_t *d)
{
    return shape_make(batched, rank == 3 ? "CHW" : rank == 1 ? "F" : NULL, d, rank);
}
#define LIST(...) (int64_t[]){__VA_ARGS__}
#define COUNT(...) ((int)(sizeof LIST(__VA_ARGS__) / sizeof(int64_t)))
#define BATCHED(...) dims(true, COUNT(__VA_ARGS__), LIST(__VA_ARGS__))
#define SINGLE(...) dims(false, COUNT(__VA_ARGS__), LIST(__VA_ARGS__))
#define SCALAR(batched) shape_make(batched, NULL, NULL, 0)

static inline Node *input(Bench *b, Shape s)
{
    return graph_input(b->g, "x", s, DT_REAL, (Span){0});
}

static inline Node *label(Bench *b)
{
    return graph_label(b->g, SCALAR(true), (Span){0});
}

static inline Node *number(Bench *b, double v)
{
    return graph_const(b->g, v, SCALAR(false), (Span){0});
}

/* A set of arguments as the front end hands them over: attributes of a node in no graph, defaults
 * of the op filled in. */
static inline Node *args(Bench *b, const char *op)
{
    Node *n = arena_alloc(b->a, sizeof *n);
    n->op = op_find(op);
    for (const OpArg *a = n->op->arg; a->name; a++) {
        if (!a->fallback || !strcmp(a->fallback, "none"))
            continue;
        const int64_t v = atoll(a->fallback);
        if (a->type == ARG_BOOL)
            node_set_attr(b->a, n, (Attr){.key = a->name, .kind = ATTR_BOOL, .i = *a->fallback == 't'});
        else if (a->type == ARG_FLOAT)
            node_set_float(b->g, n, a->name, atof(a->fallback));
        else if (a->type == ARG_INT)
            node_set_int(b->g, n, a->name, v);
        else if (a->type == ARG_PAIR || a->type == ARG_PAD)
            node_set_ints(b->g, n, a->name, (int64_t[]){v, v}, 2);
    }
    return n;
}

static inline Node *pair(Bench *b, Node *n, const char *key, int64_t h, int64_t w)
{
    node_set_ints(b->g, n, key, (int64_t[]){h, w}, 2);
    return n;
}

static inline Node *conv_args(Bench *b, int64_t filters, int64_t kernel)
{
    Node *n = pair(b, args(b, "conv2d"), "kernel", kernel, kernel);
    node_set_int(b->g, n, "filters", filters);
    return n;
}

/* Handles a call as the front end does: by the op's build function if there is one, else by a node and its rule.  NULL after an
 * error. */
static inline Node *call1(Bench *b, Node *with, Node *x, const char *path)
{
    if (with->op->build)
        return with->op->build(b->g, &x, 1, with, path, b->d);
    Node *n = graph_add(b->g, with->op, &x, 1, (Span){0});
    node_copy_attrs(b->g, n, with);
    return n->op->shape(n, b->d) ? n : NULL;
}

static inline Node *call2(Bench *b, const char *op, Node *x, Node *y)
{
    Node *n = graph_add(b->g, op_find(op), (Node *[]){x, y}, 2, (Span){0});
    return n->op->shape(n, b->d) ? n : NULL;
}

static inline Node *dense(Bench *b, Node *x, int64_t units, const char *path)
{
    Node *n = args(b, "dense");
    node_set_int(b->g, n, "units", units);
    return call1(b, n, x, path);
}

static inline Node *conv(Bench *b, Node *x, int64_t filters, int64_t kernel, const char *path)
{
    return call1(b, conv_args(b, filters, kernel), x, path);
}

/* output and loss = softmax_cross_entropy(output, label): the graph is ready for the passes. */
static inline void finish(Bench *b, Node *output)
{
    b->g->output = output;
    b->g->loss = call2(b, "softmax_cross_entropy", output, label(b));
    b->g->metric[b->g->nmetric++] = (Metric){"loss", b->g->loss};
}

static inline int count_op(const Graph *g, const char *op)
{
    int n = 0;
    for (int i = 0; i < g->nnode; i++)
        n += node_is(g->node[i], op);
    return n;
}

static inline Node *first_op(const Graph *g, const char *op)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], op))
            return g->node[i];
    return NULL;
}

/* What graph_dump or diag_print writes, as a string. */
#define PRINTED(b, statement)                                                                      \
    ({                                                                                             \
        char *text_ = NULL;                                                                        \
        size_t n_ = 0;                                                                             \
        FILE *out = open_memstream(&text_, &n_);                                                   \
        statement;                                                                                 \
        fclose(out);                                                                               \
        char *copy_ = arena_strdup((b)->a, text_);                                                 \
        free(text_);                                                                               \
        copy_;                                                                                     \
    })
#define DUMP(b) PRINTED(b, graph_dump((b)->g, out))
#define MESSAGES(b) PRINTED(b, diag_print((b)->d, out))

#define ck_text(b, shape, want) ck_assert_str_eq(shape_text((b)->a, &(shape)), want)
#define ck_verify(b) ck_assert_ptr_null(graph_verify((b)->g, (b)->d))
#define ck_contains(text, part)                                                                    \
    ck_assert_msg(strstr(text, part) != NULL, "no \"%s\" in:\n%s", part, text)
#endif
