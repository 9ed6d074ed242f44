/* reduce.c -- sums, means and maxima over dimensions of a sample.
 *
 *   sum    y = sum over the dimensions `axes` of x         dx = dy, repeated
 *   mean   y = sum / count                                 dx = dy / count, repeated
 *   amax   y = the largest                                 dx = dy / ties where x = y, 0 elsewhere
 *
 * Equal numbers share the gradient of a maximum evenly.  `keep` replaces removed dimensions by
 * dimensions of 1.  The ops consist of sum_to or amax_to and a reshape; the emitter writes the
 * loops.
 */
#include "ops/check.h"
#include "ops/example.h"

/* Computes two shapes: *ones has the reduced dimensions with size 1, and *y has no reduced
 * dimension. */
static bool reduced(const Node *n, Shape *ones, Shape *y, Diag *d)
{
    static const char *const axes[] = {"", "F", "TF", "CHW"};
    const Shape *x = &n->in[0]->shape;
    const Attr *a = node_attr(n, "axes");
    int axis[SHAPE_MAX];
    int64_t dim[SHAPE_MAX];
    int rank = 0;
    if (!check_real(n, 0, d) || !check_axes(n, "axes", x->rank, axis, d))
        return false;
    if (a->nlist == 0) {
        diag_error(d, node_span(n, "axes"), "%s has no dimension to reduce", n->op->name);
        diag_help(d, "name at least one: axes = [1, 2] are the rows and columns of an image");
        return false;
    }
    *ones = *x;
    for (int i = 0; i < a->nlist; i++)
        ones->dim[axis[i]] = 1;
    for (int i = 0; i < x->rank; i++) {
        bool goes = false;
        for (int k = 0; k < a->nlist; k++)
            goes |= axis[k] == i;
        if (!goes)
            dim[rank++] = x->dim[i];
    }
    *y = shape_make(x->batched, rank < 4 ? axes[rank] : NULL, dim, rank);
    return true;
}

static bool reduce_shape(Node *n, Diag *d)
{
    Shape ones, y;
    return reduced(n, &ones, &y, d) && check_result(n, node_bool(n, "keep") ? ones : y, d);
}

static Node *reduce_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                          Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    Node like = {.op = attrs->op, .span = attrs->span}, flat = like;
    Shape ones, y;
    (void)path; /* reductions have no parameters */
    node_copy_attrs(g, &probe, attrs);
    if (!reduce_shape(&probe, d) || !reduced(&probe, &ones, &y, d))
        return NULL;
    node_set_ints(g, &like, "shape", ones.dim, ones.rank);
    node_set_int(g, &like, "batched", ones.batched);
    Node *n = op_make_like(g, attrs->op == op_find("amax") ? "amax_to" : "sum_to", &like, 1, x[0]);
    if (attrs->op == op_find("mean")) {
        const double count = (double)(shape_count(&x[0]->shape) / shape_count(&ones));
        Node *share = graph_const(g, 1 / count, shape_make(false, NULL, NULL, 0), attrs->span);
        n = op_make(g, "mul", attrs->span, 2, n, share);
    }
    node_set_ints(g, &flat, "shape", y.dim, y.rank);
    return node_bool(attrs, "keep") ? n : op_make_like(g, "reshape", &flat, 1, n);
}

static bool reduce_shape_to(Node *n, Diag *d)
{
    const Attr *s = node_attr(n, "shape");
    Shape y = n->in[0]->shape;
    for (int i = 0; i < y.rank && i < s->nlist; i++)
        y.dim[i] = s->list[i];
    return check_result(n, y, d);
}

static void reduce_gradient_max(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node *x = n->in[0], *is = op_make(g, "ge", n->span, 2, x, n);
    Node *ties = op_make_like(g, "sum_to", n, 1, is);
    Node *share = op_make(g, "div", n->span, 2, dy, ties);
    grad_add(gr, x, op_make(g, "mul", n->span, 2, is, share));
}

#define ARGS                                                                                       \
    {"x", ARG_TENSOR, NULL, "a tensor"},                                                           \
        {"axes", ARG_INTS, NULL,                                                                   \
         "the dimensions to reduce, at least one, without the batch; -1 is the last"},             \
    {                                                                                              \
        "keep", ARG_BOOL, "false", "keep the reduced dimensions, with size 1"                      \
    }
#define EXAMPLE_OF(use)                                                                            \
    "model example(image: f32[2, 5, 4]) {\n"                                                       \
    "    h = conv2d(image, 3, kernel = 2) |> tanh\n"                                               \
    "    h = " use "\n"                                                                            \
    "    return flatten(h) |> dense(3)\n"                                                          \
    "}\n" EXAMPLE_TRAIN
#define REDUCE(what, about, form, slope, use)                                                      \
    {                                                                                              \
        .name = what, .brief = about,                                                              \
        .shapes = "x (N, d_0, d_1, ..)   y (N, ..) without the dimensions axes; keep: they are 1", \
        .formula = form, .derivative = slope, .arg = {ARGS}, .shape = reduce_shape,                \
        .build = reduce_build, .example = EXAMPLE_OF(use)                                          \
    }

const Op op_reduce[] =
    {REDUCE("sum", "the sum over dimensions of a sample", "y = sum of x over axes",
            "dx = dy, repeated over axes",
            "sum(h, axes = [2]) * sum(h, axes = [1, 2], keep = true) |> sum([0])"),
     REDUCE("mean", "the mean over dimensions of a sample", "y = (sum of x over axes) / count",
            "dx = dy / count, repeated over axes",
            "h - mean(h, axes = [0], keep = true) * mean(h, axes = [1, 2], keep = true)"),
     REDUCE("amax", "the maximum over dimensions of a sample", "y = maximum of x over axes",
            "dx = dy / (number of equal maxima) where x = y, 0 elsewhere",
            "concat(amax(h, axes = [1, 2]), amax(h, axes = [-3, -1]))"),
     {.name = "amax_to",
      .brief = "maximum over each dimension that the result has as 1",
      .arg = {{"x", ARG_TENSOR, NULL, "a tensor"},
              {"shape", ARG_INTS, NULL, "of the result"},
              {"batched", ARG_INT, NULL, "the result has one value a sample"}},
      .flags = OP_HIDDEN | OP_REDUCE,
      .shape = reduce_shape_to,
      .gradient = reduce_gradient_max},
     {0}};
