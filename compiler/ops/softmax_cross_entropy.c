/* softmax_cross_entropy.c -- the loss of classification: minus the log of the probability given
 * to the true class.
 *
 *   y = log(sum over j of exp(x[j] - m)) - (x[t] - m)           m = max x
 *   dx[i] = (softmax(x)[i] - [i = t]) dy
 *
 *   x (N, K)   label t (N), 0 <= t < K   y (N)      the program's loss is the mean over the batch
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

static bool shape(Node *n, Diag *d)
{
    return check_vector(n, 0, d) && check_label(n, 1, d) && loss_result(n, d);
}

static void gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0],
             op_make(grad_graph(gr), "softmax_cross_entropy_dx", n->span, 3, n->in[0], n->in[1],
                     dy));
}

static bool shape_dx(Node *n, Diag *d)
{
    return check_result(n, n->in[0]->shape, d);
}

static void kernel(const Node *n, Call *c)
{
    loss_call(n, c, c->plain ? "softmax_cross_entropy_plain" : "softmax_cross_entropy");
}

static void kernel_dx(const Node *n, Call *c)
{
    loss_call(n, c, c->plain ? "softmax_cross_entropy_dx_plain" : "softmax_cross_entropy_dx");
}

const Op op_softmax_cross_entropy[] =
    {{.name = "softmax_cross_entropy",
      .brief = "the loss of classification, from numbers that softmax would make probabilities",
      .arg = {{"x", ARG_TENSOR, NULL, "vectors (N, K), a number a class"},
              {"label", ARG_TENSOR, NULL, "the class of each sample"}},
      .shape = shape,
      .gradient = gradient,
      .price = loss_price,
      .kernel = kernel,
      .example = "# As a loss it may stand alone, as here, or in a sum: "
                 "softmax_cross_entropy(output, label) + ...\n"
                 "model example(x: f32[6]) {\n"
                 "    return dense(x, 4)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "softmax_cross_entropy_dx",
      .brief = "gradient of softmax_cross_entropy",
      .arg = {{"x", ARG_TENSOR, NULL, "vectors"},
              {"label", ARG_TENSOR, NULL, "classes"},
              {"dy", ARG_TENSOR, NULL, "gradient of each sample's loss"}},
      .flags = OP_HIDDEN,
      .shape = shape_dx,
      .price = loss_price,
      .kernel = kernel_dx},
     {0}};
