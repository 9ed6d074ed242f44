/* gather.c -- chosen places of one dimension, in any order, some perhaps more than once.
 *
 *   y[.., i, ..] = x[.., index[i], ..]      dx: each place the sum of what was taken of it
 *
 * The places are known at compile time: it is made of slices, neighbours in one, and a concat, whose gradients it has.  Which row
 * of a table a token names is embedding's business.
 */
#include "ops/check.h"
#include "ops/example.h"

static bool shape(Node *n, Diag *d)
{
    const Attr *index = node_attr(n, "index");
    Shape y = n->in[0]->shape;
    int axis;
    if (!check_real(n, 0, d) || !check_axis(n, "axis", y.rank, &axis, d))
        return false;
    if (index->nlist == 0) {
        diag_error(d, node_span(n, "index"), "gather takes no place");
        diag_help(d, "index = [0, 2] takes the first and the third");
        return false;
    }
    for (int i = 0; i < index->nlist; i++) {
        if (index->list[i] >= 0 && index->list[i] < y.dim[axis])
            continue;
        diag_error(d, node_span(n, "index"), "gather of place %lld of a dimension of %lld",
                   (long long)index->list[i], (long long)y.dim[axis]);
        check_note(n, 0, d);
        diag_help(d, "places are 0 to %lld", (long long)y.dim[axis] - 1);
        return false;
    }
    y.dim[axis] = index->nlist;
    return check_result(n, y, d);
}

static Node *build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path, Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    Node *part[16], like = {.op = attrs->op, .span = attrs->span};
    int axis, n = 0;
    (void)path; /* it has no parameters to name */
    node_copy_attrs(g, &probe, attrs);
    if (!shape(&probe, d) || !check_axis(&probe, "axis", x[0]->shape.rank, &axis, d))
        return NULL;
    const Attr *index = node_attr(&probe, "index");
    node_set_int(g, &like, "axis", axis);
    for (int i = 0, end; i < index->nlist; i = end) {
        for (end = i + 1; end < index->nlist && index->list[end] == index->list[end - 1] + 1;)
            end++;
        node_set_int(g, &like, "start", index->list[i]);
        node_set_int(g, &like, "size", end - i);
        part[n++] = op_make_like(g, "slice", &like, 1, x[0]);
    }
    if (n == 1)
        return part[0];
    Node *y = graph_add(g, op_find("concat"), part, n, attrs->span);
    node_set_int(g, y, "axis", axis);
    return y->op->shape(y, d) ? y : NULL;
}

const Op op_gather[] =
    {{.name = "gather",
      .brief = "chosen places of one dimension, in any order",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor"},
              {"index", ARG_INTS, NULL, "the places, counted from 0, at most 16"},
              {"axis", ARG_INT, "0", "the dimension, the batch not counted; -1 is the last"}},
      .shape = shape,
      .build = build,
      .example =
          "# Some steps of a sequence, one of them twice; then its features in another order.\n"
          "model example(x: f32[5, 6]) {\n"
          "    h = dense(x, 4) |> tanh\n"
          "    h = gather(h, [4, 0, 1, 4]) * gather(h, [1, 2, 3, 4])\n"
          "    h = gather(h, [3, 1, 0, 2], axis = -1) |> sigmoid\n"
          "    return flatten(h) |> dense(3)\n"
          "}\n" EXAMPLE_TRAIN},
     {0}};
