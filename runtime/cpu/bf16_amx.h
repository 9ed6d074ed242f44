/* bf16_amx.h -- the product of bf16_tile.h by the tile instructions of AMX.
 *
 * A tile of rows is 16 rows of 32 factors, a tile of a panel is a block of 16 outputs, and a tile
 * of sums is 16 by 16.  Four tiles of sums, for 32 rows by 2 panels, take four TDPBF16PS for four
 * loads.
 *
 * Rows are read where they lie if they are equally far apart and 16 rows of 64 bytes can be read.
 * Other rows, and a last block of a run that is not full, are copied, with zeros after the last
 * factor.  Tiles keep their configuration of 16 rows by 64 bytes.
 *
 * bf16_has_tiles is false if the kernel of the system gives no permission.  Then the form for
 * vectors runs, with the same bits.
 */
#ifndef CPU_BF16_AMX_H
#define CPU_BF16_AMX_H
#include "cpu/bf16_tile.h"

/* The names are Intel's; a test defines them before this file is included. */
#ifndef _tile_loadd
#define _tile_loadd(tile, from, step)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"((const void *)(from)), "r"((int64_t)(step))                             \
                     : "memory")
#define _tile_stored(tile, to, step)                                                               \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                                        \
                     :                                                                             \
                     : "r"((void *)(to)), "r"((int64_t)(step))                                     \
                     : "memory")
#define _tile_dpbf16ps(sum, a, b)                                                                  \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #sum : : :)
#endif

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

RT_INLINE Bf16Half bf16_half(const bf16 *const *row, int rows, const bf16 *end,
                             const Bf16Runs *runs)
{
    Bf16Half h = {row, rows < BF16_LANES ? rows : BF16_LANES, 0, true};
    int64_t reach = 0;
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

/* Where the tile of a block begins.  The numbers from one row to the next go to *step. */
RT_INLINE const bf16 *bf16_half_block(bf16 *copy, Bf16Half h, int64_t at, int left, int64_t *step)
{
    const int count = left < BF16_BLOCK ? left : BF16_BLOCK;
    if (h.direct && left >= BF16_BLOCK) {
        *step = h.step;
        return h.row[0] + at;
    }
    memset(copy, 0, sizeof(bf16) * BF16_LANES * BF16_BLOCK);
    for (int i = 0; i < h.rows; i++)
        memcpy(copy + i * BF16_BLOCK, h.row[i] + at, sizeof(bf16) * (size_t)count);
    *step = BF16_BLOCK;
    return copy;
}

static RT_SEPARATE void bf16_product_tiles(float *sum, const bf16 *const *row, int rows,
                                           const bf16 *end, const bf16 *b, int64_t panel,
                                           int panels, const Bf16Runs *runs)
{
    enum { LINE = BF16_ROWS * sizeof(float), LOWER = BF16_LANES * BF16_ROWS, TILE_BYTES = 64 };
    const bool low = rows > BF16_LANES, right = panels == 2;
    const Bf16Half first = bf16_half(row, rows, end, runs),
                   second = low ? bf16_half(row + BF16_LANES, rows - BF16_LANES, end, runs) : first;
    bf16 copy[2][BF16_LANES * BF16_BLOCK] __attribute__((aligned(64)));
    _tile_loadd(0, sum, LINE);
    if (right)
        _tile_loadd(1, sum + BF16_LANES, LINE);
    if (low)
        _tile_loadd(2, sum + LOWER, LINE);
    if (low && right)
        _tile_loadd(3, sum + LOWER + BF16_LANES, LINE);
    for (int t = 0; t < runs->count; t++)
        for (int k = 0; k < runs->length; k += BF16_BLOCK) {
            const bf16 *from = b + runs->b[t] + (int64_t)k * BF16_LANES;
            int64_t step;
            const bf16 *a =
                bf16_half_block(copy[0], first, runs->a[t] + k, runs->length - k, &step);
            _tile_loadd(4, a, step * (int64_t)sizeof *a);
            _tile_loadd(6, from, TILE_BYTES);
            _tile_dpbf16ps(0, 4, 6);
            if (right) {
                _tile_loadd(7, from + panel, TILE_BYTES);
                _tile_dpbf16ps(1, 4, 7);
            }
            if (!low)
                continue;
            a = bf16_half_block(copy[1], second, runs->a[t] + k, runs->length - k, &step);
            _tile_loadd(5, a, step * (int64_t)sizeof *a);
            _tile_dpbf16ps(2, 5, 6);
            if (right)
                _tile_dpbf16ps(3, 5, 7);
        }
    _tile_stored(0, sum, LINE);
    if (right)
        _tile_stored(1, sum + BF16_LANES, LINE);
    if (low)
        _tile_stored(2, sum + LOWER, LINE);
    if (low && right)
        _tile_stored(3, sum + LOWER + BF16_LANES, LINE);
}

#endif
