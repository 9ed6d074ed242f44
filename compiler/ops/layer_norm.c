/* layer_norm.c -- normalises the last dimension of each sample and step.
 *
 *   layer_norm   y = (x - mean) r w + b      mean, r = 1 / sqrt(var + epsilon) of the row
 *                (biased var)
 *   rms_norm     y = x r w                   r = 1 / sqrt(mean x^2 + epsilon)
 *
 *   g = dy w      xhat = the normalised row
 *   dx = r (g - mean g - xhat mean(g xhat))              rms_norm: without mean g
 *   dw = sum of dy xhat      db = sum of dy
 *
 *   x, y (N, F) or (N, T, F), or of any rank       w, b (F)
 *
 * The backward pass recomputes mean and r, because the row is in the first-level cache.  Source:
 * Ba, Kiros & Hinton 2016, "Layer normalization"; Zhang & Sennrich 2019, "Root mean square layer
 * normalization".
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/norm.h"
#include "ops/price.h"

static int64_t width(const Shape *x)
{
    return x->dim[x->rank - 1];
}

static bool layer_norm_shape(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    if (!check_real(n, 0, d))
        return false;
    if (x->rank < 1) {
        diag_error(d, n->span, "%s needs vectors or sequences, got %s", n->op->name,
                   shape_text(diag_arena(d), x));
        check_note(n, 0, d);
        return false;
    }
    if (!(node_float(n, "epsilon") > 0)) {
        diag_error(d, node_span(n, "epsilon"), "%s epsilon is %g, not above 0", n->op->name,
                   node_float(n, "epsilon"));
        return false;
    }
    for (int i = 1; i < n->nin; i++)
        if (n->in[i]->shape.rank != 1 || n->in[i]->shape.dim[0] != width(x))
            return false;
    return check_result(n, *x, d);
}

static Node *layer_norm_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                              Diag *d)
{
    const bool center = attrs->op == op_find("layer_norm");
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    node_copy_attrs(g, &probe, attrs);
    if (!layer_norm_shape(&probe, d))
        return NULL;
    const int64_t count = width(&x[0]->shape);
    Node *w =
        norm_vector(g, d, path, "weight", "F", count, 1, node_bool(attrs, "scale"), attrs->span);
    Node *b = center && w ? norm_vector(g, d, path, "bias", "F", count, 0,
                                        node_bool(attrs, "shift"), attrs->span)
                          : NULL;
    if (!w || (center && !b))
        return NULL;
    Node *y = center ? op_make_like(g, "layer_norm", attrs, 3, x[0], w, b)
                     : op_make_like(g, "rms_norm", attrs, 2, x[0], w);
    y->name = path;
    return y;
}

static void layer_norm_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node *x = n->in[0], *w = n->in[1], *b = n->nin > 2 ? n->in[2] : NULL;
    Node like = {.op = n->op, .span = n->span};
    node_set_float(g, &like, "epsilon", node_float(n, "epsilon"));
    node_set_int(g, &like, "center", b != NULL);
    if (grad_wanted(gr, x))
        grad_add(gr, x, op_make_like(g, "layer_norm_dx", &like, 3, dy, x, w));
    if (grad_wanted(gr, w))
        grad_add(gr, w, op_make_like(g, "layer_norm_dw", &like, 2, dy, x));
    if (!b || !grad_wanted(gr, b))
        return;
    Node sum = {.op = n->op, .span = n->span};
    node_set_ints(g, &sum, "shape", b->shape.dim, 1);
    node_set_int(g, &sum, "batched", 0);
    grad_add(gr, b, op_make_like(g, "sum_to", &sum, 1, dy));
}

static bool layer_norm_shape_dw(Node *n, Diag *d)
{
    const int64_t count = width(&n->in[0]->shape);
    return check_result(n, shape_make(false, "F", &count, 1), d);
}

/* Two sums over the row, then the result: three passes over data in the first-level cache. */
static void layer_norm_price(const Node *n, const Market *m, Price *p)
{
    const Shape *x = &n->in[0]->shape;
    price_each(p, m, n, 6.0 / m->lanes);
    p->cycles += 60 * (double)(shape_count(x) / width(x)) * (double)m->n;
}

static void layer_norm_call(const Node *n, Call *c, const char *fn, bool center)
{
    const Shape *x = &n->in[0]->shape;
    call_kernel(c, fn);
    call_in_parts(c, n);
    if (!center && n->nin == 2 && node_is(n, "rms_norm"))
        call_in(c, NULL);
    Sizes *s = sizes_new(c->arena, "LayerNorm");
    sizes_int(s, "rows", c->n * (shape_count(x) / width(x)));
    sizes_int(s, "k", width(x));
    sizes_bool(s, "center", center);
    sizes_real(s, "epsilon", node_float(n, "epsilon"));
    call_sizes(c, s);
}

