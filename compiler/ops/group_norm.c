/* group_norm.c -- normalises the channels of each sample, group by group.
 *
 *   y = (x - mean) r w[c] + b[c]      mean, r = 1 / sqrt(var + epsilon) of the numbers of a group
 *                                     of C / groups channels, over all pixels or steps
 *   g = dy w      xhat = (x - mean) r
 *   dx = r (g - mean g - xhat mean(g xhat))      means over the group
 *   dw[c] = sum over samples and pixels of dy xhat      db[c] = sum of dy
 *
 *   x, y (N, C, H, W), (N, T, C) or (N, C)      w, b (C)
 *
 * instance_norm has one group for each channel.  The variance is biased.  The backward pass
 * recomputes mean and r; for dw it computes xhat as group_norm with w = 1 and b = 0, and reduces
 * the product with sum_to.  Source: Wu & He 2018, "Group normalization"; Ulyanov, Vedaldi &
 * Lempitsky 2016, "Instance normalization".
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/norm.h"
#include "ops/price.h"

/* Channels stand first in images and last in sequences. */
static int64_t channels(const Shape *x)
{
    return x->dim[x->rank == 3 ? 0 : x->rank - 1];
}

static int64_t pixels(const Shape *x)
{
    return shape_count(x) / channels(x);
}

static int64_t groups_of(const Node *n)
{
    const Attr *groups = node_attr(n, "groups");
    return groups ? groups->i : channels(&n->in[0]->shape);
}

static bool check_input(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    if (!check_real(n, 0, d))
        return false;
    if (x->rank >= 1 && x->rank <= 3)
        return true;
    diag_error(d, n->span, "%s needs images (N, C, H, W), sequences (N, T, F) or vectors, got %s",
               n->op->name, shape_text(diag_arena(d), x));
    check_note(n, 0, d);
    diag_help(d, "reshape it first: reshape(x, [channels, height, width])");
    return false;
}

static bool group_norm_check_groups(const Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    const int64_t c = channels(x), groups = groups_of(n);
    if (!check_int(n, "groups", 1, d))
        return false;
    if (c % groups) {
        diag_error(d, node_span(n, "groups"), "%s groups = %lld does not divide its %lld channels",
                   n->op->name, (long long)groups, (long long)c);
        check_note(n, 0, d);
        diag_help(d, "use a number that divides %lld", (long long)c);
        return false;
    }
    if (c / groups * pixels(x) > 1)
        return true;
    diag_error(d, n->span, "%s of groups of one number: all results would be 0", n->op->name);
    check_note(n, 0, d);
    diag_help(d, "use fewer groups, or layer_norm");
    return false;
}

static bool group_norm_shape(Node *n, Diag *d)
{
    if (!check_input(n, d) || !group_norm_check_groups(n, d))
        return false;
    if (!(node_float(n, "epsilon") > 0)) {
        diag_error(d, node_span(n, "epsilon"), "%s epsilon is %g, not above 0", n->op->name,
                   node_float(n, "epsilon"));
        diag_help(d, "a group of equal numbers has the variance 0: use a small positive number");
        return false;
    }
    for (int i = 1; i < n->nin; i++)
        if (n->in[i]->shape.rank != 1 || n->in[i]->shape.dim[0] != channels(&n->in[0]->shape))
            return false;
    return check_result(n, n->in[0]->shape, d);
}

static Node *group_norm_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                              Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    node_copy_attrs(g, &probe, attrs);
    if (!group_norm_shape(&probe, d))
        return NULL;
    const int64_t count = channels(&x[0]->shape), groups = groups_of(&probe);
    Node *w =
        norm_vector(g, d, path, "weight", "C", count, 1, node_bool(attrs, "scale"), attrs->span);
    Node *b =
        w ? norm_vector(g, d, path, "bias", "C", count, 0, node_bool(attrs, "shift"), attrs->span)
          : NULL;
    if (!b)
        return NULL;
    node_set_int(g, &probe, "groups", groups);
    Node *y = op_make_like(g, "group_norm", &probe, 3, x[0], w, b);
    y->name = path;
    return y;
}

/* Adds the sum of dy over samples and pixels to the gradient of the vector v. */
static void add_sum(Grad *gr, const Node *n, Node *v, Node *dy)
{
    Node like = {.op = n->op, .span = n->span};
    node_set_ints(grad_graph(gr), &like, "shape", v->shape.dim, 1);
    node_set_int(grad_graph(gr), &like, "batched", 0);
    if (n->shape.rank != 2)
        node_set_string(grad_graph(gr), &like, "align", "first");
    grad_add(gr, v, op_make_like(grad_graph(gr), "sum_to", &like, 1, dy));
}

static void group_norm_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node *x = n->in[0], *w = n->in[1], *b = n->in[2];
    if (grad_wanted(gr, x))
        grad_add(gr, x, op_make_like(g, "group_norm_dx", n, 3, dy, x, w));
    if (grad_wanted(gr, b))
        add_sum(gr, n, b, dy);
    if (!grad_wanted(gr, w))
        return;
    Node *xhat = op_make_like(g, "group_norm", n, 3, x, graph_const(g, 1, w->shape, n->span),
                              graph_const(g, 0, w->shape, n->span));
    add_sum(gr, n, w, op_make(g, "mul", n->span, 2, dy, xhat));
}

