/* dense_input.h -- the gradient and update of the weights of a first dense layer, from the samples
 * as they are stored.
 *
 *   dw[o][k] = tree over the shards of sum over a shard's samples of dy[n][o] x[n][k]
 *
 * x are the numbers that rt_input computes; here they are computed again, a few columns at a time.
 * So the forward pass needs them only for a chunk: they stay in the L1 and L2 caches, other threads
 * do not fetch them, and a unit reads bytes instead of reals.  The sums have the same bits as those
 * of dense_update.h.
 *
 * A unit is a few tiles of inputs by all outputs.  It goes through the samples in blocks of a few
 * shards, whose columns of x fit the L1 cache.  Sums of a block are pending in `stack`, in the
 * order of the tree.  If most of a block's columns are zeros, as in images of digits, products with
 * zeros are skipped (dense_sparse.h): column by column, all outputs of the unit at once.
 *
 * If a shard has many samples and there are many threads, a unit has half of the outputs: in the
 * MLP 50 units instead of 25.  Two units then compute the same columns of x and find their zeros,
 * which makes a step on MNIST 6 % slower.  So few threads compute both halves in one unit.
 *
 * Measured without zeros in the samples: a step of the MLP on two threads of a Zen 4, with weights
 * prefetched for writing, takes 0.18 instead of 0.20 ms (B=64), 0.52 instead of 0.64 (B=128), 3.2
 * instead of 3.4 (B=1024) if the host runs the threads on distant cores.  On one thread it takes
 * 1 % more (B=128: 0.547 and 0.555), and 5 % more if a shard has several blocks (B=4096: 18.6 and
 * 19.7), because each dy is used for a few inputs only.  On MNIST, with both kernels that skip
 * zeros, one thread takes 0.24 instead of 0.57 ms (B=128) and 10.2 instead of 18.6 (B=4096).
 */
#ifndef CPU_DENSE_INPUT_H
#define CPU_DENSE_INPUT_H
#include "cpu/dense_sparse.h"
#include "cpu/dense_update.h"
#include "cpu/input.h"

enum {
    DENSE_INPUT_TILES = RT_DENSE_INPUT_TILES,
    DENSE_INPUT_COLUMNS = DENSE_INPUT_TILES * TILE_ROWS
};
/* Parts of the outputs; a unit computes one of them. */
#define DENSE_INPUT_PARTS(samples, o)                                                              \
    ((samples) >= RT_DENSE_INPUT_MANY && DENSE_PANELS(o) >= 4 ? 2 : 1)
#define DENSE_INPUT_UNITS(samples, k, o)                                                           \
    ((DENSE_TILES(k) + DENSE_INPUT_TILES - 1) / DENSE_INPUT_TILES * DENSE_INPUT_PARTS(samples, o))

/* Computes columns k .. k + count - 1 of sample `row`, and the following ones up to a whole
 * vector. */
RT_INLINE void dense_input_row(real *restrict x, const Rt *r, const char *row, int k, int count,
                               int all)
{
    const int own = sizeof(real) == 4 ? RT_F32 : RT_F64;
    const real scale = (real)r->x_scale;
    for (int i = 0; i < count; i += V)
        if (r->x_type == RT_U8 && k + i + V <= all)
            v_store(x + i, v_load_bytes((const uint8_t *)row + k + i) * v_set(scale));
        else if (r->x_type == own && k + i + V <= all)
            v_store(x + i, v_load_opaque((const real *)row + k + i));
        else
            for (int j = i; j < count && j < i + V; j++)
                x[j] = input_at(r, row, k + j);
}

/* Computes the columns of n samples of the batch, from index `first` on. */
RT_INLINE void dense_input_block(real *restrict x, const Rt *r, int first, int n, int k, int count,
                                 int all)
{
    for (int i = 0; i < n; i++, x += DENSE_INPUT_COLUMNS)
        dense_input_row(x, r, (const char *)r->x + (int64_t)r->index[first + i] * r->x_stride, k,
                        count, all);
}

