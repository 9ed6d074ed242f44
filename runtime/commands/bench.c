/* bench.c -- the command `bench`: training steps on samples in memory, synthetic ones or the first
 * ones of a data set, and the peak rate of the machine.
 *
 * A step contains the gathering of samples, forward, backward and update.  Without --steps, warm-up
 * lasts until times settle, and measurement until the median is known to 1 %.  With --layers or
 * --trace, a second round of steps has a clock after each call.
 */
#include "commands/bench.h"
#include "base/clock.h"
#include "base/error.h"
#include "commands/bench_comm.h"
#include "commands/commands.h"
#include "device/device.h"
#include "files/file.h"
#include "files/log.h"
#include "measure/fma_peak.h"
#include "measure/scale.h"
#include "measure/ticks.h"
#include "options/place.h"
#include "step/net.h"
#include "train/init.h"
#include "train/schedule.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCHES = 4 }; /* largest number of different batches */

/* The batch `ahead` batches after the next one; ahead = 0: the next one. */
static Batch bench_batch(const Bench *b, int64_t ahead)
{
    const int64_t at = b->total + ahead;
    Batch batch = {.seed = b->o->seed, .epoch = at / b->batches};
    data_batch(b->data, b->pool, &b->order, at % b->batches, b->p->batch, &batch);
    return batch;
}

double bench_step(Bench *b)
{
    Ticks *ticks = b->net->ticks;
    const double began = clock_now();
    if (ticks)
        ticks_step_begin(ticks);
    const Batch batch = bench_batch(b, 0);
    if (ticks)
        ticks_batch_ready(ticks);
    const Hyper h = {schedule_lr(&b->p->recipe, b->p->recipe.lr, b->total, b->batches), b->total};
    const bool finite = net_step(b->net, &batch, h);
    if (ticks)
        ticks_step_end(ticks);
    const double seconds = clock_now() - began;
    if (!finite) /* diverged on synthetic data: start again */
        init_params(b->p, b->net->fixed, b->o->seed, b->pool), net_changed(b->net);
    if (b->total++ == 0)
        b->first = clock_now() - clock_start();
    return seconds;
}

void bench_steps(Bench *b, int64_t n, BenchSteps *to)
{
    const Comm *c = b->o->comm;
    const double waited = c->waited, busy = c->busy;
    double *time = to->time + to->n;
    Batch batch[RT_STEPS_MOST], ahead[RT_STEPS_MOST];
    Hyper h[RT_STEPS_MOST];
    for (int64_t i = 0, k; i < n; i += k) {
        k = net_steps_now(b->net, n - i);
        const int next = b->data->synthetic || i + k >= n ? 0 : net_steps_now(b->net, n - i - k);
        for (int s = 0; s < next; s++)
            ahead[s] = bench_batch(b, k + s);
        net_ahead(b->net, ahead, next);
        to->launches++;
        if (k == 1) {
            time[i] = bench_step(b);
            continue;
        }
        const double began = clock_now();
        for (int s = 0; s < k; s++, b->total++) {
            batch[s] = bench_batch(b, 0);
            h[s] = (Hyper){schedule_lr(&b->p->recipe, b->p->recipe.lr, b->total, b->batches),
                           b->total};
        }
        const int done = net_steps(b->net, batch, h, (int)k);
        const double seconds = clock_now() - began;
        for (int s = 0; s < k; s++)
            time[i + s] = seconds / (done > 0 ? done : 1);
        if (done < k)
            init_params(b->p, b->net->fixed, b->o->seed, b->pool), net_changed(b->net);
    }
    to->n += n;
    to->waited += c->waited - waited, to->busy += c->busy - busy;
}

/* Runs a second round of n steps, on all ranks, with a clock after each call.  With --trace, the
 * round has at most TRACE_STEPS steps, so that the account and the trace have the same steps. */
static void layers(Bench *b, int64_t n, double peak, Log *log)
{
    const Options *o = b->o;
    if (o->trace && n > TRACE_STEPS)
        n = TRACE_STEPS;
    Ticks *t = ticks_new(b->p, pool_threads(b->pool), o->trace ? n : 0);

    b->net->ticks = t;
    for (int64_t i = 0; i < n; i++)
        bench_step(b);
    b->net->ticks = NULL;
    if (o->layers)
        ticks_print(t, peak);
    ticks_log(t, log, peak);
    if (o->trace && o->comm->rank == 0)
        trace_write(t, o->trace);
    ticks_free(t);
}

/* Seconds.  In the median step: waiting for other ranks, and all communication.  Their shares of
 * the median step are those of the mean step. */
typedef struct Communication {
    double waited, sum;
} Communication;

int bench_decimals(double seconds)
{
    return seconds < 1e-5 ? 6 : seconds < 1e-4 ? 5 : 3;
}

/* Prints "1024 steps in 2.1 s: the median is between 6.38 and 6.43 ms with a probability of 95
 * %" */
static void print_error(const Bench *b, const BenchSteps *s)
{
    printf("%lld step%s", (long long)s->n, s->n == 1 ? "" : "s");
    if (s->launches < s->n)
        printf(" by %lld launch%s", (long long)s->launches, s->launches == 1 ? "" : "es");
    printf(" in %.1f s: ", s->seconds);
    if (isfinite(s->median.high))
        printf("the median is between %.*f and %.*f ms with a probability of 95 %%",
               bench_decimals(s->median.low), 1e3 * s->median.low, bench_decimals(s->median.low),
               1e3 * s->median.high);
    else
        printf("too few to say how well the median is known");
    puts(!b->o->steps && median_error(s->median) > BENCH_KNOWN
             ? "; --seconds S measures for a longer time"
             : "");
}

