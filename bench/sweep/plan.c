/* plan.c -- from matrices to configurations, and to the programs that they need. */
#include "sweep/plan.h"
#include "sweep/axis.h"
#include "sweep/framework.h"

enum { RUNS_MAX = 20000 }; /* a limit, because some loops go over all pairs */
#include <string.h>

static int program_for(Arena *a, Plan *p, const Config *c)
{
    const bool mpi = c->ranks > 1;
    for (int i = 0; i < p->nprogram; i++) {
        const Config *q = p->program[i].config;
        if (p->program[i].mpi == mpi && q->batch == c->batch && strcmp(q->file, c->file) == 0 &&
            strcmp(q->build, c->build) == 0 && strcmp(q->framework, c->framework) == 0)
            return i;
    }
    Config *copy = arena_alloc(a, sizeof *copy);
    *copy = *c;
    ARENA_PUSH(a, p->program, p->nprogram, ((Program){copy, mpi}));
    return p->nprogram - 1;
}

static void skip(Arena *a, Plan *p, const char *why)
{
    for (int i = 0; i < p->nskipped; i++)
        if (strcmp(p->skipped[i], why) == 0)
            return;
    ARENA_PUSH(a, p->skipped, p->nskipped, why);
}

/* The reason why this machine cannot run a configuration, or NULL. */
static const char *impossible(Arena *a, const Config *c, int64_t processors, bool mpirun)
{
    if (c->gpus > 0)
        return arena_printf(a, "%lld GPU%s: tenon sweep runs programs on the processor only",
                            (long long)c->gpus, c->gpus > 1 ? "s" : "");
    if (framework_find(c->framework)->to && (c->ranks > 1 || c->matrix->steps || *c->build))
        return arena_printf(a, "%s with %s: its scripts %s",
                            c->ranks > 1       ? "several ranks"
                            : c->matrix->steps ? "--steps"
                                               : "--build or --set",
                            c->framework,
                            c->ranks > 1       ? "train in one process"
                            : c->matrix->steps ? "train whole epochs"
                                               : "train by the recipe as it is");
    if (c->threads * c->ranks > processors)
        return arena_printf(a, "%lld rank%s of %lld thread%s: there are %lld processors",
                            (long long)c->ranks, c->ranks > 1 ? "s" : "", (long long)c->threads,
                            c->threads > 1 ? "s" : "", (long long)processors);
    if (c->ranks > 1 && !mpirun)
        return arena_printf(a,
                            "%lld ranks: there is no mpirun (Debian: openmpi-bin libopenmpi-dev)",
                            (long long)c->ranks);
    return NULL;
}

static bool known(const Plan *p, const Config *c)
{
    for (int i = 0; i < p->nconfig; i++) {
        const Config *q = &p->config[i];
        if (q->program == c->program && q->threads == c->threads && q->ranks == c->ranks &&
            q->matrix == c->matrix)
            return true;
    }
    return false;
}

static void add(Arena *a, Plan *p, Config c, int64_t processors, bool mpirun)
{
    c.threads = c.threads ? c.threads : processors / c.ranks > 0 ? processors / c.ranks : 1;
    const char *why = impossible(a, &c, processors, mpirun);
    if (why) {
        skip(a, p, why);
        return;
    }
    c.program = program_for(a, p, &c);
    if (!known(p, &c)) /* "2" and "all" of 2 threads are the same */
        ARENA_PUSH(a, p->config, p->nconfig, c);
}

#define EACH(i, list) for (int i = 0; i < (list).n; i++)

static void expand(Arena *a, Plan *p, const Matrix *m, int64_t processors, bool mpirun)
{
    const Words build = axis_builds(a, m);
    EACH(f, m->file)
    EACH(w, m->framework)
    EACH(o, build)
    EACH(b, m->batch)
    EACH(g, m->gpus)
    EACH(r, m->ranks)
    EACH(t, m->threads)
    add(a, p,
        (Config){.matrix = m,
                 .file = m->file.v[f],
                 .framework = m->framework.v[w],
                 .build = build.v[o],
                 .batch = m->batch.v[b],
                 .threads = m->threads.v[t],
                 .ranks = m->ranks.v[r],
                 .gpus = m->gpus.v[g],
                 .share =
                     p->nshare + (((f * m->framework.n + w) * build.n + o) * m->batch.n + b)},
        processors, mpirun);
    p->nshare += m->file.n * m->framework.n * build.n * m->batch.n;
}

void plan_part(Arena *a, Plan *p, int64_t part, int64_t parts)
{
    const Plan whole = *p;
    p->config = NULL;
    p->program = NULL;
    p->nconfig = p->nprogram = 0;
    for (int i = 0; i < whole.nconfig; i++) {
        Config c = whole.config[i];
        if (c.share % parts != part - 1)
            continue;
        c.program = program_for(a, p, &c);
        ARENA_PUSH(a, p->config, p->nconfig, c);
    }
}

static double size(Arena *a, const Matrix *m)
{
    return (double)m->file.n * m->framework.n * axis_count(a, m) * m->gpus.n * m->batch.n *
           m->ranks.n * m->threads.n * (double)m->repeat;
}

bool plan_expand(Arena *a, Plan *p, int64_t processors, bool mpirun, Diag *d)
{
    double runs = 0;
    for (int i = 0; i < p->nmatrix; i++) {
        if (!axes_free(&p->matrix[i], d))
            return false;
        runs += size(a, &p->matrix[i]);
    }
    if (runs > RUNS_MAX) {
        diag_error(d, (Span){0}, "this sweep has %.0f runs; %d is the limit", runs, RUNS_MAX);
        diag_help(d, "cut it into several sweeps, into one store");
        return false;
    }
    for (int i = 0; i < p->nmatrix; i++)
        expand(a, p, &p->matrix[i], processors, mpirun);
    return true;
}

/* splitmix64: Steele, Lea, Flood 2014. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int *plan_order(Arena *a, int n, uint64_t seed)
{
    int *order = arena_alloc(a, sizeof *order * (size_t)(n ? n : 1));
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)(draw(&seed) % (uint64_t)(i + 1)), old = order[i];
        order[i] = order[j];
        order[j] = old;
    }
    return order;
}
