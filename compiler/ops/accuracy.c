/* accuracy.c -- 1 if the true class has the largest number, else 0.  The first of equal numbers
 * counts as the largest.  For sequences, accuracy is the share of correct positions; positions of
 * class -1 do not count.  Accuracy has no gradient. */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"
#include "ops/price.h"

static bool accuracy_shape(Node *n, Diag *d)
{
    return check_labelled(n, d) && loss_result(n, d);
}

static void accuracy_kernel(const Node *n, Call *c)
{
    loss_call_labelled(n, c, "accuracy");
}

/* The largest number and its first index: 5 cycles per vector (measured with 1000 classes). */
static void accuracy_price(const Node *n, const Market *m, Price *p)
{
    price_each(p, m, n, 5.0 / m->lanes);
}

const Op op_accuracy[] =
    {{.name = "accuracy",
      .brief = "1 for each sample whose largest number is that of its class, else 0; a metric",
      .shapes = "x (N, K)   label t (N)   y (N)\n"
                "x (N, T, K)   label t (N, T)   y (N)",
      .formula = "y = 1 if argmax over j of x[j] = t, else 0   of equal maxima the first counts\n"
                 "sequence: the share of the positions with t >= 0",
      .note = "It has no gradient. A program reports it for every classifier without being asked.",
      .arg = {{"x", ARG_TENSOR, NULL, "a number for each class: (N, K), or (N, T, K) of sequences"},
              {"label", ARG_TENSOR, NULL, "the class of each sample, or of each position"}},
      .shape = accuracy_shape,
      .price = accuracy_price,
      .kernel = accuracy_kernel,
      .example = "# The program reports it for every classifier; a model does not name it.\n"
                 "model example(x: f32[6]) {\n"
                 "    return dense(x, 4)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