static void report_bench(const Bench *b, Log *log, const BenchSteps *s, Communication c,
                         double peak)
{
    const RtProgram *p = b->p;
    const int threads = pool_threads(b->pool);
    const double median = s->median.median, least = s->time[0];
    const double rate = p->batch / median, gflops = rate * p->flops_per_sample / 1e9;
    printf("%s, batch %d, %d thread%s: step %.*f ms (best %.*f), %.*f samples/s\n", p->model,
           p->batch, threads, threads == 1 ? "" : "s", bench_decimals(median), 1e3 * median,
           bench_decimals(median), 1e3 * least, rate < 100 ? 1 : 0, rate);
    if (peak > 0)
        printf("%.1f GFLOP/s of the textbook's operations; the FMA peak of %s is %.1f: %.0f %%\n",
               gflops, b->o->comm->size > 1 ? "all ranks" : "these processors", peak,
               100 * gflops / peak);
    else
        printf("%.1f GFLOP/s of the textbook's operations on %s\n", gflops, p->device->describe());
    if (p->products && !p->device)
        printf("%.1f %% of these operations have factors in %s\n",
               100 * p->flops_half / p->flops_per_sample, p->products);
    print_error(b, s);
    printf("threads: %s\n", place_text(b->o));
    printf("first step %.1f ms after the start of the process\n", 1e3 * b->first);
    log_open(log, b->o->log, true);
    if (b->o->log_ranks)
        log_keep_messages(log);
    log_begin(log, RECORD(bench));
    log_text(log, FIELD(bench, model), p->model);
    log_text(log, FIELD(bench, program), p->source_hash);
    log_text(log, FIELD(bench, cpu), p->cpu);
    log_count(log, FIELD(bench, batch), p->batch);
    log_count(log, FIELD(bench, threads), threads);
    log_count(log, FIELD(bench, cores), b->o->cores.cores);
    log_text(log, FIELD(bench, limit), place_limit(b->o));
    log_text(log, FIELD(bench, pin), place_pin(b->o));
    log_count(log, FIELD(bench, steps), s->n);
    log_real(log, FIELD(bench, step_ms_mean), 1e3 * s->mean);
    log_real(log, FIELD(bench, step_ms_median), 1e3 * median);
    if (isfinite(s->median.high)) {
        log_real(log, FIELD(bench, step_ms_low), 1e3 * s->median.low);
        log_real(log, FIELD(bench, step_ms_high), 1e3 * s->median.high);
    }
    log_real(log, FIELD(bench, step_ms_min), 1e3 * least);
    log_real(log, FIELD(bench, first_step_ms), 1e3 * b->first);
    log_real(log, FIELD(bench, samples_per_s), rate);
    log_real(log, FIELD(bench, gflops), gflops);
    if (peak > 0) {
        log_real(log, FIELD(bench, fma_peak_gflops), peak);
        log_real(log, FIELD(bench, share_of_peak), gflops / peak);
    }
    if (b->o->comm->size > 1) {
        log_count(log, FIELD(bench, ranks), b->o->comm->size);
        log_real(log, FIELD(bench, comm_ms), 1e3 * c.sum);
        log_real(log, FIELD(bench, comm_wait_ms), 1e3 * c.waited);
    }
    log_end(log);
}

/* Opens a few batches: synthetic ones, or the first ones of a data set. */
static void open_bench_samples(Bench *b)
{
    const int64_t most = (int64_t)BATCHES * b->p->batch;
    const char *name = b->o->data;
    b->data = name ? data_open(b->p, name, "train", most) : data_in_memory(b->p, most, b->pool);
    if (name)
        data_fill(b->data, b->pool);
    b->batches = b->data->n / b->p->batch;
    if (b->batches == 0)
        rt_die("bench --data %s: %lld training samples are less than a batch of %d; without --data "
               "the samples are synthetic",
               name, (long long)b->data->n, b->p->batch);
    b->order = (Order){order_by(b->data->n, b->o->seed, 0, true),
                       rt_alloc(sizeof *b->order.sample * (size_t)b->data->n)};
    order_fill(&b->order.by, b->order.sample, b->data->n);
}

Bench bench_open(const RtProgram *p, const Options *o, Pool *pool)
{
    Bench b = {.p = p, .o = o, .pool = pool};
    b.net = net_new(p, b.pool, o->comm, 1, false);
    net_average_open(b.net);
    net_scale(b.net, o->loss_scale, o->loss_scale_steps);
    net_samples(b.net, o->samples_in, o->launch_steps);
    open_bench_samples(&b);
    init_params(p, b.net->fixed, o->seed, b.pool);
    return b;
}

int bench_run(const RtProgram *p, const Options *o)
{
    Log log;
    if (o->scale > 0) {
        scale_print(p, o->scale / 1e3);
        return 0;
    }
    if (o->simulate > 0)
        return bench_simulate(p, o);
    if (o->trace && o->comm->rank == 0)
        file_check(o->trace);
    if (o->link && o->comm->size == 1)
        rt_die("bench --comm measures sums over ranks and needs several of them: mpirun -n 2 PROG "
               "bench --comm");
    Bench b = bench_open(p, o, pool_on(&o->place));
    const BenchSteps s = bench_measure(&b);
    const double share = s.median.median / s.mean / (double)s.n;
    const Communication c = {s.waited * share, s.busy * share};
    /* All ranks measure at the same time; rank 0's peak stands for each.  A device's peak is not
     * measured. */
    const double peak = p->device ? 0 : fma_peak(p, b.pool) * o->comm->size;
    report_bench(&b, &log, &s, c, peak);
    if (o->link)
        bench_comm(b.net, s.median.median, c.sum, c.waited, &log);
    if (o->layers || o->trace)
        layers(&b, s.n, peak, &log);
    return log.lost ? EXIT_FAILURE : 0; /* the user has asked for the log */
}
