/* bf16_tile.h -- the inner loop of every product in bf16: 32 rows by 32 outputs, in the order of
 * bf16.h.
 *
 *     sum[i][j] += over runs t, over blocks of 32 factors:
 *                      sum over k of row[i][a[t] + k] * b[t][k][j]
 *
 * Rows lie where the layer before wrote them: `length` adjacent numbers a run.  The second factor
 * is packed (bf16_pack.h).  Sums of 4 KB stay in the L1 cache and take one addition for each block,
 * so the registers hold only the chains of a few rows.
 *
 * A vector of pairs becomes the floats of its even numbers by a shift and those of its odd numbers
 * by a mask.  On AVX-512, an instruction that shifts or masks also reads and broadcasts a row's
 * pair.  Other processors first write a block of the rows as floats.  GFLOP/s of one core of a
 * Zen 4, whose FMA peak is 118, with 256 factors from the L1 cache:
 *   AVX-512   4 rows x 2 panels 118   5 x 2 113   6 x 2 107   8 x 1 91
 *             rows that are floats already: 4 x 2 107, 6 x 2 103
 *   AVX2      3 rows x 1 panel 104; rows that are floats already: 115
 */
#ifndef CPU_BF16_TILE_H
#define CPU_BF16_TILE_H
#include "cpu/bf16_pack.h"
#include "cpu/math.h"

enum {
    BF16_ROWS = 32, /* of a tile, and distance of its rows in numbers */
    BF16_TILE = BF16_ROWS * 2 * BF16_LANES,
};

/* Runs of a sum: where each begins, from the row's pointer and from the panel. */
typedef struct Bf16Runs {
    int count, length;
    const int64_t *a, *b;
    int64_t ahead; /* 0, or numbers from a row to the one that is prefetched beside it */
} Bf16Runs;

#if defined(RT_AVX512) && !defined(RT_AMX) /* the form for tiles is chosen at run time */
#define RT_AMX 1
#endif

#ifndef RT_DOUBLE
/* ----------------------------------------------------------------------------- a block of few rows
 * sum[i][j] += the block; `left` factors are left in the run. */
enum { BF16_VECTORS = BF16_LANES / BV }; /* of a panel */
RT_INLINE void bf16_block(float *restrict sum, const BFactor *const *row, int64_t at,
                          const bf16 *restrict b, int64_t panel, int rows, int panels, int left)
{
    const int vectors = panels * BF16_VECTORS;
    const BFactor *a[8];
    bvec even[BF16_CHAINS], odd[BF16_CHAINS];
    bvec_bits mask = 0xffff0000u - (bvec_bits){0};
#if defined(RT_AVX512) || defined(__AVX2__)
    __asm__("" : "+v"(mask)); /* else gcc loads the mask from memory each time */
#endif
    RT_UNROLL
    for (int i = 0; i < rows; i++)
        a[i] = row[i] + at;
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        even[i] = odd[i] = (bvec){0};
    const int count = left < BF16_BLOCK ? left : BF16_BLOCK;
    for (int64_t k = 0, last = count / 2 * 2; k < last; k += 2) {
        const bf16 *from = b + k * BF16_LANES;
        __asm__("" : "+r"(k)); /* else gcc adds to a pointer for each row */
        bvec x[2 * BF16_VECTORS];
#if defined(RT_AVX512)
        bvec w[2 * BF16_VECTORS];
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            const bvec_bits pairs = b_load_pairs(from + j * panel);
            x[j] = b_even(pairs), w[j] = b_odd(pairs, mask);
        }
        RT_UNROLL
        for (int i = 0; i < rows; i++) {
            const bvec first = b_even_of(a[i] + k);
            RT_UNROLL
            for (int j = 0; j < vectors; j++)
                even[i * vectors + j] = b_fma(first, x[j], even[i * vectors + j]);
            const bvec second = b_odd_of(a[i] + k, mask);
            RT_UNROLL
            for (int j = 0; j < vectors; j++)
                odd[i * vectors + j] = b_fma(second, w[j], odd[i * vectors + j]);
        }
#else
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            x[j] = b_even(b_load_pairs(from + 2 * j * BV));
        RT_UNROLL
        for (int i = 0; i < rows; i++) {
            const bvec first = b_even_of(a[i] + k);
            RT_UNROLL
            for (int j = 0; j < vectors; j++)
                even[i * vectors + j] = b_fma(first, x[j], even[i * vectors + j]);
        }
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            x[j] = b_load_odd(from + 2 * j * BV, mask);
        RT_UNROLL
        for (int i = 0; i < rows; i++) {
            const bvec second = b_odd_of(a[i] + k, mask);
            RT_UNROLL
            for (int j = 0; j < vectors; j++)
                odd[i * vectors + j] = b_fma(second, x[j], odd[i * vectors + j]);
        }
#endif
    }
    b += count / 2 * (2 * BF16_LANES);
    if (count < BF16_BLOCK) { /* the last factor without a pair; then missing factors */
        RT_UNROLL
        for (int i = 0; i < rows; i++) {
            RT_UNROLL
            for (int j = 0; j < vectors; j++) {
                const bf16 *at_j =
                    b + (int64_t)(j / BF16_VECTORS) * panel + j % BF16_VECTORS * (2 * BV);
                bvec *e = &even[i * vectors + j], *o = &odd[i * vectors + j];
                if (count % 2)
                    *e = b_fma(b_single(a[i] + count - 1), b_even(b_load_pairs(at_j)), *e);
                if (count < BF16_BLOCK - 1)
                    *e += (bvec){0};
                *o += (bvec){0};
            }
        }
    }
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        RT_UNROLL
        for (int j = 0; j < vectors; j++) {
            bvec_memory *to = (bvec_memory *)(sum + i * BF16_ROWS + j * BV);
            *to += even[i * vectors + j] + odd[i * vectors + j];
        }
    }
}

