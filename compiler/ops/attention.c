/* attention.c -- attention: for each step, a weighted mean of the values of all steps.  The weight
 * of a value is the softmax of the product of the query of the step and the key of the value.
 *
 *   s[i][j] = scale q[i] . k[j]      p[i][.] = softmax over j <= i (mask "none": all j)
 *   o[i] = sum over j of p[i][j] v[j]                  for each head, which has D of the C features
 *
 *   q, k, v (N, T, C)   o (N, T, C)      C = heads D; default scale 1 / sqrt(D)
 *
 * One node reads q, k and v as neighbours in one tensor (N, T, 3 C), and its gradient is one tensor
 * as well.  If the model splits the result of one dense layer into q, k and v, this result is the
 * tensor; else the tensor is a concat.  Scores are never stored: the backward pass recomputes them
 * for a few steps at a time (runtime/cpu/attention.h).  Source: Vaswani et al. 2017, "Attention is
 * all you need".
 */
#include "ops/check.h"
#include "ops/dense_price.h"
#include "ops/example.h"
#include "runtime/constants.h"
#include <math.h>
#include <string.h>

static bool is_causal(const Node *n)
{
    return !strcmp(node_string(n, "mask"), "causal");
}

static bool check_heads(const Node *n, const Shape *x, int64_t width, Diag *d)
{
    const int64_t heads = node_int(n, "heads");
    if (width % heads) {
        diag_error(d, node_span(n, "heads"),
                   "causal_attention: %lld heads do not divide %lld features", (long long)heads,
                   (long long)width);
        check_note(n, 0, d);
        return false;
    }
    if (x->dim[0] <= NUMBERS_MOST / (width / heads))
        return true;
    diag_error(d, n->span, "causal_attention over %lld steps with %lld features a head is too long",
               (long long)x->dim[0], (long long)(width / heads));
    check_note(n, 0, d);
    diag_help(d, "their product may be %d: use a shorter time, or more heads", NUMBERS_MOST);
    return false;
}

static bool attention_check_mask(const Node *n, Diag *d)
{
    const char *mask = node_string(n, "mask");
    if (!strcmp(mask, "causal") || !strcmp(mask, "none"))
        return true;
    diag_error(d, node_span(n, "mask"), "causal_attention has no mask \"%s\"", mask);
    diag_help(d, "\"causal\": a step sees itself and those before it; \"none\": all");
    return false;
}

static bool attention_shape_three(Node *n, Diag *d)
{
    for (int i = 0; i < 3; i++)
        if (!check_sequence(n, i, d))
            return false;
    const Shape *x = &n->in[0]->shape;
    for (int i = 1; i < 3; i++) {
        if (shape_same(x, &n->in[i]->shape))
            continue;
        diag_error(d, n->span, "causal_attention of %s and %s: the shapes differ",
                   shape_text(diag_arena(d), x), shape_text(diag_arena(d), &n->in[i]->shape));
        check_note(n, 0, d);
        check_note(n, i, d);
        return false;
    }
    return check_int(n, "heads", 1, d) && attention_check_mask(n, d) &&
           check_heads(n, x, x->dim[1], d) && check_result(n, *x, d);
}

/* The value whose three thirds are q, k and v; NULL: there is no such value. */
static Node *find_qkv(Node *const *x)
{
    const int64_t width = x[0]->shape.dim[1];
    for (int i = 0; i < 3; i++) {
        const Node *s = x[i];
        if (!node_is(s, "slice") || s->in[0] != x[0]->in[0] ||
            s->in[0]->shape.dim[1] != 3 * width || node_int(s, "start") != i * width ||
            s->shape.dim[0] != s->in[0]->shape.dim[0])
            return NULL;
    }
    return x[0]->in[0];
}

static Node *join_qkv(Graph *g, Node *const *x, Span at)
{
    Node like = {.op = op_find("concat"), .span = at};
    node_set_int(g, &like, "axis", 1);
    return op_make_like(g, "concat", &like, 3, x[0], x[1], x[2]);
}

static Node *attention_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                             Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    (void)path; /* attention has no parameters */
    node_copy_attrs(g, &probe, attrs);
    if (!attention_shape_three(&probe, d))
        return NULL;
    const int64_t size = x[0]->shape.dim[1] / node_int(attrs, "heads");
    if (!node_attr(&probe, "scale"))
        node_set_float(g, &probe, "scale", 1 / sqrt((double)size));
    if (!(node_float(&probe, "scale") > 0)) {
        diag_error(d, node_span(&probe, "scale"), "causal_attention scale = %g is not above 0",
                   node_float(&probe, "scale"));
        diag_help(d, "omit it for 1 / sqrt(%lld), or negate q", (long long)size);
        return NULL;
    }
    Node *all = find_qkv(x);
    return op_make_like(g, "attention", &probe, 1, all ? all : join_qkv(g, x, attrs->span));
}

