/* global_max_pool.c -- the largest number of each channel.
 *
 *   y[c] = max over i, j of x[c][i][j];   dx: dy goes to the first maximum, in row-major order
 *
 * amax(x, axes = [1, 2]) divides dy among equal maxima instead.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/price.h"

static bool global_max_pool_shape(Node *n, Diag *d)
{
    if (!check_image(n, 0, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    return check_result(n, shape_make(x->batched, "C", x->dim, 1), d);
}

static void global_max_pool_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    grad_add(gr, n->in[0], op_make_like(g, "global_max_pool_dx", n, 2, n->in[0], dy));
}

/* One pass over the image, or two. */
static void global_max_pool_price(const Node *n, const Market *m, Price *p)
{
    const int64_t *x = n->in[0]->shape.dim;
    const double vectors = (double)(m->n * x[1] * x[2] * ceil_div(x[0], m->lanes));
    price_each(p, m, n, 0);
    p->cycles += vectors * (node_is(n, "global_max_pool_dx") ? 4 : 1);
}

static void global_max_pool_call(const Node *n, Call *c, const char *fn)
{
    const int64_t *x = n->in[0]->shape.dim;
    call_fn(c, node_attr(n, "last") ? arena_printf(c->arena, "%s_last", fn) : fn);
    call_in_parts(c, n);
    call_text(c, "%lld, %lld, %lld", (long long)c->n, (long long)x[0], (long long)(x[1] * x[2]));
}

static void global_max_pool_kernel(const Node *n, Call *c)
{
    global_max_pool_call(n, c, call_version(c, "global_max_pool"));
}

static void global_max_pool_kernel_dx(const Node *n, Call *c)
{
    global_max_pool_call(n, c, call_version(c, "global_max_pool_dx"));
}

const Op op_global_max_pool[] =
    {{.name = "global_max_pool",
      .brief = "the largest number of each channel of an image",
      .shapes = "x (N, C, H, W)   y (N, C)",
      .formula = "y[c] = max over i, j of x[c][i][j]",
      .derivative = "dx: dy is added at the first maximum, in row-major order",
      .note = "amax(x, axes = [1, 2]) has the same result, and divides the gradient among equal "
              "maxima. For sequences, use amax(x, axes = [0]).",
      .arg = {{"x", ARG_TENSOR, NULL, "images (N, C, H, W)"}},
      .flags = OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .shape = global_max_pool_shape,
      .gradient = global_max_pool_gradient,
      .price = global_max_pool_price,
      .kernel = global_max_pool_kernel,
      .example = "model example(image: f32[1, 6, 6]) {\n"
                 "    h = conv2d(image, 5, kernel = 3) |> tanh |> global_max_pool\n"
                 "    return dense(h, 3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "global_max_pool_dx",
      .brief = "gradient of global_max_pool: to the first maximum",
      .arg = {{"x", ARG_TENSOR, NULL, "images"},
              {"dy", ARG_TENSOR, NULL, "gradient of the result"}},
      .flags = OP_HIDDEN | OP_SPATIAL,
      .half = HALF_USE_IN_OUT,
      .shape = check_like_first,
      .price = global_max_pool_price,
      .kernel = global_max_pool_kernel_dx},
     {0}};
