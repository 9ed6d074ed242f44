/* bias.c -- adds a learned vector: to the channels of images, to the features of vectors, or to the
 * features of each step of sequences.
 *
 *   y[c][...] = x[c][...] + b[c];   dx = dy,  db[c] = sum over samples and [...] of dy[c][...]
 *
 * Emitters write the loop, unless pass fuse has moved the addition into the producer.
 */
#include "ops/bias.h"
#include "ops/check.h"
#include "ops/example.h"

/* Number of elements of b. */
static int64_t width(const Shape *x)
{
    return x->dim[x->rank == 2];
}

static bool bias_shape(Node *n, Diag *d)
{
    if (!check_real(n, 0, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    if (x->rank < 1) {
        diag_error(d, n->span, "bias needs vectors or images, got %s",
                   shape_text(diag_arena(d), x));
        check_note(n, 0, d);
        diag_help(d, "reshape it first: reshape(x, [1])");
        return false;
    }
    const bool fits =
        n->nin == 1 || (n->in[1]->shape.rank == 1 && n->in[1]->shape.dim[0] == width(x));
    return fits && check_result(n, *x, d);
}

Node *bias_build(Graph *g, Node *x, const char *path, Span at, Diag *d)
{
    Node probe = {.op = op_find("bias"), .nin = 1, .in = &x, .span = at};
    if (!bias_shape(&probe, d))
        return NULL;
    const int64_t dim = width(&x->shape);
    Node *b = graph_param(g, d, arena_printf(g->arena, "%s.bias", path),
                          shape_make(false, "O", &dim, 1), NULL, at);
    Node *y = b ? op_make(g, "bias", at, 2, x, b) : NULL;
    if (y)
        y->name = path;
    return y;
}

static Node *bias_build_op(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                           Diag *d)
{
    return nx == 1 ? bias_build(g, x[0], path, attrs->span, d) : NULL;
}

static void bias_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node like = {.op = n->op, .span = n->span};
    grad_add(gr, n->in[0], dy);
    if (!grad_wanted(gr, n->in[1]))
        return;
    node_set_ints(g, &like, "shape", n->in[1]->shape.dim, 1);
    node_set_int(g, &like, "batched", n->in[1]->shape.batched);
    if (n->shape.rank != 2)
        node_set_string(g, &like, "align", "first");
    grad_add(gr, n->in[1], op_make_like(g, "sum_to", &like, 1, dy));
}

const Op op_bias[] =
    {{.name = "bias",
      .brief = "adds a learned number to each channel or feature",
      .shapes = "x, y (N, C, H, W)   bias (C)\n"
                "x, y (N, F) or (N, T, F)   bias (F)",
      .formula = "y[c][..] = x[c][..] + bias[c]",
      .derivative = "dx = dy\n"
                    "dbias[c] = sum over samples and positions of dy[c][..]",
      .arg = {{"x", ARG_TENSOR, NULL,
               "images (N, C, H, W), vectors (N, F) or sequences (N, T, F)"}},
      .flags = OP_INPLACE | OP_MAP | OP_POSITION,
      .epilogue = EPILOGUE_BIAS,
      .half = HALF_USE_IN_OUT,
      .layer = "bias",
      .shape = bias_shape,
      .build = bias_build_op,
      .gradient = bias_gradient,
      .example =
          "# A bias after the pooling: a quarter of the additions.\n"
          "model example(image: f32[1, 6, 6]) {\n"
          "    h = conv2d(image, 4, kernel = 3, bias = false) |> max_pool(2) |> bias |> tanh\n"
          "    return flatten(h) |> dense(3)\n"
          "}\n" EXAMPLE_TRAIN},
     {0}};
