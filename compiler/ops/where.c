/* where.c -- takes each number from one of two tensors.
 *
 *   y[i] = a[i] if c[i] is not 0, else b[i]
 *   da[i] = dy[i] if c[i] is not 0, else 0;   db[i] = dy[i] if c[i] is 0, else 0
 *
 * It is the sum of the rows where_true and where_false of elementwise.def, of which one is 0.  So a
 * NaN in the operand that is not taken has no effect.
 */
#include "ops/example.h"
#include "ops/op.h"

static Node *where_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                         Diag *d)
{
    (void)nx, (void)path; /* where has no parameters */
    Node *half[2];
    for (int i = 0; i < 2; i++) {
        Node *in[2] = {x[i + 1], x[0]};
        half[i] = graph_add(g, op_find(i ? "where_false" : "where_true"), in, 2, attrs->span);
        if (!half[i]->op->shape(half[i], d))
            return NULL;
    }
    Node *y = graph_add(g, op_find("add"), half, 2, attrs->span);
    return y->op->shape(y, d) ? y : NULL;
}

const Op op_where[] =
    {{.name = "where",
      .brief = "takes each number from one of two tensors",
      .shapes = "c, a, b (N, ..) or numbers   y (N, ..), the largest in each dimension",
      .formula = "y = a if c is not 0, else b",
      .derivative = "da = dy if c is not 0, else 0\ndb = dy if c is 0, else 0",
      .note = "A comparison of tensors, such as `h > 0`, gives c. Dimensions are matched from the "
              "right; 1 or a missing one is repeated, as in NumPy. c has no gradient. What is not "
              "taken has no effect, also if it is not a number.",
      .arg = {{"c", ARG_TENSOR, NULL, "a tensor of ones and zeros"},
              {"a", ARG_TENSOR, NULL, "a tensor or a number, taken where c is not 0"},
              {"b", ARG_TENSOR, NULL, "a tensor or a number, taken where c is 0"}},
      .flags = OP_ELEMENTWISE | OP_MAP,
      .build = where_build,
      .example = "model example(x: f32[6]) {\n"
                 "    h = dense(x, 5)\n"
                 "    h = where(h > 0, log(1 + abs(h)), 0.5 * h)\n"
                 "    return dense(h, 3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
