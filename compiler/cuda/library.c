/* library.c -- products of a GPU program that NVIDIA's libraries compute: a row of a table for each
 * call, and the code of the call.
 *
 * With --kernels=cudnn, cuBLASLt computes products of dense layers and matrices
 * (runtime/cuda/cublas.h), with the bias and the relu from pass epilogue; cuDNN computes
 * convolutions (graph.c).  The product for the gradient of weights also computes the gradient of
 * the bias, because it reads the same dy.  A dense layer with a relu writes a mask, and the product
 * for dx of the next layer applies the mask.  If the program finds that the library has no
 * algorithm for one of these two products, a kernel of Tenon computes the gradient of the relu from
 * y after dx. */
#include "cuda/lower.h"
#include "ir/gpu.h"
#include "ops/dense_price.h"
#include "ops/step_price.h"
#include <string.h>

/* The workspace that cuBLASLt recommends: 32 MiB for Hopper and later, 4 MiB for earlier GPUs. */
static int64_t product_workspace(const Options *o)
{
    return (int64_t)(strcmp(o->arch, "sm_80") == 0 ? 4 : 32) << 20;
}

/* ---- rows, without duplicates, because the forward pass is written twice */

int library_row(Writer *w, Rows *rows, const char *row)
{
    for (int i = 0; i < rows->n; i++)
        if (!strcmp(rows->row[i], row))
            return i;
    ARENA_PUSH(w->arena, rows->row, rows->n, row);
    return rows->n - 1;
}

/* "dense1 (lenet.tn:10)"; for a node without a name, the op: "dense_dx (lenet.tn:10)" */
const char *library_layer(Writer *w, const Node *n)
{
    const char *file = n->span.source ? source_base(n->span.source) : "";
    return quote_c(w->arena, arena_printf(w->arena, "%s (%s:%d)", n->name ? n->name : n->op->name,
                                          file, n->span.line));
}

/* y (count, rows, columns) = a b + bias; transposed: a (count, depth, rows), b (count, columns,
 * depth). */
typedef struct Product {
    const Node *a, *b, *bias, *sums; /* sums (rows): sums of a over its depth */
    const Node *mask;
    /* row of the product whose mask it applies, counted from 1; 0: it writes the mask, or there is
     * no mask */
    int undoes;
    int64_t count, rows, columns, depth;
    bool transpose_a, transpose_b, add;
} Product;

static int64_t input_size(const Node *n)
{
    return node_attr(n, "x_shape")->list[0];
}

/* Whether one call writes the whole sum n over the samples of a shard. */
static bool is_written_sum(const Writer *w, const Node *n)
{
    return !n->loop && step_writes_sum(w->g, n, w->in->options);
}

/* Whether b is the gradient of the bias, and dw is the gradient of the weights, of the same layer.
 * False for a bias along the first of two dimensions, because this dimension is the steps. */
static bool sums_for(const Writer *w, const Node *b, const Node *dw)
{
    const Attr *align = node_attr(b, "align");

    return node_is(b, "sum_to") && node_is(dw, "dense_dw") && b->in[0] == dw->in[1] &&
           b->phase == dw->phase && b->shape.rank == 1 && !b->shape.batched &&
           b->shape.dim[0] == node_int(dw, "units") &&
           (b->in[0]->shape.rank == 1 || !align || strcmp(align->s, "first") != 0) &&
           is_written_sum(w, b) && is_written_sum(w, dw);
}

static const Node *first_companion(const Writer *w, const Node *n, Brings *brings)
{
    const Phase *p = &w->g->step->phase[n->phase];

    for (int i = 0; i < p->nnode; i++)
        if (brings(w, p->node[i], n) || brings(w, n, p->node[i]))
            return p->node[i];
    return NULL;
}

const Node *library_companion(const Writer *w, const Node *n, Brings *brings)
{
    const Node *other = w->g->training && n->phase >= 0 ? first_companion(w, n, brings) : NULL;
    return other && first_companion(w, other, brings) == n ? other : NULL;
}

static const Node *companion(const Writer *w, const Node *n)
{
    const bool able = w->in->options->libraries && strcmp(w->in->dtype, "f64") != 0;
    return able ? library_companion(w, n, sums_for) : NULL;
}

bool library_brings(const Writer *w, const Node *n)
{
    return graph_brings(w, n) ||
           (node_is(n, "sum_to") && (companion(w, n) || library_companion(w, n, columns_shift)));
}

/* Whether the library computes n.  It cannot read a constant, which has no memory. */
static bool by_library(const Writer *w, const Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->op->leaf == LEAF_CONST)
            return false;
    return w->in->options->libraries &&
           (n->op->product == PRODUCT_DENSE || n->op->product == PRODUCT_MATMUL);
}

