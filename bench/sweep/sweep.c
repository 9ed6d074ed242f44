/* sweep.c -- `tenon sweep`: plan, build, run one configuration after the other, store; resume a stopped sweep. */
#define _GNU_SOURCE
#include "sweep/sweep.h"
#include "sweep/framework.h"
#include "tool/file.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STOPPED = 75 }; /* exit code: finished runs are stored, the same command resumes */

static const Span nowhere;

/* A run of the plan. */
typedef struct Item {
    const Config *config;
    const char *key;
    int64_t repeat, attempt; /* attempt: number of stored attempts */
    bool done;
    double seconds; /* of a stored attempt; 0 = not known */
} Item;

typedef struct Queue {
    Item *item; /* in the order in which they run */
    int n, todo, done, failed, disturbed;
    double *seconds; /* by configuration, of its last run; 0 = not known */
} Queue;

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* "lenet, batch 128, 2 threads" */
static const char *sweep_name(Arena *a, const Config *c)
{
    Text t = text_new(a);
    text_add(&t, path_stem(a, c->file));
    if (framework_find(c->framework)->to)
        text_printf(&t, ", %s", c->framework);
    if (c->batch)
        text_printf(&t, ", batch %lld", (long long)c->batch);
    if (c->ranks > 1)
        text_printf(&t, ", %lld ranks", (long long)c->ranks);
    text_printf(&t, ", %lld thread%s", (long long)c->threads, plural(c->threads));
    if (*c->build)
        text_printf(&t, ", %s", c->build);
    return t.s;
}

/* The key of a run: runs with equal keys measure the same program with the same settings. */
static const char *sweep_key(const Sweep *s, Arena *a, const Config *c, int64_t repeat)
{
    const Matrix *m = c->matrix;
    const char *what =
        arena_printf(a, "%s|%s|%s|%s|%s|%lld|%lld|%lld|%lld|%lld|%lld|%s|%lld|%d|%lld", s->label,
                     s->built[c->program].binary, c->framework, path_stem(a, c->file), c->build,
                     (long long)c->batch, (long long)c->threads, (long long)c->ranks,
                     (long long)m->epochs, (long long)m->steps, (long long)m->limit_samples,
                     m->data ? m->data : "", (long long)m->seed, m->layers, (long long)repeat);
    return arena_printf(a, "%016llx", (unsigned long long)text_hash(what, strlen(what), 0));
}

/* ---- the queue */

static const Run *stored(const Run *run, int n, const char *key, int64_t *attempts)
{
    const Run *last = NULL;
    *attempts = 0;
    for (int i = 0; i < n; i++)
        if (strcmp(run[i].key, key) == 0) {
            last = &run[i];
            *attempts = run[i].attempt > *attempts ? run[i].attempt : *attempts;
        }
    return last;
}

static Item item_of(Sweep *s, const Config *c, int64_t repeat, const Run *run, int nrun)
{
    Item it = {.config = c, .repeat = repeat, .key = sweep_key(s, s->arena, c, repeat)};
    const Run *last = stored(run, nrun, it.key, &it.attempt);
    if (last && strcmp(last->status, "failed") == 0)
        it.done = !s->retry_failed;
    else if (last)
        it.done = !last->disturbed || it.attempt > s->retries;
    it.seconds = last ? last->seconds : 0;
    return it;
}

/* The order has rounds: every configuration once, shuffled, then again.  So a drift of the machine affects all configurations
 * alike, and a stopped sweep has measured all of them nearly equally often. */
static Queue queue_of(Sweep *s)
{
    Queue q = {0};
    Run *run;
    int left = 1;
    const int nrun = store_runs(s->store, NULL, &run);
    for (int64_t repeat = 1; left; repeat++) {
        const int *order = plan_order(s->arena, s->plan.nconfig, (uint64_t)(s->order + repeat - 1));
        left = 0;
        for (int i = 0; i < s->plan.nconfig; i++) {
            const Config *c = &s->plan.config[order[i]];
            if (c->matrix->repeat < repeat)
                continue;
            const Item it = item_of(s, c, repeat, run, nrun);
            ARENA_PUSH(s->arena, q.item, q.n, it);
            q.todo += !it.done;
            left += c->matrix->repeat > repeat;
        }
    }
    q.seconds = arena_alloc(s->arena, sizeof *q.seconds * (size_t)(s->plan.nconfig + 1));
    return q;
}

