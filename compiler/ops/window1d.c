/* window1d.c -- windows over the steps of a sequence. */
#include "ops/window1d.h"
#include "ops/check.h"
#include "ops/window.h"
#include <string.h>

static bool check_steps(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    if (check_sequence(n, 0, d))
        return true;
    if (n->in[0]->dtype == DT_REAL)
        diag_help(d, x->rank == 1 ? "reshape(x, [steps, features]) makes sequences of vectors"
                                  : "for images there are conv2d, max_pool and avg_pool");
    return false;
}

static bool report_too_large(const Node *n, const Window *v, Diag *d)
{
    const int64_t have = v->in[0] + v->before[0] + v->after[0], span = window_span(v, 0);
    const char *spans = v->dilation[0] > 1
                            ? arena_printf(diag_arena(d), " spans %lld steps and", (long long)span)
                            : "";
    diag_error(d, node_span(n, "kernel"),
               "%s kernel %lld%s is larger than its %sinput of %lld steps", n->op->name,
               (long long)v->kernel[0], spans, v->before[0] ? "padded " : "", (long long)have);
    check_note(n, 0, d);
    diag_help(d, "use kernel <= %lld, or a larger pad",
              (long long)((have - 1) / v->dilation[0] + 1));
    return false;
}

/* Replaces a number by [number, other] for rows and columns. */
static void set_pair(Arena *a, Node *n, const char *key, int64_t other)
{
    const Attr *old = node_attr(n, key);
    if (old && old->kind == ATTR_INT)
        node_set_attr(a, n, attr_ints(a, key, (int64_t[]){old->i, other}, 2));
}

bool window1d_check(const Node *n, Node *window, int64_t *steps, Diag *d)
{
    Arena *a = diag_arena(d);
    if (!check_steps(n, d) || !check_int(n, "kernel", 1, d))
        return false;
    *window = (Node){.op = n->op, .nin = n->nin, .in = n->in, .span = n->span};
    window->nattr = n->nattr;
    window->attr = arena_alloc(a, (size_t)(n->nattr + 1) * sizeof *n->attr);
    if (n->nattr)
        memcpy(window->attr, n->attr, (size_t)n->nattr * sizeof *n->attr);
    set_pair(a, window, "kernel", 1);
    set_pair(a, window, "stride", 1);
    set_pair(a, window, "dilation", 1);
    set_pair(a, window, "pad", 0);
    const int64_t t = n->in[0]->shape.dim[0];
    if (!check_int(window, "stride", 1, d) || !check_int(window, "dilation", 1, d) ||
        !check_int(window, "pad", 0, d))
        return false;
    const Window v = window_of(window, t, 1);
    if (window_span(&v, 0) > t + v.before[0] + v.after[0])
        return report_too_large(n, &v, d);
    *steps = v.out[0];
    return window_check(window, t, 1, d);
}

static Node *reshaped(Graph *g, Node *x, const int64_t *dim, int rank, Span at)
{
    Node like = {.op = op_find("reshape"), .span = at};
    node_set_ints(g, &like, "shape", dim, rank);
    return op_make_like(g, "reshape", &like, 1, x);
}

static Node *transposed(Graph *g, Node *x, const int64_t axes[3], Span at)
{
    Node like = {.op = op_find("transpose"), .span = at};
    node_set_ints(g, &like, "axes", axes, 3);
    return op_make_like(g, "transpose", &like, 1, x);
}

Node *window1d_image(Graph *g, Node *x, Span at)
{
    const int64_t dim[3] = {x->shape.dim[0], 1, x->shape.dim[1]};
    return transposed(g, reshaped(g, x, dim, 3, at), (int64_t[]){2, 0, 1}, at);
}

Node *window1d_sequence(Graph *g, Node *y, Span at)
{
    const int64_t dim[2] = {y->shape.dim[1], y->shape.dim[0]};
    return reshaped(g, transposed(g, y, (int64_t[]){1, 2, 0}, at), dim, 2, at);
}
