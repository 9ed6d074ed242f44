/* simulate.c -- `bench --simulate T`: the time of a step of T threads on a machine with many cores,
 * measured on one thread of this one (base/simulation.h).
 *
 * The times of units are scaled by the peaks of the cores: FMA operations a second, measured here
 * in the same run, and those of the machine's table.
 */
#include "base/error.h"
#include "base/simulation.h"
#include "commands/bench.h"
#include "files/log.h"
#include "measure/fma_peak.h"
#include <stdio.h>
#include <stdlib.h>

enum { SIMULATED_WARM = 2 };             /* steps before the recorded ones */
static const double LONG_SECONDS = 0.05; /* a step that is longer does not fit into caches */

static const Machine *find_machine(const Options *o)
{
    const int threads = (int)o->simulate;
    const Machine *m = o->machine ? machine_named(o->machine) : machine_for(threads);
    if (!m)
        rt_die("--machine %s: there is no such machine; the table has %s", o->machine,
               machine_names());
    if (threads > machine_cores(m))
        rt_die("--simulate %d: the machine %s has %d cores; use --machine %s, or fewer threads",
               threads, m->name, machine_cores(m), machine_for(threads)->name);
    return m;
}

/* Time of a core of m, divided by the time of a core here for the same instructions.  here: FMA
 * peak of a core here, in GFLOP/s. */
static double core_ratio(const RtProgram *p, const Machine *m, double here)
{
    const int flops = p->isa == RT_ISA_X86_V4 ? m->flops : 32;
    if (p->isa != RT_ISA_X86_V4 && p->isa != RT_ISA_X86_V3)
        return 1; /* the table knows no peak of other instructions */
    return here / (m->ghz * flops * 4 / p->real_bytes);
}

/* Whether this many bytes do not fit into the caches of the sockets on which the threads run. */
static bool exceeds_cache(const Machine *m, int threads, double bytes)
{
    const int socket = m->caches * m->cores, n = (threads + socket - 1) / socket;
    return bytes > m->cache_bytes * (n < m->sockets ? n : m->sockets);
}

/* A program whose simulated pool stands for this number of threads. */
typedef struct Model {
    Bench bench;
    Simulation *simulation;
    int threads;
    double seconds; /* of the last step on this machine */
} Model;

static Model open_model(const RtProgram *p, const Options *o, int threads)
{
    const Bench b = bench_open(p, o, pool_simulated(threads));
    return (Model){b, pool_simulation(b.pool), threads, 0};
}

/* Steps that fit into caches are recorded after a step of the same model, because the other model
 * has filled the caches. */
static void record_step(Model *m)
{
    if (m->seconds < LONG_SECONDS)
        bench_step(&m->bench);
    simulation_step_begin(m->simulation);
    m->seconds = bench_step(&m->bench);
    simulation_step_end(m->simulation);
}

static Simulated result_of(const Model *x, const Machine *m, double ratio)
{
    const RtProgram *p = x->bench.p;
    const Net *n = x->bench.net;
    const double values = (double)net_bytes(n),
                 local = (double)net_regions(p, x->threads, n->shards) * (double)p->thread_bytes;
    return simulation_result(x->simulation, m, ratio, exceeds_cache(m, x->threads, values),
                             exceeds_cache(m, x->threads, local), p->ncall);
}

/* ---- output */

static double total(const Simulated *r, size_t field)
{
    double sum = 0;
    for (int i = 0; i < r->njob; i++)
        sum += *(const double *)((const char *)&r->job[i] + field);
    return sum;
}
#define TOTAL(r, field) total(r, offsetof(SimulatedJob, field))