/* Predicted seconds of the remaining runs: those of the same configuration if it has run, else the mean of all. */
static double time_left(const Sweep *s, const Queue *q)
{
    double *of = q->seconds, known = 0, sum = 0;
    int nknown = 0, unknown = 0;
    for (int i = 0; i < q->n; i++)
        if (q->item[i].seconds > 0) {
            of[q->item[i].config - s->plan.config] = q->item[i].seconds;
            known += q->item[i].seconds;
            nknown++;
        }
    for (int i = 0; i < q->n; i++)
        if (!q->item[i].done) {
            const double mine = of[q->item[i].config - s->plan.config];
            sum += mine;
            unknown += mine == 0;
        }
    return nknown ? sum + unknown * known / nknown : NAN;
}

static const char *time_text(Arena *a, double s)
{
    if (isnan(s) || s == 0)
        return "";
    return s < 90     ? arena_printf(a, "   %.0f s left", s)
           : s < 5400 ? arena_printf(a, "   %.0f min left", s / 60)
                      : arena_printf(a, "   %.1f h left", s / 3600);
}

static void say(const Sweep *s, Arena *a, const Queue *q, const Item *it, const Run *r, int all)
{
    printf("[%*d/%d] %s, run %lld of %lld", all > 99 ? 3 : 2, q->done, all,
           sweep_name(a, it->config), (long long)it->repeat, (long long)it->config->matrix->repeat);
    if (it->attempt > 1)
        printf(", attempt %lld of %lld", (long long)it->attempt, (long long)s->retries + 1);
    if (strcmp(r->status, "failed") == 0)
        printf(": failed: %.*s", (int)strcspn(r->message, "\n"), r->message);
    else {
        printf(": %s samples/s", text_commas(a, llround(r->samples_per_s)));
        if (r->epoch_s > 0)
            printf(", %.2f s/epoch", r->epoch_s);
        if (r->accuracy >= 0)
            printf(", accuracy %.4f", r->accuracy);
        else if (!isnan(r->loss))
            printf(", test loss %.6g", r->loss);
        if (r->disturbed)
            printf("; disturbed: %s%s", r->disturbed, it->done ? "" : ", to be run again");
    }
    printf("%s\n", time_text(a, time_left(s, q)));
    fflush(stdout);
}

/* Measures and stores one attempt.  false: stopped, or the store cannot be written. */
static bool attempt(Sweep *s, Queue *q, Item *it, int all)
{
    Arena *a = arena_new();
    Run r = {.key = it->key, .repeat = it->repeat, .attempt = it->attempt + 1};
    const Built *b = &s->built[it->config->program];
    bool ok = sweep_measure(s, a, it->config, &r);
    if (ok) {
        r.source = store_text(s->store, b->source);
        r.info = store_text(s->store, b->info);
        r.machine = store_text(s->store, s->host.text);
        ok = !store_failed(s->store) && store_add(s->store, &r);
    }
    if (ok) {
        const bool failed = strcmp(r.status, "failed") == 0;
        it->attempt++;
        it->seconds = r.seconds;
        it->done = failed || !r.disturbed || it->attempt > s->retries;
        q->done += it->done;
        q->failed += failed;
        q->disturbed += it->done && !failed && r.disturbed != NULL;
        say(s, a, q, it, &r, all);
    }
    arena_free(a);
    return ok;
}

/* Disturbed runs are repeated after all others, when the machine may be quiet. */
static bool run_all(Sweep *s, Queue *q)
{
    const int all = q->todo;
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < q->n; i++) {
            if (q->item[i].done)
                continue;
            if (child_stopped() || !attempt(s, q, &q->item[i], all))
                return false;
            again = again || !q->item[i].done;
        }
    }
    return true;
}

static int runs(const Plan *p)
{
    int n = 0;
    for (int i = 0; i < p->nconfig; i++)
        n += (int)p->config[i].matrix->repeat;
    return n;
}

