/* rotary.c -- encodes the position of a step without weights: rotates pairs of features, or adds
 * sine waves.
 *
 *   rotary      a head has D features; features i and i + D / 2 are the coordinates of a point,
 *               which is rotated by the angle t base^(-2 i / D) in step t:
 *               y[i] = x[i] cos - x[i + D/2] sin      y[i + D/2] = x[i + D/2] cos + x[i] sin
 *               dx is dy rotated back
 *   sinusoidal  y[t][2 i] = x + sin(t base^(-2 i / F))      y[t][2 i + 1] = x + cos(the same)
 *                 dx = dy
 *
 *   x, y (N, T, F)      queries and keys of attention are rotated: their products then depend
 *                       on the distance of two steps only
 *
 * Source: Su et al. 2021, "RoFormer: enhanced transformer with rotary position embedding" (pairs
 * as in Llama: halves); Vaswani et al. 2017, "Attention is all you need".
 */
#include "ops/check.h"
#include "ops/example.h"
#include "ops/price.h"

static bool check_base(const Node *n, Diag *d)
{
    if (node_float(n, "base") > 0)
        return true;
    diag_error(d, node_span(n, "base"), "%s base is %g, not above 0", n->op->name,
               node_float(n, "base"));
    return false;
}

static bool rotary_shape(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    if (!check_sequence(n, 0, d) || !check_int(n, "heads", 1, d) || !check_base(n, d))
        return false;
    if (x->dim[1] % (2 * node_int(n, "heads")) == 0)
        return check_result(n, *x, d);
    diag_error(d, node_span(n, "heads"),
               "rotary rotates pairs: %lld features cannot be divided into pairs for %lld head%s",
               (long long)x->dim[1], (long long)node_int(n, "heads"),
               node_int(n, "heads") == 1 ? "" : "s");
    check_note(n, 0, d);
    return false;
}

static bool rotary_shape_wave(Node *n, Diag *d)
{
    return check_sequence(n, 0, d) && check_base(n, d) && check_result(n, n->in[0]->shape, d);
}

static void rotary_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "rotary_dx", n, 1, dy));
}

static void rotary_gradient_wave(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], dy);
}

/* The kernel computes the angles of a step from those of the step before, once for all samples. */
static void rotary_price(const Node *n, const Market *m, Price *p)
{
    price_each(p, m, n, 4.0 / m->lanes);
    p->cycles += 6 * (double)shape_count(&n->shape);
}

static void rotary_call(const Node *n, Call *c, const char *fn, int64_t heads, bool back)
{
    const Shape *x = &n->shape;
    call_kernel(c, fn);
    call_in_parts(c, n);
    Sizes *s = sizes_new(c->arena, "Rotary");
    sizes_int(s, "n", c->n);
    sizes_int(s, "t", x->dim[0]);
    sizes_int(s, "heads", heads);
    sizes_int(s, "d", x->dim[1] / heads);
    sizes_bool(s, "back", back);
    sizes_real(s, "base", node_float(n, "base"));
    call_sizes(c, s);
}

static void rotary_kernel(const Node *n, Call *c)
{
    rotary_call(n, c, "rotary", node_int(n, "heads"), false);
}

static void rotary_kernel_dx(const Node *n, Call *c)
{
    rotary_call(n, c, "rotary", node_int(n, "heads"), true);
}

static void rotary_kernel_wave(const Node *n, Call *c)
{
    rotary_call(n, c, "sinusoidal", 1, false);
}

/* The stack holds sine and cosine of each pair twice: for the rotation from step to step, and in
 * the order in which the kernel reads them. */
static int64_t rotary_stack_bytes(const Node *n, int64_t chunk)
{
    (void)chunk;
    return 3 * (int64_t)sizeof(double) * (n->shape.dim[1] + 1);
}

const Op op_rotary[] =
    {{.name = "rotary",
      .brief = "rotates pairs of features by angles that grow with the step",
      .shapes = "x, y (N, T, F)   D = F / heads features of each head, an even number",
      .formula = "a = t base^(-2 i / D)   for step t and i < D / 2\n"
                 "y[i] = x[i] cos a - x[i + D/2] sin a\n"
                 "y[i + D/2] = x[i + D/2] cos a + x[i] sin a",
      .derivative = "dx = dy rotated by -a",
      .note =
          "Applied to the queries and the keys of attention, it makes their products depend on the "
          "distance of two steps. Source: Su et al. 2021, \"RoFormer: enhanced transformer with "
          "rotary "
          "position embedding\".",
      .arg = {{"x", ARG_TENSOR, NULL, "queries or keys (N, T, F)"},
              {"heads", ARG_INT, "1",
               "number of heads, at least 1; F is a multiple of twice this number"},
              {"base", ARG_FLOAT, "10000", "base of the wave lengths, above 0"}},
      .token = "token_rotary",
      .shape = rotary_shape,
      .gradient = rotary_gradient,
      .price = rotary_price,
      .kernel = rotary_kernel,
      .stack_bytes = rotary_stack_bytes,
      .example = "model example(x: f32[5, 6]) {\n"
                 "    p = dense(x, 24) |> split(3, axis = -1)\n"
                 "    q = rotary(p[0], heads = 2, base = 100.0)\n"
                 "    h = causal_attention(q, rotary(p[1], heads = 2), p[2], heads = 2)\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "rotary_dx",
      .brief = "gradient of rotary: turned back",
      .arg = {{"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"heads", ARG_INT, NULL, "as above"},
              {"base", ARG_FLOAT, NULL, "as above"}},
      .flags = OP_HIDDEN,
      .shape = rotary_shape,
      .price = rotary_price,
      .kernel = rotary_kernel_dx,
      .stack_bytes = rotary_stack_bytes},
     {.name = "sinusoidal",
      .brief = "adds sines and cosines of each step's index",
      .shapes = "x, y (N, T, F)",
      .formula = "a = t base^(-2 i / F)   for step t\n"
                 "y[t][2 i] = x[t][2 i] + sin a\n"
                 "y[t][2 i + 1] = x[t][2 i + 1] + cos a",
      .derivative = "dx = dy",
      .note = "Source: Vaswani et al. 2017, \"Attention is all you need\".",
      .arg = {{"x", ARG_TENSOR, NULL, "sequences (N, T, F)"},
              {"base", ARG_FLOAT, "10000", "base of the wave lengths, above 0"}},
      .token = "token_sinusoidal",
      .shape = rotary_shape_wave,
      .gradient = rotary_gradient_wave,
      .price = rotary_price,
      .kernel = rotary_kernel_wave,
      .stack_bytes = rotary_stack_bytes,
      .example = "model example(x: f32[5, 6]) {\n"
                 "    h = dense(x, 7) |> sinusoidal |> tanh\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {0}};
