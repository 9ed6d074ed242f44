/* attention.c -- causal_attention and attention: for each step, a weighted mean of the values of
 * all steps.  The weight of a value is the softmax of the product of the query of the step and the
 * key of the value.
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
 *
 * attention between two sequences, or with a mask of the keys, is written as matmul, softmax and
 * matmul: its scores (heads, queries, keys) are stored.
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

/* Checks that the heads divide the features of input i.  x: the keys. */
static bool check_heads(const Node *n, const Shape *x, int i, Diag *d)
{
    const int64_t width = n->in[i]->shape.dim[1];
    const int64_t heads = node_int(n, "heads");
    if (width % heads) {
        diag_error(d, node_span(n, "heads"), "%s: %lld heads do not divide %lld features",
                   n->op->name, (long long)heads, (long long)width);
        check_note(n, i, d);
        return false;
    }
    if (x->dim[0] <= NUMBERS_MOST / (width / heads))
        return true;
    diag_error(d, n->span, "%s over %lld steps with %lld features a head is too long", n->op->name,
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
    return check_int(n, "heads", 1, d) && attention_check_mask(n, d) && check_heads(n, x, 0, d) &&
           check_result(n, *x, d);
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

/* Sets the factor of the scores if the call has none; false after reporting. */
static bool set_scale(Graph *g, Node *n, Diag *d)
{
    const int64_t size = n->in[0]->shape.dim[1] / node_int(n, "heads");
    if (!node_attr(n, "scale"))
        node_set_float(g, n, "scale", 1 / sqrt((double)size));
    if (node_float(n, "scale") > 0)
        return true;
    diag_error(d, node_span(n, "scale"), "%s scale = %g is not above 0", n->op->name,
               node_float(n, "scale"));
    diag_help(d, "omit it for 1 / sqrt(%lld), or negate q", (long long)size);
    return false;
}

static Node *attention_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                             Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    (void)path; /* attention has no parameters */
    node_copy_attrs(g, &probe, attrs);
    if (!attention_shape_three(&probe, d))
        return NULL;
    if (!set_scale(g, &probe, d))
        return NULL;
    Node *all = find_qkv(x);
    return op_make_like(g, "attention", &probe, 1, all ? all : join_qkv(g, x, attrs->span));
}

/* ---- attention between two sequences */

/* Checks q (N, T, C), k (N, S, C), v (N, S, E) and the mask of the keys (N, S). */
static bool attention_shape_two(Node *n, Diag *d)
{
    for (int i = 0; i < 3; i++)
        if (!check_sequence(n, i, d))
            return false;
    const Shape *q = &n->in[0]->shape, *k = &n->in[1]->shape, *v = &n->in[2]->shape;
    const bool keys = q->dim[1] == k->dim[1];
    if (!keys || k->dim[0] != v->dim[0]) {
        diag_error(d, n->span, "attention of %s %s and %s %s: the %s differ",
                   keys ? "keys" : "queries", shape_text(diag_arena(d), keys ? k : q),
                   keys ? "values" : "keys", shape_text(diag_arena(d), keys ? v : k),
                   keys ? "steps" : "features");
        check_note(n, keys, d);
        check_note(n, 1 + keys, d);
        return false;
    }
    if (!check_int(n, "heads", 1, d) || !check_heads(n, k, 0, d) || !check_heads(n, k, 2, d))
        return false;
    if (n->nin > 3) {
        const Shape *m = &n->in[3]->shape;
        if (!m->batched || m->rank != 1 || m->dim[0] != k->dim[0] || n->in[3]->dtype != DT_REAL) {
            diag_error(d, node_span(n, "mask"),
                       "the mask of attention has one number for each key, (N, %lld), this is %s%s",
                       (long long)k->dim[0], n->in[3]->dtype == DT_REAL ? "" : "tokens ",
                       shape_text(diag_arena(d), m));
            check_note(n, 1, d);
            check_note(n, 3, d);
            diag_help(d, "mask(text) computes it from tokens: 1, or 0 for padding");
            return false;
        }
    }
    Shape y = *v;
    y.dim[0] = q->dim[0];
    return check_result(n, y, d);
}

static Node *reshaped(Graph *g, Node *x, const int64_t *dim, int rank, Span at)
{
    Node like = {.op = op_find("reshape"), .span = at};
    node_set_ints(g, &like, "shape", dim, rank);
    return op_make_like(g, "reshape", &like, 1, x);
}

/* (A, B, D) -> (B, A, D) */
static Node *exchanged(Graph *g, Node *x, Span at)
{
    Node like = {.op = op_find("transpose"), .span = at};
    node_set_ints(g, &like, "axes", (const int64_t[]){1, 0, 2}, 3);
    return op_make_like(g, "transpose", &like, 1, x);
}

/* (T, heads D) -> (heads, T, D) */
static Node *divided(Graph *g, Node *x, int64_t heads, Span at)
{
    const int64_t dim[] = {x->shape.dim[0], heads, x->shape.dim[1] / heads};
    return exchanged(g, reshaped(g, x, dim, 3, at), at);
}

static Node *product(Graph *g, Node *a, Node *b, bool transposed, Span at)
{
    Node like = {.op = op_find("matmul"), .span = at};
    node_set_attr(g->arena, &like, (Attr){.key = "transpose_a", .kind = ATTR_BOOL});
    node_set_attr(g->arena, &like,
                  (Attr){.key = "transpose_b", .kind = ATTR_BOOL, .i = transposed});
    return op_make_like(g, "matmul", &like, 2, a, b);
}

/* The scores, with (m - 1) * MASKED added: a key whose mask is 0 then has the weight 0. */
static Node *masked(Graph *g, Node *scores, Node *m, Span at)
{
    static const double MASKED = 1e9;
    const int64_t dim[] = {1, 1, m->shape.dim[0]};
    Node *one = graph_const(g, 1, shape_make(false, NULL, NULL, 0), at),
         *most = graph_const(g, MASKED, shape_make(false, NULL, NULL, 0), at);
    Node *less = op_make(g, "mul", at, 2, op_make(g, "sub", at, 2, m, one), most);
    return op_make(g, "add", at, 2, scores, reshaped(g, less, dim, 3, at));
}

static Node *attention_build_two(Graph *g, Node *const *x, int nx, const Node *attrs,
                                 const char *path, Diag *d)
{
    const Span at = attrs->span;
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = at};
    (void)path;
    node_copy_attrs(g, &probe, attrs);
    if (!attention_shape_two(&probe, d) || !set_scale(g, &probe, d))
        return NULL;
    if (nx == 3 && shape_same(&x[0]->shape, &x[1]->shape) &&
        shape_same(&x[0]->shape, &x[2]->shape)) {
        node_set_string(g, &probe, "mask", "none");
        Node *all = find_qkv(x);
        return op_make_like(g, "attention", &probe, 1, all ? all : join_qkv(g, x, at));
    }
    const int64_t heads = node_int(attrs, "heads");
    Node *scale = graph_const(g, node_float(&probe, "scale"), shape_make(false, NULL, NULL, 0), at);
    Node *q = divided(g, op_make(g, "mul", at, 2, x[0], scale), heads, at);
    Node *scores = product(g, q, divided(g, x[1], heads, at), true, at);
    if (nx == 4)
        scores = masked(g, scores, x[3], at);
    Node like = {.op = op_find("softmax"), .span = at};
    node_set_int(g, &like, "axis", 2);
    node_set_string(g, &like, "mask", "none");
    Node *weights = op_make_like(g, "softmax", &like, 1, scores);
    Node *y = exchanged(g, product(g, weights, divided(g, x[2], heads, at), false, at), at);
    const int64_t dim[] = {x[0]->shape.dim[0], x[2]->shape.dim[1]};
    return reshaped(g, y, dim, 2, at);
}