#ifdef RT_FAST
/* The product by VDPBF16PS, for --fast: sum[i][j] is one chain over all pairs of factors,
 *
 *     sum = fma(a[k], b[k], fma(a[k + 1], b[k + 1], sum))
 *
 * so its bits differ from those of the contract.  On Zen 4 and 5 the instruction has twice the
 * speed of f32.  8 rows by `panels` panels. */
RT_INLINE void bf16_chains(float *restrict sum, const bf16 *const *row, const bf16 *restrict b,
                           int64_t panel, int panels, const Bf16Runs *runs)
{
    enum { ROWS = 8 };
    bvec s[2 * ROWS];
    RT_UNROLL
    for (int i = 0; i < ROWS * panels; i++)
        s[i] = *(const bvec_memory *)(sum + i / panels * BF16_ROWS + i % panels * BF16_LANES);
    for (int t = 0; t < runs->count; t++) {
        const bf16 *a[ROWS], *from = b + runs->b[t];
        RT_UNROLL
        for (int i = 0; i < ROWS; i++)
            a[i] = row[i] + runs->a[t];
        int64_t k = 0;
        for (const int64_t last = runs->length / 2 * 2; k < last; k += 2, from += 2 * BF16_LANES) {
            bvec_bits w[2];
            __asm__("" : "+r"(k)); /* else gcc adds to a pointer for each row */
            RT_UNROLL
            for (int j = 0; j < panels; j++)
                w[j] = b_load_pairs(from + j * panel);
            RT_UNROLL
            for (int i = 0; i < ROWS * panels; i++)
                __asm__("vdpbf16ps %2%{1to16%}, %1, %0"
                        : "+v"(s[i])
                        : "v"(w[i % panels]),
                          "m"(*(const uint32_t *)(const void *)(a[i / panels] + k)));
        }
        if (k == runs->length)
            continue;
        RT_UNROLL
        for (int i = 0; i < ROWS * panels; i++) { /* a factor without a pair */
            const bvec_bits single = (uint32_t)a[i / panels][k] - (bvec_bits){0};
            __asm__("vdpbf16ps %2, %1, %0"
                    : "+v"(s[i])
                    : "v"(b_load_pairs(from + i % panels * panel)), "v"(single));
        }
    }
    RT_UNROLL
    for (int i = 0; i < ROWS * panels; i++)
        *(bvec_memory *)(sum + i / panels * BF16_ROWS + i % panels * BF16_LANES) = s[i];
}
#endif

