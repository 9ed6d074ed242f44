/* bf16_amx.h -- the product of bf16_tile.h by the tile instructions of AMX.
 *
 * A tile of rows is 16 rows of 32 factors, a tile of a panel is a block of 16 outputs, and a tile
 * of sums is 16 by 16.  Four tiles of sums, for 32 rows by 2 panels, take four TDPBF16PS for four
 * loads.
 *
 * Rows are read where they lie if they are equally far apart and 16 rows of 64 bytes can be read.
 * Other rows, and a last block of a run that is not full, are copied, with zeros after the last
 * factor: 16 loads and stores of 64 bytes.  A load of rows that cross cache lines takes six times
 * as long as one of whole lines; so where several panels read the same rows, these are copied once.
 * Tiles keep their configuration of 16 rows by 64 bytes.
 *
 * Each program for AVX-512 contains this form.  bf16_has_tiles is false if the processor has no
 * tiles, the system gives no permission or the user chooses another form with --isa.  Then the form
 * for vectors runs, with the same bits; or, in a program built with --fast, that of bf16_chains.
 */
#ifndef CPU_BF16_AMX_H
#define CPU_BF16_AMX_H
#include "cpu/bf16_tile.h"

/* The instructions.  A test defines them before this file is included. */
#ifndef BF16_TILE_LOAD
#ifdef __clang__ /* clang's own assembler needs this attribute; the system's does not */
#define BF16_TILE_CODE __attribute__((target("amx-tile,amx-bf16")))
#endif
#define BF16_TILE_LOAD(tile, from, step)                                                           \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"((const void *)(from)), "r"((int64_t)(step))                             \
                     : "memory")
#define BF16_TILE_STORE(tile, to, step)                                                            \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                                        \
                     :                                                                             \
                     : "r"((void *)(to)), "r"((int64_t)(step))                                     \
                     : "memory")
#define BF16_CONVERTS        1 /* vcvtne2ps2bf16; a test of the tiles in plain C may lack it */
#define BF16_TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : : :)
#define BF16_TILE_PRODUCT(sum, a, b)                                                               \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : : :)
#endif
#ifndef BF16_TILE_CODE
#define BF16_TILE_CODE
#endif

enum {
    BF16_HALF = BF16_LANES * BF16_BLOCK, /* numbers of a tile of rows */
    BF16_KEPT = 64,                      /* blocks whose copies are kept: 128 KB */
};

/* Whether this thread may use tiles.  The first call of a thread configures them. */
RT_INLINE bool bf16_has_tiles(void)
{
    if (rt_tiles == RT_TILES_UNKNOWN)
        rt_tiles_begin();
    return rt_tiles == RT_TILES_READY;
}

/* 16 rows of the first factor. */
typedef struct Bf16Half {
    const bf16 *const *row;
    int rows;
    int64_t step; /* numbers from a row to the next */
    bool direct;  /* rows are read in place */
} Bf16Half;

/* The last rows can repeat the row before them. */
RT_INLINE Bf16Half bf16_half(const bf16 *const *row, int rows, const bf16 *end,
                             const Bf16Runs *runs)
{
    Bf16Half h = {row, rows < BF16_LANES ? rows : BF16_LANES, 0, true};
    int64_t reach = 0;
    while (h.rows > 1 && row[h.rows - 1] == row[h.rows - 2])
        h.rows--;
    if (h.rows > 1)
        h.step = row[1] - row[0];
    for (int i = 2; i < h.rows; i++)
        h.direct = h.direct && row[i] - row[i - 1] == h.step;
    for (int t = 0; t < runs->count; t++)
        reach = runs->a[t] > reach ? runs->a[t] : reach;
    h.direct =
        h.direct && h.step >= 0 && (BF16_LANES - 1) * h.step + reach + runs->length <= end - row[0];
    return h;
}

