/* ticks.c -- a clock after each call of a step, and the account of all times.
 *
 * In a run that measures, the clock costs about 25 ns a call.  In other runs, each call is followed
 * by a test of a thread-local pointer.
 */
#include "measure/ticks.h"
#include "base/error.h"
#include "base/simulation.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Thread_local int64_t *rt_ticks;
static _Thread_local Lane *mine;
static _Thread_local int64_t last;

static int64_t ticks_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* ---- time slices of a thread */

static void add_ticks(Lane *l, int64_t entry, int64_t begin, int64_t end)
{
    l->sum[entry] += end - begin;
    if (l->nevent < l->room && end > begin)
        l->event[l->nevent++] = (Event){begin, end, (int)entry};
}

static void add_wait(Lane *l, Wait w, int64_t begin, int64_t end)
{
    add_ticks(l, l->ncall + w, begin, end);
}

void rt_tick(int call)
{
    if (simulation_tick(call))
        return;
    const int64_t t = ticks_now();
    add_ticks(mine, call, last, t);
    last = t;
}

void ticks_unit_begin(Ticks *t, int thread)
{
    if (!t) {
        static int64_t none;
        rt_ticks = simulation_runs() ? &none : NULL; /* a simulation counts calls */
        return;
    }
    mine = &t->lane[thread];
    rt_ticks = mine->sum;
    last = ticks_now();
    if (mine->first)
        add_wait(mine, TICKS_OTHER, mine->end, last);
    else {
        add_wait(mine, TICKS_FORK, t->phase, last);
        mine->first = last;
    }
}

void ticks_unit_end(Ticks *t, int thread)
{
    if (!t)
        return;
    Lane *l = &t->lane[thread];
    l->end = ticks_now();
    add_wait(l, TICKS_OTHER, last, l->end);
}

/* ---- steps and phases, by the main thread */

static void add_to_lanes(Ticks *t, Wait w, int64_t begin, int64_t end)
{
    for (int i = 0; i < t->threads; i++)
        add_wait(&t->lane[i], w, begin, end);
}

void ticks_step_begin(Ticks *t)
{
    t->began = t->between = ticks_now();
}

void ticks_batch_ready(Ticks *t)
{
    const int64_t at = ticks_now();
    add_to_lanes(t, TICKS_DATA, t->between, at);
    t->between = at;
}

void ticks_step_end(Ticks *t)
{
    const int64_t at = ticks_now();
    add_to_lanes(t, TICKS_ALONE, t->between, at);
    t->wall += at - t->began;
    t->steps++;
}

void ticks_phase_begin(Ticks *t)
{
    if (!t)
        return;
    t->phase = ticks_now();
    add_to_lanes(t, TICKS_ALONE, t->between, t->phase);
    for (int i = 0; i < t->threads; i++)
        t->lane[i].first = t->lane[i].end = 0;
}

/* A thread waits for its first unit.  After its last unit, the thread waits for the slowest thread,
 * and then for the end of the phase.  A thread without a unit waits from the start. */
void ticks_phase_end(Ticks *t)
{
    if (!t)
        return;
    const int64_t at = ticks_now();
    int64_t slowest = t->phase;
    for (int i = 0; i < t->threads; i++)
        slowest = t->lane[i].end > slowest ? t->lane[i].end : slowest;
    for (int i = 0; i < t->threads; i++) {
        Lane *l = &t->lane[i];
        add_wait(l, TICKS_IDLE, l->first ? l->end : t->phase, slowest);
        add_wait(l, TICKS_JOIN, slowest, at);
    }
    t->between = at;
}

/* ---- memory */

/* Largest number of time slices of a thread in a step: each call of each unit, the rest of each
 * unit, and the waits around the phases. */
static int64_t events_a_step(const RtProgram *p)
{
    int64_t n = 4;
    for (int i = 0; i < p->ntrain; i++) {
        const RtPhase *f = &p->train[i];
        const int64_t units = f->per_slice ? p->shards * p->slices : f->count;
        const int64_t chunks = f->per_slice ? p->batch / (p->shards * p->slices * p->chunk) : 1;
        n += units * (2 + chunks * p->ncall) + 4;
    }
    return n;
}

Ticks *ticks_new(const RtProgram *p, int threads, int64_t traced)
{
    Ticks *t = rt_alloc(sizeof *t);
    const int64_t room = traced * events_a_step(p);

    *t = (Ticks){.p = p, .threads = threads, .lane = rt_alloc(sizeof *t->lane * (size_t)threads)};
    for (int i = 0; i < threads; i++)
        t->lane[i] = (Lane){.sum = rt_alloc(sizeof(int64_t) * (size_t)(p->ncall + TICKS_WAITS)),
                            .event = traced ? rt_alloc(sizeof(Event) * (size_t)room) : NULL,
                            .room = room,
                            .ncall = p->ncall};
    return t;
}

void ticks_free(Ticks *t)
{
    for (int i = 0; i < t->threads; i++) {
        free(t->lane[i].sum);
        free(t->lane[i].event);
    }
    free(t->lane);
    free(t);
}

