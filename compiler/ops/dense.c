/* dense.c -- the fully connected layer and its gradients.
 *
 *   y[o] = sum over i of w[o][i] x[i]                 x (N, I)   w (O, I)   y (N, O)
 *   dx[i] = sum over o of w[o][i] dy[o]
 *   dw[o][i] = sum over samples of dy[o] x[i]
 *
 * Each step of a sequence is a vector x: x (N, T, I) gives y (N, T, O), and the products have N T
 * rows (attribute rows = T).
 *
 * The bias is a separate op until pass fuse joins both: dense(x, w, bias?) with attribute act,
 * dense_dx(w, dy, y?) with attribute mask.  Pass layout puts a dense_transpose of the weights
 * before dense_dx where the product is then faster.
 */
#include "ops/bias.h"
#include "ops/check.h"
#include "ops/dense_price.h"
#include "ops/elementwise.h"
#include "ops/example.h"
#include "runtime/constants.h"

static bool dense_shape(Node *n, Diag *d)
{
    if (!check_vectors(n, 0, d) || !check_int(n, "units", 1, d))
        return false;
    const Shape *x = &n->in[0]->shape;
    Shape y = *x;
    y.dim[x->rank - 1] = node_int(n, "units");
    node_set_attr(diag_arena(d), n, attr_ints(diag_arena(d), "x_shape", &x->dim[x->rank - 1], 1));
    if (x->rank == 2)
        node_set_attr(diag_arena(d), n, (Attr){.key = "rows", .kind = ATTR_INT, .i = x->dim[0]});
    return check_result(n, y, d);
}

static Node *dense_build(Graph *g, Node *const *x, int nx, const Node *attrs, const char *path,
                         Diag *d)
{
    Node probe = {.op = op_find("dense"), .nin = nx, .in = (Node **)x, .span = attrs->span};
    node_copy_attrs(g, &probe, attrs);
    if (!dense_shape(&probe, d))
        return NULL;
    const int64_t dim[2] = {node_int(attrs, "units"), x[0]->shape.dim[x[0]->shape.rank - 1]};
    Node *w = graph_param(g, d, arena_printf(g->arena, "%s.weight", path),
                          shape_make(false, "OI", dim, 2), NULL, attrs->span);
    if (!w)
        return NULL;
    Node *y = op_make_like(g, "dense", attrs, 2, x[0], w);
    y->name = path;
    return node_bool(attrs, "bias") ? bias_build(g, y, path, attrs->span, d) : y;
}

static void dense_gradient(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    if (grad_wanted(gr, n->in[0]))
        grad_add(gr, n->in[0], op_make_like(g, "dense_dx", n, 2, n->in[1], dy));
    if (grad_wanted(gr, n->in[1]))
        grad_add(gr, n->in[1], op_make_like(g, "dense_dw", n, 2, n->in[0], dy));
}

static bool dense_shape_dx(Node *n, Diag *d)
{
    const int64_t dim[2] = {dense_rows(n), node_attr(n, "x_shape")->list[0]};
    return check_result(n,
                        node_attr(n, "rows") ? shape_make(true, "TF", dim, 2)
                                             : shape_make(true, "F", &dim[1], 1),
                        d);
}

static bool dense_shape_dw(Node *n, Diag *d)
{
    const Shape *x = &n->in[0]->shape;
    const int64_t dim[2] = {node_int(n, "units"), node_attr(n, "x_shape")->list[0]};
    if (x->rank == 2) /* gradient of a dense in a scan: the steps are the rows of the product */
        node_set_attr(diag_arena(d), n, (Attr){.key = "rows", .kind = ATTR_INT, .i = x->dim[0]});
    return check_result(n, shape_make(false, "OI", dim, 2), d);
}

/* A multiply-add counts as two; y, dx and dw have the same cost. */
static Cost dense_cost(const Node *n)
{
    const double k = (double)node_attr(n, "x_shape")->list[0], o = (double)node_int(n, "units"),
                 rows = (double)dense_rows(n);
    return (Cost){.flops = 2 * k * o * rows, .bytes = 4 * (k + o) * rows};
}

/* A product of the model with a weight that is not transposed is a dense_dx in the forward pass:
 * y = x w. */
