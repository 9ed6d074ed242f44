/* pad.c -- puts rows and columns of a constant around an image.
 *
 *   y[c][before + i] = x[c][i] in rows and columns, `value` elsewhere
 *   dx[c][i] = dy[c][before + i]
 *
 * Convolutions and pooling have their own argument pad, which needs no memory.
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/move.h"
#include <string.h>

static const int64_t *after(const Node *n)
{
    const Attr *a = node_attr(n, "after");
    return a ? a->list : node_attr(n, "before")->list;
}

static bool pad_shape(Node *n, Diag *d)
{
    if (!check_image(n, 0, d) || !check_int(n, "before", 0, d) || !check_int(n, "after", 0, d))
        return false;
    Shape y = n->in[0]->shape;
    for (int i = 0; i < 2; i++)
        y.dim[i + 1] += node_attr(n, "before")->list[i] + after(n)[i];
    return check_result(n, y, d);
}

static void pad_gradient(Grad *gr, Node *n, Node *dy)
{
    Node like = {.op = n->op, .span = n->span};
    node_set_ints(grad_graph(gr), &like, "size", n->in[0]->shape.dim + 1, 2);
    node_set_ints(grad_graph(gr), &like, "at", node_attr(n, "before")->list, 2);
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "crop", &like, 1, dy));
}

static void pad_move(const Node *n, int i, Move *m)
{
    (void)i;
    m->scatter = m->filled = true;
    m->fill = node_float(n, "value");
    memcpy(m->start + 1, node_attr(n, "before")->list, 2 * sizeof *m->start);
}

const Op op_pad[] =
    {{.name = "pad",
      .brief = "rows and columns of a constant around an image",
      .shapes = "x (N, C, H, W)   y (N, C, before[0] + H + after[0], before[1] + W + "
                "after[1])",
      .formula = "y[c][before[0] + i][before[1] + j] = x[c][i][j], `value` elsewhere",
      .derivative = "dx[c][i][j] = dy[c][before[0] + i][before[1] + j]",
      .note = "Convolutions and pooling have an argument `pad` of their own, which takes no "
              "memory.",
      .arg = {{"x", ARG_TENSOR, NULL, "images (N, C, H, W)"},
              {"before", ARG_PAIR, NULL, "rows above and columns on the left, at least 0"},
              {"after", ARG_PAIR, "none",
               "rows below and columns on the right, at least 0; default: those of `before`"},
              {"value", ARG_FLOAT, "0", "the value of the padding"}},
      .flags = OP_SPATIAL,
      .shape = pad_shape,
      .gradient = pad_gradient,
      .price = move_price,
      .move = pad_move,
      .example = "model example(image: f32[2, 4, 3]) {\n"
                 "    h = conv2d(image, 3, kernel = 2) |> tanh\n"
                 "    h = pad(h, 1) |> pad([0, 2], after = [1, 0], value = -0.5)\n"
                 "    return conv2d(h, 2, kernel = 2) |> flatten |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