#ifndef RT_AVX512
/* A block of the rows as floats. */
RT_INLINE void bf16_rows_as_floats(float *wide, const bf16 *const *row, int rows, int64_t at,
                                   int left)
{
    for (int i = 0; i < rows && left >= BF16_BLOCK; i++, wide += BF16_BLOCK) {
        const bf16 *from = row[i] + at;
        RT_UNROLL
        for (int k = 0; k < BF16_BLOCK; k += BV)
            *(bvec_memory *)(wide + k) = b_even(b_load_low(from + k));
    }
    for (int i = 0; i < rows && left < BF16_BLOCK; i++, wide += BF16_BLOCK)
        for (int k = 0; k < left; k += BV)
            *(bvec_memory *)(wide + k) =
                b_even(b_load_low_n(row[i] + at + k, left - k < BV ? left - k : BV));
}
#endif

/* The form for vectors.  sum (rows, BF16_ROWS); row[i], i < rows <= BF16_ROWS: the rows; b: panels
 * of which the second, if `panels` is 2, lies `panel` numbers later.
 * On AVX-512, rows are filled up to 4 or 8 with the last row, whose sums are not used: two sizes of
 * blocks compile in a third of the time of twelve. */
static RT_SEPARATE void bf16_product_vectors(float *sum, const bf16 *const *row, int rows,
                                             const bf16 *b, int64_t panel, int panels,
                                             const Bf16Runs *runs)
{
    const BFactor *factor[BF16_ROWS];
#ifdef RT_AVX512
    for (int i = 0; i < BF16_ROWS; i++)
        factor[i] = row[i < rows ? i : rows - 1];
#else
    float wide[BF16_ROWS * BF16_BLOCK] __attribute__((aligned(64)));
    for (int i = 0; i < BF16_ROWS; i++)
        factor[i] = wide + i * BF16_BLOCK;
#endif
#ifdef RT_FAST
    for (int i = 0; i < rows && rt_tiles == RT_TILES_CHAINS; i += 8)
        if (panels == 2)
            bf16_chains(sum + i * BF16_ROWS, factor + i, b, panel, 2, runs);
        else
            bf16_chains(sum + i * BF16_ROWS, factor + i, b, panel, 1, runs);
    if (rt_tiles == RT_TILES_CHAINS)
        return;
#endif
    for (int t = 0; t < runs->count; t++)
        for (int k = 0; k < runs->length; k += BF16_BLOCK) {
            const bf16 *from = b + runs->b[t] + (int64_t)k * BF16_LANES;
            const int64_t at = runs->a[t] + k;
            const int left = runs->length - k;
            for (int i = 0; runs->ahead && i < rows; i++)
                __builtin_prefetch(row[i] + at + runs->ahead);
#ifdef RT_AVX512
            for (int i = 0; i < rows && panels == 2; i += 4)
                bf16_block(sum + i * BF16_ROWS, factor + i, at, from, panel, 4, 2, left);
            for (int i = 0; i < rows && panels == 1; i += 8)
                bf16_block(sum + i * BF16_ROWS, factor + i, at, from, panel, 8, 1, left);
#else
            bf16_rows_as_floats(wide, row, rows, at, left);
            for (int j = 0; j < panels; j++, from += panel) {
                float *to = sum + j * BF16_LANES;
                int i = 0;
                for (; i + BF16_PART <= rows; i += BF16_PART)
                    bf16_block(to + i * BF16_ROWS, factor + i, 0, from, panel, BF16_PART, 1, left);
                for (; BF16_PART > 2 && i + 2 <= rows; i += 2)
                    bf16_block(to + i * BF16_ROWS, factor + i, 0, from, panel, 2, 1, left);
                for (; i < rows; i++)
                    bf16_block(to + i * BF16_ROWS, factor + i, 0, from, panel, 1, 1, left);
            }
#endif
        }
}

#ifdef RT_AMX
#include "cpu/bf16_amx.h"
#else
/* Whether products are computed by tiles of AMX. */
RT_INLINE bool bf16_has_tiles(void)
{
    return false;
}