static bool attention_shape(Node *n, Diag *d)
{
    Shape y = n->in[0]->shape;
    y.dim[1] /= 3;
    return check_result(n, y, d);
}

static void attention_gradient(Grad *gr, Node *n, Node *dy)
{
    grad_add(gr, n->in[0], op_make_like(grad_graph(gr), "attention_dx", n, 2, n->in[0], dy));
}

/* Number of pairs of steps in a head that the mask allows. */
static double pairs(const Node *n)
{
    const double t = (double)n->in[0]->shape.dim[0];
    return is_causal(n) ? t * (t + 1) / 2 : t * t;
}

/* A multiply-add counts as two; recomputation in the backward pass does not count. */
static Cost cost_of(const Node *n, int products)
{
    const double width = (double)n->in[0]->shape.dim[1] / 3;
    return (Cost){.flops = 2 * products * pairs(n) * width,
                  .bytes = 4 * (products + 2) * width * (double)n->in[0]->shape.dim[0]};
}

static Cost attention_cost(const Node *n)
{
    return cost_of(n, 2);
}

static Cost attention_cost_dx(const Node *n)
{
    return cost_of(n, 4);
}

/* The products have tiles over blocks of 32 steps; a block on the diagonal counts as a whole block.
 * A softmax follows. */
static void price_products(const Node *n, const Market *m, Price *p, int deep, int wide, int maps)
{
    const Shape *x = &n->in[0]->shape;
    const int64_t heads = node_int(n, "heads"), size = x->dim[1] / 3 / heads, t = x->dim[0];
    for (int64_t i = 0; i < t; i += 32) {
        const int64_t rows = t - i < 32 ? t - i : 32, seen = is_causal(n) ? i + rows : t;
        const double times = (double)(m->n * heads);
        price_panels(p, m, times * deep, rows, seen, (double)size);
        price_panels(p, m, times * wide, rows, size, (double)seen);
        price_map(p, m, times * (double)(rows * seen), "exp");
        p->cycles += times * maps * (double)(rows * seen) / m->lanes;
        p->cycles += times * (double)rows * 60;
    }
    p->values = (double)(m->n * m->real * shape_count(x)) * 4 / 3;
    if (op_reads_half(n))
        price_half(p);
    price_stream(p, m, p->values, p->values);
}

static void attention_price(const Node *n, const Market *m, Price *p)
{
    price_products(n, m, p, 1, 1, 4);
}

static void attention_price_dx(const Node *n, const Market *m, Price *p)
{
    price_products(n, m, p, 2, 3, 12);
}

/* ATTENTION_ROOM and ATTENTION_DX_ROOM of runtime/cpu/attention.h, in numbers. */
static int64_t part(int64_t n)
{
    return round_up(n, 16);
}

static int64_t packed(int64_t n, int64_t k, int lanes)
{
    const int64_t panel = 2 * (int64_t)lanes;
    return part(round_up(n, panel) * k);
}

static int64_t room(const Node *n, int lanes, int transposed, int straight, int blocks,
                    int operands)
{
    const Shape *x = &n->in[0]->shape;
    const int64_t t = x->dim[0], d = x->dim[1] / 3 / node_int(n, "heads");
    return transposed * packed(t, d, lanes) + straight * packed(d, t, lanes) +
           blocks * part(RT_ATTENTION_ROWS * (packed(t, 1, lanes) + lanes)) +
           operands * packed(d, RT_ATTENTION_ROWS, lanes);
}

/* BF16_ATTENTION_ROOM and BF16_ATTENTION_DX_ROOM of runtime/cpu/bf16_attention.h, in bytes. */
static int64_t half_room(const Node *n, bool back)
{
    enum { BLOCK = 32, ROWS = RT_ATTENTION_ROWS, GROUP = RT_ATTENTION_GROUP };
    const Shape *x = &n->in[0]->shape;
    const int64_t t = x->dim[0], d = x->dim[1] / 3 / node_int(n, "heads"),
                  blocks = ceil_div(t, BLOCK), weights = (blocks + 1) * BLOCK,
                  by_rows = dense_half_count(d, t), straight = dense_half_count(t, d),
                  scores = blocks * BLOCK * ROWS, group = t < GROUP ? blocks * BLOCK : GROUP;
    if (!back)
        return 2 * (by_rows + straight + ROWS * weights) + 4 * scores;
    return 2 * (2 * by_rows + straight + 2 * group * weights + 2 * dense_half_count(group, d)) +
           8 * (scores + scores * ceil_div(d, BLOCK));
}

static int64_t attention_scratch(const Node *n, int lanes, int real)
{
    if (op_reads_half(n))
        return half_room(n, false);
    return room(n, lanes, 1, 1, 1, 0) * real;
}

static int64_t attention_scratch_dx(const Node *n, int lanes, int real)
{
    if (op_reads_half(n))
        return half_room(n, true);
    return room(n, lanes, 2, 1, 2, 1) * real;
}

