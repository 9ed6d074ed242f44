/* bf16.c -- kernels with factors in bf16 beside those in f32: GFLOP/s of one thread, and the ratio.
 *
 * bench/bf16 compiles and starts this program.  Sizes are literals, as in generated code.  Weights
 * are packed before the measured time.  Both forms of a size run in turns, and each number is the
 * best of several runs.  Time is the processor time of the thread, so that other programs of the
 * machine disturb less.
 */
#include "rt.h"

#include "cpu/vec.h"

#include "cpu/math.h"

#include "cpu/bf16_conv.h"
#include "cpu/bf16_conv_dw.h"
#include "cpu/conv_dx.h"
#include "cpu/dense.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TRIES = 25 };
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs a kernel for 4 ms of processor time; the seconds of a call. */
typedef void (*Run)(void);
static double once(Run run)
{
    int calls = 0;
    const double began = seconds();
    do
        run();
    while (++calls, seconds() - began < 0.004);
    return (seconds() - began) / calls;
}
static void compare(const char *what, double flops, Run f32, Run narrow)
{
    double best[2] = {1e9, 1e9};
    for (int i = 0; i < TRIES; i++) {
        const double a = once(f32), b = once(narrow);
        best[0] = a < best[0] ? a : best[0], best[1] = b < best[1] ? b : best[1];
    }
    printf("%-44s %8.1f %8.1f %6.2f\n", what, flops / best[0] / 1e9, flops / best[1] / 1e9,
           best[0] / best[1]);
    fflush(stdout);
}

static void *memory(int64_t bytes)
{
    unsigned char *p = aligned_alloc(64, (size_t)(bytes + 4096 + 63) / 64 * 64);
    memset(p, 0, (size_t)bytes + 4096);
    return p;
}
static real *random_f32(int64_t count)
{
    real *p = memory(count * (int64_t)sizeof *p);
    for (int64_t i = 0; i < count; i++)
        p[i] = (real)(rand() / (double)RAND_MAX - 0.5);
    return p;
}
static bf16 *narrow_of(const real *x, int64_t count)
{
    bf16 *p = memory(count * (int64_t)sizeof *p);
    bf16_from_f32(p, x, count);
    return p;
}

