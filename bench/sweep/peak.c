/* peak.c -- tenon-peak THREADS: prints the machine's FMA peak in GFLOP/s, measured as in `bench` of every program;
 * tenon-peak THREADS memory: the bandwidth of its memory in GB/s.
 *
 * A separate program: only this file uses the runtime, and its threads end with it.
 */
#include "base/clock.h"
#include "measure/fma_peak.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BURSTS = 8 }; /* calls of fma_peak, which takes some ms; the best counts */

/* The widest vectors of this processor, in f32. */
static RtProgram widest(void)
{
    RtProgram p = {.real_bytes = 4};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        p.isa = RT_ISA_X86_V4;
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        p.isa = RT_ISA_X86_V3;
#endif
    return p;
}

/* ---- memory: a = b + s c over arrays that no cache holds (the triad of STREAM, McCalpin 1995) */

enum { FLOATS = 16 << 20, PASSES = 5 }; /* of each array: 64 MB */

typedef struct Triad {
    float *a, *b, *c;
    int threads;
} Triad;

static void pass(void *arg, int thread, int unit)
{
    const Triad *t = arg;
    const size_t each = FLOATS / (size_t)t->threads, from = each * (size_t)unit;
    (void)thread;
    for (size_t i = from; i < from + each; i++)
        t->a[i] = t->b[i] + 0.5f * t->c[i];
}

/* GB/s: two arrays read, one written. */
static double bandwidth(Pool *pool, int threads)
{
    Triad t = {.threads = threads};
    double best = 0;
    t.a = calloc(FLOATS, sizeof *t.a);
    t.b = calloc(FLOATS, sizeof *t.b);
    t.c = calloc(FLOATS, sizeof *t.c);
    if (!t.a || !t.b || !t.c)
        return 0;
    for (size_t i = 0; i < FLOATS; i++) /* writes, so that each page has memory: unwritten pages are all the zero page */
        t.b[i] = t.c[i] = 1;
    for (int i = 0; i < PASSES; i++) {
        const double began = clock_now();
        pool_run(pool, pass, &t, threads);
        best = fmax(best, 3.0 * FLOATS * sizeof(float) / (clock_now() - began) / 1e9);
    }
    return best;
}

static double flops(Pool *pool)
{
    const RtProgram p = widest();
    double best = 0;
    for (int i = 0; i < BURSTS; i++)
        best = fmax(best, fma_peak(&p, pool));
    return best;
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 0;
    const bool memory = argc == 3 && strcmp(argv[2], "memory") == 0;
    if (threads < 1 || threads > 4096 || argc > 2 + memory) {
        fprintf(stderr, "error: tenon-peak THREADS [memory]\n");
        return 1;
    }
    Pool *pool = pool_new(threads);
    return printf("%.1f\n", memory ? bandwidth(pool, threads) : flops(pool)) < 0;
}