/* The rows of a tile; kept and panels are for AMX. */
typedef struct Bf16Rows {
    const bf16 *const *row;
    int rows;
} Bf16Rows;
RT_INLINE Bf16Rows bf16_rows(const bf16 *const *row, int rows, const bf16 *end,
                             const Bf16Runs *runs, bf16 *kept, int panels)
{
    (void)end, (void)runs, (void)kept, (void)panels;
    return (Bf16Rows){row, rows};
}
enum { BF16_HALF = 1, BF16_KEPT = 0 };
#endif

#ifdef RT_FAST
#define BF16_HAS_CHAINS (rt_tiles == RT_TILES_CHAINS)
#else
#define BF16_HAS_CHAINS false
#endif

/* The product in the form of this processor.  begin: the sums begin with 0. */
RT_INLINE void bf16_product_rows(float *sum, bool begin, const Bf16Rows *rows, const bf16 *b,
                                 int64_t panel, int panels, const Bf16Runs *runs)
{
#ifdef RT_AMX
    if (bf16_has_tiles()) {
        bf16_product_tiles(sum, BF16_ROWS, begin, rows, b, panel, panels, runs);
        return;
    }
#endif
    if (begin)
        memset(sum, 0, sizeof(float) * BF16_TILE);
    bf16_product_vectors(sum, rows->row, rows->rows, b, panel, panels, runs);
}

/* sum += the product.  Memory of the rows can be read up to `end`. */
RT_INLINE void bf16_product(float *sum, const bf16 *const *row, int rows, const bf16 *end,
                            const bf16 *b, int64_t panel, int panels, const Bf16Runs *runs)
{
    const Bf16Rows all = bf16_rows(row, rows, end, runs, NULL, panels);
    bf16_product_rows(sum, false, &all, b, panel, panels, runs);
}

/* Memory in which bf16_rows keeps the copies of `blocks` blocks; 1 number if it keeps none. */
#define BF16_KEPT_COUNT(blocks)    ((blocks) <= BF16_KEPT ? (blocks)*2 * BF16_HALF : 1)
#define BF16_KEPT_AT(kept, blocks) ((blocks) <= BF16_KEPT ? (kept) : NULL)

/* ------------------------------------------------------------------------------------- the results
 * What happens to the sums of a tile when they are complete: y = mask(act(sum + bias), seen). */
typedef struct Bf16End {
    void *y;
    bool wide; /* y has floats */
    const real *bias;
    const bf16 *seen; /* layout of y; NULL: no mask */
    Act act;
    Mask mask;
} Bf16End;

#ifdef RT_AMX
/* Two vectors rounded to bf16.  Processors with tiles have this instruction (base/tiles.c), whose
 * results are those of v_store_bf16. */
RT_INLINE void bf16_store_two(bf16 *to, vec x, vec y)
{
#ifdef BF16_CONVERTS
    typedef bf16 Line __attribute__((vector_size(64), aligned(2), may_alias));
    __asm__("vcvtne2ps2bf16 %2, %1, %1\n\tvmovdqu16 %1, %0" : "=m"(*(Line *)to), "+v"(y) : "v"(x));
#else
    v_store_bf16(to, x);
    v_store_bf16(to + V, y);
#endif
}

/* bf16_end for 32 outputs. */
RT_INLINE void bf16_end_two(const float *sum, Bf16End e, const int64_t *to, int rows, int first)
{
    const vec b0 = e.bias ? v_load(e.bias + first) : v_set(0),
              b1 = e.bias ? v_load(e.bias + first + V) : v_set(0);
    for (int i = 0; i < rows; i++, sum += BF16_ROWS) {
        if (to[i] < 0)
            continue;
        const int64_t at = to[i] + first;
        vec x = v_load(sum), y = v_load(sum + V);
        if (e.bias)
            x += b0, y += b1;
        x = e.act(x), y = e.act(y);
        if (e.seen) {
            x = e.mask(x, v_load_bf16(e.seen + at));
            y = e.mask(y, v_load_bf16(e.seen + at + V));
        }
        bf16_store_two((bf16 *)e.y + at, x, y);
    }
}
#endif