/* A node has one input, q, k and v side by side; a call has three or four tensors. */
static bool attention_shape(Node *n, Diag *d)
{
    if (n->nin > 1)
        return attention_shape_two(n, d);
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

/* of both calls, for the manual */
#define ATTENTION_DERIVATIVE                                                                       \
    "dv[j] = sum over i of p[i][j] do[i]\n"                                                        \
    "ds[i][j] = p[i][j] (do[i] . v[j] - do[i] . o[i])\n"                                           \
    "dq[i] = scale (sum over j of ds[i][j] k[j])\n"                                                \
    "dk[j] = scale (sum over i of ds[i][j] q[i])"

const Op op_attention[] =
    {{.name = "causal_attention",
      .brief = "scaled dot-product attention: each step mixes the values of the steps before it "
               "and its own",
      .shapes = "q, k, v, o (N, T, C)   D = C / heads features of each head",
      .formula = "s[i][j] = scale (q[i] . k[j])\n"
                 "p[i][..] = softmax of s[i][..] over j <= i (mask \"none\": over all j)\n"
                 "o[i] = sum over j of p[i][j] v[j]   for each head",
      .derivative = ATTENTION_DERIVATIVE,
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
      .brief =
          "each step of a sequence mixes the values of the steps of another sequence, or of its "
          "own",
      .shapes = "q (N, T, C)   k (N, S, C)   v (N, S, E)   mask (N, S)   o (N, T, E)",
      .formula = "s[i][j] = scale (q[i] . k[j])\n"
                 "p[i][..] = softmax of s[i][..] over all j whose mask is 1\n"
                 "o[i] = sum over j of p[i][j] v[j]   for each head",
      .derivative = ATTENTION_DERIVATIVE,
      .note =
          "q, k and v of one shape, without a mask: the same as causal_attention with mask = "
          "\"none\", and the scores are not stored. Else attention is matmul, softmax and matmul, "
          "and its scores are stored: heads times T times S numbers a sample. If the mask of all "
          "keys of a sample is 0, each key has the weight 1 / S. Source: Vaswani et al. 2017, "
          "\"Attention is all you need\".",
      .arg = {{"q", ARG_TENSOR, NULL, "queries (N, T, C)"},
              {"k", ARG_TENSOR, NULL, "keys (N, S, C)"},
              {"v", ARG_TENSOR, NULL, "values (N, S, E)"},
              {"heads", ARG_INT, "1", "number of heads, at least 1; it divides C and E"},
              {"scale", ARG_FLOAT, "none",
               "factor of the scores, above 0; default: 1 / sqrt(C / heads)"},
              {"mask", ARG_TENSOR, "none",
               "1 for a key that counts, 0 for one that does not (N, S): mask(text); default: all "
               "count"}},
      .flags = OP_FLOPS,
      .product = PRODUCT_ATTENTION,
      .token = "token_attention",
      .joins = true,
      .shape = attention_shape,
      .build = attention_build_two,
      .gradient = attention_gradient,
      .cost = attention_cost,
      .price = attention_price,
      .kernel = attention_kernel,
      .scratch = attention_scratch,
      .example =
          "# A decoder asks an encoder: each of 3 steps mixes the 5 steps of the input that "
          "are not padding.\n"
          "# A bias of the keys would change nothing: it adds the same to all scores of a query.\n"
          "model example(text: i32[5], vocab: int) {\n"
          "    h = embedding(text, vocab, 6, padding = 0)\n"
          "    q = dense(flatten(h), 12) |> reshape([3, 4])\n"
          "    k = dense(h, 4, bias = false)\n"
          "    h = attention(q, k, dense(h, 8), heads = 2, mask = mask(text))\n"
          "    return flatten(h) |> dense(3)\n"
          "}\n" EXAMPLE_TOKENS},
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
