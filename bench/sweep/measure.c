/* measure.c -- one run: FMA peak, warm-up, training (or steps), FMA peak; and whether other work has disturbed it.
 *
 * A run is disturbed if other processes used more than a tenth of a processor, if the hypervisor took a twentieth of one, or if
 * the FMA peak before or after the run was 5 % below the upper quartile of this sweep's peaks.  (The highest peak comes from a
 * short boost of the clock: compared with it, every run would be disturbed.)
 */
#include "sweep/framework.h"
#include "sweep/record.h"
#include "sweep/stats.h"
#include "sweep/sweep.h"
#include "base/environment.h"
#include "tool/file.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const double others_most = 0.10, stolen_most = 0.05, peak_least = 0.95;

static const char *now_text(Arena *a)
{
    char text[32];
    const time_t t = time(NULL);
    struct tm utc;
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &utc));
    return arena_strdup(a, text);
}

static void option(Arena *a, Child *c, const char *name, int64_t value)
{
    if (value > 0) {
        child_word(a, c, name);
        child_word(a, c, arena_printf(a, "%lld", (long long)value));
    }
}

/* Options of a training that Tenon's programs and the scripts have in common. */
static void training(Arena *a, Child *c, const Matrix *m)
{
    option(a, c, "--epochs", m->epochs);
    option(a, c, "--limit-samples", m->limit_samples);
    option(a, c, "--seed", m->seed);
    if (m->data) {
        child_word(a, c, "--data");
        child_word(a, c, m->data);
    }
}

static const char *interpreter(const Sweep *s, const char *framework)
{
    for (int i = s->npython - 1; i >= 0; i--) { /* the last one on the command line counts */
        const size_t n = strlen(s->pythons[i].framework);
        if (strncmp(framework, s->pythons[i].framework, n) == 0 && strchr("-", framework[n]))
            return s->pythons[i].program;
    }
    return s->python;
}

/* A script of another framework, on that many processors; it finds data by name in $TENON_DATA, or beside the model. */
static Child script(const Sweep *s, Arena *a, const Config *cf, const char *log)
{
    const Framework *f = framework_find(cf->framework);
    const char *slash = strrchr(cf->file, '/');
    Child c = {.output = path_join(a, s->work, "output"), .timeout = cf->matrix->timeout};
    child_word(a, &c, "env");
    child_words(a, &c, f->setting);
    if (!environment(ENV_TENON_DATA))
        child_word(a, &c,
                   arena_printf(a, "TENON_DATA=%.*sdata", slash ? (int)(slash + 1 - cf->file) : 0,
                                cf->file));
    if (cf->threads < s->host.processors)
        child_words(a, &c, arena_printf(a, "taskset -c 0-%lld", (long long)cf->threads - 1));
    child_word(a, &c, interpreter(s, cf->framework));
    child_word(a, &c, s->built[cf->program].path);
    training(a, &c, cf->matrix);
    child_words(a, &c, f->option);
    child_word(a, &c, "--log");
    child_word(a, &c, log);
    return c;
}

/* The command `bench`: for the warm-up, in one process, and for configurations with `steps`. */
static Child command(const Sweep *s, Arena *a, const Config *cf, bool bench, int64_t steps,
                     const char *log)
{
    const Matrix *m = cf->matrix;
    Child c = {.output = path_join(a, s->work, "output"), .timeout = m->timeout};
    if (cf->ranks > 1 && (!bench || m->steps)) {
        child_words(a, &c, "mpirun --bind-to none");
        option(a, &c, "-n", cf->ranks);
    }
    child_word(a, &c, s->built[cf->program].path);
    if (bench)
        child_word(a, &c, "bench");
    option(a, &c, "--threads", cf->threads);
    option(a, &c, "--steps", bench ? steps : 0);
    if (bench && m->layers)
        child_word(a, &c, "--layers");
    if (!bench)
        training(a, &c, m);
    child_word(a, &c, "--log");
    child_word(a, &c, log);
    return c;
}

static void add_log(Arena *a, Run *r, const char *path, bool *complete)
{
    size_t n;
    const char *text = file_read(a, path, &n);
    *complete = text && record_read(a, r, text);
    remove(path);
}

/* The run as it is planned. */
static void describe(const Sweep *s, Arena *a, const Config *c, Run *r)
{
    const Matrix *m = c->matrix;
    const Built *b = &s->built[c->program];
    const int64_t repeat = r->repeat, attempt = r->attempt;
    *r = (Run){.repeat = repeat, .attempt = attempt};
    for (const Field *f = run_field; f->name; f++)
        if (f->kind == FIELD_REAL)
            *(double *)((char *)r + f->at) = NAN;
    r->started = now_text(a);
    r->label = s->label;
    r->infrastructure = s->infrastructure;
    r->framework = c->framework;
    r->file = c->file;
    r->model = path_stem(a, c->file);
    r->build = c->build;
    r->binary = b->binary;
    r->compiler = s->compiler;
    r->compiler_commit = s->commit;
    r->compile_s = b->compile_s;
    r->data = m->data;
    r->batch = c->batch;
    r->threads = c->threads;
    r->ranks = c->ranks;
    r->gpus = c->gpus;
    r->epochs = m->steps ? 0 : m->epochs;
    r->steps = m->steps;
    r->limit_samples = m->limit_samples;
    r->seed = m->seed;
}