/* Row i goes to y + to[i]; to[i] < 0: nowhere.  first: the first of `outputs` outputs. */
RT_INLINE void bf16_end(const float *sum, Bf16End e, const int64_t *to, int rows, int first,
                        int outputs)
{
#ifdef RT_AMX
    if ((int)V == (int)BF16_LANES && outputs == 2 * BF16_LANES && !e.wide && bf16_has_tiles()) {
        bf16_end_two(sum, e, to, rows, first);
        return;
    }
#endif
    for (int i = 0; i < rows; i++) {
        if (to[i] < 0)
            continue;
        for (int j = 0; j < outputs; j += V) {
            const int lanes = tile_lanes(outputs - j, 0);
            const int64_t at = to[i] + first + j;
            vec z = v_load(sum + i * BF16_ROWS + j);
            if (e.bias)
                z += v_load_lanes(e.bias + first + j, lanes);
            z = e.act(z);
            if (e.seen)
                z = e.mask(z, v_load_bf16_lanes(e.seen + at, lanes));
            if (e.wide)
                v_store_lanes((real *)e.y + at, z, lanes);
            else
                v_store_bf16_lanes((bf16 *)e.y + at, z, lanes);
        }
    }
}

/* -------------------------------------------------------------- operands of gradients of weights
 * There the factors of a sum are positions, which lie apart in memory.  Position p is at
 * row[p] + at, with `lanes` <= 32 adjacent numbers.  Blocks are filled with zeros. */
enum { BF16_POSITIONS = 512 }; /* that are copied at a time: two operands of 32 KB */

/* Positions of a block, as equal as whole blocks of 32 allow. */
RT_INLINE int bf16_positions_most(int all)
{
    const int blocks = BF16_BLOCKS(all),
              parts = (blocks * BF16_BLOCK + BF16_POSITIONS - 1) / BF16_POSITIONS;
    return parts > 0 ? (blocks + parts - 1) / parts * BF16_BLOCK : BF16_BLOCK;
}

/* BV numbers of positions p and p + 1, interleaved.  whole: all of these numbers exist. */
RT_INLINE bvec_bits bf16_pair(const bf16 *const *row, int64_t at, int p, int count, int lanes,
                              bool whole)
{
    if (whole)
        return b_load_low(row[p] + at) | b_load_low(row[p + 1] + at) << 16;
    const int n = lanes < 0 ? 0 : lanes < BV ? lanes : BV;
    bvec_bits pair = {0};
    if (n > 0 && p < count)
        pair = b_load_low_n(row[p] + at, n);
    if (n > 0 && p + 1 < count)
        pair |= b_load_low_n(row[p + 1] + at, n) << 16;
    return pair;
}

/* A panel of 16 lanes of the second factor. */
RT_INLINE void bf16_pairs_panel(bf16 *restrict to, const bf16 *const *row, int64_t at, int count,
                                int lanes, bool whole)
{
    for (int p = 0; p < BF16_BLOCKS(count) * BF16_BLOCK; p += 2, to += 2 * BF16_LANES) {
        RT_UNROLL
        for (int j = 0; j < BF16_LANES; j += BV) {
            const bvec_bits pair = bf16_pair(row, at + j, p, count, lanes - j, whole);
            memcpy(to + 2 * j, &pair, sizeof pair);
        }
    }
}