static void print_simulated(const Bench *b, const Machine *m, const Simulated *one,
                            const Simulated *r)
{
    const RtProgram *p = b->p;
    const int threads = (int)b->o->simulate;
    const double each = 1e3 / threads;
    printf("%s, batch %d, %d thread%s of the machine %s (%s), simulated\n", p->model, p->batch,
           threads, threads == 1 ? "" : "s", m->name, m->what);
    printf("step %.3f ms, %.0f samples/s; with one thread %.3f ms: %.1f times faster, efficiency "
           "%.2f\n\n",
           1e3 * r->step, p->batch / r->step, 1e3 * one->step, one->step / r->step,
           one->step / r->step / threads);
    printf("  %10s %6s %6s %8s %10s %10s %10s %10s  %s\n", "ms", "phases", "units", "threads",
           "computing", "barriers", "idle", "memory", "phase");
    for (int i = 0; i < r->njob; i++) {
        const SimulatedJob *j = &r->job[i];
        printf("  %10.4f %6d %6d %8d %10.4f %10.4f %10.4f %10.4f  %s\n", 1e3 * j->step, j->count,
               j->units, j->parallel, each * j->work, each * j->barriers, each * j->idle,
               each * j->memory, j->what);
    }
    printf("  %10.4f %6s %6s %8d %10s %10s %10.4f %10s  between phases, one thread\n",
           1e3 * r->alone, "", "", 1, "", "", 1e3 * r->alone, "");
    printf("  %10.4f %6s %6s %8s %10.4f %10.4f %10.4f %10.4f  in all, %d barriers\n", 1e3 * r->step,
           "", "", "", each * TOTAL(r, work), each * TOTAL(r, barriers),
           each * TOTAL(r, idle) + 1e3 * r->alone, each * TOTAL(r, memory), r->barriers);
}

/* Calls whose parts are computed by teams, in ms of a step. */
static void print_calls(const RtProgram *p, const Simulated *r, int threads)
{
    const double each = 1e3 / threads;
    printf("\n  %10s %10s %10s %6s  calls of teams\n", "ms", "computing", "barriers", "parts");
    for (int i = 0; i < p->ncall; i++) {
        const SimulatedCall *c = &r->call[i];
        if (c->parts > 0)
            printf("  %10.4f %10.4f %10.4f %6d  %-24s %-28s %s\n", each * (c->step + c->barriers),
                   each * c->work, each * c->barriers, c->parts, p->call[i].what, p->call[i].kernel,
                   p->call[i].place);
    }
}

static void log_simulated(Log *log, const Bench *b, const Machine *m, double peak,
                          const Simulated *one, const Simulated *r)
{
    const int threads = (int)b->o->simulate;
    const double each = 1e3 / threads;
    log_begin(log, RECORD(simulate));
    log_text(log, FIELD(simulate, model), b->p->model);
    log_text(log, FIELD(simulate, program), b->p->source_hash);
    log_count(log, FIELD(simulate, batch), b->p->batch);
    log_count(log, FIELD(simulate, threads), threads);
    log_text(log, FIELD(simulate, machine), m->name);
    log_real(log, FIELD(simulate, step_ms), 1e3 * r->step);
    log_real(log, FIELD(simulate, step_ms_one), 1e3 * one->step);
    log_real(log, FIELD(simulate, samples_per_s), b->p->batch / r->step);
    log_real(log, FIELD(simulate, efficiency), one->step / r->step / threads);
    log_count(log, FIELD(simulate, barriers), r->barriers);
    log_count(log, FIELD(simulate, units_min), r->units_least);
    log_real(log, FIELD(simulate, fma_peak_gflops), peak);
    log_real(log, FIELD(simulate, work_ms), each * TOTAL(r, work));
    log_real(log, FIELD(simulate, barrier_ms), each * TOTAL(r, barriers));
    log_real(log, FIELD(simulate, idle_ms), each * TOTAL(r, idle));
    log_real(log, FIELD(simulate, memory_ms), each * TOTAL(r, memory));
    log_real(log, FIELD(simulate, alone_ms), 1e3 * r->alone);
    log_end(log);
}

int bench_simulate(const RtProgram *p, const Options *o)
{
    const Machine *m = find_machine(o);
    Log log;
    if (o->comm->size > 1)
        rt_die("--simulate simulates the threads of one process: start it without a launcher such "
               "as mpirun");
    log_open(&log, o->log, true);
    const double peak = fma_peak(p, pool_new(1)), ratio = core_ratio(p, m, peak);
    Model single = open_model(p, o, 1), many = open_model(p, o, (int)o->simulate);
    for (int i = 0; i < SIMULATED_WARM; i++)
        bench_step(&single.bench), bench_step(&many.bench);
    for (int i = 0; i < SIMULATION_STEPS; i++) /* in turn: this machine's speed drifts */
        record_step(&single), record_step(&many);
    const Simulated one = result_of(&single, m, ratio),
                    r = o->simulate > 1 ? result_of(&many, m, ratio) : one;
    print_simulated(&many.bench, m, &one, &r);
    if (o->layers)
        print_calls(p, &r, (int)o->simulate);
    log_simulated(&log, &many.bench, m, peak, &one, &r);
    return log.lost ? EXIT_FAILURE : 0; /* the user has asked for the log */
}
