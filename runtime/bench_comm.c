/* bench_comm.c -- the sum over ranks measured size by size, a model fitted to it, and the steps that the model expects.
 *
 * The model is the usual one of a message, alpha + bytes * beta (Hockney 1994), summed over what comm/sum.c sends: with a power of
 * two of ranks 2 log2(R) messages one after another, else 2 (R - 1); 2 (R - 1) / R of the vector in all either way
 * (Thakur, Rabenseifner, Gropp 2005).  beta holds the additions too.
 */
#include "bench_comm.h"
#include "clock.h"
#include "memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SIZES = 9, ROUNDS = 5 };
static const int64_t smallest =
    1 << 10;                      /* bytes; each size is four times the one before: up to 64 MiB */
static const double burst = 0.05; /* seconds of sums in a round, about */

typedef struct Link {
    double alpha, beta; /* seconds a message, seconds a byte */
} Link;

static double messages(int ranks)
{
    const bool halves = (ranks & (ranks - 1)) == 0;
    return halves ? 2 * log2(ranks) : 2.0 * (ranks - 1);
}

static double moved(int ranks, double bytes)
{
    return 2 * (ranks - 1.0) / ranks * bytes;
}

static double expected(Link l, int ranks, double bytes)
{
    return messages(ranks) * l.alpha + moved(ranks, bytes) * l.beta;
}

/* Least squares of the relative errors. */
static Link fitted(const double *bytes, const double *seconds, int n, int ranks)
{
    double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
    for (int i = 0; i < n; i++) {
        const double a = messages(ranks) / seconds[i], b = moved(ranks, bytes[i]) / seconds[i];
        aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
    }
    const double det = aa * bb - ab * ab;
    const Link l = {(a1 * bb - b1 * ab) / det, (b1 * aa - a1 * ab) / det};
    if (l.alpha > 0 && l.beta > 0)
        return l;
    return l.alpha > 0 ? (Link){a1 / aa, 0} : (Link){0, b1 / bb}; /* one of the two does not show */
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of one sum, the mean of `times` of them; the same number on all ranks, rank 0's. */
static double time_sums(Comm *c, const CommSum *s, int times)
{
    double seconds = 0;
    comm_broadcast(c, &seconds, sizeof seconds, "bench --comm"); /* together from here */
    const double began = clock_now();
    for (int i = 0; i < times; i++)
        comm_sum(c, s);
    seconds = (clock_now() - began) / times;
    comm_broadcast(c, &seconds, sizeof seconds, "bench --comm");
    return seconds;
}

/* Median of the rounds. */
static double measured(Comm *c, CommSum *s, int64_t bytes)
{
    double round[ROUNDS];
    s->n = bytes / s->real_bytes;
    const double guess = time_sums(c, s, 2);
    const int times = guess < burst ? (int)(burst / guess) + 1 : 1;
    for (int i = 0; i < ROUNDS; i++)
        round[i] = time_sums(c, s, times);
    qsort(round, ROUNDS, sizeof *round, ascending);
    return round[ROUNDS / 2];
}

/* Of a buffer of zeros, a shard a rank. */
static Link measure_link(Comm *c, int real_bytes, double *bytes, double *seconds)
{
    const int64_t most = smallest << 2 * (SIZES - 1);
    CommSum s = {.next = most, .n = most / real_bytes, .real_bytes = real_bytes, .shards = c->size};
    comm_sum_plan(c, &s);
    const int64_t all = most + s.scratch_bytes;
    s.buffer = memory_map(all, true, "the vectors of bench --comm");
    s.scratch = s.buffer + most;
    memset(s.buffer, 0, (size_t)all);
    for (int i = 0; i < SIZES; i++) {
        bytes[i] = (double)(smallest << 2 * i);
        seconds[i] = measured(c, &s, smallest << 2 * i);
    }
    return fitted(bytes, seconds, SIZES, c->size);
}

static void print_sizes(const Comm *c, Link l, const double *bytes, const double *seconds)
{
    printf("\nthe sum over %d ranks, %d of them on this machine (%s)\n", c->size, c->local_size,
           comm_library(c));
    if (c->local_size > sysconf(_SC_NPROCESSORS_ONLN))
        printf("they take turns on its %ld processors: a message waits for one of them\n",
               sysconf(_SC_NPROCESSORS_ONLN));
    printf("%12s %12s %10s %12s\n", "bytes", "measured", "GB/s", "the model");
    for (int i = 0; i < SIZES; i++)
        printf("%12.0f %9.1f us %10.2f %9.1f us\n", bytes[i], 1e6 * seconds[i],
               bytes[i] / seconds[i] / 1e9, 1e6 * expected(l, c->size, bytes[i]));
    printf("the model: %.1f us a message, %.2f GB/s to and from a rank\n", 1e6 * l.alpha,
           l.beta > 0 ? 1 / l.beta / 1e9 : INFINITY);
}

/* The global batch stays the same, so does the work: compute is what this step computed, shared out. */
static void print_steps(const Net *n, Link l, double step, double sum, double waited)
{
    const Comm *c = n->comm;
    const double bytes = (double)n->p->grad_bytes, work = (step - waited) * c->size;
    printf("\na step: %.3f ms; the sum of %.0f bytes in %d buckets takes %.3f ms (the model: %.3f "
           "ms), of "
           "which %.3f ms are not hidden\n",
           1e3 * step, bytes, n->p->nbucket, 1e3 * sum, 1e3 * expected(l, c->size, bytes),
           1e3 * waited);
    printf("expected of this batch, with this link, processors like these for each rank, and "
           "nothing hidden:\n");
    printf("%8s %12s %10s %12s\n", "ranks", "a step", "speed-up", "efficiency");
    for (int ranks = 1; ranks <= n->p->shards; ranks++) {
        if (n->p->shards % ranks != 0 || ((ranks & (ranks - 1)) != 0 && ranks != c->size))
            continue;
        const double t = work / ranks + (ranks > 1 ? expected(l, ranks, bytes) : 0);
        printf("%8d %9.3f ms %10.2f %10.0f %%", ranks, 1e3 * t, work / t, 100 * work / t / ranks);
        if (ranks == c->size)
            printf("   measured: %.3f ms", 1e3 * step);
        putchar('\n');
    }
}

void bench_comm(const Net *n, double step_seconds, double sum_seconds, double waited_seconds,
                Log *log)
{
    Comm *c = n->comm;
    double bytes[SIZES], seconds[SIZES];
    const Link l = measure_link(c, n->p->real_bytes, bytes, seconds);
    print_sizes(c, l, bytes, seconds);
    print_steps(n, l, step_seconds, sum_seconds, waited_seconds);
    for (int i = 0; i < SIZES; i++) {
        log_begin(log, "comm");
        log_count(log, "ranks", c->size);
        log_count(log, "bytes", (int64_t)bytes[i]);
        log_real(log, "seconds", seconds[i]);
        log_real(log, "model_seconds", expected(l, c->size, bytes[i]));
        log_end(log);
    }
}