#ifdef RT_AVX512
/* Two panels of 32 lanes: an instruction interleaves 16 lanes of two positions. */
RT_INLINE void bf16_pairs_two(bf16 *restrict to, int64_t panel, const bf16 *const *row, int64_t at,
                              int count)
{
    typedef bf16 Line __attribute__((vector_size(64), may_alias));
    typedef bf16 LineMemory __attribute__((vector_size(64), aligned(2), may_alias));
    for (int p = 0; p < count; p += 2, to += 2 * BF16_LANES) {
        const Line x = *(const LineMemory *)(row[p] + at),
                   y = *(const LineMemory *)(row[p + 1] + at);
        *(Line *)to =
            __builtin_shufflevector(x, y, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8,
                                    40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
        *(Line *)(to + panel) =
            __builtin_shufflevector(x, y, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54,
                                    23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62,
                                    31, 63);
    }
}
#endif

#ifdef RT_AVX512
/* One panel of 16 lanes. */
RT_INLINE void bf16_pairs_one(bf16 *restrict to, const bf16 *const *row, int64_t at, int count)
{
    typedef bf16 Line __attribute__((vector_size(64), may_alias));
    typedef bf16 Half __attribute__((vector_size(32), aligned(2), may_alias));
    for (int p = 0; p < count; p += 2, to += 2 * BF16_LANES)
        *(Line *)to =
            __builtin_shufflevector(*(const Half *)(row[p] + at), *(const Half *)(row[p + 1] + at),
                                    0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24,
                                    9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
#endif

/* The second factor: packed panels of 16 lanes, `panel` numbers apart.  The memory is aligned to
 * 64 bytes. */
RT_INLINE void bf16_pairs(bf16 *restrict to, int64_t panel, const bf16 *const *row, int64_t at,
                          int count, int lanes)
{
#ifdef RT_AVX512
    if (lanes == 2 * BF16_LANES && count % BF16_BLOCK == 0) {
        bf16_pairs_two(to, panel, row, at, count);
        return;
    }
    if (lanes == BF16_LANES && count % BF16_BLOCK == 0) {
        bf16_pairs_one(to, row, at, count);
        return;
    }
#endif
    for (int first = 0; first < lanes; first += BF16_LANES, to += panel)
        if (lanes - first >= BF16_LANES && count % BF16_BLOCK == 0)
            bf16_pairs_panel(to, row, at + first, count, BF16_LANES, true);
        else
            bf16_pairs_panel(to, row, at + first, count, lanes - first, false);
}

/* BV lanes of 2 BV positions of the first factor. */
RT_INLINE void bf16_turn_square(bf16 *restrict to, const bf16 *const *row, int64_t at, int p,
                                int count, int lanes, bool whole)
{
    bvec t[BV];
    RT_UNROLL
    for (int i = 0; i < BV; i++)
        t[i] = (bvec)bf16_pair(row, at, p + 2 * i, count, lanes, whole);
    b_transpose(t);
    RT_UNROLL
    for (int i = 0; i < BV; i++)
        if (i < lanes)
            memcpy(to + i * BF16_POSITIONS, &t[i], sizeof t[i]);
}

/* The first factor: rows of positions, BF16_POSITIONS apart. */
RT_INLINE void bf16_turn(bf16 *restrict to, const bf16 *const *row, int64_t at, int count,
                         int lanes)
{
    for (int first = 0; first < lanes; first += BV)
        for (int p = 0; p < count; p += 2 * BV)
            if (lanes - first >= BV && p + 2 * BV <= count)
                bf16_turn_square(to + first * BF16_POSITIONS + p, row, at + first, p, count, BV,
                                 true);
            else
                bf16_turn_square(to + first * BF16_POSITIONS + p, row, at + first, p, count,
                                 lanes - first, false);
}

/* Whether bf16_product_turned adds to sums whose rows are any distance apart. */
RT_INLINE bool bf16_adds_in_place(int rows, int outputs)
{
    return bf16_has_tiles() && rows == BF16_ROWS && outputs == 2 * BF16_LANES;
}

/* sum (rows, line) += turned (rows, BF16_POSITIONS) times packed pairs, over `count` positions;
 * line is BF16_ROWS, or any number if bf16_adds_in_place.  begin: the sums begin with 0. */
RT_INLINE void bf16_product_turned(float *sum, int64_t line, bool begin, const bf16 *turned,
                                   int rows, const bf16 *pairs, int outputs, int count)
{
    const int64_t zero = 0, panel = BF16_POSITIONS * BF16_LANES;
    const Bf16Runs run = {1, count, &zero, &zero, 0};
    const bf16 *row[BF16_ROWS];
    for (int i = 0; i < rows; i++)
        row[i] = turned + i * BF16_POSITIONS;
    const Bf16Rows all = bf16_rows(row, rows, turned + BF16_ROWS * BF16_POSITIONS, &run, NULL, 1);
#ifdef RT_AMX
    if (bf16_has_tiles()) {
        bf16_product_tiles(sum, line, begin, &all, pairs, panel, BF16_PANELS(outputs), &run);
        return;
    }
#endif
    (void)line;
    bf16_product_rows(sum, begin, &all, pairs, panel, BF16_PANELS(outputs), &run);
}
#endif

#endif