/* The mask of the relu of a dense layer, if a product reads it; else NULL. */
static const Node *mask_of(const Writer *w, const Node *n)
{
    for (int i = 0; i < w->g->nnode; i++) {
        const Node *dx = w->g->node[i];
        if (node_is(dx, "dense_dx") && dx->nin > 3 && dx->in[3]->in[0] == n && by_library(w, dx))
            return dx->in[3];
    }
    return NULL;
}

static int row_of(Writer *w, const Node *n);

static Product dense_product(Writer *w, const Node *n)
{
    const int64_t rows = w->g->step->chunk * dense_rows(n), k = input_size(n),
                  o = node_int(n, "units");
    const bool y = n->op->role == ROLE_Y, dx = n->op->role == ROLE_DX;
    Product p = {.a = n->in[!y], .b = n->in[y], .count = 1};

    if (y) {
        p.rows = rows, p.columns = o, p.depth = k, p.transpose_b = true;
        p.bias = n->nin > 2 ? n->in[2] : NULL, p.mask = mask_of(w, n);
    } else if (dx) {
        p.rows = rows, p.columns = k, p.depth = o;
        if (n->nin > 3 && by_library(w, n->in[3]->in[0]))
            p.mask = n->in[3], p.undoes = row_of(w, n->in[3]->in[0]) + 1;
    } else {
        p.rows = o, p.columns = k, p.depth = rows, p.transpose_a = true;
        p.sums = companion(w, n), p.add = !step_writes_sum(w->g, n, w->in->options);
    }
    return p;
}

static Product matrix_product(const Writer *w, const Node *n)
{
    const Shape *y = &n->shape, *a = &n->in[0]->shape;
    const int64_t rows = y->dim[y->rank - 2], columns = y->dim[y->rank - 1];
    Product p = {.a = n->in[0], .b = n->in[1], .rows = rows, .columns = columns};

    p.transpose_a = node_bool(n, "transpose_a"), p.transpose_b = node_bool(n, "transpose_b");
    p.count = w->g->step->chunk * (shape_count(y) / (rows * columns));
    p.depth = a->dim[a->rank - (p.transpose_a ? 2 : 1)];
    return p;
}

static Product product_of(Writer *w, const Node *n)
{
    return n->op->product == PRODUCT_MATMUL ? matrix_product(w, n) : dense_product(w, n);
}

static const char *product_row(Writer *w, const Node *n, const Product *p)
{
    const struct {
        bool is;
        const char *field;
    } fields[] = {{p->transpose_a, "transpose_a = true"},
                  {p->transpose_b, "transpose_b = true"},
                  {p->add, "add = true"},
                  {p->bias, "bias = true"},
                  {p->sums, "sums = true"},
                  {node_attr(n, "act"), "relu = true"},
                  {p->undoes, arena_printf(w->arena, "undoes = %d", p->undoes)},
                  {p->mask && !p->undoes, "mask = true"},
                  {p->a->half, "factors_half = true"},
                  {n->half, "half = true"}};
    const Node *operand[] = {n, p->a, p->b, p->bias, p->sums};
    int64_t align = 16; /* largest number of bytes that a thread reads at once */
    Text t = text_new(w->arena);

    for (int i = 0; i < 5; i++)
        while (operand[i] && pointer_align(w, operand[i]) % align)
            align /= 2;
    text_printf(&t, "{.layer = %s, .count = %lld, .rows = %lld, .columns = %lld, .depth = %lld",
                library_layer(w, n), (long long)p->count, (long long)p->rows, (long long)p->columns,
                (long long)p->depth);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].is)
            text_printf(&t, ", .%s", fields[i].field);
    text_printf(&t, ", .align = %lld}", (long long)align);
    return t.s;
}

static int row_of(Writer *w, const Node *n)
{
    const Product p = product_of(w, n);
    return library_row(w, &w->cuda->products, product_row(w, n, &p));
}

CudaCall *library_call(Writer *w, const char *fn, const char *library, const Node *n, int row)
{
    CudaCall *c = cuda_call(w, fn, n, NUMBER(row));
    c->kind = KIND_LIBRARY, c->library = library;
    return c;
}

static void lower_product(Writer *w, const Node *n)
{
    const Product p = product_of(w, n);
    CudaCall *c =
        library_call(w, p.mask ? "rt_product_masked" : "rt_product", "cuBLASLt", n, row_of(w, n));

    cuda_give(w, c, DIRECT(n, true), DIRECT(p.a, false), DIRECT(p.b, false),
              DIRECT(p.bias ? p.bias : p.sums, p.sums != NULL));
    if (p.mask)
        cuda_give(w, c, DIRECT(p.mask, !p.undoes));
    cuda_give(w, c, TEXT("WORKSPACE"));
    if (n->op->role == ROLE_DX && node_attr(n, "mask"))
        graph_lower_rest_dx(w, n)->fallback = p.mask != NULL;
}

