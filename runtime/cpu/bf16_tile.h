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

#ifndef RT_AVX512
/* Writes a block of the rows as floats. */
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

/* Computes the product in the form for vectors.  sum (rows, BF16_ROWS); row[i], i < rows <=
 * BF16_ROWS: the rows; b: panels of which the second, if `panels` is 2, lies `panel` numbers later.
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
#include "cpu/bf16_chains.h"
#else
RT_INLINE bool bf16_has_chains(void)
{
    return false;
}
#endif

/* Computes the product in the form of this processor: sum (rows, line).  line is BF16_ROWS, or any
 * number if bf16_adds_in_place.  begin: the sums begin with 0. */
RT_INLINE void bf16_product_rows(float *sum, int64_t line, bool begin, const Bf16Rows *rows,
                                 const bf16 *b, int64_t panel, int panels, const Bf16Runs *runs)
{
#ifdef RT_AMX
    if (bf16_has_tiles()) {
        bf16_product_tiles(sum, line, begin, rows, b, panel, panels, runs);
        return;
    }
#endif
    (void)line;
    if (begin)
        memset(sum, 0, sizeof(float) * BF16_TILE);
#ifdef RT_FAST
    if (bf16_has_chains()) {
        bf16_product_chains(sum, rows->row, rows->rows, b, panel, panels, runs);
        return;
    }
#endif
    bf16_product_vectors(sum, rows->row, rows->rows, b, panel, panels, runs);
}

/* Whether bf16_product_rows can add to a part of a matrix: the tiles are whole, so that no number
 * beside them is written, and rows can be any distance apart. */
RT_INLINE bool bf16_adds_in_place(int rows, int outputs)
{
    return bf16_has_tiles() && rows == BF16_ROWS && outputs == 2 * BF16_LANES;
}

/* sum += the product.  Memory of the rows can be read up to `end`. */
RT_INLINE void bf16_product(float *sum, const bf16 *const *row, int rows, const bf16 *end,
                            const bf16 *b, int64_t panel, int panels, const Bf16Runs *runs)
{
    const Bf16Rows all = bf16_rows(row, rows, end, runs, NULL, panels);
    bf16_product_rows(sum, BF16_ROWS, false, &all, b, panel, panels, runs);
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

/* Number `at` of y, which is f32 if `wide`, else bf16. */
RT_INLINE void *bf16_result(void *y, bool wide, int64_t at)
{
    return wide ? (void *)((real *)y + at) : (void *)((bf16 *)y + at);
}

/* Stores the first `lanes` lanes of x, from number `at` of y on. */
RT_INLINE void bf16_put(void *y, bool wide, int64_t at, vec x, int lanes)
{
    if (wide)
        v_store_lanes((real *)y + at, x, lanes);
    else
        v_store_bf16_lanes((bf16 *)y + at, x, lanes);
}

#ifdef RT_AMX
/* Stores two vectors, rounded to bf16.  Processors with tiles have an instruction for this
 * (base/tiles.c), whose results are those of v_store_bf16. */
RT_INLINE void bf16_store_two(bf16 *to, vec x, vec y)
{
#ifdef BF16_CONVERTS
    __asm__("vcvtne2ps2bf16 %2, %1, %1\n\tvmovdqu16 %1, %0"
            : "=m"(*(Bf16LineMemory *)to), "+v"(y)
            : "v"(x));
#else
    v_store_bf16(to, x);
    v_store_bf16(to + V, y);
#endif
}

/* Stores the first `lanes` lanes of a vector, rounded to bf16. */
RT_INLINE void bf16_store_one(bf16 *to, vec x, int lanes)
{
#ifdef BF16_CONVERTS
    vbf16 y;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(y) : "v"(x));
    if (lanes == V)
        *(vbf16_memory *)to = y;
    else
        __asm__("vmovdqu16 %1, %0%{%2%}" : "+m"(*(vbf16_memory *)to) : "v"(y), "Yk"(V_MASK(lanes)));
#else
    v_store_bf16_lanes(to, x, lanes);
#endif
}

/* The same as bf16_end, for up to 32 outputs in bf16. */
RT_INLINE void bf16_end_two(const float *sum, Bf16End e, const int64_t *to, int rows, int first,
                            int outputs)
{
    const bool both = outputs == 2 * V;
    const int low = outputs < V ? outputs : V, high = outputs - low;
    const vec b0 = e.bias ? v_load_lanes(e.bias + first, low) : v_set(0),
              b1 = e.bias && high ? v_load_lanes(e.bias + first + V, high) : v_set(0);
    for (int i = 0; i < rows; i++, sum += BF16_ROWS) {
        if (to[i] < 0)
            continue;
        const int64_t at = to[i] + first;
        vec x = v_load(sum), y = high ? v_load(sum + V) : v_set(0);
        if (e.bias)
            x += b0, y += b1;
        x = e.act(x), y = e.act(y);
        if (e.seen) {
            x = e.mask(x, v_load_bf16_lanes(e.seen + at, low));
            y = high ? e.mask(y, v_load_bf16_lanes(e.seen + at + V, high)) : y;
        }
        if (both) {
            bf16_store_two((bf16 *)e.y + at, x, y);
            continue;
        }
        bf16_store_one((bf16 *)e.y + at, x, low);
        if (high)
            bf16_store_one((bf16 *)e.y + at + V, y, high);
    }
}
#endif

/* Stores row i at y + to[i]; to[i] < 0: nowhere.  first: the first of `outputs` outputs. */
RT_INLINE void bf16_end(const float *sum, Bf16End e, const int64_t *to, int rows, int first,
                        int outputs)
{
#ifdef RT_AMX
    if ((int)V == (int)BF16_LANES && !e.wide && bf16_has_tiles()) {
        if (outputs == 2 * BF16_LANES) /* a constant, for which the compiler leaves out the masks */
            bf16_end_two(sum, e, to, rows, first, 2 * BF16_LANES);
        else
            bf16_end_two(sum, e, to, rows, first, outputs);
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
            bf16_put(e.y, e.wide, at, z, lanes);
        }
    }
}
#endif

#endif