/* ---------------------------------------------------------------------------------------- dense */
#define DENSE(name, N, K, O)                                                                       \
    static struct {                                                                                \
        real *x, *y, *w, *turned, *bias;                                                           \
        bf16 *x16, *y16, *p, *back;                                                                \
    } name;                                                                                        \
    static const Dense name##_size = {N, K, O};                                                    \
    static void name##_forward(void)                                                               \
    {                                                                                              \
        dense(name.y, name.x, name.w, name.bias, v_relu, (Dense){N, K, O});                        \
    }                                                                                              \
    static void name##_forward16(void)                                                             \
    {                                                                                              \
        bf16_dense(name.y16, name.x16, name.p, name.bias, v_relu, (Dense){N, K, O});               \
    }                                                                                              \
    static void name##_dx(void)                                                                    \
    {                                                                                              \
        dense_dx_transposed(name.x, name.turned, name.y, d_identity, NULL, (Dense){N, K, O});      \
    }                                                                                              \
    static void name##_dx16(void)                                                                  \
    {                                                                                              \
        bf16_dense_dx(name.x16, name.back, name.y16, d_identity, NULL, (Dense){N, K, O});          \
    }                                                                                              \
    static void name##_dw(void)                                                                    \
    {                                                                                              \
        dense_dw(name.w, name.x, name.y, (Dense){N, K, O});                                        \
    }                                                                                              \
    static void name##_dw16(void)                                                                  \
    {                                                                                              \
        bf16_dense_dw(name.w, name.x16, name.y16, (Dense){N, K, O});                               \
    }                                                                                              \
    static void name##_all(void)                                                                   \
    {                                                                                              \
        const Dense d = name##_size;                                                               \
        const int64_t nx = (int64_t)N * K, ny = (int64_t)N * O;                                    \
        name.x = random_f32(nx), name.y = random_f32(ny), name.bias = random_f32(O);               \
        name.w = random_f32(DENSE_COUNT(K, O)), name.turned = memory(DENSE_TRANSPOSED(K, O) * 4);  \
        dense_transpose(name.turned, name.w, d, 0, 1);                                             \
        name.x16 = narrow_of(name.x, nx), name.y16 = narrow_of(name.y, ny);                        \
        name.p = memory(BF16_PACKED(K, O) * 2), name.back = memory(BF16_PACKED(O, K) * 2);         \
        bf16_dense_pack(name.p, name.w, d, 0, 1);                                                  \
        bf16_dense_pack_back(name.back, name.w, d, 0, 1);                                          \
        const double flops = 2.0 * N * K * O;                                                      \
        compare("dense " #N " x " #K " -> " #O ", forward", flops, name##_forward,                 \
                name##_forward16);                                                                 \
        compare("  dx", flops, name##_dx, name##_dx16);                                            \
        compare("  dw", flops, name##_dw, name##_dw16);                                            \
    }

DENSE(mlp1, 32, 784, 128)
DENSE(mlp2, 16, 800, 512)
DENSE(square, 512, 512, 512)
DENSE(large, 256, 1024, 1024)

/* --------------------------------------------------------------------------------- convolutions */
#define CONV(name, N, C, H, O, R, STRIDE, PAD)                                                     \
    enum { name##_h = (H + 2 * PAD - R) / STRIDE + 1 };                                            \
    static struct {                                                                                \
        real *x, *y, *w, *f, *b, *bias;                                                            \
        bf16 *x16, *y16, *p, *back;                                                                \
    } name;                                                                                        \
    static const Conv name##_size = {N,   C, H, H, O,        R,        R, STRIDE, STRIDE, PAD,     \
                                     PAD, 1, 1, 1, name##_h, name##_h, 0, false,  0};              \
    static void name##_forward(void)                                                               \
    {                                                                                              \
        conv2d(name.y, name.x, name.f, name.bias, v_relu, name##_size);                            \
    }                                                                                              \
    static void name##_forward16(void)                                                             \
    {                                                                                              \
        bf16_conv2d(name.y16, name.x16, name.p, name.bias, v_relu, name##_size);                   \
    }                                                                                              \
    static void name##_dx(void)                                                                    \
    {                                                                                              \
        conv2d_dx(name.x, name.b, name.y, d_identity, NULL, name##_size);                          \
    }                                                                                              \
    static void name##_dx16(void)                                                                  \
    {                                                                                              \
        bf16_conv2d_dx(name.x16, name.back, name.y16, d_identity, NULL, name##_size);              \
    }                                                                                              \
    static void name##_dw(void)                                                                    \
    {                                                                                              \
        conv2d_dw(name.w, name.x, name.y, name##_size);                                            \
    }                                                                                              \
    static void name##_dw16(void)                                                                  \
    {                                                                                              \
        bf16_conv2d_dw(name.w, name.x16, name.y16, name##_size);                                   \
    }                                                                                              \
    static void name##_all(void)                                                                   \
    {                                                                                              \
        const Conv c = name##_size;                                                                \
        const int64_t nx = (int64_t)N * C * H * H, ny = (int64_t)N * O * name##_h * name##_h;      \
        name.x = random_f32(nx), name.y = random_f32(ny), name.bias = random_f32(O);               \
        name.w = random_f32((int64_t)O * C * R * R);                                               \
        name.f = memory(CONV_PACK_COUNT(c) * 4), name.b = memory(CONV_PACK_BACK_COUNT(c) * 4);     \
        conv2d_pack(name.f, name.w, c, 0, 1), conv2d_pack_back(name.b, name.w, c, 0, 1);           \
        name.x16 = narrow_of(name.x, nx), name.y16 = narrow_of(name.y, ny);                        \
        name.p = memory(BF16_CONV_PACKED(c) * 2);                                                  \
        name.back = memory(BF16_CONV_PACKED_BACK(c) * 2);                                          \
        bf16_conv_pack(name.p, name.w, c, 0, 1), bf16_conv_pack_back(name.back, name.w, c, 0, 1);  \
        const double flops = 2.0 * N * name##_h * name##_h * C * R * R * O;                        \
        compare(#R "x" #R "/" #STRIDE " " #C " -> " #O " @" #H ", " #N " images, forward", flops,  \
                name##_forward, name##_forward16);                                                 \
        compare("  dx", flops, name##_dx, name##_dx16);                                            \
        compare("  dw", flops, name##_dw, name##_dw16);                                            \
    }

CONV(conv_a, 16, 16, 32, 16, 3, 1, 1)
CONV(conv_b, 16, 32, 16, 32, 3, 1, 1)
CONV(conv_c, 16, 64, 8, 64, 3, 1, 1)
CONV(conv_d, 16, 16, 32, 32, 3, 2, 1)
CONV(conv_e, 4, 64, 56, 64, 3, 1, 1)
CONV(conv_f, 4, 256, 14, 256, 3, 1, 1)
CONV(conv_g, 4, 512, 7, 512, 3, 1, 1)
CONV(conv_h, 4, 256, 56, 64, 1, 1, 0)
CONV(conv_i, 4, 1024, 14, 256, 1, 1, 0)
CONV(conv_j, 16, 20, 12, 50, 5, 1, 0)

/* ------------------------------------------------------------------------------------ tiles */
/* What tiles.c says about a system without permission. */
void rt_note(const char *fmt, ...)
{
    va_list list;
    va_start(list, fmt);
    vfprintf(stderr, fmt, list);
    va_end(list);
    fputc('\n', stderr);
}
void rt_die(const char *fmt, ...)
{
    fprintf(stderr, "%s\n", fmt);
    exit(1);
}

#ifdef RT_AMX
enum { PEAK_PRODUCTS = 4000 };
static bf16 peak_tile[4][BF16_HALF] __attribute__((aligned(64)));

/* Four sums, and a load from the L1 cache for each product. */
static BF16_TILE_CODE void peak_of_tiles(void)
{
    for (int i = 0; i < PEAK_PRODUCTS; i += 4) {
        BF16_TILE_LOAD(4, peak_tile[0], 64);
        BF16_TILE_LOAD(5, peak_tile[1], 64);
        BF16_TILE_LOAD(6, peak_tile[2], 64);
        BF16_TILE_LOAD(7, peak_tile[3], 64);
        BF16_TILE_PRODUCT(0, 4, 6);
        BF16_TILE_PRODUCT(1, 4, 7);
        BF16_TILE_PRODUCT(2, 5, 6);
        BF16_TILE_PRODUCT(3, 5, 7);
    }
}
#endif
static void say_tiles(void)
{
#ifdef RT_AMX
    if (bf16_has_tiles()) {
        double best = 1e9;
        for (int i = 0; i < TRIES; i++) {
            const double took = once(peak_of_tiles);
            best = took < best ? took : best;
        }
        printf("products in bf16: tiles of AMX, whose peak is %.0f GFLOP/s\n",
               PEAK_PRODUCTS * 2.0 * BF16_LANES * BF16_LANES * BF16_BLOCK / best / 1e9);
        return;
    }
#endif
    puts("products in bf16: vectors");
}

int main(void)
{
#ifdef __SSE__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u); /* FTZ, DAZ, as in a program */
#endif
    say_tiles();
    printf("%-44s %8s %8s %6s\n", "GFLOP/s of one thread", "f32", "bf16", "ratio");
    mlp1_all(), mlp2_all(), square_all(), large_all();
    conv_a_all(), conv_b_all(), conv_c_all(), conv_d_all(), conv_e_all(), conv_f_all(),
        conv_g_all();
    conv_h_all(), conv_i_all(), conv_j_all();
}
