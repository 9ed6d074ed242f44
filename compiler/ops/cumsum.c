/* cumsum.c -- the running sum along one dimension.
 *
 *   y[i] = x[0] + .. + x[i]             reverse: y[i] = x[i] + .. + x[K - 1]
 *   dx[i] = dy[i] + .. + dy[K - 1]      reverse: dx[i] = dy[0] + .. + dy[i]
 *
 * The terms are added in the order of the formula, one after another, from the end that y begins
 * with.
 */
#include "ops/along.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/price.h"

static bool cumsum_shape(Node *n, Diag *d)
{
    int axis;
    return check_real(n, 0, d) && check_axis(n, "axis", n->in[0]->shape.rank, &axis, d) &&
           check_result(n, n->in[0]->shape, d);
}

static void cumsum_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node like = {.op = n->op, .span = n->span};
    node_set_int(g, &like, "axis", node_int(n, "axis"));
    node_set_attr(g->arena, &like,
                  (Attr){.key = "reverse", .kind = ATTR_BOOL, .i = !node_bool(n, "reverse")});
    grad_add(gr, n->in[0], op_make_like(g, "cumsum", &like, 1, dy));
}

static void cumsum_kernel(const Node *n, Call *c)
{
    const Along a = along(n, c);
    call_kernel(c, "cumsum");
    c->parts = true;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_text(c, "%lld, %lld, %lld, %s", (long long)a.outer, (long long)a.k, (long long)a.inner,
              node_bool(n, "reverse") ? "true" : "false");
}

/* A sum waits for the one before it, so rows of adjacent numbers take the latency of additions. */
static void cumsum_price(const Node *n, const Market *m, Price *p)
{
    price_each(p, m, n, along_axis(n) == n->in[0]->shape.rank - 1 ? 1.5 : 2.0 / m->lanes);
}

const Op op_cumsum[] =
    {{.name = "cumsum",
      .brief = "running sum along one dimension",
      .shapes = "x, y (N, ..)",
      .formula = "y[i] = x[0] + .. + x[i]   i along axis\n"
                 "reverse: y[i] = x[i] + .. + x[K - 1]",
      .derivative = "dx[i] = dy[i] + .. + dy[K - 1]\n"
                    "reverse: dx[i] = dy[0] + .. + dy[i]",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor of any shape"},
              {"axis", ARG_INT, "-1", "the dimension, without the batch; -1 is the last"},
              {"reverse", ARG_BOOL, "false", "sum from the last number to the first"}},
      .shape = cumsum_shape,
      .gradient = cumsum_gradient,
      .price = cumsum_price,
      .kernel = cumsum_kernel,
      .example = "model example(x: f32[5, 6]) {\n"
                 "    h = dense(x, 4) |> tanh\n"
                 "    h = cumsum(h, axis = 0) + cumsum(h, reverse = true)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