/* Reals of the pending sums of a unit: P for each panel of outputs and each input. */
#define DENSE_INPUT_SUMS(o) (DENSE_PANELS(o) * DENSE_INPUT_COLUMNS * P)

/* The shards of a block are a node of the tree, or the rest of one at the end.  If a shard has
 * several blocks, each block continues the sums of the block before, which lie where the sums of
 * the node will be. */
typedef struct DenseBlock {
    int shards, number, samples; /* samples of a shard */
    bool ends;                   /* the last block */
    bool part, more;             /* not the first block of a shard; not the last one */
} DenseBlock;

RT_INLINE void dense_input_add(vec *c, const real *sum, int rows, int vectors)
{
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        c[i] = v_load(sum + i / vectors * P + i % vectors * V) + c[i];
}

RT_INLINE void dense_input_store(real *sum, const vec *c, int rows, int vectors)
{
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        v_store(sum + i / vectors * P + i % vectors * V, c[i]);
}

/* Adds the products of a tile over one part of a shard. */
RT_INLINE void dense_input_part(vec *restrict c, DenseUpdate q, DenseBlock b, const real *sum,
                                int column, int rows, int vectors)
{
    tile_zero(c, rows * vectors);
    if (b.part)
        dense_input_add(c, sum, rows, vectors);
    tile_product(c, (TileRows){.count = rows, .step = 1}, vectors, b.samples,
                 (const real *)q.x + column, q.x_row, (const real *)q.dy, q.dy_row, vectors * V);
}

/* Computes, for one tile, its products of the block, the additions of the tree that become
 * possible, and the update after the last block.  sum: its position in the lowest pending sums,
 * `level` reals from one to the next; at: its first element in w. */
RT_INLINE void dense_input_tile(DenseUpdate q, Update u, DenseBlock b, real *sum, int64_t level,
                                int64_t at, int column, int rows, int vectors, int lanes)
{
    vec c[TILE_MAX];
    int depth = __builtin_popcount((unsigned)b.number);
    if (b.ends) {
        dense_fetch(q.w + at, rows * P);
        dense_fetch(q.s0 ? q.s0 + at : NULL, rows * P);
    }
    if (q.samples > DENSE_SAMPLES)
        dense_input_part(c, q, b, sum + depth * level, column, rows, vectors);
    else
        dense_shards(c, q, b.shards, column, rows, vectors);
    for (int bits = b.number; !b.more && depth > 0 && (b.ends || bits & 1); bits >>= 1)
        dense_input_add(c, sum + --depth * level, rows, vectors);
    if (b.ends)
        dense_update_tile(q, u, c, at, rows, vectors, lanes);
    else
        dense_input_store(sum + depth * level, c, rows, vectors);
}

/* Tiles first .. end - 1 of one panel. */
RT_INLINE void dense_input_panel(DenseUpdate q, Update u, DenseBlock b, real *sum, int64_t level,
                                 Dense d, int64_t at, int first, int end, int vectors, int lanes)
{
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    const int from = tile_first(t, first);
    for (int i = first; i < end; i++) {
        const int k = tile_first(t, i), column = k - from;
        if (t.bigs > 0 && i < t.bigs)
            dense_input_tile(q, u, b, sum + column * P, level, at + (int64_t)k * P, column, t.big,
                             vectors, lanes);
        else
            dense_input_tile(q, u, b, sum + column * P, level, at + (int64_t)k * P, column, t.small,
                             vectors, lanes);
    }
}

/* Computes all panels of one block, whose columns of x are in q.x. */
RT_INLINE void dense_input_panels(DenseUpdate q, Update u, DenseBlock b, real *stack, Dense d,
                                  int first, int end)
{
    const int full = d.o / P, last = d.o % P;
    for (int p = 0; p < full; p++) {
        dense_input_panel(q, u, b, stack + (int64_t)p * DENSE_INPUT_COLUMNS * P,
                          DENSE_INPUT_SUMS(d.o), d, (int64_t)p * d.k * P, first, end, 2, P);
        q.dy += P * sizeof(real);
    }
    if (last > 0)
        dense_input_panel(q, u, b, stack + (int64_t)full * DENSE_INPUT_COLUMNS * P,
                          DENSE_INPUT_SUMS(d.o), d, (int64_t)full * d.k * P, first, end,
                          last > V ? 2 : 1, last);
}

