/* tiles.h -- the tile instructions of AMX in plain C, for the kernels of bf16_amx.h.
 *
 * Tiles have 16 rows of 64 bytes.  Source: Intel, "Intel Architecture Instruction Set Extensions
 * Programming Reference", TDPBF16PS; the order of its additions was measured (bf16.h).
 */
#ifndef TILES_H
#define TILES_H
#define RT_AMX 1
#ifndef RT_TILES_STAND_IN
#define RT_TILES_STAND_IN 1
#endif
#include "kernel_test.h"

#include "cpu/bf16.h"

enum { TILES = 8, TILE_ROWS_ALL = 16, TILE_LINE = 64 };
static _Thread_local unsigned char tile_of[TILES][TILE_ROWS_ALL][TILE_LINE];
static _Thread_local long tile_products;

_Thread_local int rt_tiles = RT_TILES_UNKNOWN;
static bool tiles_refused;
void rt_tiles_begin(void)
{
    memset(tile_of, 0xff, sizeof tile_of);
    rt_tiles = tiles_refused ? RT_TILES_REFUSED : RT_TILES_READY;
}

static inline OPTIMISED void tile_load(int tile, const void *from, int64_t step)
{
    for (int i = 0; i < TILE_ROWS_ALL; i++)
        memcpy(tile_of[tile][i], (const char *)from + i * step, TILE_LINE);
}
static inline OPTIMISED void tile_store(int tile, void *to, int64_t step)
{
    for (int i = 0; i < TILE_ROWS_ALL; i++)
        memcpy((char *)to + i * step, tile_of[tile][i], TILE_LINE);
}
static inline OPTIMISED void tile_dpbf16(int sum, int a, int b)
{
    tile_products++;
    for (int m = 0; m < TILE_ROWS_ALL; m++) {
        const bf16 *x = (const bf16 *)(const void *)tile_of[a][m];
        float *to = (float *)(void *)tile_of[sum][m];
        for (int n = 0; n < TILE_LINE / 4; n++) {
            float even = 0, odd = 0;
            for (int k = 0; k < TILE_LINE / 4; k++) {
                const bf16 *y = (const bf16 *)(const void *)tile_of[b][k] + 2 * n;
                even = bf16_fma(bf16_wide(x[2 * k]), bf16_wide(y[0]), even);
                odd = bf16_fma(bf16_wide(x[2 * k + 1]), bf16_wide(y[1]), odd);
            }
            to[n] += even + odd;
        }
    }
}
#define BF16_TILE_LOAD(tile, from, step) tile_load(tile, from, step)
#define BF16_TILE_STORE(tile, to, step)  tile_store(tile, to, step)
#define BF16_TILE_ZERO(tile)             memset(tile_of[tile], 0, sizeof tile_of[tile])
#define BF16_TILE_PRODUCT(sum, a, b)     tile_dpbf16(sum, a, b)

#endif
