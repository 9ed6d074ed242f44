/* columns.c -- sums over samples and pixels for channels in the innermost dimension, on a GPU: two
 * launches (runtime/cuda/columns.cuh).
 *
 *   for sum_to (gradient of a bias), batch_moments, batch_norm_dw and the gradient of the shift
 *
 * The first launch computes the sums of each part of the rows, and stores them after the workspace
 * of the libraries.  The second launch adds these sums. */
#include "cuda/lower.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <string.h>

/* A matrix whose columns are added, in parts of its rows. */
typedef struct Columns {
    int64_t columns, rows, parts;
} Columns;

/* Chooses as many parts as give each multiprocessor of an H100 eight blocks.  A part has at least
 * 128 rows: four for each of the 32 rows of threads of a block.  The number does not depend on the
 * GPU that runs the program, so that the bits are the same on all GPUs. */
static Columns columns_of(int64_t columns, int64_t rows)
{
    enum { BLOCKS_WANTED = 1056, ROWS = 128 };
    const int64_t tiles = ceil_div(columns, RT_WARP), fill = ceil_div(BLOCKS_WANTED, tiles),
                  most = ceil_div(rows, ROWS);
    return (Columns){columns, rows, fill < most ? fill : most};
}

/* The matrix of a value: pixels are rows, channels are columns. */
static Columns channels_of(const Writer *w, const Node *x)
{
    const int64_t channels = x->shape.dim[0];
    return columns_of(channels, w->g->step->chunk * (shape_count(&x->shape) / channels));
}

/* The first of two calls: `sums` for each column of each part of the rows. */
static CudaCall *lower_first(Writer *w, const char *form, const Node *n, Columns m, int sums)
{
    const int64_t bytes = m.parts * sums * m.columns * (int64_t)sizeof(float),
                  tiles = ceil_div(m.columns, RT_WARP);
    CudaCall *c =
        cuda_call(w, form, n, ADDRESS(MEMORY_UNKNOWN, "real *", "part", "APART(real)", true));
    Argument *size = arena_alloc(w->arena, sizeof *size);

    cuda_keep_apart(w, bytes);
    size->inner = arena_printf(w->arena, "%lld, %lld", (long long)m.columns, (long long)m.parts);
    c->blocks = (Blocks){.form = "column", .count = m.parts * tiles, .arg = size, .narg = 1};
    return c;
}

/* The sums that the first call writes and the second call reads. */
#define PART ADDRESS(MEMORY_UNKNOWN, "real *", "part", "APART(real)", false)
/* The number of blocks of the second call: a warp for each column. */
#define JOIN(m_) BLOCKS_OF("column_join", (m_).columns)

static const Sizes *norm_sizes(const Writer *w, const Node *x)
{
    const int64_t channels = x->shape.dim[0];
    Sizes *s = sizes_new(w->arena, "BatchNorm");
    sizes_int(s, "n", w->g->step->chunk);
    sizes_int(s, "c", channels);
    sizes_int(s, "hw", shape_count(&x->shape) / channels);
    sizes_bool(s, "last", true);
    return s;
}

static void lower_moments(Writer *w, const Node *n)
{
    const Node *x = n->in[0];
    const Columns m = channels_of(w, x);
    const Sizes *size = norm_sizes(w, x);
    CudaCall *first = lower_first(w, "batch_moments_parts", n, m, 2);

    cuda_give(w, first, IN("x", x), SIZES(size), NUMBER(m.parts));
    /* it reads the first number of each channel of x */
    CudaCall *join = cuda_call(w, "batch_moments_join", n, OUT("moments", n), PART, IN("x", x),
                               SIZES(size), NUMBER(m.parts), JOIN(m));
    Operand *first_row = &join->operand[2];
    first_row->to = first_row->from + cuda_bytes(w, x) / m.rows;
}

/* Whether b is the gradient of the shift, and dw is the gradient of the scale, of the same
 * layer. */
bool columns_shift(const Writer *w, const Node *b, const Node *dw)
{
    return node_is(b, "sum_to") && node_is(dw, "batch_norm_dw") && node_attr(dw, "last") &&
           b->in[0] == dw->in[0] && b->phase == dw->phase && shape_same(&b->shape, &dw->shape) &&
           step_writes_sum(w->g, b, w->in->options) && step_writes_sum(w->g, dw, w->in->options);
}

static void lower_norm_dw(Writer *w, const Node *n)
{
    const Node *dy = n->in[0], *x = n->in[1], *t = n->in[2],
               *db = library_companion(w, n, columns_shift);
    const Columns m = channels_of(w, x);
    const Sizes *size = norm_sizes(w, x);
    CudaCall *first = lower_first(w, "batch_norm_dw_parts", n, m, 2);

    cuda_give(w, first, IN("dy", dy), IN("x", x), IN("t", t), SIZES(size), NUMBER(m.parts));
    cuda_call(w, "batch_norm_dw_join", n, OUT("dw", n), OUT("db", db), PART, IN("t", t),
              SIZES(size), NUMBER(m.parts), BOOL(step_writes_sum(w->g, n, w->in->options)),
              JOIN(m));
}

bool columns_lower(Writer *w, const Node *n)
{
    const bool moments = node_is(n, "batch_moments"), dw = node_is(n, "batch_norm_dw");
    if (!node_attr(n, "last") || !(moments || dw))
        return false;
    if (moments)
        lower_moments(w, n);
    else
        lower_norm_dw(w, n);
    return true;
}

void columns_lower_sum(Writer *w, const Node *n, int64_t columns, int64_t rows, bool adds)
{
    const Columns m = columns_of(columns, rows);
    CudaCall *first = lower_first(w, "sum_to_parts", n, m, 1);

    cuda_give(w, first, IN("a", n->in[0]), NUMBER(columns), NUMBER(rows), NUMBER(m.parts));
    CudaCall *second = cuda_call(w, "sum_to_join", n, OUT("y", n), PART, NUMBER(columns),
                                 NUMBER(m.parts), BOOL(adds), JOIN(m));
    first->device = "column_total_parts", second->device = "column_total_join";
}