static void dense_gradient_dx(Grad *gr, Node *n, Node *dy)
{
    Graph *g = grad_graph(gr);
    if (grad_wanted(gr, n->in[1])) {
        Node like = {.op = n->op, .span = n->span};
        node_copy_attrs(g, &like, n);
        node_set_attr(g->arena, &like, (Attr){.key = "bias", .kind = ATTR_BOOL});
        grad_add(gr, n->in[1], op_make_like(g, "dense", &like, 2, dy, n->in[0]));
    }
    if (grad_wanted(gr, n->in[0]))
        grad_add(gr, n->in[0], op_make_like(g, "dense_dw", n, 2, dy, n->in[1]));
}

/* Adds the sizes. shard: the number of rows is that of a shard; else that of the call. */
static void literal(const Node *n, Call *c, bool shard)
{
    Sizes *s = sizes_new(c->arena, "Dense");
    if (shard)
        sizes_shard(s, "n");
    else
        sizes_int(s, "n", c->n * dense_rows(n));
    sizes_int(s, "k", node_attr(n, "x_shape")->list[0]);
    sizes_int(s, "o", node_int(n, "units"));
    call_sizes(c, s);
}

/* The call computes a few panels for all samples of all shards (pass wide). */
static void kernel_wide(const Node *n, Call *c, const char *name)
{
    call_fn(c, name);
    call_out(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    if (node_is(n, "dense")) {
        call_in(c, n->nin > 2 ? n->in[2] : NULL);
        elementwise_call_act(n, c);
    } else {
        elementwise_call_mask(n, 2, c);
    }
    literal(n, c, true);
    call_given(c, CALL_RT);
    call_given(c, CALL_UNIT);
}

static void dense_kernel(const Node *n, Call *c)
{
    if (node_attr(n, "wide")) {
        kernel_wide(n, c, "dense_wide");
        return;
    }
    if (c->target.few_half && op_reads_half(n))
        call_fn(c, n->half ? "bf16_dense" : "bf16_dense_f32");
    else if (c->target.skips_zeros && dense_seeks_zeros(n))
        call_fn(c, "dense_sparse");
    else
        call_product(c, "dense");
    c->parts = true;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    if (c->target.fuses) {
        call_in(c, n->nin > 2 ? n->in[2] : NULL);
        elementwise_call_act(n, c);
    }
    literal(n, c, false);
}

/* dense_sparse has on its stack the indices of inputs that are not zero, and the sums of four
 * panels (runtime/cpu/dense_sparse.h). */
static int64_t dense_stack_bytes(const Node *n, int64_t chunk)
{
    enum { SUMS = 512 };
    const int64_t words = ceil_div(node_attr(n, "x_shape")->list[0], RT_SPARSE_WORD);
    return dense_seeks_zeros(n) ? chunk * dense_rows(n) * (8 * words + SUMS) : 0;
}

static void dense_kernel_dx(const Node *n, Call *c)
{
    if (node_attr(n, "wide")) {
        kernel_wide(n, c, "dense_wide_dx");
        return;
    }
    if (c->target.few_half && op_reads_half(n))
        call_fn(c, n->half ? "bf16_dense_dx" : "bf16_dense_dx_f32");
    else if (node_is(n->in[0], "dense_transpose"))
        call_fn(c, "dense_dx_transposed");
    else
        call_product(c, "dense_dx");
    c->parts = true;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    if (c->target.fuses)
        elementwise_call_mask(n, 2, c);
    literal(n, c, false);
}

static void dense_kernel_dw(const Node *n, Call *c)
{
    if (c->target.few_half && op_reads_half(n))
        call_fn(c, "bf16_dense_dw");
    else
        call_product(c, "dense_dw");
    c->parts = true;
    call_out(c, n);
    call_in(c, n->in[0]);
    call_in(c, n->in[1]);
    literal(n, c, false);
}

static bool dense_shape_transpose(Node *n, Diag *d)
{
    const int64_t count = node_int(n, "count");
    return check_result(n, shape_make(false, NULL, &count, 1), d);
}

static void dense_kernel_transpose(const Node *n, Call *c)
{
    call_fn(c, "dense_transpose");
    call_out(c, n);
    call_in(c, n->in[0]);
    literal(n, c, false);
}

static void dense_kernel_pack(const Node *n, Call *c)
{
    call_fn(c, node_int(n, "dx") ? "bf16_dense_pack_back" : "bf16_dense_pack");
    call_out(c, n);
    call_in(c, n->in[0]);
    literal(n, c, false);
}

const Op op_dense[] = {
    {.name = "dense",
     .brief = "fully connected layer: each output is a learned weighted sum of all inputs",
     .shapes =
         "x (N, I) or (N, T, I)   weight (O, I)   bias (O)   y (N, O) or (N, T, O)   O = units",
     .formula = "y[o] = bias[o] + sum over i of weight[o][i] x[i]",
     .derivative = "dx[i] = sum over o of weight[o][i] dy[o]\n"
                   "dweight[o][i] = sum over samples of dy[o] x[i]\n"
                   "dbias[o] = sum over samples of dy[o]",
     .note =
         "In a sequence (N, T, I) every step is such a vector. On a GPU the product is a kernel of "
         "Tenon, or cuBLASLt's with --kernels=cudnn.",
     .arg = {{"x", ARG_TENSOR, NULL, "vectors (N, I), or sequences of them (N, T, I)"},
             {"units", ARG_INT, NULL, "number of outputs O, at least 1"},
             {"bias", ARG_BOOL, "true", "add a learned number to each output"}},
     .flags = OP_POSITION | OP_FLOPS,
     .product = PRODUCT_DENSE,
     .role = ROLE_Y,
     .takes = EPILOGUE_BIAS | EPILOGUE_ACT,
     .layer = "dense",
     .shape = dense_shape,
     .build = dense_build,
     .gradient = dense_gradient,
     .cost = dense_cost,
     .price = dense_price,
     .kernel = dense_kernel,
     .stack_bytes = dense_stack_bytes,
     .example = "model example(x: f32[6]) {\n"
                "    h = dense(x, 5) |> tanh\n"
                "    return dense(h, 3, bias = false)\n"
                "}\n" EXAMPLE_TRAIN},
    {.name = "dense_dx",
     .brief = "gradient of dense for its vectors",
     .arg = {{"w", ARG_TENSOR, NULL, "weights (O, I)"},
             {"dy", ARG_TENSOR, NULL, "gradient of the result"},
             {"y", ARG_TENSOR, "none",
              "result of an activation, whose gradient is applied, too (attribute mask)"},
             {"side", ARG_TENSOR, "none", "bits of y: above 0 (pass epilogue)"}},
     .flags = OP_HIDDEN | OP_FLOPS,
     .product = PRODUCT_DENSE,
     .role = ROLE_DX,
     .takes = EPILOGUE_MASK,
     .shape = dense_shape_dx,
     .gradient = dense_gradient_dx,
     .cost = dense_cost,
     .price = dense_price_dx,
     .kernel = dense_kernel_dx},
    {.name = "dense_dw",
     .brief = "gradient of dense for its weights, summed over the samples",
     .arg = {{"x", ARG_TENSOR, NULL, "vectors (N, I)"},
             {"dy", ARG_TENSOR, NULL, "gradient of the result"}},
     .flags = OP_HIDDEN | OP_SUM | OP_FLOPS,
     .product = PRODUCT_DENSE,
     .role = ROLE_DW,
     .shape = dense_shape_dw,
     .cost = dense_cost,
     .price = dense_price_dw,
     .kernel = dense_kernel_dw},
    {.name = "dense_transpose",
     .brief = "weights of dense in the order in which dense_dx reads them",
     .arg = {{"w", ARG_TENSOR, NULL, "weights (O, I)"}},
     .flags = OP_HIDDEN | OP_PACK,
     .copy = "transposed",
     .shape = dense_shape_transpose,
     .price = dense_price_transpose,
     .kernel = dense_kernel_transpose},
    {.name = "dense_pack",
     .brief = "weights of dense in two bytes, in the order of the kernels for processors",
     .arg = {{"w", ARG_TENSOR, NULL, "weights (O, I)"}},
     .flags = OP_HIDDEN | OP_PACK,
     .copy = "packed",
     .shape = dense_shape_transpose,
     .price = dense_price_transpose,
     .kernel = dense_kernel_pack},
    {0}};
