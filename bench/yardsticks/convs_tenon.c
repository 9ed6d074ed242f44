/* convs_tenon.c -- the same convolution by the kernels that `tenon emit` writes for it.
 *
 * bench/convs copies the calls of the generated program into the file CALLS and defines a name for each: CALL_FORWARD,
 * CALL_DATA, CALL_WEIGHTS, CALL_PACK, CALL_PACK_DX, the number of units that pack (PACK_UNITS), and the samples of a chunk
 * (CHUNK).  Threads share the chunks, as in a program whose slices have one chunk.  Packing is outside of the measured time,
 * because a step packs once, not once for each chunk.  The time of the weights' gradient includes clearing the sums of each
 * chunk, if the call adds to them, and the sum over the chunks in the order of the tree.  If the program computes this gradient
 * over all shards together (SHARD: samples of one), it is the sum that an update would wait for.
 */
#define RT_KERNELS
#include "convs.h"
#include "rt.h"
#include <omp.h>
#include <stdlib.h>
#include <time.h>

#define KERNEL __attribute__((noinline))
#include CALLS

static struct {
    ConvShape s;
    int threads, chunks;
    int64_t x, w, y; /* reals of a chunk's x, of the weights, of a chunk's y */
    real *image, *bias, *p, *pd, *dy, *out, *dx, *dw, *sum;
#ifdef SHARD
    Rt all;
    int64_t to_dy; /* bytes from a shard's x to its dy */
#endif
} q;

static real *reals(int64_t count)
{
    real *p = aligned_alloc(64, (size_t)(count * (int64_t)sizeof(real) + 1024) / 64 * 64 + 64);
    memset(p, 0, (size_t)count * sizeof(real));
    return p;
}
static real *filled(const float *from, int64_t count)
{
    return memcpy(reals(count), from, (size_t)count * sizeof(real));
}

#ifdef SHARD
/* x and dy of all shards, in the layout of a program. */
static void keep_shards(const float *x, const float *dy)
{
    const int shards = q.s.n / SHARD;
    const int64_t of_x = (q.x / CHUNK * SHARD + 15) / 16 * 16, of_y = (q.y / CHUNK * SHARD + 31) / 16 * 16;
    q.to_dy = of_x * (int64_t)sizeof(real);
    q.all = (Rt){.shard = (char *)reals((of_x + of_y) * shards),
                 .shard_bytes = (of_x + of_y) * (int64_t)sizeof(real),
                 .shards = shards,
                 .grad = (char *)q.sum};
    for (int i = 0; i < shards; i++) {
        char *const to = q.all.shard + i * q.all.shard_bytes;
        memcpy(to, x + i * (q.x / CHUNK * SHARD), sizeof(real) * (size_t)(q.x / CHUNK * SHARD));
        memcpy(to + q.to_dy, dy + i * (q.y / CHUNK * SHARD), sizeof(real) * (size_t)(q.y / CHUNK * SHARD));
    }
}

static void squares(void)
{
#pragma omp parallel for schedule(static)
    for (int unit = 0; unit < CONV_DW_UNITS(q.s.o, q.s.c, q.s.r * q.s.r); unit++)
        CALL_WEIGHTS(&q.all, unit, 0, q.dw, NULL, NULL, q.all.shard, q.all.shard + q.to_dy);
}
#endif

static void setup(ConvShape s, const float *x, const float *w, const float *b, const float *dy,
                  int threads)
{
    q.s = s, q.threads = threads, q.chunks = s.n / CHUNK;
    q.x = (int64_t)CHUNK * s.h * s.h * s.c, q.y = (int64_t)CHUNK * s.oh * s.oh * s.o;
    q.w = (int64_t)s.o * s.r * s.r * (s.c / s.groups);
    q.image = filled(x, q.x * q.chunks), q.dy = filled(dy, q.y * q.chunks);
    q.bias = filled(b, s.o);
    q.out = reals(q.y * q.chunks), q.dx = reals(q.x * q.chunks);
    q.dw = reals(q.w * q.chunks), q.sum = reals(q.w);
#ifdef SHARD
    keep_shards(x, dy);
#endif
    /* no packed order takes more than 36 points of Winograd for each pair of channels, whole panels */
    const int64_t points = s.r * s.r > 36 ? s.r * s.r : 36, out = s.o / s.groups,
                  in = s.c / s.groups, most = (out * in + (out + in) * 4 * P) * s.groups * points;
    real *weights = filled(w, q.w);
    q.p = reals(most), q.pd = reals(most);
    for (int unit = 0; unit < PACK_UNITS; unit++) {
        CALL_PACK(q.p, weights, unit);
#ifdef CALL_DATA
        CALL_PACK_DX(q.pd, weights, unit);
#endif
    }
    free(weights);
}

