/* bench_measure.c -- how many steps `bench` measures.
 *
 * --steps N: N steps after a few others.  Otherwise warm-up lasts until times settle, and
 * measurement until the median is known to 1 % or --seconds are over.  Rank 0 decides after each
 * round of steps, and the other ranks make as many steps as rank 0.
 */
#include "base/clock.h"
#include "base/error.h"
#include "commands/bench.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    WARM = 5,            /* --steps: number of steps before the measured ones */
    STEPS_MOST = 1 << 20 /* without --steps: largest number of measured steps */
};
/* seconds of the shortest round; of the shortest measurement, because the times of steps that
 * follow each other within a few ms are not independent */
static const double ROUND = 0.1, LEAST = 1;

/* The least number of warm-up steps.  A graph of several steps runs as single launches the first
 * time, and is recorded the second time. */
static int64_t warm_steps(const Bench *b)
{
    const int most = net_steps_most(b->net);
    return most > 1 && !b->p->steps ? 2 * most : b->o->steps ? WARM : 1;
}

/* Number of steps in about `seconds`, if a step takes `step` seconds: whole launches. */
static int64_t round_steps(const Bench *b, double step, double seconds)
{
    const int64_t most = net_steps_most(b->net);
    const int64_t n = (int64_t)ceil(fmin(seconds / step, STEPS_MOST));
    return (n + most - 1) / most * most;
}

/* Seconds of the shortest round.  With few --seconds it is shorter, so that several rounds fit. */
static double shortest_round(const Bench *b)
{
    return fmin(ROUND, b->o->seconds / 8);
}

/* Rank 0's number of further steps, for all ranks. */
static int64_t agreed(const Bench *b, int64_t n)
{
    comm_broadcast(b->o->comm, &n, sizeof n, "the number of steps to measure");
    return n;
}

/* Makes n steps that do not count.  Returns their median. */
static double warm_up(Bench *b, int64_t n)
{
    BenchSteps s = {.time = rt_alloc(sizeof *s.time * (size_t)n)};
    bench_steps(b, n, &s);
    const double median = median_of(s.time, s.n, s.launches).median;
    free(s.time);
    return median;
}

/* Makes rounds of steps until the medians of two rounds are equal to 1 %, or until a quarter of
 * --seconds is over.  Returns the seconds of a step. */
static double settle(Bench *b)
{
    const double began = clock_now();
    double before = 0, median = 0;
    for (int64_t n = warm_steps(b); n > 0;) {
        before = median;
        median = warm_up(b, n);
        const bool settled = fabs(median - before) <= BENCH_KNOWN * median;
        const bool over = clock_now() - began > b->o->seconds / 4;
        n = agreed(b, settled || over ? 0 : round_steps(b, median, shortest_round(b)));
    }
    return median;
}

static void draw(const BenchSteps *s, const Options *o, Bar *bar)
{
    const double error = 100 * median_error(s->median);
    char known[32] = "";
    if (isfinite(error))
        snprintf(known, sizeof known, ", known to %.1f %%", error);
    bar_text(bar, "%.0f s of at most %g: %lld steps of %.*f ms%s", s->seconds, o->seconds,
             (long long)s->n, bench_decimals(s->median.median), 1e3 * s->median.median, known);
}

/* Number of steps of the next round; 0: the median is known, or the time is over.  The round takes
 * an eighth of the time so far, because each round sorts all times. */
static int64_t next_round(const Bench *b, BenchSteps *s, Bar *bar)
{
    s->median = median_of(s->time, s->n, s->launches);
    draw(s, b->o, bar);
    const double most = b->o->seconds, left = most - s->seconds;
    const bool known = median_error(s->median) <= BENCH_KNOWN && s->seconds >= fmin(LEAST, most);
    if (known || left <= 0)
        return 0;
    const int64_t n =
        round_steps(b, s->median.median, fmin(fmax(shortest_round(b), s->seconds / 8), left));
    return s->n + n <= STEPS_MOST ? n : 0;
}

static void measure_until_known(Bench *b, BenchSteps *s, double step)
{
    const double began = clock_now();
    Bar bar;
    bar_open(&bar);
    for (int64_t n = agreed(b, round_steps(b, step, shortest_round(b))); n > 0;) {
        bench_steps(b, n, s);
        s->seconds = clock_now() - began;
        n = agreed(b, b->o->comm->rank == 0 ? next_round(b, s, &bar) : 0);
    }
    bar_clear(&bar);
}

static void measure_steps(Bench *b, BenchSteps *s)
{
    const double began = clock_now();
    bench_steps(b, b->o->steps, s);
    s->seconds = clock_now() - began;
}

static double mean(const double *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

BenchSteps bench_measure(Bench *b)
{
    const int64_t n = b->o->steps;
    BenchSteps s = {.time = rt_alloc(sizeof *s.time * (size_t)(n ? n : STEPS_MOST))};
    if (n != 1)
        bench_step(b);
    if (n == 0)
        measure_until_known(b, &s, settle(b));
    else if (n > 1)
        warm_up(b, warm_steps(b));
    if (n > 0)
        measure_steps(b, &s);
    s.median = median_of(s.time, s.n, s.launches);
    s.mean = mean(s.time, s.n);
    return s;
}
