/* cuda_columns.c -- sums over samples and pixels of channels that lie innermost, for a GPU: two launches (runtime/cuda/columns.cuh).
 *
 *   sum_to (gradient of a bias)      batch_moments      batch_norm_dw, and the gradient of its shift with it, which reads dy as well
 *
 * The first launch leaves the sums of a part of the rows each behind the libraries' workspace, the second adds these.
 */
#include "emit/cuda_library.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <string.h>

/* As many parts as fill a GPU twice, of 64 rows at least; a program's bits must not depend on the GPU that runs it. */
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

static void room(Writer *w, int64_t reals)
{
    const int64_t bytes = reals * (int64_t)sizeof(float);
    w->apart = bytes > w->apart ? bytes : w->apart;
}

/* `params`, `args`, `body` of the second launch; the first's are "real *part, ..." and so on. */
typedef struct Launches {
    const char *params, *args, *body;
} Launches;

static const char *both(Writer *w, const char *base, Launches parts, Launches join, int64_t columns, int64_t n,
                        int sums)
{
    Arena *a = w->arena;
    room(w, n * sums * columns);
    const char *first = kernel_launch(w, arena_printf(a, "%s_parts", base),
                                      arena_printf(a, "real *part, %s", parts.params), parts.body,
                                      arena_printf(a, "APART(real), %s", parts.args),
                                      arena_printf(a, "column_blocks(%lld, %lld)",
                                                   (long long)columns, (long long)n));
    const char *then = kernel_launch(w, arena_printf(a, "%s_join", base), join.params, join.body,
                                     join.args,
                                     arena_printf(a, "each_blocks(%lld)", (long long)columns));
    return arena_printf(a, "%s %s", first, then);
}

/* "BatchNorm{ .n = 8, ... }, 17" */
static const char *norm_size(Writer *w, const Node *x, int64_t parts)
{
    const int64_t c = x->shape.dim[0];
    return arena_printf(w->arena, "BatchNorm{ .n = %lld, .c = %lld, .hw = %lld, .last = true }, %lld",
                        (long long)w->g->step->chunk, (long long)c,
                        (long long)(shape_count(&x->shape) / c), (long long)parts);
}

static const char *moments(Writer *w, const Node *n)
{
    Arena *a = w->arena;
    const Node *x = n->in[0];
    const int64_t c = x->shape.dim[0], parts = parts_of(c, rows_of(w, x, c));
    const char *size = norm_size(w, x, parts), *type = pointer_type(x);
    return both(w, "batch_moments",
                (Launches){arena_printf(a, "const %s *x", type), pointer_to(w, x),
                           arena_printf(a, "    batch_moments_parts(part, x, %s);\n", size)},
                (Launches){arena_printf(a, "real *moments, const real *part, const %s *x", type),
                           arena_printf(a, "%s, APART(real), %s", pointer_to(w, n),
                                        pointer_to(w, x)),
                           arena_printf(a, "    batch_moments_join(moments, part, x, %s);\n", size)},
                c, parts, 2);
}

/* Is b the gradient of the shift of the layer whose scale's gradient is dw? */
static bool shift_of(const Writer *w, const Node *b, const Node *dw)
{
    return node_is(b, "sum_to") && node_is(dw, "batch_norm_dw") && node_attr(dw, "last") &&
           b->in[0] == dw->in[0] && b->phase == dw->phase && shape_same(&b->shape, &dw->shape) &&
           step_writes_sum(w->g, b, w->in->options) && step_writes_sum(w->g, dw, w->in->options);
}

static const char *norm_dw(Writer *w, const Node *n)
{
    Arena *a = w->arena;
    const Node *dy = n->in[0], *x = n->in[1], *t = n->in[2], *db = library_companion(w, n, shift_of);
    const int64_t c = x->shape.dim[0], parts = parts_of(c, rows_of(w, x, c));
    const char *size = norm_size(w, x, parts);
    return both(
        w, "batch_norm_dw",
        (Launches){arena_printf(a, "const %s *dy, const %s *x, const real *t", pointer_type(dy),
                                pointer_type(x)),
                   arena_printf(a, "%s, %s, %s", pointer_to(w, dy), pointer_to(w, x),
                                pointer_to(w, t)),
                   arena_printf(a, "    batch_norm_dw_parts(part, dy, x, t, %s);\n", size)},
        (Launches){db ? "real *dw, real *db, const real *part, const real *t"
                      : "real *dw, const real *part, const real *t",
                   arena_printf(a, "%s, %s%sAPART(real), %s", pointer_to(w, n),
                                db ? pointer_to(w, db) : "", db ? ", " : "", pointer_to(w, t)),
                   arena_printf(a, "    batch_norm_dw_join(dw, %s, part, t, %s, %s);\n",
                                db ? "db" : "nullptr", size,
                                step_writes_sum(w->g, n, w->in->options) ? "true" : "false")},
        c, parts, 2);
}

const char *columns_statement(Writer *w, const Node *n)
{
    if (!node_attr(n, "last"))
        return NULL;
    if (graph_brings(w, n))
        return "";
    return node_is(n, "batch_moments") ? moments(w, n) : node_is(n, "batch_norm_dw") ? norm_dw(w, n) : NULL;
}

bool columns_bring(const Writer *w, const Node *n)
{
    return node_is(n, "sum_to") && library_companion(w, n, shift_of);
}

const char *columns_sum(Writer *w, const Node *n, int64_t columns, int64_t rows, bool adds)
{
    Arena *a = w->arena;
    const Node *x = n->in[0];
    const int64_t parts = parts_of(columns, rows);
    const char *sizes = arena_printf(a, "%lld, %lld, %lld", (long long)columns, (long long)rows,
                                     (long long)parts);
    return both(w, "sum_to",
                (Launches){arena_printf(a, "const %s *a", pointer_type(x)), pointer_to(w, x),
                           arena_printf(a, "    column_total_parts(part, a, %s);\n", sizes)},
                (Launches){"real *y, const real *part",
                           arena_printf(a, "%s, APART(real)", pointer_to(w, n)),
                           arena_printf(a, "    column_total_join(y, part, %lld, %lld, %s);\n",
                                        (long long)columns, (long long)parts,
                                        adds ? "true" : "false")},
                columns, parts, 1);
}
