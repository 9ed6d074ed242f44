/* transpose.c -- puts the dimensions of a sample into another order.
 *
 *   y[i_0, i_1, ..] = x[j_0, j_1, ..]   with j_axes[d] = i_d: dimension d of y is dimension
 *                                       axes[d] of x
 *   dx = dy with the dimensions in their old order
 *
 * The first dimension of an image is always called its channels, also in the result.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/move.h"

static const char *letters(int rank)
{
    static const char *const axes[] = {"", "F", "TF", "CHW"};
    return rank < 4 ? axes[rank] : NULL;
}

static bool transpose_shape(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    const Attr *a = node_attr(n, "axes");
    int axis[SHAPE_MAX];
    int64_t dim[SHAPE_MAX];
    if (!check_real(n, 0, d) || !check_axes(n, "axes", x->rank, axis, d))
        return false;
    if (a->nlist != x->rank) {
        diag_error(d, node_span(n, "axes"), "transpose axes names %d dimensions of %d", a->nlist,
                   x->rank);
        check_note(n, 0, d);
        diag_help(d, "give each dimension once, in the new order: [0, 2, 1]");
        return false;
    }
    for (int i = 0; i < x->rank; i++)
        dim[i] = x->dim[axis[i]];
    return check_result(n, shape_make(x->batched, letters(x->rank), dim, x->rank), d);
}

static void axes_of(const Node *n, int *axis)
{
    const Attr *a = node_attr(n, "axes");
    for (int i = 0; i < a->nlist; i++)
        axis[i] = (int)(a->list[i] < 0 ? a->list[i] + a->nlist : a->list[i]);
}

static void transpose_gradient(Grad *gr, Node *n, Node *dy)
{
    int axis[SHAPE_MAX];
    int64_t back[SHAPE_MAX];
    Node like = {.op = n->op, .span = n->span};
    axes_of(n, axis);
    for (int i = 0; i < n->shape.rank; i++)
        back[axis[i]] = i;
    node_set_ints(grad_graph(gr), &like, "axes", back, n->shape.rank);
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "transpose", &like, 1, dy));
}

static void transpose_move(const Node *n, int i, Move *m)
{
    (void)i;
    axes_of(n, m->axis);
}

const Op op_transpose[] =
    {{.name = "transpose",
      .brief = "the dimensions of a sample in another order",
      .shapes = "x (N, d_0, d_1, ..)   y (N, d_axes[0], d_axes[1], ..)",
      .formula = "y[i_0, i_1, ..] = x[j_0, j_1, ..]   with j_axes[k] = i_k",
      .derivative = "dx = dy with the dimensions back in their old order",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor"},
              {"axes", ARG_INTS, NULL,
               "the dimensions in their new order, each once, without the batch"}},
      .flags = OP_SPATIAL,
      .strided = STRIDED_OUT,
      .shape = transpose_shape,
      .gradient = transpose_gradient,
      .price = move_price,
      .move = transpose_move,
      .example = "# Rows and columns change places, then channels and columns.\n"
                 "model example(image: f32[2, 5, 4]) {\n"
                 "    h = conv2d(image, 3, kernel = 2) |> tanh |> transpose([0, 2, 1])\n"
                 "    h = conv2d(h, 4, kernel = 2) |> transpose([2, 1, 0])\n"
                 "    return conv2d(h, 2, kernel = 2) |> flatten |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