/* Copies a block of 16 rows: `count` numbers of each, then zeros. */
static RT_SEPARATE void bf16_half_copy(bf16 *restrict to, const Bf16Half *h, int64_t at, int count)
{
#ifdef RT_AVX512
    const uint32_t lanes = count < BF16_BLOCK ? (1u << count) - 1 : ~0u;
    RT_UNROLL
    for (int i = 0; i < BF16_LANES; i++) {
        Bf16Line x;
        __asm__("vmovdqu16 %1, %0%{%2%}%{z%}"
                : "=v"(x)
                : "m"(*(const Bf16LineMemory *)(h->row[i < h->rows ? i : h->rows - 1] + at)),
                  "Yk"(lanes));
        *(Bf16Line *)(to + i * BF16_BLOCK) = x;
    }
#else
    memset(to, 0, sizeof(bf16) * BF16_HALF);
    for (int i = 0; i < h->rows; i++)
        memcpy(to + i * BF16_BLOCK, h->row[i] + at, sizeof(bf16) * (size_t)count);
#endif
}

/* The rows of a tile. */
typedef struct Bf16Rows {
    const bf16 *const *row;
    int rows;
    Bf16Half half[2];
    const bf16 *kept; /* copies of all blocks, the first 16 rows of each and then the others */
} Bf16Rows;

/* kept: NULL, or memory for 2 * BF16_HALF numbers of each block, where `panels` panels share the
 * copies. */
static RT_SEPARATE Bf16Rows bf16_rows(const bf16 *const *row, int rows, const bf16 *end,
                                      const Bf16Runs *runs, bf16 *kept, int panels)
{
    const bool low = rows > BF16_LANES;
    Bf16Rows r = {row, rows, {{0}}, NULL};
    if (!bf16_has_tiles())
        return r;
    r.half[0] = bf16_half(row, rows, end, runs);
    r.half[1] = low ? bf16_half(row + BF16_LANES, rows - BF16_LANES, end, runs) : r.half[0];
    const bool lines = r.half[0].direct && r.half[1].direct && r.half[0].step % BF16_BLOCK == 0 &&
                       r.half[1].step % BF16_BLOCK == 0 && runs->length % BF16_BLOCK == 0;
    if (!kept || panels < 2 || lines)
        return r;
    for (int t = 0; t < runs->count; t++)
        for (int k = 0; k < runs->length; k += BF16_BLOCK) {
            const int left = runs->length - k, count = left < BF16_BLOCK ? left : BF16_BLOCK;
            bf16 *to =
                kept + ((int64_t)t * BF16_BLOCKS(runs->length) + k / BF16_BLOCK) * (2 * BF16_HALF);
            bf16_half_copy(to, &r.half[0], runs->a[t] + k, count);
            if (low)
                bf16_half_copy(to + BF16_HALF, &r.half[1], runs->a[t] + k, count);
        }
    r.kept = kept;
    return r;
}

/* Returns the beginning of the tile of a block. *step: the bytes from one row to the next. */
RT_INLINE const bf16 *bf16_half_block(bf16 *copy, const Bf16Half *h, int64_t at, int left,
                                      int64_t *step)
{
    if (h->direct && left >= BF16_BLOCK) {
        *step = h->step * (int64_t)sizeof *copy;
        return h->row[0] + at;
    }
    bf16_half_copy(copy, h, at, left < BF16_BLOCK ? left : BF16_BLOCK);
    *step = BF16_BLOCK * sizeof *copy;
    return copy;
}

/* Prefetches number `at` of each row. */
RT_INLINE void bf16_half_ahead(const Bf16Half *h, int64_t at)
{
    for (int i = 0; i < h->rows; i++)
        __builtin_prefetch(h->row[i] + at);
}

/* Loads or stores the tiles of sums that the product has. */
#define BF16_EACH_SUM(MOVE)                                                                        \
    do {                                                                                           \
        MOVE(0, sum, bytes);                                                                       \
        if (right)                                                                                 \
            MOVE(1, sum + BF16_LANES, bytes);                                                      \
        if (low)                                                                                   \
            MOVE(2, sum + lower, bytes);                                                           \
        if (low && right)                                                                          \
            MOVE(3, sum + lower + BF16_LANES, bytes);                                              \
    } while (0)
/* Sets the sums to 0 if `begin` is true, else loads the sums. */
#define BF16_SUMS_BEGIN()                                                                          \
    do {                                                                                           \
        if (begin) {                                                                               \
            BF16_TILE_ZERO(0);                                                                     \
            BF16_TILE_ZERO(1);                                                                     \
            BF16_TILE_ZERO(2);                                                                     \
            BF16_TILE_ZERO(3);                                                                     \
        } else {                                                                                   \
            BF16_EACH_SUM(BF16_TILE_LOAD);                                                         \
        }                                                                                          \
    } while (0)

