/* matmul.c -- one matrix product for each sample (and head).
 *
 *   c[..][i][j] = sum over k of a[..][i][k] b[..][k][j]
 *
 *   a (N, .., M, K)   b (N, .., K, L)   c (N, .., M, L)
 *   transposed: a (N, .., K, M)   b (N, .., L, K)
 *
 * da = dc b^T and db = a^T dc are such products again, for each choice of transposition.  The input
 * b can also be the weights (O, I) of a layer, which all samples share.  Then matmul becomes a
 * product of that layer: dense if b is transposed, else dense_dx.  So two layers can share a
 * weight.
 */
#include "ops/check.h"
#include "ops/dense_price.h"
#include "ops/example.h"

/* Rows and columns after transposition. */
static int64_t rows_of(const Shape *s, bool transposed)
{
    return s->dim[s->rank - 2 + transposed];
}
static int64_t columns_of(const Shape *s, bool transposed)
{
    return s->dim[s->rank - 1 - transposed];
}

static bool transposed(const Node *n, int i)
{
    return node_bool(n, i ? "transpose_b" : "transpose_a");
}

static bool check_matrix(const Node *n, int i, Diag *d)
{
    if (!check_real(n, i, d))
        return false;
    if (n->in[i]->shape.rank >= 2)
        return true;
    diag_error(d, n->span, "matmul needs matrices (N, .., rows, columns), got %s",
               shape_text(diag_arena(d), &n->in[i]->shape));
    check_note(n, i, d);
    diag_help(d, "reshape it first: reshape(x, [1, -1])");
    return false;
}

static bool misfit(const Node *n, const char *why, Diag *d)
{
    diag_error(d, n->span, "matmul of %s%s and %s%s does not fit: %s",
               shape_text(diag_arena(d), &n->in[0]->shape), transposed(n, 0) ? " transposed" : "",
               shape_text(diag_arena(d), &n->in[1]->shape), transposed(n, 1) ? " transposed" : "",
               why);
    check_note(n, 0, d);
    check_note(n, 1, d);
    return false;
}

/* Whether b is a weight that all samples share. */
static bool shared(const Node *n)
{
    return !n->in[1]->shape.batched;
}

static bool matmul_shape(Node *n, Diag *d)
{
    if (!check_matrix(n, 0, d) || !check_matrix(n, 1, d))
        return false;
    const Shape *a = &n->in[0]->shape, *b = &n->in[1]->shape;
    const int64_t k = columns_of(a, transposed(n, 0)), l = rows_of(b, transposed(n, 1));
    Shape c = *a;
    if (!a->batched)
        return misfit(n, "the first has no samples", d);
    if (shared(n) && (transposed(n, 0) || a->rank != 2 || b->rank != 2))
        return misfit(n, "weights need a sequence (N, T, F) that is not transposed as first input",
                      d);
    if (!shared(n) && a->rank != b->rank)
        return misfit(n, "their ranks differ", d);
    if (k != l)
        return misfit(n,
                      arena_printf(diag_arena(d), "%lld columns against %lld rows", (long long)k,
                                   (long long)l),
                      d);
    for (int i = 0; i < a->rank - 2; i++)
        if (a->dim[i] != b->dim[i])
            return misfit(n, "the dimensions before the matrices differ", d);
    c.dim[a->rank - 2] = rows_of(a, transposed(n, 0));
    c.dim[a->rank - 1] = columns_of(b, transposed(n, 1));
    return check_result(n, c, d);
}

/* y = x W^T is dense; y = x W is dense_dx, the gradient of dense. */
static Node *of_weights(Graph *g, const Node *n)
{
    const Shape *w = &n->in[1]->shape;
    Node like = {.op = n->op, .span = n->span};
    node_set_int(g, &like, "units", w->dim[0]);
    if (transposed(n, 1)) {
        node_set_attr(g->arena, &like, (Attr){.key = "bias", .kind = ATTR_BOOL});
        return op_make_like(g, "dense", &like, 2, n->in[0], n->in[1]);
    }
    node_set_ints(g, &like, "x_shape", &w->dim[1], 1);
    node_set_int(g, &like, "rows", n->in[0]->shape.dim[0]);
    return op_make_like(g, "dense_dx", &like, 2, n->in[1], n->in[0]);
}

static Node *matmul_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                          Diag *d)
{
    Node probe = {.op = attrs->op, .nin = nx, .in = (Node **)x, .span = attrs->span};
    (void)path; /* matmul has no parameters */
    node_copy_attrs(g, &probe, attrs);
    if (!matmul_shape(&probe, d))
        return NULL;
    return shared(&probe) ? of_weights(g, &probe) : op_make_like(g, "matmul", attrs, 2, x[0], x[1]);
}

static Node *product(Graph *g, const Node *n, Node *a, bool transpose_a, Node *b, bool transpose_b)
{
    Node like = {.op = n->op, .span = n->span};
    node_set_attr(g->arena, &like,
                  (Attr){.key = "transpose_a", .kind = ATTR_BOOL, .i = transpose_a});
    node_set_attr(g->arena, &like,
                  (Attr){.key = "transpose_b", .kind = ATTR_BOOL, .i = transpose_b});
    return op_make_like(g, "matmul", &like, 2, a, b);
}

