/* table.c -- finds operations, and has the functions about operations that ir needs
 * (ir/vocabulary.h). */
#include "ir/vocabulary.h"
#include "ops/op.h"
#include <string.h>

#define OP(name) extern const Op op_##name[];
#include "ops/ops.def"
#undef OP

static const Op *const table[] = {
#define OP(name) op_##name,
#include "ops/ops.def"
#undef OP
};
enum { FILES = sizeof table / sizeof *table };

const Op *op_find(const char *name)
{
    for (int i = 0; i < FILES; i++)
        for (const Op *op = table[i]; op->name; op++)
            if (op->name[0] == name[0] && !strcmp(op->name, name))
                return op;
    return NULL;
}

const char *op_in_language(const Node *n)
{
    static const char *const of[][2] = {{"scan_", "scan"},      {"attention", "causal_attention"},
                                        {"gather_", "gather"},  {"conv2d_dx", "conv_transpose2d"},
                                        {"dense_dx", "matmul"}, {"sum_to", "sum"},
                                        {"amax_to", "amax"},    {"where_", "where"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (!strncmp(n->op->name, of[i][0], strlen(of[i][0])))
            return of[i][1];
    return n->op->name;
}

const char *op_written(Arena *a, const Node *n)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (!n->span.source)
        return n->op->name;
    const char *line = source_line(a, n->span.source, n->span.line);
    const size_t from = (size_t)n->span.col - 1;
    if (from >= strlen(line))
        return n->op->name;
    const char *word = arena_strndup(a, line + from, strspn(line + from, letters));
    return op_find(word) || strcmp(word, "zeros") == 0 ? word : n->op->name;
}

bool op_computes(const Node *n, ProductKind product, Role role)
{
    return n->op->product == product && n->op->role == role;
}

bool op_transposed(const Node *n)
{
    return n->op->role == ROLE_DX && !n->backward && n->in[0]->op->leaf == LEAF_PARAM;
}

/* A tile adds 32 products of neighbouring channels, or of a row of a matrix, for 32 outputs.  With
 * fewer numbers than FEWEST, most of them would be zeros. */
enum { FEWEST = 8 };

static bool matrices_fit(const Node *n)
{
    const Shape *a = &n->in[0]->shape;
    return a->dim[a->rank - 1 - node_bool(n, "transpose_a")] >= FEWEST &&
           n->shape.dim[n->shape.rank - 1] >= FEWEST;
}

/* Scores are sums over the features of a head; results are sums over steps. */
static bool heads_fit(const Node *n)
{
    const Shape *x = &n->in[0]->shape;
    const bool token = x->rank == 1;
    const int64_t steps = token ? node_int(n, "time") : x->dim[0],
                  features = x->dim[x->rank - 1] / 3 / node_int(n, "heads");
    return steps >= FEWEST && features >= FEWEST && !n->loop;
}

bool op_half_fits(const Node *n)
{
    if (n->op->product == PRODUCT_ATTENTION)
        return heads_fit(n);
    if (n->op->product == PRODUCT_MATMUL)
        return matrices_fit(n);
    if (n->op->product != PRODUCT_CONV)
        return n->op->product == PRODUCT_DENSE;
    const int64_t groups = node_int(n, "groups"), in = node_attr(n, "x_shape")->list[0];
    return in / groups >= FEWEST && node_int(n, "filters") / groups >= FEWEST;
}

bool op_reads_half(const Node *n)
{
    return n->op->product != PRODUCT_NONE && n->in[n->op->role == ROLE_DX]->half != HALF_NONE;
}

bool op_is_sum(const Node *n)
{
    return n->op->flags & OP_ADDS && !node_bool(n, "sync");
}

int op_weights(const Node *n)
{
    static const int input[] = {[ROLE_Y] = 1, [ROLE_DX] = 0, [ROLE_DW] = -1};
    const ProductKind p = n->op->product;
    const bool weights = p != PRODUCT_NONE && p != PRODUCT_MATMUL && p != PRODUCT_ATTENTION;
    return weights ? input[n->op->role] : -1;
}

int op_count(void)
{
    int count = 0;
    for (int i = 0; i < FILES; i++)
        for (const Op *op = table[i]; op->name; op++)
            count++;
    return count;
}

const Op *op_at(int wanted)
{
    for (int i = 0; i < FILES; i++)
        for (const Op *op = table[i]; op->name; op++)
            if (wanted-- == 0)
                return op;
    return NULL;
}

const char *op_name(const Op *op)
{
    return op->name;
}

bool op_leaves(const Op *op)
{
    return op->flags & OP_LEAVES;
}

bool op_stays(const Op *op)
{
    return op->flags & OP_ROOT;
}

bool op_infer(Node *n, Diag *d)
{
    return !n->op->shape || n->op->shape(n, d);
}