/* ---------------------------------------------------------------- columns that are mostly zeros */

/* For each column, the samples whose x is not 0: words of 32 samples, [shard][word][column]. */
enum { DENSE_INPUT_WORD = 32 };
#define DENSE_INPUT_WORDS(samples) (((samples) + DENSE_INPUT_WORD - 1) / DENSE_INPUT_WORD)

/* Writes one word for each column; x: the columns of its first sample. */
RT_INLINE int dense_input_word(RtInt *word, const real *x, int samples, int columns)
{
    int nonzero = 0;
    for (int j = 0; j < columns; j += V) {
        vint marks = v_marks(v_load(x + j), 1);
        for (int n = 1; n < samples; n++)
            marks |= v_marks(v_load(x + n * DENSE_INPUT_COLUMNS + j), (RtInt)(1u << n));
        memcpy(word + j, &marks, sizeof marks);
    }
    for (int k = 0; k < columns; k++)
        nonzero += __builtin_popcount((unsigned)word[k]);
    return nonzero;
}

/* Writes all words of a block; returns the number of elements that are not 0. */
RT_INLINE int dense_input_words(RtInt *word, const real *x, int shards, int samples, int columns)
{
    int nonzero = 0;
    for (int s = 0; s < shards; s++, x += samples * DENSE_INPUT_COLUMNS)
        for (int n = 0; n < samples; n += DENSE_INPUT_WORD, word += DENSE_INPUT_COLUMNS)
            nonzero +=
                dense_input_word(word, x + n * DENSE_INPUT_COLUMNS,
                                 samples - n < DENSE_INPUT_WORD ? samples - n : DENSE_INPUT_WORD,
                                 columns);
    return nonzero;
}

/* c += the products of one shard of the block, for one input and some panels. */
RT_INLINE void sparse_add(vec *restrict c, DenseUpdate q, DenseBlock b, const RtInt *word,
                          int shard, int column, int vectors)
{
    const real *x = (const real *)(q.x + shard * q.x_shard) + column,
               *dy = (const real *)(q.dy + shard * q.dy_shard);
    word += shard * DENSE_INPUT_WORDS(b.samples) * DENSE_INPUT_COLUMNS + column;
    for (int n = 0; n < b.samples; n += DENSE_INPUT_WORD, word += DENSE_INPUT_COLUMNS)
        sparse_product(c, (uint32_t)*word, x + n * DENSE_INPUT_COLUMNS, DENSE_INPUT_COLUMNS,
                       dy + n * q.dy_row, q.dy_row, P, vectors);
}

/* c = the sum over at most two shards.  sparse_four: over at most four. */
RT_INLINE void sparse_two(vec *restrict c, DenseUpdate q, DenseBlock b, const RtInt *word,
                          int shard, int shards, int column, int vectors)
{
    vec a[SPARSE_VECTORS];
    tile_zero(c, vectors);
    sparse_add(c, q, b, word, shard, column, vectors);
    if (shards > 1) {
        tile_copy(a, c, vectors);
        tile_zero(c, vectors);
        sparse_add(c, q, b, word, shard + 1, column, vectors);
        tile_add(c, a, vectors);
    }
}
RT_INLINE void sparse_four(vec *restrict c, DenseUpdate q, DenseBlock b, const RtInt *word,
                           int shard, int column, int vectors)
{
    vec a[SPARSE_VECTORS];
    sparse_two(c, q, b, word, shard, b.shards, column, vectors);
    if (b.shards > 2) {
        tile_copy(a, c, vectors);
        sparse_two(c, q, b, word, shard + 2, b.shards - 2, column, vectors);
        tile_add(c, a, vectors);
    }
}

