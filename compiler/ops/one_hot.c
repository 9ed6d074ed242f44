/* one_hot.c -- a class number or token as a vector: y[i] = 1 where i is the class, else 0.  It
 * has no gradient.
 *
 *   t (N) or (N, T)   y (N, K) or (N, T, K)
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/loss.h"

static bool one_hot_shape(Node *n, Diag *d)
{
    if (!check_numbers(n, 0, d) || !check_int(n, "classes", 1, d) ||
        !check_vocab(n, 0, "classes", d))
        return false;
    Shape s = n->in[0]->shape;
    if (s.rank == SHAPE_MAX) {
        diag_error(d, n->span, "one_hot of %s would have more than %d dimensions",
                   shape_text(diag_arena(d), &s), SHAPE_MAX);
        return false;
    }
    s.dim[s.rank] = node_int(n, "classes");
    s.axis[s.rank++] = 'F';
    return check_result(n, s, d);
}

static void one_hot_kernel(const Node *n, Call *c)
{
    call_fn(c, "one_hot");
    call_in_parts(c, n);
    call_text(c, "%lld, %lld", (long long)(c->n * shape_count(&n->in[0]->shape)),
              (long long)node_int(n, "classes"));
}

const Op op_one_hot[] = {{.name = "one_hot",
                          .brief =
                              "a class number or token as a vector: 1 at its index, 0 elsewhere",
                          .shapes = "label (N) or (N, T)   y (N, K) or (N, T, K)   K = classes",
                          .formula = "y[i] = 1 if i = label, else 0",
                          .note = "It has no gradient.",
                          .arg = {{"label", ARG_TENSOR, NULL, "class numbers (N) or tokens (N, T)"},
                                  {"classes", ARG_INT, NULL, "number of classes, at least 1"}},
                          .flags = OP_POSITION,
                          .shape = one_hot_shape,
                          .kernel = one_hot_kernel,
                          .example =
                              "model example(x: f32[6]) {\n"
                              "    return dense(x, 4) |> tanh\n"
                              "}\n" EXAMPLE_RECIPE("mse(output, one_hot(label, classes = 4))")},
                         {0}};
