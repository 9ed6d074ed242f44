/* columns.c -- sums over samples and pixels of channels that lie innermost, for a GPU: two
 * launches (runtime/cuda/columns.cuh).
 *
 *   sum_to (gradient of a bias), batch_moments, batch_norm_dw and the gradient of its shift
 *
 * The first launch leaves the sums of a part of the rows each behind the libraries' workspace,
 * the second adds these. */
#include "cuda/library.h"
#include "cuda/lower.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <string.h>

/* As many parts as fill a GPU twice, of 64 rows at least; a program's bits must not depend on
 * the GPU that runs it. */
static int64_t parts_of(int64_t columns, int64_t rows)
{
    enum { BLOCKS = 264, ROWS = 64 };
    const int64_t tiles = (columns + RT_WARP - 1) / RT_WARP, fill = (BLOCKS + tiles - 1) / tiles,
                  most = (rows + ROWS - 1) / ROWS;
    return fill < most ? fill : most;
}

static int64_t rows_of(const Writer *w, const Node *x, int64_t columns)
{
    return w->g->step->chunk * (shape_count(&x->shape) / columns);
}

/* The first of two calls: `sums` for each column of each part of the rows. */
static CudaCall *lower_first(Writer *w, const char *form, const Node *n, int64_t columns,
                             int64_t parts, int sums)
{
    const int64_t bytes = parts * sums * columns * (int64_t)sizeof(float);
    CudaCall *c = cuda_add(w, form, n);
    Argument *size = arena_alloc(w->arena, sizeof *size);

    w->behind_bytes = bytes > w->behind_bytes ? bytes : w->behind_bytes;
    cuda_address(w, c, "real", "part", "APART(real)", true);
    size->inner = arena_printf(w->arena, "%lld, %lld", (long long)columns, (long long)parts);
    const int64_t tiles = (columns + RT_WARP - 1) / RT_WARP;
    c->blocks = (Blocks){.form = "column", .count = parts * tiles, .arg = size, .narg = 1};
    return c;
}

/* The second writes n.  It reads the parts behind what else its function takes first. */
static CudaCall *lower_second(Writer *w, const char *form, const char *name, const Node *n,
                              int64_t columns)
{
    CudaCall *c = cuda_add(w, form, n);
    cuda_value(w, c, name, n, true);
    cuda_blocks(w, c, "each", columns);
    return c;
}

static void add_part(Writer *w, CudaCall *c)
{
    cuda_address(w, c, "real", "part", "APART(real)", false);
}

static void add_norm_size(Writer *w, CudaCall *c, const Node *x, int64_t parts)
{
    const int64_t channels = x->shape.dim[0];
    Sizes *s = sizes_new(w->arena, "BatchNorm");
    sizes_int(s, "n", w->g->step->chunk);
    sizes_int(s, "c", channels);
    sizes_int(s, "hw", shape_count(&x->shape) / channels);
    sizes_bool(s, "last", true);
    cuda_sizes(w, c, s);
    cuda_number(w, c, parts);
}

static void lower_moments(Writer *w, const Node *n)
{
    const Node *x = n->in[0];
    const int64_t channels = x->shape.dim[0], parts = parts_of(channels, rows_of(w, x, channels));
    CudaCall *first = lower_first(w, "batch_moments_parts", n, channels, parts, 2);
    cuda_value(w, first, "x", x, false);
    add_norm_size(w, first, x, parts);
    CudaCall *second = lower_second(w, "batch_moments_join", "moments", n, channels);
    add_part(w, second);
    cuda_value(w, second, "x", x, false);
    add_norm_size(w, second, x, parts);
}

/* Is b the gradient of the shift of the layer whose scale's gradient is dw? */
static bool shift_of(const Writer *w, const Node *b, const Node *dw)
{
    return node_is(b, "sum_to") && node_is(dw, "batch_norm_dw") && node_attr(dw, "last") &&
           b->in[0] == dw->in[0] && b->phase == dw->phase && shape_same(&b->shape, &dw->shape) &&
           step_writes_sum(w->g, b, w->in->options) && step_writes_sum(w->g, dw, w->in->options);
}

static void lower_norm_dw(Writer *w, const Node *n)
{
    const Node *dy = n->in[0], *x = n->in[1], *t = n->in[2],
               *db = library_companion(w, n, shift_of);
    const int64_t channels = x->shape.dim[0], parts = parts_of(channels, rows_of(w, x, channels));
    CudaCall *first = lower_first(w, "batch_norm_dw_parts", n, channels, parts, 2);
    cuda_value(w, first, "dy", dy, false);
    cuda_value(w, first, "x", x, false);
    cuda_value(w, first, "t", t, false);
    add_norm_size(w, first, x, parts);
    CudaCall *second = lower_second(w, "batch_norm_dw_join", "dw", n, channels);
    if (db)
        cuda_value(w, second, "db", db, true);
    else
        cuda_literal(w, second, "nullptr");
    add_part(w, second);
    cuda_value(w, second, "t", t, false);
    add_norm_size(w, second, x, parts);
    cuda_literal(w, second, step_writes_sum(w->g, n, w->in->options) ? "true" : "false");
}

bool columns_lower(Writer *w, const Node *n)
{
    if (!node_attr(n, "last"))
        return false;
    if (graph_brings(w, n))
        return true;
    if (node_is(n, "batch_moments"))
        lower_moments(w, n);
    else if (node_is(n, "batch_norm_dw"))
        lower_norm_dw(w, n);
    return node_is(n, "batch_moments") || node_is(n, "batch_norm_dw");
}

bool columns_bring(const Writer *w, const Node *n)
{
    return node_is(n, "sum_to") && library_companion(w, n, shift_of);
}

void columns_lower_sum(Writer *w, const Node *n, int64_t columns, int64_t rows, bool adds)
{
    Arena *a = w->arena;
    const int64_t parts = parts_of(columns, rows);
    CudaCall *first = lower_first(w, "sum_to_parts", n, columns, parts, 1);
    first->device = "column_total_parts";
    cuda_value(w, first, "a", n->in[0], false);
    cuda_literal(w, first,
                 arena_printf(a, "%lld, %lld, %lld", (long long)columns, (long long)rows,
                              (long long)parts));
    CudaCall *second = lower_second(w, "sum_to_join", "y", n, columns);
    second->device = "column_total_join";
    add_part(w, second);
    cuda_literal(w, second, arena_printf(a, "%lld, %lld", (long long)columns, (long long)parts));
    cuda_literal(w, second, adds ? "true" : "false");
}
