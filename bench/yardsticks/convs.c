/* convs.c -- times one convolution by Tenon's kernels and by oneDNN's, in turns.
 *
 *   PROGRAM NAME N C H O R STRIDE PAD GROUPS OH THREADS ROUNDS     prints a CSV line for each operation:
 *   shape,op,threads,gflop,fma_peak,tenon,tenon_fast,onednn,onednn_fast (GFLOP/s), then the four algorithms
 *
 * GFLOP/s are nominal: two operations for each multiply-add of the definition, taps in the padding included.  A round is a
 * burst of each side, one after another; the figures are medians over the rounds.  The results are compared before timing.
 * Built and called by bench/convs; a fast column without an algorithm of its own repeats the other one.  Without HAVE_ONEDNN, 0.
 */
#include "convs.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { SIDES = 4, MOST_ROUNDS = 101, BURST_NS = 3000000 };

static const ConvSide *const sides[SIDES] = {
    &conv_tenon,
#ifdef HAVE_FAST
    &conv_tenon_fast,
#else
    NULL,
#endif
#ifdef HAVE_ONEDNN
    &conv_onednn,
    &conv_onednn_fast,
#else
    NULL,
    NULL,
#endif
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static float *noise(int64_t count, float size)
{
    static uint32_t s = 12345;
    float *p = malloc(sizeof(float) * (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        s = s * 1664525u + 1013904223u;
        p[i] = ((float)(s >> 8) / 8388608.f - 1) * size;
    }
    return p;
}

/* Whether the results of the sides agree to single precision; F(4x4) is a few times less exact than the others. */
static void compare(const char *shape, int op, int64_t count)
{
    float *a = malloc(sizeof(float) * (size_t)count), *b = malloc(sizeof(float) * (size_t)count);
    for (int i = 1; i < SIDES; i++) {
        if (!sides[i] || !sides[i]->algorithm(op))
            continue;
        double apart = 0, size = 0;
        sides[0]->run(op), sides[0]->result(op, a);
        sides[i]->run(op), sides[i]->result(op, b);
        for (int64_t k = 0; k < count; k++) {
            apart += ((double)a[k] - b[k]) * ((double)a[k] - b[k]);
            size += (double)a[k] * a[k];
        }
        if (!(sqrt(apart / size) < 2e-5)) {
            fprintf(stderr, "convs: %s: %s's and %s's %s differ by %.3g\n", shape, sides[0]->name,
                    sides[i]->name, (const char *[]){"y", "dx", "dw"}[op], sqrt(apart / size));
            exit(EXIT_FAILURE);
        }
    }
    free(a), free(b);
}

/* Nanoseconds of a run, as the mean over a burst of `runs`. */
static double burst(const ConvSide *side, int op, int runs)
{
    const double start = now();
    for (int i = 0; i < runs; i++)
        side->run(op);
    return (now() - start) / runs;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_size);
    return v[n / 2];
}

static bool takes_part(int side, int op)
{
    return sides[side] && sides[side]->algorithm(op);
}

static void measure(const char *shape, int op, double flops, int threads, int rounds)
{
    double ns[SIDES][MOST_ROUNDS], peak[MOST_ROUNDS], gflops[SIDES] = {0};
    const char *algorithm[SIDES] = {"-", "-", "-", "-"};
    int runs[SIDES] = {0};

    for (int i = 0; i < SIDES; i++)
        if (takes_part(i, op)) {
            const double once = burst(sides[i], op, 1);
            runs[i] = once > BURST_NS ? 1 : (int)(BURST_NS / once);
        }
    for (int k = 0; k < rounds; k++) {
        peak[k] = conv_fma_peak(threads);
        for (int i = 0; i < SIDES; i++)
            if (runs[i])
                ns[i][k] = burst(sides[i], op, runs[i]);
    }
    for (int i = 0; i < SIDES; i++) {
        const int from = runs[i] || i % 2 == 0 ? i : i - 1;
        if (runs[from])
            gflops[i] = flops / median(ns[from], rounds), algorithm[i] = sides[from]->algorithm(op);
    }
    printf("%s,%c,%d,%.4f,%.1f", shape, "fdw"[op], threads, flops / 1e9, median(peak, rounds));
    for (int i = 0; i < SIDES; i++)
        printf(",%.1f", gflops[i]);
    for (int i = 0; i < SIDES; i++)
        printf(",%s", algorithm[i]);
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc != 13)
        return EXIT_FAILURE;
    int v[11];
    for (int i = 0; i < 11; i++)
        v[i] = atoi(argv[i + 2]);
    const ConvShape s = {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]};
    const int threads = v[9], rounds = v[10] < MOST_ROUNDS ? v[10] : MOST_ROUNDS;
    const int64_t x = (int64_t)s.n * s.h * s.h * s.c, y = (int64_t)s.n * s.oh * s.oh * s.o,
                  w = (int64_t)s.o * s.r * s.r * (s.c / s.groups);
    float *in[4] = {noise(x, 1), noise(w, 1), noise(s.o, 1), noise(y, 1)};

#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush denormals, as Tenon's threads and frameworks do */
#endif
    for (int i = 0; i < SIDES; i++)
        if (sides[i])
            sides[i]->setup(s, in[0], in[1], in[2], in[3], threads);
    for (int op = 0; op < OPS; op++)
        if (sides[0]->algorithm(op)) {
            compare(argv[1], op, (int64_t[]){y, x, w}[op]);
            measure(argv[1], op, 2.0 * (double)y * (double)(s.c / s.groups) * s.r * s.r, threads,
                    rounds);
        }
    for (int i = 0; i < 4; i++)
        free(in[i]);
    return EXIT_SUCCESS;
}