static void matmul_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    Node *a = n->in[0], *b = n->in[1];
    const bool ta = transposed(n, 0), tb = transposed(n, 1);
    if (grad_wanted(gr, a))
        grad_add(gr, a, ta ? product(g, n, b, tb, dy, true) : product(g, n, dy, false, b, !tb));
    if (grad_wanted(gr, b))
        grad_add(gr, b, tb ? product(g, n, dy, true, a, ta) : product(g, n, a, !ta, dy, false));
}

static int64_t matrices(const Node *n)
{
    int64_t count = 1;
    for (int i = 0; i < n->shape.rank - 2; i++)
        count *= n->shape.dim[i];
    return count;
}

static Cost matmul_cost(const Node *n)
{
    const double k = (double)columns_of(&n->in[0]->shape, transposed(n, 0));
    return (Cost){.flops = 2 * k * (double)shape_count(&n->shape),
                  .bytes = 4 * (double)(shape_count(&n->in[0]->shape) +
                                        shape_count(&n->in[1]->shape) + shape_count(&n->shape))};
}

/* The kernel packs panels of b, and then computes tiles.  Packing takes 0.6 cycles for each number
 * if b is transposed, else 2 cycles for each vector. */
static void matmul_price(const Node *n, const Market *m, Price *p)
{
    const Shape *c = &n->shape;
    const int64_t k = columns_of(&n->in[0]->shape, transposed(n, 0)), columns = c->dim[c->rank - 1];
    const double times = (double)(m->n * matrices(n));
    price_panels(p, m, times, c->dim[c->rank - 2], columns, (double)k);
    p->cycles += times * (double)(k * columns) * (transposed(n, 1) ? 0.6 : 2.0 / m->lanes);
    p->values = matmul_cost(n).bytes / 4 * (double)(m->n * m->real);
    if (op_reads_half(n))
        price_half(p);
    price_stream(p, m, p->values, p->values);
}

static void matmul_kernel(const Node *n, Call *c)
{
    const Shape *s = &n->shape;
    if (c->target.few_half && op_reads_half(n))
        call_fn(c, n->half ? "bf16_matmul" : "bf16_matmul_f32");
    else
        call_product(c, "matmul");
    call_in_parts(c, n);
    Sizes *z = sizes_new(c->arena, "Gemm");
    sizes_int(z, "count", c->n * matrices(n));
    sizes_int(z, "m", s->dim[s->rank - 2]);
    sizes_int(z, "n", s->dim[s->rank - 1]);
    sizes_int(z, "k", columns_of(&n->in[0]->shape, transposed(n, 0)));
    sizes_bool(z, "transpose_a", transposed(n, 0));
    sizes_bool(z, "transpose_b", transposed(n, 1));
    call_sizes(c, z);
}

const Op op_matmul[] =
    {{.name = "matmul",
      .brief =
          "matrix product of two tensors of each sample, or of a sequence and a layer's weight",
      .shapes = "a (N, .., M, K)   b (N, .., K, L) or a weight (K, L)   c (N, .., M, L)\n"
                "transpose_a: a (N, .., K, M)   transpose_b: b (N, .., L, K)",
      .formula = "c[..][i][j] = sum over k of a[..][i][k] b[..][k][j]",
      .derivative = "da = dc b^T\n"
                    "db = a^T dc",
      .note = "layer.weight of a dense layer is (O, I), so that matmul(h, layer.weight) maps O "
              "features to I. On a GPU the product is a kernel of Tenon, or cuBLASLt's with "
              "--kernels=cudnn.",
      .arg = {{"a", ARG_TENSOR, NULL, "(N, .., M, K)"},
              {"b", ARG_TENSOR, NULL, "(N, .., K, L), or a weight (K, L)"},
              {"transpose_a", ARG_BOOL, "false", "take a as (N, .., K, M)"},
              {"transpose_b", ARG_BOOL, "false", "take b as (N, .., L, K)"}},
      .flags = OP_FLOPS,
      .product = PRODUCT_MATMUL,
      .shape = matmul_shape,
      .build = matmul_build,
      .gradient = matmul_gradient,
      .cost = matmul_cost,
      .price = matmul_price,
      .kernel = matmul_kernel,
      .example =
          "# Attention by hand: scores, softmax, mixture; then the way back through a layer's "
          "weight.\n"
          "model example(x: f32[5, 6]) {\n"
          "    up = dense(8)\n"
          "    h = up(x) |> tanh\n"
          "    p = matmul(h, dense(x, 8, bias = false), transpose_b = true) |> softmax\n"
          "    h = matmul(p, h) |> matmul(up.weight)\n"
          "    h = matmul(h, x, transpose_a = true) |> matmul(up.weight, transpose_b = true)\n"
          "    return flatten(h) |> dense(3)\n"
          "}\n" EXAMPLE_TRAIN},
     {0}};
