/* split.c -- splits a tensor into equal parts, and stacks tensors along a new dimension.
 *
 *   split   the list of x's parts along `axis`: each a slice
 *   stack   y[.., i, ..] = x_i[..]: a new dimension in the place of `axis`
 *
 * Both consist of slice, reshape and concat, and use their gradients.
 */
#include "ops/check.h"
#include "ops/example.h"
#include <string.h>

static bool split_shape_split(Node *n, Diag *d)
{
    int axis;
    if (!check_real(n, 0, d) || !check_int(n, "parts", 1, d) ||
        !check_axis(n, "axis", n->in[0]->shape.rank, &axis, d))
        return false;
    const int64_t have = n->in[0]->shape.dim[axis], parts = node_int(n, "parts");
    if (have % parts == 0)
        return true;
    diag_error(d, node_span(n, "parts"), "split of a dimension of %lld into %lld equal parts",
               (long long)have, (long long)parts);
    check_note(n, 0, d);
    diag_help(d, "slice(x, axis, start, size) takes a part of any size");
    return false;
}

static int split_parts(Graph *g, Node *const *x, const Node *attrs, Diag *d, Node ***part)
{
    Node probe = {.op = attrs->op, .nin = 1, .in = (Node **)x, .span = attrs->span};
    int axis, n = 0;
    node_copy_attrs(g, &probe, attrs);
    if (!split_shape_split(&probe, d) || !check_axis(&probe, "axis", x[0]->shape.rank, &axis, d))
        return 0;
    const int64_t count = node_int(attrs, "parts"), size = x[0]->shape.dim[axis] / count;
    for (int64_t i = 0; i < count; i++) {
        Node like = {.op = attrs->op, .span = attrs->span};
        node_set_int(g, &like, "axis", axis);
        node_set_int(g, &like, "start", i * size);
        node_set_int(g, &like, "size", size);
        ARENA_PUSH(g->arena, *part, n, op_make_like(g, "slice", &like, 1, x[0]));
    }
    return n;
}

/* Sets the shape: that of the tensors, with their number as the new dimension. */
static bool split_shape_stack(Node *n, Diag *d)
{
    const Shape *a = &n->in[0]->shape;
    int axis;
    if (!check_real(n, 0, d) || !check_axis(n, "axis", a->rank + 1, &axis, d))
        return false;
    if (a->rank == SHAPE_MAX) {
        diag_error(d, n->span, "stack makes more than %d dimensions", SHAPE_MAX);
        return false;
    }
    for (int i = 1; i < n->nin; i++) {
        if (!check_real(n, i, d))
            return false;
        if (shape_same(a, &n->in[i]->shape))
            continue;
        diag_error(d, n->span, "stack of %s and %s: the shapes differ",
                   shape_text(diag_arena(d), a), shape_text(diag_arena(d), &n->in[i]->shape));
        check_note(n, 0, d);
        check_note(n, i, d);
        return false;
    }
    int64_t dim[SHAPE_MAX];
    for (int i = 0, k = 0; i <= a->rank; i++)
        dim[i] = i == axis ? n->nin : a->dim[k++];
    return check_result(n, shape_make(a->batched, NULL, dim, a->rank + 1), d);
}

static Node *split_build_stack(Graph *g, Node *const *x, int nx, const Node *attrs,
                               const char *path, Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    Node *joined = graph_add(g, op_find("concat"), x, nx, attrs->span);
    Node like = {.op = attrs->op, .span = attrs->span};
    int axis;
    (void)path; /* stack has no parameters */
    node_copy_attrs(g, &probe, attrs);
    if (!split_shape_stack(&probe, d) || !check_axis(&probe, "axis", probe.shape.rank, &axis, d))
        return NULL;
    int64_t dim[SHAPE_MAX];
    memcpy(dim, probe.shape.dim, sizeof dim);
    dim[axis] = 1;
    node_set_ints(g, &like, "shape", dim, probe.shape.rank);
    for (int i = 0; i < nx; i++)
        joined->in[i] = op_make_like(g, "reshape", &like, 1, x[i]);
    node_set_int(g, joined, "axis", axis);
    joined->op->shape(joined, d);
    graph_sort(g);
    return joined;
}

const Op op_split[] =
    {{.name = "split",
      .brief = "a list of equal parts of a tensor along one dimension",
      .shapes = "x (N, .., K, ..)   y_i (N, .., K / parts, ..)   i < parts",
      .formula = "y_i[.., j, ..] = x[.., i K / parts + j, ..]",
      .derivative = "dx = dy_0, then dy_1, .. along axis",
      .note = "The result is a list: p = split(x, 3), then p[0], p[1], p[2].",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor"},
              {"parts", ARG_INT, NULL, "number of parts, at least 1; it divides the dimension"},
              {"axis", ARG_INT, "0", "the dimension, without the batch; -1 is the last"}},
      .shape = split_shape_split,
      .parts = split_parts,
      .example = "model example(x: f32[5, 6]) {\n"
                 "    p = split(dense(x, 8), 2, axis = -1)\n"
                 "    h = p[0] * sigmoid(p[1])\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "stack",
      .brief = "tensors of one shape joined along a new dimension",
      .shapes = "x_i (N, A, ..)   y (N, .., P, ..)   P = number of tensors, at the place of axis",
      .formula = "y[.., i, ..] = x_i[..]",
      .derivative = "dx_i = dy[.., i, ..]",
      .note = "The result has at most 6 dimensions.",
      .arg = {{"x", ARG_TENSORS, NULL, "the tensors to join"},
              {"axis", ARG_INT, "0", "the index of the new dimension, without the batch"}},
      .shape = split_shape_stack,
      .build = split_build_stack,
      .example = "# Two steps of two features, then the features first.\n"
                 "model example(x: f32[6]) {\n"
                 "    a = dense(x, 4) |> tanh\n"
                 "    b = dense(x, 4) |> sigmoid\n"
                 "    h = stack(a, b) |> dense(3)\n"
                 "    h = stack([h, h * h], axis = -1)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