/* Three passes over the sample, or five of dx, which also reads dy. */
static void group_norm_price(const Node *n, const Market *m, Price *p)
{
    const Shape *x = &n->in[0]->shape;
    const bool back = node_is(n, "group_norm_dx");
    const double vectors = (double)(m->n * pixels(x) * ceil_div(channels(x), m->lanes));
    price_each(p, m, n, 0);
    p->cycles += vectors * (back ? 8 : 5) + 40 * (double)(m->n * node_int(n, "groups"));
}

/* GROUP_NORM_ROOM of runtime/cpu/group_norm.h. */
static int64_t group_norm_scratch(const Node *n, int lanes, int real)
{
    return 4 * (channels(&n->in[0]->shape) + lanes) * real;
}

static void group_norm_call(const Node *n, Call *c, const char *fn)
{
    const Shape *x = &n->in[0]->shape;
    call_kernel(c, fn);
    call_in_parts(c, n);
    call_scratch(c);
    Sizes *s = sizes_new(c->arena, "GroupNorm");
    sizes_int(s, "n", c->n);
    sizes_int(s, "c", channels(x));
    sizes_int(s, "hw", pixels(x));
    sizes_int(s, "groups", node_int(n, "groups"));
    sizes_bool(s, "last", x->rank != 3 || node_attr(n, "last") != NULL);
    sizes_real(s, "epsilon", node_float(n, "epsilon"));
    call_sizes(c, s);
}

static void group_norm_kernel(const Node *n, Call *c)
{
    group_norm_call(n, c, "group_norm");
}

static void group_norm_kernel_dx(const Node *n, Call *c)
{
    group_norm_call(n, c, "group_norm_dx");
}

#define SHAPES                                                                                     \
    "x, y (N, C, H, W), (N, T, C) or (N, C)   weight, bias (C): of the channels or features"
#define SCALED                                                                                     \
    {"epsilon", ARG_FLOAT, "1e-5", "added to the variance, above 0"},                              \
        {"scale", ARG_BOOL, "true", "multiply by a learned number of each channel"},               \
    {                                                                                              \
        "shift", ARG_BOOL, "true", "add a learned number of each channel"                          \
    }
#define INPUT "images (N, C, H, W), sequences (N, T, C) or vectors (N, C)"

const Op op_group_norm[] =
    {{.name = "group_norm",
      .brief = "normalises groups of channels of every sample to mean 0 and variance 1",
      .shapes = SHAPES,
      .formula = "y = (x - mean) r weight + bias   r = 1 / sqrt(var + epsilon)\n"
                 "mean, var: of the C / groups channels of a group, over all pixels or steps; var "
                 "is biased",
      .derivative = "g = dy weight   xhat = (x - mean) r\n"
                    "dx = r (g - mean(g) - xhat mean(g xhat))   means over the group\n"
                    "dweight = sum of dy xhat\n"
                    "dbias = sum of dy",
      .note = "A sample does not depend on the other samples of its batch, and training and "
              "prediction compute the same. Source: Wu & He 2018, \"Group normalization\".",
      .arg = {{"x", ARG_TENSOR, NULL, INPUT},
              {"groups", ARG_INT, NULL, "number of groups of channels; it divides C"},
              SCALED},
      .flags = OP_SPATIAL,
      .layer = "norm",
      .shape = group_norm_shape,
      .build = group_norm_build,
      .gradient = group_norm_gradient,
      .price = group_norm_price,
      .kernel = group_norm_kernel,
      .scratch = group_norm_scratch,
      .example = "# Of an image, then of a sequence without a learned scale.\n"
                 "model example(image: f32[1, 6, 6]) {\n"
                 "    h = conv2d(image, 6, kernel = 3) |> group_norm(2) |> tanh\n"
                 "    s = reshape(h, [12, 8]) |> group_norm(4, epsilon = 1e-3, scale = false)\n"
                 "    return flatten(s) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "instance_norm",
      .brief = "normalises every channel of every sample to mean 0 and variance 1",
      .shapes = SHAPES,
      .formula = "y = (x - mean) r weight + bias   r = 1 / sqrt(var + epsilon)\n"
                 "mean, var: of a channel, over all pixels or steps; var is biased",
      .derivative = "g = dy weight   xhat = (x - mean) r\n"
                    "dx = r (g - mean(g) - xhat mean(g xhat))   means over the channel\n"
                    "dweight = sum of dy xhat\n"
                    "dbias = sum of dy",
      .note = "group_norm with one group for each channel. PyTorch's InstanceNorm2d has no scale "
              "and no shift by default: scale = false, shift = false. Source: Ulyanov, Vedaldi & "
              "Lempitsky 2016, \"Instance normalization\".",
      .arg = {{"x", ARG_TENSOR, NULL, INPUT}, SCALED},
      .layer = "norm",
      .shape = group_norm_shape,
      .build = group_norm_build,
      .example = "model example(image: f32[1, 6, 6]) {\n"
                 "    h = conv2d(image, 3, kernel = 3, bias = false) |> instance_norm |> tanh\n"
                 "    h = conv2d(h, 3, kernel = 2, bias = false)\n"
                 "    h = instance_norm(h, epsilon = 1e-3, shift = false)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "group_norm_dx",
      .brief = "gradient of group_norm for its input",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"x", ARG_TENSOR, NULL, "the input"},
              {"w", ARG_TENSOR, NULL, "scale"}},
      .flags = OP_HIDDEN | OP_SPATIAL,
      .shape = check_like_first,
      .price = group_norm_price,
      .kernel = group_norm_kernel_dx,
      .scratch = group_norm_scratch},
     {0}};
