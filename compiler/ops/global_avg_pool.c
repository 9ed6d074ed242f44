/* global_avg_pool.c -- the mean of each channel.
 *
 *   y[c] = mean over i, j of x[c][i][j];   dx[c][i][j] = dy[c] / (H W)
 *
 * Source: Lin, Chen, Yan 2013, "Network in network".
 */
#include "ops/check.h"
#include "ops/example.h"

static bool global_avg_pool_shape(Node *n, Diag *d)
{
    if (!check_image(n, 0, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    node_set_attr(diag_arena(d), n, attr_ints(diag_arena(d), "x_shape", x->dim, 3));
    return check_result(n, shape_make(x->batched, "C", x->dim, 1), d);
}

static bool global_avg_pool_shape_dx(Node *n, Diag *d)
{
    return check_result(n, shape_make(true, "CHW", node_attr(n, "x_shape")->list, 3), d);
}

static void global_avg_pool_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "global_avg_pool_dx", n, 1, dy));
}

static void global_avg_pool_call(const Node *n, Call *c, const char *fn)
{
    const int64_t *x = node_attr(n, "x_shape")->list;
    call_fn(c, node_attr(n, "last") ? arena_printf(c->arena, "%s_last", fn) : fn);
    call_in_parts(c, n);
    call_text(c, "%lld, %lld, %lld", (long long)c->n, (long long)x[0], (long long)(x[1] * x[2]));
}

static void global_avg_pool_kernel(const Node *n, Call *c)
{
    global_avg_pool_call(n, c, call_version(c, "global_avg_pool"));
}

static void global_avg_pool_kernel_dx(const Node *n, Call *c)
{
    global_avg_pool_call(n, c, call_version(c, "global_avg_pool_dx"));
}

const Op op_global_avg_pool[] =
    {{.name = "global_avg_pool",
      .brief = "the mean of each channel of an image",
      .shapes = "x (N, C, H, W)   y (N, C)",
      .formula = "y[c] = mean over i, j of x[c][i][j]",
      .derivative = "dx[c][i][j] = dy[c] / (H W)",
      .note = "Source: Lin, Chen, Yan 2013, \"Network in network\".",
      .arg = {{"x", ARG_TENSOR, NULL, "images (N, C, H, W)"}},
      .flags = OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .shape = global_avg_pool_shape,
      .gradient = global_avg_pool_gradient,
      .kernel = global_avg_pool_kernel,
      .example = "model example(image: f32[1, 6, 6]) {\n"
                 "    h = conv2d(image, 5, kernel = 3) |> tanh |> global_avg_pool\n"
                 "    return dense(h, 3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "global_avg_pool_dx",
      .brief = "gradient of global_avg_pool: spread over the image",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"}},
      .flags = OP_HIDDEN | OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .shape = global_avg_pool_shape_dx,
      .kernel = global_avg_pool_kernel_dx},
     {0}};
