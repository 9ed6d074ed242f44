/* one_hot.c -- a class number as a vector: y[i] = 1 where i is the class, else 0.  It has no
 * gradient. */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

static bool shape(Node *n, Diag *d)
{
    if (!check_label(n, 0, d) || !check_int(n, "classes", 1, d))
        return false;
    const int64_t k = node_int(n, "classes");
    return check_result(n, shape_make(true, "F", &k, 1), d);
}

static void kernel(const Node *n, Call *c)
{
    call_fn(c, "one_hot");
    call_out(c, n);
    call_in(c, n->in[0]);
    call_text(c, "%lld, %lld", (long long)c->n, (long long)node_int(n, "classes"));
}

const Op op_one_hot[] = {{.name = "one_hot",
                          .brief = "the class of each sample as a vector of zeros with a one",
                          .arg = {{"label", ARG_TENSOR, NULL, "the class of each sample"},
                                  {"classes", ARG_INT, NULL, "how many there are"}},
                          .shape = shape,
                          .kernel = kernel,
                          .example =
                              "model example(x: f32[6]) {\n"
                              "    return dense(x, 4) |> tanh\n"
                              "}\n" EXAMPLE_RECIPE("mse(output, one_hot(label, classes = 4))")},
                         {0}};
