/* embedding.h -- rows of a table, looked up by tokens, and the sum of the gradients for each row.
 *
 *   y[i] = w[token[i]]        dw[token[i]] += dy[i], i in order        token `padding`: y[i] = 0
 *
 *   w, dw (V, F) as in files, or in dense's panels [V / P][F][P] if a product reads the table, too
 */
#ifndef CPU_EMBEDDING_H
#define CPU_EMBEDDING_H
#include "cpu/update.h"

typedef struct Embedding {
    int rows, width, padding;
    bool panels;
} Embedding;

/* Offset of row v; its numbers are 1 or P reals apart. */
RT_INLINE int64_t embedding_row(int32_t v, Embedding e)
{
    return e.panels ? (int64_t)(v / P) * e.width * P + v % P : (int64_t)v * e.width;
}

RT_INLINE void embedding_plain(real *y, const int32_t *token, const real *w, Embedding e)
{
    for (int i = 0; i < e.rows; i++)
        for (int j = 0; j < e.width; j++)
            y[(int64_t)i * e.width + j] =
                token[i] == e.padding ? 0 : w[(int64_t)token[i] * e.width + j];
}

RT_INLINE void embedding_dw_plain(real *dw, const int32_t *token, const real *dy, Embedding e)
{
    for (int i = 0; i < e.rows; i++)
        for (int j = 0; j < e.width; j++)
            if (token[i] != e.padding)
                dw[(int64_t)token[i] * e.width + j] += dy[(int64_t)i * e.width + j];
}

/* y[i] = 0 where token i is padding, else 1. */
RT_INLINE void mask(real *restrict y, const int32_t *restrict token, int64_t n, int padding)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = token[i] != padding;
}

RT_INLINE void embedding(real *restrict y, const int32_t *restrict token, const real *restrict w,
                         Embedding e)
{
    TEAM_FOR(i, e.rows) {
        const real *row = w + embedding_row(token[i], e);
        real *out = y + (int64_t)i * e.width;
        if (token[i] == e.padding)
            memset(out, 0, sizeof(real) * (size_t)e.width);
        else if (e.panels)
            for (int j = 0; j < e.width; j++)
                out[j] = row[(int64_t)j * P];
        else
            RT_MAP(e.width, STORE(out, LOAD(row)));
    }
}

/* A member of a team adds a range of columns: each number of dw keeps its order of additions. */
RT_INLINE void embedding_dw(real *restrict dw, const int32_t *restrict token,
                            const real *restrict dy, Embedding e)
{
    const TeamRange own = team_range((e.width + V - 1) / V);
    const int end = own.end * V < e.width ? (int)own.end * V : e.width;
    for (int i = 0; i < e.rows; i++, dy += e.width) {
        real *row = dw + embedding_row(token[i], e);
        if (token[i] == e.padding)
            continue;
        if (e.panels)
            for (int j = (int)own.first * V; j < end; j++)
                row[(int64_t)j * P] += dy[j];
        else
            RT_MAP_PART(e.width, own, STORE(row, LOAD(row) + LOAD(dy)));
    }
}

/* ------------------------------------------------- lazy: rows without a gradient are not updated
 *
 * A row whose gradient is 0 in every number keeps its weights and states, without momentum and
 * decay.  Rows of tokens that are not in the batch are such rows.  The test uses the complete sum,
 * so it does not depend on shards, groups and ranks. */

/* Updates the row at w + at with its gradient g. */
RT_INLINE void embedding_row_update(real *w, real *s0, real *s1, const real *g, int64_t at,
                                    int width, const RtOpt *o, Update u)
{
    bool any = false;
    for (int j = 0; j < width; j++)
        any |= g[j] != 0;
    for (int j = 0; any && j < width; j += V) {
        const int k = width - j < V ? width - j : V;
        update_lanes(w + at + j, s0 ? s0 + at + j : NULL, s1 ? s1 + at + j : NULL,
                     v_load_lanes(g + j, k), o, u, k);
    }
}

