/* crop.c -- cuts a window out of an image.
 *
 *   y[c][i][j] = x[c][top + i][left + j], i < rows, j < columns;   dx = dy in the window, else 0
 *
 * Without `at`, the window is in the middle; an odd row or column remains below or to the right.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/move.h"
#include <string.h>

static bool too_large(const Node *n, const int64_t *size, const int64_t *at, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    const bool placed = node_attr(n, "at") != NULL;
    diag_error(d, node_span(n, placed ? "at" : "size"),
               "crop of %lldx%lld at [%lld, %lld] is not inside the image of %lldx%lld",
               (long long)size[0], (long long)size[1], (long long)at[0], (long long)at[1],
               (long long)x->dim[1], (long long)x->dim[2]);
    check_note(n, 0, d);
    diag_help(d, "pad(x, ..) makes images larger");
    return false;
}

static void place(const Node *n, int64_t at[2])
{
    const Attr *given = node_attr(n, "at");
    const int64_t *size = node_attr(n, "size")->list;
    for (int i = 0; i < 2; i++)
        at[i] = given ? given->list[i] : (n->in[0]->shape.dim[i + 1] - size[i]) / 2;
}

static bool crop_shape(Node *n, Diag *d)
{
    if (!check_image(n, 0, d) || !check_int(n, "size", 1, d) || !check_int(n, "at", 0, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    const int64_t *size = node_attr(n, "size")->list;
    int64_t at[2];
    place(n, at);
    for (int i = 0; i < 2; i++)
        if (size[i] > x->dim[i + 1] || at[i] + size[i] > x->dim[i + 1])
            return too_large(n, size, at, d);
    Shape y = *x;
    memcpy(y.dim + 1, size, 2 * sizeof *size);
    return check_result(n, y, d);
}

static void crop_gradient(Grad *gr, Node *n, Node *dy)
{
    int64_t start[3] = {0};
    Node like = {.op = n->op, .span = n->span};
    place(n, start + 1);
    node_set_ints(grad_graph(gr), &like, "x_shape", n->in[0]->shape.dim, 3);
    node_set_ints(grad_graph(gr), &like, "start", start, 3);
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "slice_dx", &like, 1, dy));
}

static void crop_move(const Node *n, int i, Move *m)
{
    (void)i;
    for (int k = 0; k < 3; k++)
        m->axis[k] = k;
    place(n, m->start + 1);
}

const Op op_crop[] =
    {{.name = "crop",
      .brief = "a window of an image",
      .shapes = "x (N, C, H, W)   y (N, C, size[0], size[1])",
      .formula = "y[c][i][j] = x[c][top + i][left + j]",
      .derivative = "dx[c][top + i][left + j] = dy[c][i][j], 0 elsewhere",
      .note = "Without `at` the window lies in the middle: top = floor((H - size[0]) / 2), left "
              "likewise.",
      .arg = {{"x", ARG_TENSOR, NULL, "images (N, C, H, W)"},
              {"size", ARG_PAIR, NULL, "rows and columns of the window, at most those of x"},
              {"at", ARG_PAIR, "none",
               "first row and column of the window; default: in the middle"}},
      .flags = OP_SPATIAL,
      .strided = STRIDED_OUT,
      .shape = crop_shape,
      .gradient = crop_gradient,
      .price = move_price,
      .move = crop_move,
      .example =
          "# The shortcut of an unpadded layer.\n"
          "model example(image: f32[3, 7, 6]) {\n"
          "    h = conv2d(image, 3, kernel = 1) |> tanh\n"
          "    h = conv2d(h, 3, kernel = 3) + crop(h, [5, 4]) * crop(h, [5, 4], at = [2, 0])\n"
          "    return flatten(h) |> dense(3)\n"
          "}\n" EXAMPLE_TRAIN},
     {0}};
