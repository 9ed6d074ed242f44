/* pooling.c -- functions that max_pool and avg_pool share. */
#include "ops/pooling.h"
#include "ops/check.h"
#include "ops/window.h"

/* Rejects a padding so large that a window lies wholly in it: such a window has no maximum and no
 * mean. */
static bool check_pad(const Node *n, const Window *v, Diag *d)
{
    for (int i = 0; i < 2; i++) {
        if (v->before[i] < v->kernel[i])
            continue;
        diag_error(d, node_span(n, "pad"), "%s pad %lld leaves windows of %lld without a pixel",
                   n->op->name, (long long)v->before[i], (long long)v->kernel[i]);
        diag_help(d, "use pad <= %lld, or a larger kernel", (long long)v->kernel[i] - 1);
        diag_replace_int(d, v->before[i], v->kernel[i] - 1);
        return false;
    }
    return true;
}

bool pooling_shape(Node *n, Diag *d)
{
    if (!check_image(n, 0, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    if (!window_check(n, x->dim[1], x->dim[2], d))
        return false;
    const Window v = window_of(n, x->dim[1], x->dim[2]);
    if (!check_pad(n, &v, d))
        return false;
    window_resolve(n, &v, x->dim, d);
    return check_result(n,
                        shape_make(x->batched, "CHW", (int64_t[]){x->dim[0], v.out[0], v.out[1]},
                                   3),
                        d);
}

bool pooling_shape_dx(Node *n, Diag *d)
{
    const Attr *x = node_attr(n, "x_shape");
    return check_result(n, shape_make(true, "CHW", x->list, 3), d);
}

/* No multiply-adds; each pixel is read once, each result written once. */
Cost pooling_cost(const Node *n)
{
    const int64_t *x = node_attr(n, "x_shape")->list;
    const Window v = window_of(n, x[1], x[2]);
    return (Cost){.bytes = 4.0 * (double)x[0] * (double)(x[1] * x[2] + v.out[0] * v.out[1])};
}

void pooling_literal(const Node *n, const Node *y, Call *c)
{
    const int64_t *x = node_attr(n, "x_shape")->list;
    const Attr *count_pad = node_attr(n, "count_include_pad");
    const Window v = window_of(n, x[1], x[2]);
    Sizes *s = sizes_new(c->arena, "Pool");
    sizes_int(s, "n", c->n);
    sizes_int(s, "c", x[0]);
    sizes_int(s, "h", x[1]);
    sizes_int(s, "w", x[2]);
    window_sizes(s, "r", "s", v.kernel);
    window_sizes(s, "stride_h", "stride_w", v.stride);
    window_sizes(s, "pad_h", "pad_w", v.before);
    window_sizes(s, "oh", "ow", v.out);
    if (count_pad && count_pad->i)
        sizes_int(s, "count_pad", 1);
    if (y->within)
        sizes_int(s, "ldy", node_row(y));
    if (node_attr(n, "last"))
        sizes_bool(s, "last", true);
    call_sizes(c, s);
}