/* The same as reduce_update, with lazy rows; units divide the rows. */
RT_INLINE void embedding_reduce_update(const Rt *r, int unit, int units, int64_t grad, real *w,
                                       real *s0, real *s1, const char *partial, int64_t slice_bytes,
                                       int slices, int64_t count, int width, Factors f, Update u)
{
    const RtOpt o = update_options(r, f);
    const int64_t rows = count / width;
    real g[width];
    if (r->grad) {
        reduce_update(r, unit, units, grad, w, s0, s1, partial, slice_bytes, slices, count, f, u);
        return;
    }
    for (int64_t v = rows * unit / units; v < rows * (unit + 1) / units; v++) {
        const char *p = partial + v * width * (int64_t)sizeof(real);
        for (int j = 0; j < width; j += V) {
            const int k = width - j < V ? width - j : V;
            v_store_lanes(g + j, reduced(r, p + (size_t)j * sizeof(real), slice_bytes, slices, k),
                          k);
        }
        embedding_row_update(w, s0, s1, g, v * width, width, &o, u);
    }
}

/* The same as grad_update, with lazy rows. */
RT_INLINE void embedding_grad_update(const Rt *r, int unit, int units, int64_t grad, real *w,
                                     real *s0, real *s1, int64_t count, int width, Factors f,
                                     Update u)
{
    const RtOpt o = update_options(r, f);
    const real *g = (const real *)(r->grad + grad);
    const int64_t rows = count / width;
    for (int64_t v = rows * unit / units; v < rows * (unit + 1) / units; v++)
        embedding_row_update(w, s0, s1, g + v * width, v * width, width, &o, u);
}

/* ---------------------------------------------------------- large tables: sum and update in one */

/* A unit is a few rows of the table.  It finds their gradients among the tokens of all shards, adds
 * them in the order of reduce_update (slices of a shard, then shards, in the tree) and updates
 * immediately.  No gradient of the whole table is stored or cleared.  Rows without a token are
 * updated with 0, as each optimizer requires.  The plain reference is embedding_dw_plain and
 * reduce_update. */
typedef struct EmbeddingUpdate {
    int vocab, width, padding;
    int rows, slices; /* tokens of a slice; slices of a shard */
    bool lazy;        /* rows whose gradient is 0 are not updated */
} EmbeddingUpdate;

/* Levels of the tree; approximate count of numbers in a unit. */
enum { EMBEDDING_LEVELS = RT_EMBEDDING_LEVELS, EMBEDDING_SIZE = 8192 };
#define EMBEDDING_ROWS(width)                                                                      \
    (EMBEDDING_SIZE / (width) < RT_EMBEDDING_ROWS                                                  \
         ? RT_EMBEDDING_ROWS                                                                       \
         : EMBEDDING_SIZE / (width) / RT_EMBEDDING_ROWS * RT_EMBEDDING_ROWS)

/* Sums of a unit's rows; the row of a token that does not occur is not written. */
typedef struct EmbeddingSum {
    real *row;
    bool *seen;
} EmbeddingSum;

/* Adds the gradients of the tokens of one slice. */
RT_INLINE void embedding_gather(EmbeddingSum s, const int32_t *token, const real *dy, int first,
                                int rows, EmbeddingUpdate e)
{
    memset(s.seen, 0, (size_t)rows);
    for (int i = 0; i < e.rows; i++) {
        const int v = token[i] - first;
        const real *from = dy + (int64_t)i * e.width;
        if (v < 0 || v >= rows || token[i] == e.padding)
            continue;
        real *to = s.row + (int64_t)v * e.width;
        if (s.seen[v])
            RT_MAP(e.width, STORE(to, LOAD(to) + LOAD(from)));
        else
            RT_MAP(e.width, STORE(to, LOAD(from)));
        s.seen[v] = true;
    }
}

