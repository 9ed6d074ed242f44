/* bench_comm.c -- measures the sum over ranks for several sizes, fits a model to the times, and
 * prints the steps that the model predicts.
 *
 * scale.h describes the model; its beta includes the time of the additions.
 */
#include "commands/bench_comm.h"
#include "base/ascending.h"
#include "base/clock.h"
#include "base/memory.h"
#include "measure/scale.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIZES = 9, ROUNDS = 5 };
static const int64_t smallest = 1 << 10; /* bytes; each size is four times the last, up to 64 MiB */
static const double burst = 0.05;        /* approximate seconds of the sums in a round */
static const double slow = 0.5;          /* seconds: a sum that takes longer is the last one */

/* Measured seconds of a sum for each size. */
typedef struct Sizes {
    int n;
    double bytes[SIZES], seconds[SIZES];
} Sizes;

/* The link whose predictions have the least sum of squared relative errors. */
static Link fitted(const double *bytes, const double *seconds, int n, int ranks)
{
    double aa = 0, ab = 0, bb = 0, a1 = 0, b1 = 0;
    for (int i = 0; i < n; i++) {
        const double a = scale_messages(ranks) / seconds[i],
                     b = scale_moved(ranks, bytes[i]) / seconds[i];
        aa += a * a, ab += a * b, bb += b * b, a1 += a, b1 += b;
    }
    const double det = aa * bb - ab * ab;
    const Link l = {(a1 * bb - b1 * ab) / det, (b1 * aa - a1 * ab) / det};
    if (l.alpha > 0 && l.beta > 0)
        return l;
    return l.alpha > 0 ? (Link){a1 / aa, 0}
                       : (Link){0, b1 / bb}; /* a term that came out negative is 0 */
}

/* Mean seconds of `times` sums; rank 0 measures them, and all ranks get the same number. */
static double time_sums(Comm *c, const CommSum *s, int times)
{
    double seconds = 0;
    comm_broadcast(c, &seconds, sizeof seconds, "bench --comm"); /* ranks start together */
    const double began = clock_now();
    for (int i = 0; i < times; i++)
        comm_sum(c, s);
    seconds = (clock_now() - began) / times;
    comm_broadcast(c, &seconds, sizeof seconds, "bench --comm");
    return seconds;
}

/* Seconds of a sum of `bytes` bytes: the median of the rounds. */
static double measured(Comm *c, CommSum *s, int64_t bytes)
{
    double round[ROUNDS];
    s->n = bytes / s->real_bytes;
    const double guess = time_sums(c, s, 2);
    const int times = guess < burst ? (int)(burst / guess) + 1 : 1;
    for (int i = 0; i < ROUNDS; i++)
        round[i] = time_sums(c, s, times);
    sort_ascending(round, ROUNDS);
    return round[ROUNDS / 2];
}

/* Measures sums of zeros, where each rank has one shard. */
static Link measure_link(Comm *c, int real_bytes, Sizes *z)
{
    const int64_t most = smallest << 2 * (SIZES - 1);
    CommSum s = {.next = most, .n = most / real_bytes, .real_bytes = real_bytes, .shards = c->size};
    comm_sum_plan(c, &s);
    const int64_t all = most + s.scratch_bytes;
    s.buffer = memory_map(all, true, "the vectors of bench --comm");
    s.scratch = s.buffer + most;
    memset(s.buffer, 0, (size_t)all);
    for (int i = 0; i < SIZES && (i == 0 || z->seconds[i - 1] < slow); i++) {
        z->bytes[i] = (double)(smallest << 2 * i);
        z->seconds[i] = measured(c, &s, smallest << 2 * i);
        z->n = i + 1;
    }
    return fitted(z->bytes, z->seconds, z->n, c->size);
}

static void print_sizes(const Comm *c, Link l, const Sizes *z)
{
    printf("\nthe sum over %d ranks, %d of them on this machine (%s)\n", c->size, c->local_size,
           comm_library(c));
    if (c->local_size > sysconf(_SC_NPROCESSORS_ONLN))
        printf("the ranks of this machine share %ld processors: a message waits until its rank has "
               "one\n",
               sysconf(_SC_NPROCESSORS_ONLN));
    printf("%12s %12s %10s %12s\n", "bytes", "measured", "GB/s", "the model");
    for (int i = 0; i < z->n; i++)
        printf("%12.0f %9.1f us %10.2f %9.1f us\n", z->bytes[i], 1e6 * z->seconds[i],
               z->bytes[i] / z->seconds[i] / 1e9, 1e6 * scale_sum(l, c->size, z->bytes[i]));
    printf("the model: %.1f us a message, %.2f GB/s to and from a rank\n", 1e6 * l.alpha,
           l.beta > 0 ? 1 / l.beta / 1e9 : INFINITY);
}

