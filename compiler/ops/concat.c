/* concat.c -- joins tensors along one dimension.
 *
 *   y = x0, then x1, ... along `axis`;   dx_i = the slice of dy that holds x_i
 *
 *   x_i (N, C_i, H, W)   y (N, C_0 + C_1 + .., H, W), likewise for any axis and rank
 */
#include "ops/along.h"
#include "ops/check.h"
#include "ops/example.h"
#include "ops/move.h"

/* Whether the shapes are equal except for the joined dimension. */
static bool check_fit(const Node *n, int i, int axis, Diag *d)
{
    const Shape *a = &n->in[0]->shape, *b = &n->in[i]->shape;
    if (!check_real(n, i, d))
        return false;
    bool fits = a->rank == b->rank && a->batched == b->batched;
    int at = -1;
    for (int k = 0; fits && k < a->rank; k++)
        if (k != axis && a->dim[k] != b->dim[k])
            fits = false, at = k;
    if (fits)
        return true;
    Arena *arena = diag_arena(d);
    diag_error(d, n->span, "concat of %s and %s along axis %d does not fit%s", shape_text(arena, a),
               shape_text(arena, b), axis,
               at < 0 ? ": their ranks differ"
                      : arena_printf(arena, ": %lld against %lld", (long long)a->dim[at],
                                     (long long)b->dim[at]));
    check_note(n, 0, d);
    check_note(n, i, d);
    diag_help(d, "all dimensions except that of axis must be equal; axis 0 is the first one after "
                 "the batch");
    return false;
}

static bool concat_shape(Node *n, Diag *d)
{
    int axis;
    if (!check_real(n, 0, d) || !check_axis(n, "axis", n->in[0]->shape.rank, &axis, d))
        return false;
    Shape y = n->in[0]->shape;
    for (int i = 1; i < n->nin; i++) {
        if (!check_fit(n, i, axis, d))
            return false;
        y.dim[axis] += n->in[i]->shape.dim[axis];
    }
    return check_result(n, y, d);
}

static void concat_gradient(Grad *gr, Node *n, Node *dy)
{
    const int axis = along_axis(n);
    int64_t start = 0;
    for (int i = 0; i < n->nin; i++) {
        Node like = {.op = n->op, .span = n->span};
        const int64_t size = n->in[i]->shape.dim[axis];
        node_set_int(grad_graph(gr), &like, "axis", axis);
        node_set_int(grad_graph(gr), &like, "start", start);
        node_set_int(grad_graph(gr), &like, "size", size);
        if (grad_wanted(gr, n->in[i]))
            grad_add(gr, n->in[i], op_make_like(grad_graph(gr), "slice", &like, 1, dy));
        start += size;
    }
}

static void concat_move(const Node *n, int i, Move *m)
{
    const int axis = along_axis(n);
    m->scatter = true;
    for (int k = 0; k < i; k++)
        m->start[axis] += n->in[k]->shape.dim[axis];
}

const Op op_concat[] =
    {{.name = "concat",
      .brief = "tensors joined along one dimension",
      .shapes = "x_i (N, C_i, H, W)   y (N, C_0 + C_1 + .., H, W)   likewise for any axis "
                "and rank",
      .formula = "y = x_0, then x_1, .. along axis",
      .derivative = "dx_i = the part of dy that holds x_i",
      .note = "The other dimensions must be equal.",
      .arg = {{"x", ARG_TENSORS, NULL, "the tensors to join"},
              {"axis", ARG_INT, "0",
               "the dimension, without the batch: 0 is the channels of images, -1 the last"}},
      .flags = OP_SPATIAL | OP_POSITION,
      .strided = STRIDED_OUT,
      .shape = concat_shape,
      .gradient = concat_gradient,
      .price = move_price,
      .move = concat_move,
      .example = "# Three branches over the same image, their channels side by side.\n"
                 "model example(image: f32[2, 5, 4]) {\n"
                 "    a = conv2d(image, 3, kernel = 1) |> tanh\n"
                 "    b = conv2d(image, 2, kernel = 3, pad = 1) |> sigmoid\n"
                 "    h = concat(a, b, image)\n"
                 "    h = concat([h, h * 2], axis = 2) |> conv2d(3, kernel = 2)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
