/* argmax.c -- the index of the largest number along one dimension, as a number.
 *
 *   y = the smallest i with x[i] = max x; no gradient
 */
#include "ops/along.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/price.h"

static bool argmax_shape(Node *n, Diag *d)
{
    static const char *const axes[] = {"", "F", "TF", "CHW"};
    const Shape *x = &n->in[0]->shape;
    int64_t dim[SHAPE_MAX];
    int axis, rank = 0;
    if (!check_real(n, 0, d) || !check_axis(n, "axis", x->rank, &axis, d))
        return false;
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            dim[rank++] = x->dim[i];
    return check_result(n, shape_make(x->batched, rank < 4 ? axes[rank] : NULL, dim, rank), d);
}

static void argmax_kernel(const Node *n, Call *c)
{
    const Along a = along(n, c);
    call_kernel(c, "argmax");
    c->parts = true;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_text(c, "%lld, %lld, %lld", (long long)a.outer, (long long)a.k, (long long)a.inner);
}

/* Two passes over the numbers: the maximum, and its index. */
static void argmax_price(const Node *n, const Market *m, Price *p)
{
    price_each(p, m, n, 2.0 / m->lanes + 0.5);
}

const Op op_argmax[] =
    {{.name = "argmax",
      .brief = "index of the largest number along one dimension; no gradient",
      .shapes = "x (N, .., K, ..)   y (N, .., ..) without the dimension axis",
      .formula = "y = the smallest i with x[i] = max x, from 0 to K - 1   i along axis",
      .note = "The index is a number. Numbers of 2^24 and more are not exact in f32.",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor of at least one dimension"},
              {"axis", ARG_INT, "-1", "the dimension, without the batch; -1 is the last"}},
      .shape = argmax_shape,
      .price = argmax_price,
      .kernel = argmax_kernel,
      .example =
          "# The step with the largest number of each feature.\n"
          "model example(x: f32[5, 6]) {\n"
          "    h = dense(x, 4)\n"
          "    return concat(0.2 * argmax(x, axis = 0), flatten(tanh(h)), axis = 0) |> dense(3)\n"
          "}\n" EXAMPLE_TRAIN},
     {0}};