/* c += the pending sums. */
RT_INLINE void sparse_sum(vec *restrict c, const real *sum, int vectors)
{
    RT_UNROLL
    for (int j = 0; j < vectors; j++)
        c[j] = v_load(sum + j / 2 * DENSE_INPUT_COLUMNS * P + j % 2 * V) + c[j];
}

/* Computes one input of some panels, for the shards from `shard` on; see dense_input_tile. */
RT_INLINE void sparse_column(DenseUpdate q, Update u, DenseBlock b, const RtInt *word, int shard,
                             real *sum, int64_t level, int64_t at, Dense d, int column, int lanes)
{
    const int vectors = (lanes + V - 1) / V;
    vec c[SPARSE_VECTORS];
    int depth = __builtin_popcount((unsigned)b.number);
    if (b.ends)
        for (int p = 0; p < lanes; p += P) {
            dense_fetch(q.w + at + (int64_t)p * d.k, P);
            dense_fetch(q.s0 ? q.s0 + at + (int64_t)p * d.k : NULL, P);
        }
    if (q.samples > DENSE_SAMPLES) {
        tile_zero(c, vectors);
        if (b.part)
            sparse_sum(c, sum + depth * level, vectors);
        sparse_add(c, q, b, word, shard, column, vectors);
    } else
        sparse_four(c, q, b, word, shard, column, vectors);
    for (int bits = b.number; !b.more && depth > 0 && (b.ends || bits & 1); bits >>= 1)
        sparse_sum(c, sum + --depth * level, vectors);
    RT_UNROLL
    for (int j = 0; j < vectors; j += 2) {
        const int own = lanes - j * V < P ? lanes - j * V : P;
        if (b.ends)
            dense_update_tile(q, u, c + j, at + (int64_t)j * V * d.k, 1, own > V ? 2 : 1, own);
        else
            dense_input_store(sum + depth * level + j / 2 * DENSE_INPUT_COLUMNS * P, c + j, 1,
                              own > V ? 2 : 1);
    }
}

/* Shards whose dy stays in the L1 and L2 caches from column to column. */
#define SPARSE_SHARDS(samples) ((samples) <= 16 ? 4 : (samples) <= 32 ? 2 : 1)

/* Computes all columns and panels of one block. */
RT_INLINE void sparse_columns(DenseUpdate q, Update u, DenseBlock b, const RtInt *word, real *stack,
                              Dense d, int from, int columns)
{
    enum { SOME = SPARSE_PANELS * P };
    const int few = SPARSE_SHARDS(q.samples), full = d.o / SOME * SOME;
    const int64_t level = DENSE_INPUT_SUMS(d.o);
    const char *dy = q.dy;
    for (int s = 0; s < b.shards; s += few) {
        DenseBlock part = b;
        part.shards = b.shards - s < few ? b.shards - s : few;
        part.number = b.number + s / few;
        part.ends = b.ends && s + few >= b.shards;
        for (int o = 0; o < full; o += SOME) {
            q.dy = dy + o * (int64_t)sizeof(real);
            for (int k = 0; k < columns; k++)
                sparse_column(q, u, part, word, s, stack + o * DENSE_INPUT_COLUMNS + k * P, level,
                              (int64_t)o * d.k + (int64_t)(from + k) * P, d, k, SOME);
        }
        q.dy = dy + full * (int64_t)sizeof(real);
        for (int k = 0; full < d.o && k < columns; k++)
            sparse_column(q, u, part, word, s, stack + full * DENSE_INPUT_COLUMNS + k * P, level,
                          (int64_t)full * d.k + (int64_t)(from + k) * P, d, k, d.o - full);
    }
}

/* --------------------------------------------------------------------------------------- a unit */