static void print_config(const Sweep *s, const Config *c)
{
    const Matrix *m = c->matrix;
    const int64_t length = m->steps ? m->steps : m->epochs;
    printf("%s: %lld run%s of %lld %s%s\n", sweep_name(s->arena, c), (long long)m->repeat,
           plural(m->repeat), (long long)length, m->steps ? "step" : "epoch", plural(length));
}

static void print_plan(const Sweep *s)
{
    const Plan *p = &s->plan;
    for (int i = 0; i < p->nskipped; i++)
        printf("skipped: %s\n", p->skipped[i]);
    for (int i = 0; i < p->nconfig && s->dry_run; i++)
        print_config(s, &p->config[i]);
    printf("%d run%s of %d configuration%s, %d program%s to build, into %s\n", runs(p),
           plural(runs(p)), p->nconfig, plural(p->nconfig), p->nprogram, plural(p->nprogram),
           s->store_path);
}

static int finish(const Sweep *s, const Queue *q, double seconds)
{
    printf("%d run%s in %.0f s", q->done, plural(q->done), seconds);
    if (q->failed)
        printf(", %d failed", q->failed);
    if (q->disturbed)
        printf(", %d disturbed in each of %lld attempt%s", q->disturbed, (long long)s->retries + 1,
               plural(s->retries + 1));
    printf("; tenon results table --store %s\n", s->store_path);
    if (q->failed)
        diag_error(s->diag, nowhere, "%d run%s failed; tenon results list --store %s says why",
                   q->failed, plural(q->failed), s->store_path);
    return q->failed > 0;
}

static int sweep(Sweep *s)
{
    const double began = child_now();
    sweep_compiler(s);
    if (!sweep_build(s))
        return STOPPED;
    Queue q = queue_of(s);
    if (store_failed(s->store))
        return 1;
    if (q.todo < q.n)
        printf("%d of %d runs are stored already\n", q.n - q.todo, q.n);
    fflush(stdout);
    if (run_all(s, &q)) {
        const int code = finish(s, &q, child_now() - began);
        sweep_remove_work(s);
        return code;
    }
    if (!child_stopped())
        return 1;
    diag_error(s->diag, nowhere, "stopped after %d of %d runs; the same command continues", q.done,
               q.todo);
    return STOPPED;
}

/* --part I/N */
static bool take_part(Sweep *s)
{
    long long part, parts;
    char rest;
    if (!s->part)
        return true;
    if (sscanf(s->part, "%lld/%lld%c", &part, &parts, &rest) != 2 || part < 1 || part > parts ||
        parts > s->plan.nshare) {
        diag_error(s->diag, nowhere, "--part needs I/N, from 1/%d to %d/%d here, not '%s'",
                   s->plan.nshare, s->plan.nshare, s->plan.nshare, s->part);
        return false;
    }
    plan_part(s->arena, &s->plan, part, parts);
    return true;
}

int sweep_main(Arena *a, Diag *d, const char *tenon, int argc, char **argv)
{
    Sweep s = {.arena = a,
               .diag = d,
               .tenon = tenon,
               .store_path = "results.db",
               .python = "python3",
               .order = 1,
               .retries = 2,
               .jobs = 2,
               .lock = -1,
               .argc = argc,
               .argv = argv};
    host_look(a, &s.host);
    s.peak_program = sweep_beside_us(a, "tenon-peak");
    s.infrastructure = s.host.cpu;
    if (!sweep_options(&s, argc, argv))
        return diag_errors(d) > 0;
    if (!sweep_flags(&s))
        return 1;
    if (!plan_expand(a, &s.plan, s.host.processors, sweep_has_program(a, "mpirun"), d))
        return 1;
    if (!take_part(&s))
        return 1;
    print_plan(&s);
    sweep_commit(&s);
    if (s.slurm && !s.dry_run)
        return sweep_slurm(&s);
    if (s.dry_run || !s.plan.nconfig)
        return 0;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0); /* a container can have no other user */
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0);
    s.peaks = arena_alloc(a, sizeof *s.peaks * (size_t)(s.host.processors + 1));
    s.bandwidth = arena_alloc(a, sizeof *s.bandwidth * (size_t)(s.host.processors + 1));
    child_watch();
    if (!(s.store = store_open(a, s.store_path, d)))
        return 1;
    const int code = sweep_open_work(&s) ? sweep(&s) : 1;
    store_close(s.store);
    return code;
}