/* Part `i` of the weights: adds the gradients of the chunks, adjacent pairs first. */
static void add_chunks(int i)
{
    const int64_t from = q.w * i / q.threads, to = q.w * (i + 1) / q.threads;
    for (int64_t k = from; k < to; k += 1024) {
        const int64_t count = to - k < 1024 ? to - k : 1024;
        real *const dw = q.dw + k;
        for (int step = 1; step < q.chunks; step *= 2)
            for (int c = 0; c + step < q.chunks; c += 2 * step) {
                const real *a = dw + c * q.w, *b = dw + (c + step) * q.w;
                real *to = 2 * step < q.chunks ? dw + c * q.w : q.sum + k; /* the last sum */
                RT_MAP(count, STORE(to, LOAD(a) + LOAD(b)));
            }
    }
}

static void run(int op)
{
    omp_set_num_threads(q.threads);
#ifdef SHARD
    if (op == WEIGHTS) {
        squares();
        return;
    }
#endif
#pragma omp parallel for schedule(static)
    for (int i = 0; i < q.chunks; i++) {
        if (op == FORWARD)
            CALL_FORWARD(q.out + i * q.y, q.image + i * q.x, q.p, q.bias);
#ifdef CALL_DATA
        if (op == DATA)
            CALL_DATA(q.dx + i * q.x, q.pd, q.dy + i * q.y);
#endif
#ifndef SHARD
        if (op == WEIGHTS) {
#ifndef WRITES
            memset(q.dw + i * q.w, 0, sizeof(real) * (size_t)q.w);
#endif
            CALL_WEIGHTS(q.dw + i * q.w, q.image + i * q.x, q.dy + i * q.y);
        }
#endif
    }
    if (op == WEIGHTS && q.chunks > 1) {
#pragma omp parallel for schedule(static)
        for (int i = 0; i < q.threads; i++)
            add_chunks(i);
    }
}

static void result(int op, float *to)
{
#ifdef SHARD
    const bool summed = true;
#else
    const bool summed = q.chunks > 1;
#endif
    const real *from[OPS] = {q.out, q.dx, summed ? q.sum : q.dw};
    const int64_t count[OPS] = {q.y * q.chunks, q.x * q.chunks, q.w};
    memcpy(to, from[op], sizeof(float) * (size_t)count[op]);
}

static const char *algorithm(int op)
{
#ifdef CALL_DATA
    static const char *const names[OPS] = {NAME_FORWARD, NAME_DATA, NAME_WEIGHTS};
#else
    static const char *const names[OPS] = {NAME_FORWARD, NULL, NAME_WEIGHTS};
#endif
    return names[op];
}

#ifdef FAST
const ConvSide conv_tenon_fast = {"fast", setup, run, result, algorithm};
#else
const ConvSide conv_tenon = {"tenon", setup, run, result, algorithm};

/* Independent chains of multiply-adds on all threads at the same time: enough chains to hide the latency. */
double conv_fma_peak(int threads)
{
    enum { CHAINS = 12, TURNS = 100000 };
    struct timespec a, b;
    real kept = 0;
    omp_set_num_threads(threads);
    clock_gettime(CLOCK_MONOTONIC, &a);
#pragma omp parallel reduction(+ : kept)
    {
        vec c[CHAINS];
        for (int i = 0; i < CHAINS; i++)
            c[i] = v_set((real)i);
        for (int turn = 0; turn < TURNS; turn++) {
            RT_UNROLL
            for (int i = 0; i < CHAINS; i++)
                c[i] = v_fma(c[i], v_set((real)0.5), v_set(1));
        }
        for (int i = 0; i < CHAINS; i++)
            kept += v_sum(c[i]);
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    volatile real sink = kept;
    (void)sink;
    const double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
    return 2.0 * V * CHAINS * TURNS * threads / ns;
}
#endif