/* Tiles `block` of inputs by d.o outputs, from `panel` on; row: outputs of the layer. */
RT_INLINE void dense_input_unit(const Rt *r, int block, int panel, int row, int64_t grad,
                                real *restrict w, real *restrict s0, real *restrict s1,
                                const char *restrict dy, int samples, Factors f, Update u, Dense d)
{
    const RtOpt o = update_options(r, f);
    const int64_t at = (int64_t)panel * P * d.k;
    const TileSplit t = tile_split(d.k, TILE_ROWS);
    const int first = block * DENSE_INPUT_TILES, tiles = DENSE_TILES(d.k),
              end = tiles - first < DENSE_INPUT_TILES ? tiles : first + DENSE_INPUT_TILES,
              from = tile_first(t, first), columns = tile_first(t, end) - from,
              few = SPARSE_SHARDS(samples);
    const bool wide = d.o >= SPARSE_LEAST;
    int group = few; /* shards of a block */
    while (2 * group * samples <= DENSE_SAMPLES)
        group *= 2;
    /* nodes of the tree; at most one sum is pending for each binary digit of their number */
    const int parts = (r->shards + few - 1) / few;
    real x[DENSE_SAMPLES * DENSE_INPUT_COLUMNS + V] __attribute__((aligned(64)));
    real stack[(32 - __builtin_clz((unsigned)parts)) * DENSE_INPUT_SUMS(d.o)]
        __attribute__((aligned(64)));
    RtInt word[DENSE_SAMPLES * DENSE_INPUT_COLUMNS] __attribute__((aligned(64)));
    DenseUpdate q = {.r = r,
                     .o = &o,
                     .grad = grad + at * (int64_t)sizeof(real),
                     .w = w + at,
                     .s0 = s0 ? s0 + at : NULL,
                     .s1 = s1 ? s1 + at : NULL,
                     .x = (const char *)x,
                     .samples = samples,
                     .x_row = DENSE_INPUT_COLUMNS,
                     .dy_row = row,
                     .x_shard = (int64_t)samples * DENSE_INPUT_COLUMNS * (int64_t)sizeof(real),
                     .dy_shard = r->shard_bytes};
    for (int s = 0; s < r->shards; s += group)
        for (int n = 0; n < samples; n += DENSE_SAMPLES) {
            const int count = samples - n < DENSE_SAMPLES ? samples - n : DENSE_SAMPLES;
            DenseBlock b = {.shards = r->shards - s < group ? r->shards - s : group,
                            .samples = count,
                            .part = n > 0,
                            .more = n + count < samples};
            b.ends = s + group >= r->shards && !b.more;
            dense_input_block(x, r, (r->first_shard + s) * samples + n, b.shards * count, from,
                              columns, d.k);
            q.dy = dy + s * r->shard_bytes + ((int64_t)n * row + panel * P) * (int64_t)sizeof(real);
            if (wide && sparse_pays(dense_input_words(word, x, b.shards, count, columns),
                                    (int64_t)b.shards * count * columns)) {
                b.number = s / few;
                sparse_columns(q, u, b, word, stack, d, from, columns);
            } else {
                b.number = s / group;
                dense_input_panels(q, u, b, stack, d, first, end);
            }
        }
}

/* Computes one of DENSE_INPUT_UNITS(samples, k, o) units, as dense_dw_update does, with the stored
 * samples of the batch as x.  samples: of a shard. */
RT_INLINE void dense_dw_update_input(const Rt *r, int unit, int64_t grad, real *restrict w,
                                     real *restrict s0, real *restrict s1, const char *restrict dy,
                                     int samples, Factors f, Update u, Dense d)
{
    const int parts = DENSE_INPUT_PARTS(samples, d.o), part = unit % parts, row = d.o,
              panel = DENSE_PANELS(row) * part / parts;
    if (parts == 1 || r->threads < RT_DENSE_INPUT_THREADS) {
        if (part == 0)
            dense_input_unit(r, unit / parts, 0, row, grad, w, s0, s1, dy, samples, f, u, d);
        return;
    }
    if (row % (2 * P) == 0)
        d.o = row / 2; /* a constant, because both halves are equal */
    else
        d.o = part == 0 ? DENSE_PANELS(row) / 2 * P : row - panel * P;
    dense_input_unit(r, unit / parts, panel, row, grad, w, s0, s1, dy, samples, f, u, d);
}

#endif
