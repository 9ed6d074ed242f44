/* softmax.c -- numbers made into probabilities.
 *
 *   y[i] = exp(x[i] - m) / sum over j of exp(x[j] - m)          m = max x
 *   dx[i] = y[i] (dy[i] - sum over j of dy[j] y[j])
 *
 * For training, softmax_cross_entropy on the numbers themselves is exact where a logarithm of
 * this would not be.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

static bool shape(Node *n, Diag *d)
{
    return check_vector(n, 0, d) && check_result(n, n->in[0]->shape, d);
}

static void gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make(grad_graph(gr), "softmax_dx", n->span, 2, n, dy));
}

static void call(const Node *n, Call *c, const char *fn)
{
    call_fn(c, fn);
    call_out(c, n);
    for (int i = 0; i < n->nin; i++)
        call_in(c, n->in[i]);
    call_text(c, "%lld, %lld", (long long)c->n, (long long)shape_count(&n->shape));
}

static void kernel(const Node *n, Call *c)
{
    call(n, c, c->plain ? "softmax_plain" : "softmax");
}

static void kernel_dx(const Node *n, Call *c)
{
    call(n, c, c->plain ? "softmax_dx_plain" : "softmax_dx");
}

const Op op_softmax[] = {{.name = "softmax",
                          .brief = "numbers made into probabilities",
                          .arg = {{"x", ARG_TENSOR, NULL, "vectors (N, F)"}},
                          .shape = shape,
                          .gradient = gradient,
                          .price = loss_price,
                          .kernel = kernel,
                          .example =
                              "# A soft choice between features, then a layer on what was chosen.\n"
                              "model example(x: f32[6]) {\n"
                              "    gate = dense(x, 5) |> softmax\n"
                              "    h = dense(x, 5) * gate\n"
                              "    return dense(h, 3)\n"
                              "}\n" EXAMPLE_TRAIN},
                         {.name = "softmax_dx",
                          .brief = "gradient of softmax",
                          .arg = {{"y", ARG_TENSOR, NULL, "probabilities"},
                                  {"dy", ARG_TENSOR, NULL, "gradient of the result"}},
                          .flags = OP_HIDDEN,
                          .shape = shape,
                          .price = loss_price,
                          .kernel = kernel_dx},
                         {0}};