bool library_lower(Writer *w, const Node *n)
{
    if (graph_lower(w, n))
        return true;
    if (by_library(w, n))
        lower_product(w, n);
    return by_library(w, n);
}

/* ---- tables of the program */

static bool uses_libraries(const Writer *w)
{
    return w->cuda->products.n || w->cuda->graphs.n;
}

/* cuBLASLt wants a workspace that is aligned to 256 bytes (cublasLtMatmul in CUDA's manual), as
 * cudaMalloc aligns.  The scratch itself begins at such an address (runtime/device/remote.c). */
static int64_t aligned(int64_t bytes)
{
    enum { ALIGN = 256 };
    return round_up(bytes, ALIGN);
}

/* Bytes of the workspace of the libraries, without the memory after it. */
static int64_t workspace_of(const Writer *w)
{
    const int64_t product = w->cuda->products.n ? product_workspace(w->in->options) : 0,
                  graph = graph_workspace(w);
    return aligned(product > graph ? product : graph);
}

/* Bytes of the scratch before the workspace: values, and the samples of two steps. */
static int64_t before_workspace(const Writer *w)
{
    return w->in->train->step->thread_bytes + 2 * w->samples_bytes;
}

int64_t library_workspace(const Writer *w)
{
    const int64_t bytes = workspace_of(w) + w->cuda->apart_bytes;
    return bytes ? aligned(before_workspace(w)) - before_workspace(w) + bytes : 0;
}

void library_includes(const Writer *w, Text *t, EmitHeaders *h)
{
    if (w->cuda->products.n)
        emit_include(t, h, "cuda/cublas.h");
    if (w->cuda->graphs.n)
        emit_include(t, h, "cuda/cudnn_run.h");
}

static void product_table(const Writer *w, Text *t)
{
    if (!w->cuda->products.n)
        return;
    text_add(t, "/* ---- products through cuBLASLt: a row a call ---- */\n\nstatic const RtProduct "
                "products[] = {\n");
    for (int i = 0; i < w->cuda->products.n; i++)
        statement_wrapped(t, arena_printf(w->arena, "%s,", w->cuda->products.row[i]), "    ");
    text_add(t, "};\n\n");
}

void library_tables(const Writer *w, Text *t)
{
    static const char *const types[] = {[GPU_F32] = "RT_EXACT",
                                        [GPU_TF32] = "RT_TF32",
                                        [GPU_BF16] = "RT_BF16",
                                        [GPU_F16] = "RT_F16"};
    const Options *o = w->in->options;
    const long long workspace = workspace_of(w);

    if (!uses_libraries(w) && !w->cuda->apart_bytes)
        return;
    product_table(w, t);
    graph_tables(w, t);
    text_printf(t, "#define WORKSPACE (t + %lld) /* of the libraries: the end of the scratch */\n",
                (long long)aligned(before_workspace(w)));
    if (w->cuda->apart_bytes)
        text_printf(t,
                    "#define APART(type) ((type *)(WORKSPACE + %lld)) /* gradients of filters "
                    "before "
                    "conversion to f32; partial sums */\n",
                    workspace);
    if (!uses_libraries(w)) {
        text_add(t, "\n");
        return;
    }
    text_add(t, "\n/* Called once, when the GPU has been opened. */\nstatic void "
                "libraries(void)\n{\n");
    if (w->cuda->products.n)
        text_printf(t, "    rt_products_open(products, %d, %s, %lld);\n", w->cuda->products.n,
                    types[gpu_products(o)], workspace);
    if (w->cuda->graphs.n)
        text_printf(t, "    rt_graphs_open(graphs, %d, graph_calls, %d, %s, %lld);\n",
                    w->cuda->graphs.n, w->cuda->graph_calls.n,
                    o->tf32 || o->half ? "false" : "true", workspace);
    text_add(t, "}\n\n");
}

void library_fields(const Writer *w, Text *t)
{
    static const char *const fields[] = {[GPU_F32] = "",
                                         [GPU_TF32] = " .products = \"tf32\",",
                                         [GPU_BF16] = " .products = \"bf16\",",
                                         [GPU_F16] = " .products = \"f16\","};

    if (uses_libraries(w))
        text_printf(t, "\n    .libraries = libraries,%s", fields[gpu_products(w->in->options)]);
}