static void between(Run *r, const Meter *from, const Meter *to, const Child *c)
{
    const double wall = to->now - from->now;
    r->user_s = (double)c->used.ru_utime.tv_sec + 1e-6 * (double)c->used.ru_utime.tv_usec;
    r->system_s = (double)c->used.ru_stime.tv_sec + 1e-6 * (double)c->used.ru_stime.tv_usec;
    r->others = fmax(0, (to->busy - from->busy - r->user_s - r->system_s) / wall);
    r->stolen = (to->stolen - from->stolen) / wall;
    const double joules = to->joules - from->joules;
    r->joules = joules >= 0 ? joules : NAN;
}

static void judge(Sweep *s, Arena *a, Run *r)
{
    const int lanes = (int)(r->threads * r->ranks);
    struct Peaks *p = &s->peaks[lanes];
    const double around[] = {r->peak_before, r->peak_after};
    for (int i = 0; i < 2; i++)
        if (!isnan(around[i]))
            ARENA_PUSH(s->arena, p->seen, p->n, around[i]);
    const double usual = stats_quantile(p->seen, p->n, 0.75),
                 least = fmin(r->peak_before, r->peak_after);
    if (r->others > others_most)
        r->disturbed = arena_printf(a, "other processes kept %.1f processors busy", r->others);
    else if (r->stolen > stolen_most)
        r->disturbed = arena_printf(a, "the hypervisor kept %.1f processors", r->stolen);
    else if (least < peak_least * usual)
        r->disturbed = arena_printf(a, "FMA peak %.0f of %.0f GFLOP/s", least, usual);
}

static void failed(Arena *a, Run *r, const Child *c)
{
    r->status = "failed";
    r->message = c->late ? arena_printf(a, "ended after %lld s (timeout)", (long long)c->timeout)
                         : sweep_last_words(a, c->output, c->status);
    const char *last = strrchr(r->message, '\n');
    if (last &&
        framework_find(r->framework)->to) /* the last line of a traceback has the error */
        r->message = arena_printf(a, "%s\n%s", last + 1, r->message);
}

static double peak(const Sweep *s, Arena *a, int threads, bool memory)
{
    return host_peak(a, s->peak_program, path_join(a, s->work, "output"), threads, memory);
}

/* The measurement itself; false: stopped. */
static bool measure(Sweep *s, Arena *a, const Config *cf, Run *r)
{
    const Matrix *m = cf->matrix;
    const char *log = path_join(a, s->work, "log.jsonl");
    const int lanes = (int)(cf->threads * cf->ranks);
    const bool foreign = framework_find(cf->framework)->to != NULL; /* their first epoch warms up */
    bool complete;
    remove(log);
    r->mhz = host_mhz();
    if (!(s->bandwidth[lanes] > 0))
        s->bandwidth[lanes] = peak(s, a, lanes, true);
    r->bandwidth = s->bandwidth[lanes];
    r->peak_before = peak(s, a, lanes, false);
    if (!m->steps && !foreign) {
        Child warm = command(s, a, cf, true, m->warm_steps, log);
        const bool ok = child_run(a, &warm);
        add_log(a, r, log, &complete);
        if (child_stopped())
            return false;
        if (!ok)
            return failed(a, r, &warm), true;
    }
    Child c = foreign ? script(s, a, cf, log) : command(s, a, cf, m->steps > 0, m->steps, log);
    const Meter from = host_meter((int)cf->gpus);
    const bool ok = child_run(a, &c);
    const Meter to = host_meter((int)cf->gpus);
    if (child_stopped())
        return false;
    between(r, &from, &to, &c);
    add_log(a, r, log, &complete);
    record_summary(r);
    r->status = "done";
    if (!ok)
        failed(a, r, &c);
    else if (!complete) {
        r->status = "failed";
        r->message = "its log holds no measurement";
    }
    r->peak_after = peak(s, a, lanes, false);
    judge(s, a, r);
    return true;
}

bool sweep_measure(Sweep *s, Arena *a, const Config *c, Run *r)
{
    const double began = child_now();
    const char *key = r->key;
    describe(s, a, c, r);
    r->key = key;
    if (s->built[c->program].message) {
        r->status = "failed";
        r->message = s->built[c->program].message;
    } else if (!measure(s, a, c, r))
        return false;
    r->seconds = child_now() - began;
    return !child_stopped();
}
