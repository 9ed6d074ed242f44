/* accuracy.c -- 1 where the largest number stands at the true class (the first of equals), else 0.
 * It has no gradient.  Of sequences, the share of the positions; one whose class is -1 does not count. */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"
#include "ops/price.h"

static bool shape(Node *n, Diag *d)
{
    return check_labelled(n, d) && loss_result(n, d);
}

static void kernel(const Node *n, Call *c)
{
    loss_call_labelled(n, c, "accuracy");
}

/* The largest number and the first place where it stands: 5 cycles a vector (1000 classes). */
static void price(const Node *n, const Market *m, Price *p)
{
    price_each(p, m, n, 5.0 / m->lanes);
}

const Op op_accuracy[] =
    {{.name = "accuracy",
      .brief =
          "1 for each sample whose largest number stands at its class; measured, not trained on",
      .arg = {{"x", ARG_TENSOR, NULL, "vectors (N, K), a number a class, or sequences (N, T, K)"},
              {"label", ARG_TENSOR, NULL, "the class of each sample, or of each position"}},
      .shape = shape,
      .price = price,
      .kernel = kernel,
      .example = "# Every classifier is measured by it: no need to write it.\n"
                 "model example(x: f32[6]) {\n"
                 "    return dense(x, 4)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