/* A measured step: its time, its communication, and the part of the communication that the step
 * waited for. */
typedef struct Measured {
    double step, sums, waited;
} Measured;

static double share(double part, double of)
{
    return of > 0 ? 100 * part / of : 0;
}

/* The global batch stays the same for each number of ranks, and so does the work of all ranks
 * together: a rank's own step takes its part of this time. */
static void print_steps(const Net *n, Link l, Measured m)
{
    const Comm *c = n->comm;
    const double work = (m.step - m.waited) * c->size;
    const Scaled now = scale_step(l, c->size, n->p->bucket, n->p->nbucket, work / c->size);
    printf("\na step: %.3f ms; sums of %.0f bytes in %d buckets and the rest of its communication "
           "take %.3f ms, of which %.3f ms, %.0f %%, are not hidden\n"
           "the model: %.3f ms; %.3f ms, of which %.3f ms, %.0f %%, are not hidden\n",
           1e3 * m.step, (double)n->p->grad_bytes, n->p->nbucket, 1e3 * m.sums, 1e3 * m.waited,
           share(m.waited, m.sums), 1e3 * now.step, 1e3 * now.sums, 1e3 * now.bare,
           share(now.bare, now.sums));
    printf("expected with this batch and this link, where each rank has processors like these:\n");
    printf("%8s %12s %12s %10s %12s\n", "ranks", "a step", "not hidden", "speed-up", "efficiency");
    for (int ranks = 1; ranks <= n->p->shards; ranks++) {
        if (n->p->shards % ranks != 0 || ((ranks & (ranks - 1)) != 0 && ranks != c->size))
            continue;
        const Scaled s = scale_step(l, ranks, n->p->bucket, n->p->nbucket, work / ranks);
        printf("%8d %9.3f ms %9.3f ms %10.2f %10.0f %%", ranks, 1e3 * s.step, 1e3 * s.bare,
               work / s.step, share(work / s.step, ranks));
        if (ranks == c->size)
            printf("   measured: %.3f ms, %.3f ms not hidden", 1e3 * m.step, 1e3 * m.waited);
        putchar('\n');
    }
}

static void log_steps(const Net *n, Link l, Measured m, Log *log)
{
    const int ranks = n->comm->size;
    const Scaled s = scale_step(l, ranks, n->p->bucket, n->p->nbucket, m.step - m.waited);
    log_begin(log, RECORD(scale));
    log_count(log, FIELD(scale, ranks), ranks);
    log_count(log, FIELD(scale, gradient_bytes), n->p->grad_bytes);
    log_count(log, FIELD(scale, buckets), n->p->nbucket);
    log_real(log, FIELD(scale, message_us), 1e6 * l.alpha);
    log_real(log, FIELD(scale, bytes_per_s), l.beta > 0 ? 1 / l.beta : INFINITY);
    log_real(log, FIELD(scale, step_ms), 1e3 * m.step);
    log_real(log, FIELD(scale, not_hidden_ms), 1e3 * m.waited);
    log_real(log, FIELD(scale, not_hidden_percent), share(m.waited, m.sums));
    log_real(log, FIELD(scale, model_step_ms), 1e3 * s.step);
    log_real(log, FIELD(scale, model_not_hidden_ms), 1e3 * s.bare);
    log_real(log, FIELD(scale, model_not_hidden_percent), share(s.bare, s.sums));
    log_end(log);
}

void bench_comm(const Net *n, double step_seconds, double sum_seconds, double waited_seconds,
                Log *log)
{
    const Measured m = {step_seconds, sum_seconds, waited_seconds};
    Comm *c = n->comm;
    Sizes z;
    const Link l = measure_link(c, n->p->real_bytes, &z);
    print_sizes(c, l, &z);
    print_steps(n, l, m);
    for (int i = 0; i < z.n; i++) {
        log_begin(log, RECORD(comm));
        log_count(log, FIELD(comm, ranks), c->size);
        log_count(log, FIELD(comm, bytes), (int64_t)z.bytes[i]);
        log_real(log, FIELD(comm, seconds), z.seconds[i]);
        log_real(log, FIELD(comm, model_seconds), scale_sum(l, c->size, z.bytes[i]));
        log_end(log);
    }
    log_steps(n, l, m, log);
}
