/* conv_sum.h -- the register tile of direct convolution: rows at any address, evenly spaced taps.
 *
 *     t[i][j] = start[j] + sum over taps (r, s), k of x[i][r, s, k] * p[r, s, k][j]
 *
 * tile.h multiplies rows whose distance is a literal; here rows are pointers.  These tiles are
 * separate functions, the same for each convolution of a program: eight rows and the loop take
 * eleven of the sixteen integer registers, and GCC keeps rows in vector registers and on the stack
 * if it inlines the tile into the walk over an image (1x1 256->1024 @14: 79 instead of 109 GF/s).
 */
#ifndef CPU_CONV_SUM_H
#define CPU_CONV_SUM_H
#include "cpu/tile.h"

typedef struct ConvRun {
    int down, across;         /* number of taps */
    int64_t x_down, x_across; /* reals of x from one tap to the next */
    int64_t p_down, p_across; /* reals of p from one tap to the next */
    int64_t length;           /* products of a tap */
} ConvRun;

/* t[i][j] = start[j] + sum over taps and k of x[i][k] * p[k][j]: tile_product for rows at any
 * address. */
RT_INLINE void conv_sum(vec *to, int rows, int vectors, const vec *start, const real *const *x,
                        const real *p, const ConvRun *run)
{
    const real *row[8];
    vec t[16];
    RT_UNROLL
    for (int i = 0; i < rows; i++) {
        row[i] = x[i];
        RT_UNROLL
        for (int j = 0; j < vectors; j++)
            t[i * vectors + j] = start[j];
    }
    int64_t down = 0;
    for (int r = run->down; r > 0; r--, down += run->x_down, p += run->p_down) {
        int64_t across = down;
        const real *tap = p;
        for (int s = run->across; s > 0; s--, across += run->x_across, tap += run->p_across) {
            const real *b = tap;
            int64_t k = across;
            for (const real *end = b + run->length * P; b != end; b += P, k++) {
                __asm__("" : "+r"(k)); /* else GCC keeps a pointer for each row and adds to each */
                vec w[2];
                RT_UNROLL
                for (int j = 0; j < vectors; j++)
                    __builtin_prefetch(b + TILE_FAR * P + j * V);
                RT_UNROLL
                for (int j = 0; j < vectors; j++)
                    w[j] = v_load_opaque(b + j * V);
                RT_UNROLL
                for (int i = 0; i < rows; i++) {
                    const vec a = v_broadcast(row[i] + k);
                    RT_UNROLL
                    for (int j = 0; j < vectors; j++)
                        t[i * vectors + j] = v_fma(a, w[j], t[i * vectors + j]);
                }
            }
        }
    }
    RT_UNROLL
    for (int i = 0; i < rows * vectors; i++)
        to[i] = t[i];
}

/* The file of one kernel calls these functions (RT_TILES_CALLED); one file of the program defines
 * them for all (RT_TILES_HERE), because they take half of GCC's time for a 3x3 convolution.  Other
 * files have their own. */
#define CONV_TILE_ARGUMENTS                                                                        \
    (vec * to, const vec *start, const real *const *x, const real *p, const ConvRun *run)
#if defined(RT_TILES_CALLED)
#define CONV_TILE(rows, vectors) void conv_sum_##rows##x##vectors CONV_TILE_ARGUMENTS;
#else
#if defined(RT_TILES_HERE)
#define CONV_TILE_LINKAGE RT_FLATTEN __attribute__((noinline))
#else
#define CONV_TILE_LINKAGE static RT_SEPARATE
#endif
#define CONV_TILE(rows, vectors)                                                                   \
    CONV_TILE_LINKAGE void conv_sum_##rows##x##vectors CONV_TILE_ARGUMENTS;                        \
    CONV_TILE_LINKAGE void conv_sum_##rows##x##vectors CONV_TILE_ARGUMENTS                         \
    {                                                                                              \
        conv_sum(to, rows, vectors, start, x, p, run);                                             \
    }
#endif
/* clang-format off */
CONV_TILE(8, 1) CONV_TILE(7, 1) CONV_TILE(6, 1) CONV_TILE(5, 1)
CONV_TILE(4, 1) CONV_TILE(3, 1) CONV_TILE(2, 1) CONV_TILE(1, 1)
#if defined(RT_TILES_HERE) && defined(RT_AVX2) /* too many for the registers: never called */
void conv_sum_8x2 CONV_TILE_ARGUMENTS;
void conv_sum_7x2 CONV_TILE_ARGUMENTS;
#else
CONV_TILE(8, 2) CONV_TILE(7, 2)
#endif
CONV_TILE(6, 2) CONV_TILE(5, 2) CONV_TILE(4, 2) CONV_TILE(3, 2) CONV_TILE(2, 2) CONV_TILE(1, 2)

/* Computes the tile for `rows` rows of x, at most TILE_ROWS, and `vectors` vectors. */
RT_INLINE void conv_tile_sum(vec *to, int rows, int vectors, const vec *start,
                             const real *const *x, const real *p, const ConvRun *run)
{
#define CONV_CASE(n)                                                                               \
    case n:                                                                                        \
        if (vectors == 1)                                                                          \
            conv_sum_##n##x1(to, start, x, p, run);                                                \
        else if (n <= TILE_ROWS)                                                                   \
            conv_sum_##n##x2(to, start, x, p, run);                                                \
        break;
    switch (rows) {
        CONV_CASE(8)
        CONV_CASE(7)
        CONV_CASE(6)
        CONV_CASE(5)
        CONV_CASE(4)
        CONV_CASE(3)
        CONV_CASE(2)
        CONV_CASE(1)
    }
#undef CONV_CASE
}
/* clang-format on */

#endif