static void layer_norm_kernel(const Node *n, Call *c)
{
    layer_norm_call(n, c, "layer_norm", node_is(n, "layer_norm"));
}

static void layer_norm_kernel_dx(const Node *n, Call *c)
{
    layer_norm_call(n, c, "layer_norm_dx", node_int(n, "center"));
}

static void layer_norm_kernel_dw(const Node *n, Call *c)
{
    layer_norm_call(n, c, "layer_norm_dw", node_int(n, "center"));
}

#define SEQUENCES "vectors (N, F), sequences (N, T, F), or of any rank"

const Op op_layer_norm[] =
    {{.name = "layer_norm",
      .brief = "normalises the last dimension of every sample and step to mean 0 and variance 1",
      .shapes = "x, y (N, F), (N, T, F) or of any rank   weight, bias (F): of the last dimension",
      .formula = "y = (x - mean) r weight + bias   r = 1 / sqrt(var + epsilon)\n"
                 "mean, var: of the last dimension; var is biased",
      .derivative = "g = dy weight   xhat = (x - mean) r\n"
                    "dx = r (g - mean(g) - xhat mean(g xhat))\n"
                    "dweight = sum of dy xhat\n"
                    "dbias = sum of dy",
      .note = "Source: Ba, Kiros & Hinton 2016, \"Layer normalization\".",
      .arg = {{"x", ARG_TENSOR, NULL, SEQUENCES},
              {"epsilon", ARG_FLOAT, "1e-5", "added to the variance, above 0"},
              {"scale", ARG_BOOL, "true", "multiply by a learned number of each feature"},
              {"shift", ARG_BOOL, "true", "add a learned number of each feature"}},
      .flags = OP_POSITION,
      .layer = "norm",
      .shape = layer_norm_shape,
      .build = layer_norm_build,
      .gradient = layer_norm_gradient,
      .price = layer_norm_price,
      .kernel = layer_norm_kernel,
      .example = "model example(x: f32[5, 6]) {\n"
                 "    h = dense(x, 7) |> layer_norm |> tanh\n"
                 "    h = flatten(h) |> dense(9) |> layer_norm(epsilon = 1e-3, scale = false)\n"
                 "    return dense(h, 3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "rms_norm",
      .brief = "divides the last dimension of every sample and step by its root mean square",
      .shapes = "x, y (N, F), (N, T, F) or of any rank   weight (F): of the last dimension",
      .formula = "y = x r weight   r = 1 / sqrt(mean(x^2) + epsilon)",
      .derivative = "g = dy weight   xhat = x r\n"
                    "dx = r (g - xhat mean(g xhat))\n"
                    "dweight = sum of dy xhat",
      .note = "Source: Zhang & Sennrich 2019, \"Root mean square layer normalization\".",
      .arg = {{"x", ARG_TENSOR, NULL, SEQUENCES},
              {"epsilon", ARG_FLOAT, "1e-5", "added to the mean square, above 0"},
              {"scale", ARG_BOOL, "true", "multiply by a learned number of each feature"}},
      .flags = OP_POSITION,
      .layer = "norm",
      .shape = layer_norm_shape,
      .build = layer_norm_build,
      .gradient = layer_norm_gradient,
      .price = layer_norm_price,
      .kernel = layer_norm_kernel,
      .example = "model example(x: f32[5, 6]) {\n"
                 "    h = dense(x, 7) |> rms_norm |> tanh\n"
                 "    h = flatten(h) |> dense(9) |> rms_norm(epsilon = 1e-3)\n"
                 "    return dense(h, 3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "layer_norm_dx",
      .brief = "gradient of layer_norm and rms_norm for their input",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"x", ARG_TENSOR, NULL, "the input"},
              {"w", ARG_TENSOR, NULL, "scale"}},
      .flags = OP_HIDDEN,
      .shape = check_like_first,
      .price = layer_norm_price,
      .kernel = layer_norm_kernel_dx},
     {.name = "layer_norm_dw",
      .brief = "gradient of layer_norm and rms_norm for their scale, summed over rows",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"x", ARG_TENSOR, NULL, "the input"}},
      .flags = OP_HIDDEN | OP_SUM,
      .shape = layer_norm_shape_dw,
      .price = layer_norm_price,
      .kernel = layer_norm_kernel_dw},
     {0}};
