/* slice.c -- a range of indices of one dimension.
 *
 *   y[.., i, ..] = x[.., start + i, ..], i < size
 *   dx[.., start + i, ..] = dy[.., i, ..], 0 elsewhere
 */
#include "ops/along.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/move.h"
#include <string.h>

static bool slice_shape(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    int axis;
    if (!check_real(n, 0, d) || !check_axis(n, "axis", x->rank, &axis, d) ||
        !check_int(n, "start", 0, d) || !check_int(n, "size", 1, d))
        return false;
    const int64_t start = node_int(n, "start"), size = node_int(n, "size"), have = x->dim[axis];
    if (start + size > have) {
        diag_error(d, node_span(n, "size"), "slice takes %lld to %lld of a dimension of %lld",
                   (long long)start, (long long)(start + size - 1), (long long)have);
        check_note(n, 0, d);
        diag_help(d, "use start + size <= %lld", (long long)have);
        return false;
    }
    Shape y = *x;
    y.dim[axis] = size;
    return check_result(n, y, d);
}

/* Gives slice_dx the attributes x_shape and start, so that it knows where dx is 0. */
static void slice_gradient(Grad *gr, Node *n, Node *dy)
{
    const Shape *x = &n->in[0]->shape;
    int64_t start[SHAPE_MAX] = {0};
    Node like = {.op = n->op, .span = n->span};
    start[along_axis(n)] = node_int(n, "start");
    node_set_ints(grad_graph(gr), &like, "x_shape", x->dim, x->rank);
    node_set_ints(grad_graph(gr), &like, "start", start, x->rank);
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "slice_dx", &like, 1, dy));
}

static void slice_move(const Node *n, int i, Move *m)
{
    (void)i;
    for (int k = 0; k < n->shape.rank; k++)
        m->axis[k] = k;
    m->start[along_axis(n)] = node_int(n, "start");
}

static bool slice_shape_dx(Node *n, Diag *d)
{
    Shape x = n->in[0]->shape;
    memcpy(x.dim, node_attr(n, "x_shape")->list, (size_t)x.rank * sizeof *x.dim);
    return check_result(n, x, d);
}

static void slice_move_dx(const Node *n, int i, Move *m)
{
    (void)i;
    m->scatter = m->filled = true;
    memcpy(m->start, node_attr(n, "start")->list, (size_t)n->shape.rank * sizeof *m->start);
}

const Op op_slice[] =
    {{.name = "slice",
      .brief = "a range of one dimension",
      .shapes = "x (N, .., K, ..)   y (N, .., size, ..)",
      .formula = "y[.., i, ..] = x[.., start + i, ..]   i < size",
      .derivative = "dx[.., start + i, ..] = dy[.., i, ..], 0 elsewhere",
      .note = "start + size is at most the dimension.",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor"},
              {"axis", ARG_INT, NULL,
               "the dimension, without the batch: 0 is the channels of images, -1 the last"},
              {"start", ARG_INT, NULL, "the first index, at least 0"},
              {"size", ARG_INT, NULL, "number of elements, at least 1"}},
      .flags = OP_SPATIAL | OP_POSITION,
      .strided = STRIDED_OUT,
      .shape = slice_shape,
      .gradient = slice_gradient,
      .price = move_price,
      .move = slice_move,
      .example = "# Half of the channels go through a layer of their own.\n"
                 "model example(image: f32[2, 5, 4]) {\n"
                 "    h = conv2d(image, 4, kernel = 1) |> tanh\n"
                 "    a = slice(h, axis = 0, start = 0, size = 2) |> conv2d(2, kernel = 1)\n"
                 "    b = slice(h, axis = 0, start = 1, size = 3) |> slice(1, 1, 3)\n"
                 "    return concat(flatten(a), flatten(b)) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "slice_dx",
      .brief = "gradient of slice, crop and gather: dy in its place, 0 elsewhere",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"}},
      .flags = OP_HIDDEN | OP_SPATIAL,
      .shape = slice_shape_dx,
      .price = move_price,
      .move = slice_move_dx},
     {0}};