/* sum (rows, panels) += the product; `line` floats from a row of sums to the next.  begin: the sums
 * begin with 0.  16 or 32 whole rows of sums are written. */
static RT_SEPARATE BF16_TILE_CODE void bf16_product_tiles(float *sum, int64_t line, bool begin,
                                                          const Bf16Rows *r, const bf16 *b,
                                                          int64_t panel, int panels,
                                                          const Bf16Runs *runs)
{
    enum { TILE_BYTES = 64 };
    const int64_t bytes = line * (int64_t)sizeof *sum, lower = line * BF16_LANES;
    const bool low = r->rows > BF16_LANES, right = panels == 2;
    bf16 copy[2][BF16_HALF] __attribute__((aligned(64)));
    const bf16 *kept = r->kept;
    BF16_SUMS_BEGIN();
    for (int t = 0; t < runs->count; t++) {
        const bf16 *from = b + runs->b[t];
        for (int k = 0; k < runs->length; k += BF16_BLOCK, from += BF16_HALF) {
            const int64_t at = runs->a[t] + k;
            const int left = runs->length - k;
            int64_t step = TILE_BYTES;
            const bf16 *a = kept ? kept : bf16_half_block(copy[0], &r->half[0], at, left, &step);
            BF16_TILE_LOAD(4, a, step);
            BF16_TILE_LOAD(6, from, TILE_BYTES);
            BF16_TILE_PRODUCT(0, 4, 6);
            if (right) {
                BF16_TILE_LOAD(7, from + panel, TILE_BYTES);
                BF16_TILE_PRODUCT(1, 4, 7);
            }
            if (runs->ahead)
                bf16_half_ahead(&r->half[0], at + runs->ahead);
            if (low) {
                a = kept ? kept + BF16_HALF
                         : bf16_half_block(copy[1], &r->half[1], at, left, &step);
                BF16_TILE_LOAD(5, a, step);
                BF16_TILE_PRODUCT(2, 5, 6);
                if (right)
                    BF16_TILE_PRODUCT(3, 5, 7);
                if (runs->ahead)
                    bf16_half_ahead(&r->half[1], at + runs->ahead);
            }
            kept = kept ? kept + 2 * BF16_HALF : NULL;
        }
    }
    BF16_EACH_SUM(BF16_TILE_STORE);
}

/* sum += the product of 16 rows, or 32 if `low`, that begin at `a` and are `step` numbers apart.
 * All of their blocks are whole and can be read.  line, begin: as of bf16_product_tiles. */
static RT_SEPARATE BF16_TILE_CODE void bf16_product_even(float *sum, int64_t line, bool begin,
                                                         const bf16 *a, int64_t step, bool low,
                                                         const bf16 *b, int64_t panel, int panels,
                                                         const Bf16Runs *runs)
{
    enum { TILE_BYTES = 64 };
    const int64_t bytes = line * (int64_t)sizeof *sum, lower = line * BF16_LANES,
                  row = step * (int64_t)sizeof *a, half = BF16_LANES * step;
    const bool right = panels == 2;
    BF16_SUMS_BEGIN();
    for (int t = 0; t < runs->count; t++) {
        const bf16 *x = a + runs->a[t], *w = b + runs->b[t];
        for (int k = 0; k < runs->length; k += BF16_BLOCK, x += BF16_BLOCK, w += BF16_HALF) {
            BF16_TILE_LOAD(4, x, row);
            BF16_TILE_LOAD(6, w, TILE_BYTES);
            BF16_TILE_PRODUCT(0, 4, 6);
            if (right) {
                BF16_TILE_LOAD(7, w + panel, TILE_BYTES);
                BF16_TILE_PRODUCT(1, 4, 7);
            }
            for (int i = 0; runs->ahead && i < 2 * BF16_LANES; i++)
                __builtin_prefetch(x + i * step + runs->ahead);
            if (!low)
                continue;
            BF16_TILE_LOAD(5, x + half, row);
            BF16_TILE_PRODUCT(2, 5, 6);
            if (right)
                BF16_TILE_PRODUCT(3, 5, 7);
        }
    }
    BF16_EACH_SUM(BF16_TILE_STORE);
}

#endif
