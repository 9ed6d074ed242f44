/* prelu.c -- rectified linear unit with a learned slope below zero.
 *
 *   y = x if x > 0, else w[c] x      one slope for each channel, or one for all (shared)
 *   dx = dy if x > 0, else w[c] dy   dw[c] = sum over samples and pixels of dy x where x <= 0
 *
 *   x, y (N, C, H, W), (N, T, C) or (N, C)      w (C), or (1)
 *
 * The row prelu_y of elementwise.def computes it from x and the slope of each number; op bias
 * repeats w over the pixels.  Pass chains makes one loop of both.  Source: He, Zhang, Ren & Sun
 * 2015, "Delving deep into rectifiers".
 */
#include "ops/check.h"
#include "ops/example.h"

static bool prelu_shape(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    if (!check_real(n, 0, d))
        return false;
    if (x->rank >= 1)
        return check_result(n, *x, d);
    diag_error(d, n->span, "prelu needs a dimension beside the batch, got %s",
               shape_text(diag_arena(d), x));
    check_note(n, 0, d);
    diag_help(d, "reshape it first: reshape(x, [1])");
    return false;
}

static Node *prelu_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                         Diag *d)
{
    const Span at = attrs->span;
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = at};
    if (!prelu_shape(&probe, d))
        return NULL;
    const Shape *s = &x[0]->shape;
    const bool shared = node_bool(attrs, "shared");
    const int64_t count = shared ? 1 : s->dim[s->rank == 2]; /* as for op bias */
    const Init init = {.kind = INIT_CONSTANT, .a = node_float(attrs, "slope")};
    Node *w = graph_param(g, d, arena_printf(g->arena, "%s.weight", path),
                          shape_make(false, "C", &count, 1), &init, at);
    if (!w)
        return NULL;
    if (!shared)
        w = op_make(g, "bias", at, 2, graph_const(g, 0, *s, at), w);
    Node *y = op_make(g, "prelu_y", at, 2, x[0], w);
    y->name = path;
    return y;
}

const Op op_prelu[] =
    {{.name = "prelu",
      .brief = "rectified linear unit with a learned slope below zero",
      .shapes = "x, y (N, C, ..) or (N, T, C)   weight (C), or (1) if shared",
      .formula = "y = x if x > 0, else weight[c] x",
      .derivative = "dx = dy if x > 0, else weight[c] dy\n"
                    "dweight[c] = sum over samples and pixels of dy x where x <= 0",
      .note =
          "Source: He, Zhang, Ren & Sun 2015, \"Delving deep into rectifiers\". PyTorch's PReLU "
          "is shared by default.",
      .arg = {{"x", ARG_TENSOR, NULL, "images (N, C, H, W), sequences (N, T, C) or vectors (N, C)"},
              {"slope", ARG_FLOAT, "0.25", "the first value of the weights"},
              {"shared", ARG_BOOL, "false", "one slope for all channels"}},
      .layer = "prelu",
      .shape = prelu_shape,
      .build = prelu_build,
      .example = "model example(image: f32[1, 5, 5]) {\n"
                 "    h = conv2d(image, 3, kernel = 3) |> prelu\n"
                 "    h = flatten(h) |> dense(6) |> prelu(slope = 0.1, shared = true)\n"
                 "    return dense(h, 3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