static void attention_call(const Node *n, Call *c, const char *fn, const char *half)
{
    const Shape *x = &n->in[0]->shape;
    const int64_t heads = node_int(n, "heads");
    if (c->target.few_half && op_reads_half(n))
        call_fn(c, half);
    else
        call_kernel(c, fn);
    call_in_parts(c, n);
    call_scratch(c);
    Sizes *s = sizes_new(c->arena, "Attention");
    sizes_int(s, "n", c->n);
    sizes_int(s, "t", x->dim[0]);
    sizes_int(s, "heads", heads);
    sizes_int(s, "d", x->dim[1] / 3 / heads);
    sizes_bool(s, "causal", is_causal(n));
    sizes_real(s, "scale", node_float(n, "scale"));
    call_sizes(c, s);
}

static void attention_kernel(const Node *n, Call *c)
{
    attention_call(n, c, "attention", n->half ? "bf16_attention" : "bf16_attention_f32");
}

static void attention_kernel_dx(const Node *n, Call *c)
{
    attention_call(n, c, "attention_dx", "bf16_attention_dx");
}

const Op op_attention[] =
    {{.name = "causal_attention",
      .brief = "scaled dot-product attention: each step mixes the values of the steps before it "
               "and its own",
      .shapes = "q, k, v, o (N, T, C)   D = C / heads features of each head",
      .formula = "s[i][j] = scale (q[i] . k[j])\n"
                 "p[i][..] = softmax of s[i][..] over j <= i (mask \"none\": over all j)\n"
                 "o[i] = sum over j of p[i][j] v[j]   for each head",
      .derivative = "dv[j] = sum over i of p[i][j] do[i]\n"
                    "ds[i][j] = p[i][j] (do[i] . v[j] - do[i] . o[i])\n"
                    "dq[i] = scale (sum over j of ds[i][j] k[j])\n"
                    "dk[j] = scale (sum over i of ds[i][j] q[i])",
      .note = "The scores are not stored: the kernel computes those of a few steps at a time, and "
              "again in the backward pass. T times D is at most 262144. On a GPU a head has 2 to "
              "256 features. Source: Vaswani et "
              "al. 2017, \"Attention is all you need\".",
      .arg = {{"q", ARG_TENSOR, NULL, "queries (N, T, C)"},
              {"k", ARG_TENSOR, NULL, "keys (N, T, C)"},
              {"v", ARG_TENSOR, NULL, "values (N, T, C)"},
              {"heads", ARG_INT, "1", "number of heads, at least 1; it divides C"},
              {"scale", ARG_FLOAT, "none",
               "factor of the scores, above 0; default: 1 / sqrt(C / heads)"},
              {"mask", ARG_STRING, "causal",
               "\"causal\": a step sees itself and the steps before it; \"none\": all steps"}},
      .shape = attention_shape_three,
      .build = attention_build,
      .example = "# First as in a transformer, then of three values of different layers.\n"
                 "model example(x: f32[5, 6]) {\n"
                 "    p = dense(x, 24) |> split(3, axis = -1)\n"
                 "    h = causal_attention(p[0], p[1], p[2], heads = 2)\n"
                 "    h = causal_attention(h, tanh(h), sigmoid(h), scale = 0.7, mask = \"none\")\n"
                 "    return flatten(h) |> dense(3)\n"
                 "}\n" EXAMPLE_TRAIN},
     {.name = "attention",
      .brief = "causal_attention of q, k and v side by side",
      .arg = {{"x", ARG_TENSOR, NULL, "q, k and v (N, T, 3 C)"},
              {"heads", ARG_INT, NULL, "as above"},
              {"scale", ARG_FLOAT, NULL, "as above"},
              {"mask", ARG_STRING, NULL, "as above"}},
      .flags = OP_HIDDEN | OP_FLOPS,
      .product = PRODUCT_ATTENTION,
      .token = "token_attention",
      .shape = attention_shape,
      .gradient = attention_gradient,
      .cost = attention_cost,
      .price = attention_price,
      .kernel = attention_kernel,
      .scratch = attention_scratch},
     {.name = "attention_dx",
      .brief = "gradient of attention",
      .arg = {{"x", ARG_TENSOR, NULL, "q, k and v (N, T, 3 C)"},
              {"dy", ARG_TENSOR, NULL, "gradient of the result"},
              {"heads", ARG_INT, NULL, "as above"},
              {"scale", ARG_FLOAT, NULL, "as above"},
              {"mask", ARG_STRING, NULL, "as above"}},
      .flags = OP_HIDDEN | OP_FLOPS,
      .product = PRODUCT_ATTENTION,
      .role = ROLE_DX,
      .shape = check_like_first,
      .cost = attention_cost_dx,
      .price = attention_price_dx,
      .kernel = attention_kernel_dx,
      .scratch = attention_scratch_dx},
     {0}};