/* ---- the account */

const char *ticks_name(const RtProgram *p, int entry)
{
    static const char *const wait[] = {
        [TICKS_OTHER] = "inside units, outside calls",
        [TICKS_FORK] = "barrier: begin of a phase",
        [TICKS_IDLE] = "idle: no unit left",
        [TICKS_JOIN] = "barrier: end of a phase",
        [TICKS_DATA] = "waiting for data",
        [TICKS_ALONE] = "between phases",
    };
    return entry < p->ncall ? p->call[entry].what : wait[entry - p->ncall];
}

/* Seconds of an entry, added over all threads and steps. */
static double seconds(const Ticks *t, int entry)
{
    double sum = 0;
    for (int i = 0; i < t->threads; i++)
        sum += 1e-9 * (double)t->lane[i].sum[entry];
    return sum;
}

/* Predicted milliseconds of a call in a step, for each thread, on cores with this peak. */
static double predicted(const Ticks *t, int entry, double peak)
{
    const RtProgram *p = t->p;
    return entry < p->ncall && peak > 0 ? 1e-3 * p->call[entry].predicted * p->core_gflops / peak
                                        : 0;
}

static double rate(const Ticks *t, int entry)
{
    const RtProgram *p = t->p;
    const double s = seconds(t, entry);
    const double flops = entry < p->ncall ? p->call[entry].flops * p->batch : 0;
    return s > 0 ? 1e-9 * flops * (double)t->steps / s * t->threads : 0;
}

static void row(const Ticks *t, int entry, double peak)
{
    const RtProgram *p = t->p;
    const bool call = entry < p->ncall;
    const double each = 1e3 / (double)t->steps / t->threads, s = seconds(t, entry);
    const double expected = predicted(t, entry, peak), gflops = rate(t, entry);

    printf("  %9.3f ms %5.1f %%", each * s, 1e11 * s / (double)t->wall / t->threads);
    if (call)
        printf("  %9.3f ms", expected);
    else
        printf("  %12s", "");
    if (gflops > 0)
        printf(" %8.1f %4.0f %%", gflops, 100 * gflops / peak);
    else
        printf(" %8s %6s", "", "");
    printf("  %-28s", ticks_name(p, entry));
    if (call)
        printf(" %-26s %-14s %s", p->call[entry].kernel, p->call[entry].place,
               p->call[entry].algorithm ? p->call[entry].algorithm : "");
    putchar('\n');
}

void ticks_print(const Ticks *t, double peak)
{
    const int entries = t->p->ncall + TICKS_WAITS;
    double all = 0;

    printf("\n     a step, %d thread%s     predicted   GFLOP/s   peak  layer                       "
           " "
           "kernel                     place          algorithm\n",
           t->threads, t->threads > 1 ? "s" : " ");
    for (int k = 0; k < entries; k++)
        if (seconds(t, k) > 0) { /* 0: not run, such as the update after a reduction */
            row(t, k, peak);
            all += predicted(t, k, peak);
        }
    printf("  %9.3f ms 100.0 %%  %9.3f ms  in all, %lld step%s\n",
           1e-6 * (double)t->wall / (double)t->steps, all, (long long)t->steps,
           t->steps == 1 ? "" : "s");
    printf("  GFLOP/s and peak count the textbook's operations: calls that need fewer of them, "
           "such as\n"
           "  convolutions fused with their pooling or by Winograd's algorithm, may show above "
           "100 %%.\n"
           "  Predicted: for a %s, in proportion to the FMA peak measured here, without waiting\n",
           t->p->core ? t->p->core : "core");
}

void ticks_log(const Ticks *t, Log *log, double peak)
{
    const RtProgram *p = t->p;
    const double each = 1e3 / (double)t->steps / t->threads;

    for (int k = 0; k < p->ncall + TICKS_WAITS; k++) {
        if (seconds(t, k) == 0)
            continue;
        log_begin(log, RECORD(layer));
        log_text(log, FIELD(layer, layer), ticks_name(p, k));
        log_real(log, FIELD(layer, ms), each * seconds(t, k));
        if (k < p->ncall) {
            const RtCall *c = &p->call[k];
            log_text(log, FIELD(layer, kernel), c->kernel);
            log_text(log, FIELD(layer, place), c->place);
            log_text(log, FIELD(layer, algorithm), c->algorithm ? c->algorithm : "");
            log_real(log, FIELD(layer, predicted_ms), predicted(t, k, peak));
            log_real(log, FIELD(layer, gflops), rate(t, k));
            log_real(log, FIELD(layer, bytes), c->bytes);
        }
        log_end(log);
    }
    log_begin(log, RECORD(layers));
    log_count(log, FIELD(layers, threads), t->threads);
    log_count(log, FIELD(layers, steps), t->steps);
    log_real(log, FIELD(layers, ms), 1e-6 * (double)t->wall / (double)t->steps);
    log_end(log);
}