/* to += from, for the rows that occur. */
RT_INLINE void embedding_join(EmbeddingSum to, EmbeddingSum from, int rows, int width)
{
    for (int v = 0; v < rows; v++) {
        real *t = to.row + (int64_t)v * width;
        const real *f = from.row + (int64_t)v * width;
        if (!from.seen[v])
            continue;
        if (to.seen[v])
            RT_MAP(width, STORE(t, LOAD(t) + LOAD(f)));
        else
            RT_MAP(width, STORE(t, LOAD(f)));
        to.seen[v] = true;
    }
}

/* Computes the sum over all local shards, at level 0. */
RT_INLINE void embedding_sum(EmbeddingSum *level, const Rt *r, const char *token, const char *dy,
                             int first, int rows, EmbeddingUpdate e)
{
    int depth = 0;
    for (int s = 0; s < r->shards; s++) {
        const int base = depth;
        for (int q = 0; q < e.slices; q++) {
            const int64_t at = s * r->shard_bytes;
            embedding_gather(level[depth++], (const int32_t *)(token + at) + q * e.rows,
                             (const real *)(dy + at) + (int64_t)q * e.rows * e.width, first, rows,
                             e);
            for (int bits = q; bits & 1; bits >>= 1, depth--)
                embedding_join(level[depth - 2], level[depth - 1], rows, e.width);
        }
        for (; depth > base + 1; depth--)
            embedding_join(level[depth - 2], level[depth - 1], rows, e.width);
        for (int bits = s; bits & 1; bits >>= 1, depth--)
            embedding_join(level[depth - 2], level[depth - 1], rows, e.width);
    }
    for (; depth > 1; depth--)
        embedding_join(level[depth - 2], level[depth - 1], rows, e.width);
}

/* Computes one unit: rows from `first` on, over all local shards; grad as in reduce_update. */
RT_INLINE void embedding_dw_update(const Rt *r, int unit, int64_t grad, real *restrict w,
                                   real *restrict s0, real *restrict s1, const char *restrict token,
                                   const char *restrict dy, Factors f, Update u, EmbeddingUpdate e)
{
    real row[EMBEDDING_LEVELS][EMBEDDING_ROWS(e.width) * e.width] __attribute__((aligned(64)));
    bool seen[EMBEDDING_LEVELS][EMBEDDING_ROWS(e.width)];
    EmbeddingSum level[EMBEDDING_LEVELS];
    const RtOpt o = update_options(r, f);
    const int first = unit * EMBEDDING_ROWS(e.width),
              rows = e.vocab - first < EMBEDDING_ROWS(e.width) ? e.vocab - first
                                                               : EMBEDDING_ROWS(e.width);
    for (int i = 0; i < EMBEDDING_LEVELS; i++)
        level[i] = (EmbeddingSum){row[i], seen[i]};
    embedding_sum(level, r, token, dy, first, rows, e);
    for (int v = 0; v < rows; v++)
        if (!seen[0][v])
            memset(row[0] + (int64_t)v * e.width, 0, sizeof(real) * (size_t)e.width);
    const int64_t at = (int64_t)first * e.width, count = (int64_t)rows * e.width;
    if (e.lazy && !r->grad) {
        for (int v = 0; v < rows; v++)
            if (seen[0][v])
                embedding_row_update(w, s0, s1, row[0] + (int64_t)v * e.width,
                                     at + (int64_t)v * e.width, e.width, &o, u);
        return;
    }
    for (int64_t i = 0; i < count; i += V) {
        const int k = count - i < V ? (int)(count - i) : V;
        const vec g = v_load_lanes(row[0] + i, k);
        if (r->grad)
            v_store_lanes((real *)(r->grad + grad) + at + i, g, k);
        else
            update_lanes(w + at + i, s0 ? s0 + at + i : NULL, s1 ? s1 + at + i : NULL, g, &o, u, k);
    }
}

#endif
