/* plans.c -- gets plans of cuDNN graphs from the cache, or from the program tenon-plan.
 *
 * An entry of the cache is the line that tenon-plan has printed, and the plan after it.  A graph
 * without an engine has an entry, too.
 */
#include "tool/plans.h"
#include "ops/op.h"
#include "tool/cache.h"
#include "tool/file.h"
#include "tool/paths.h"
#include "tool/process.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const Span nowhere;

/* Runs tenon-plan.  If a signal comes meanwhile (process_signal), the caller cleans up and calls
 * process_pass_on. */
static Process run_planner(Arena *a, const char *path, const char *const *word, int n,
                           const char *what)
{
    Argv v = {0};
    argv_add(a, &v, path);
    for (int i = 0; i < n; i++)
        argv_add(a, &v, word[i]);
    argv_end(a, &v);
    Process p = process_of(a, v);
    process_run(&p, what);
    return p;
}

typedef struct GraphPlan {
    /* variants of the graph, in order of preference, separated by " | " */
    const char *variants;
    bool planned;                /* false: `why` has the reason */
    int variant;                 /* the variant with a plan */
    long long engine, workspace; /* number of the engine, for tables; workspace in bytes */
    const char *notes;           /* "tensor-cores,compiled" or "-" */
    double ms;                   /* milliseconds of planning, if it was not in the cache */
    const char *why;
    const char *text; /* the plan, which the program embeds */
    size_t bytes;
    bool kept; /* found in the cache */
} GraphPlan;

/* The version of tenon-plan, "cudnn 91900 rules 1"; NULL, with the reason in *why, if tenon-plan is
 * missing or does not find cuDNN. */
static const char *plans_version(Arena *a, const char **why)
{
    const char *path = paths_program(a, "tenon-plan");
    if (!path) {
        *why = "this tenon was built without the CUDA toolkit or cuDNN's headers";
        return NULL;
    }
    const Process p = run_planner(a, path, (const char *const[]){"--version"}, 1, NULL);
    process_pass_on();
    const char *text = arena_strndup(a, p.output.s, strcspn(p.output.s, "\n"));
    if (p.status == 0)
        return text;
    *why = strncmp(text, "tenon-plan: ", 12) == 0 ? text + 12 : text;
    return NULL;
}

/* ---- output of tenon-plan */

/* "plan 0 62 tensor-cores 131 1976 12.5" or "none 3.0 no engine knows this graph" */
static bool read_answer(Arena *a, const char *line, GraphPlan *p)
{
    char notes[128];
    int end = 0;
    size_t bytes;
    p->planned = sscanf(line, "plan %d %lld %127s %lld %zu %lf", &p->variant, &p->engine, notes,
                        &p->workspace, &bytes, &p->ms) == 6;
    if (p->planned)
        p->notes = arena_strdup(a, notes);
    else if (sscanf(line, "none %lf %n", &p->ms, &end) == 1 && end > 0)
        p->why = arena_strndup(a, line + end, strcspn(line + end, "\n"));
    return p->planned || p->why;
}

static Key key_of(const GraphPlan *p, const char *version, const PlanWish *w)
{
    Key k = {0, 0};
    key_text(&k, version);
    key_text(&k, w->arch);
    key_text(&k, w->driver);
    key_text(&k, w->exact ? "exact" : "");
    key_text(&k, p->variants);
    return k;
}

static bool find_plan(Arena *a, Cache *cache, const char *version, const PlanWish *w, GraphPlan *p)
{
    size_t len = 0;
    const char *bytes =
        w->no_cache ? NULL : cache_get(a, cache, CACHE_PLAN, key_of(p, version, w), &len);
    const char *end = bytes ? memchr(bytes, '\n', len) : NULL;
    if (!end || !read_answer(a, bytes, p))
        return false;
    p->text = end + 1, p->bytes = (size_t)(bytes + len - p->text);
    return p->kept = true;
}

static void keep_plan(Arena *a, Cache *cache, const char *version, const PlanWish *w,
                      const GraphPlan *p, const char *line)
{
    Text t = text_new(a);
    text_addn(&t, line, strcspn(line, "\n"));
    text_add(&t, "\n");
    text_addn(&t, p->text ? p->text : "", p->bytes);
    cache_put(a, cache, CACHE_PLAN, key_of(p, version, w), t.s, t.len);
}

/* ---- plans that are not in the cache */

/* Reports that tenon-plan has failed; the last line of its output is the reason. */
static bool broken(Diag *d, const Process *p)
{
    Arena *a = diag_arena(d);
    const char *text = p->output.s;
    size_t n = strlen(text);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    const char *said = arena_strndup(a, text, n), *line = strrchr(said, '\n');
    diag_error(d, nowhere, "tenon-plan failed: %s",
               n          ? line ? line + 1 : said
               : p->error ? strerror(p->error)
                          : "it printed no message");
    diag_help(d, "run it by hand: %s", argv_text(a, &p->command));
    return false;
}

static bool read_answers(Arena *a, const char *dir, const Process *run, const PlanWish *w,
                         const char *version, Cache *cache, GraphPlan **p, int n, Diag *d)
{
    const char *line = run->output.s;
    for (int i = 0; i < n; i++) {
        if (!read_answer(a, line, p[i]))
            return broken(d, run);
        if (p[i]->planned)
            p[i]->text =
                file_read(a, path_join(a, dir, arena_printf(a, "%d.plan", i)), &p[i]->bytes);
        if (!p[i]->planned || p[i]->text)
            keep_plan(a, cache, version, w, p[i], line);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return true;
}

static void remove_dir(Arena *a, const char *dir, int n)
{
    for (int i = 0; i < n; i++)
        unlink(path_join(a, dir, arena_printf(a, "%d.plan", i)));
    unlink(path_join(a, dir, "graphs"));
    rmdir(dir);
}

static bool plan_missing(Arena *a, const char *version, const PlanWish *w, Cache *cache,
                         GraphPlan **p, int n, Diag *d)
{
    bool made;
    Text graphs = text_new(a);
    const char *dir = dir_temporary(a, "tenon-plans", &made);
    for (int i = 0; i < n; i++)
        text_printf(&graphs, "%s\n", p[i]->variants);
    const char *file = path_join(a, dir, "graphs");
    const int error = made ? file_write(a, file, graphs.s, graphs.len, 0666) : errno;
    if (error) {
        diag_error(d, nowhere, "cannot write the graphs to plan to %s: %s", dir, strerror(error));
        if (made)
            remove_dir(a, dir, 0);
        return false;
    }
    const char *word[] = {"--arch",  w->arch,  "--driver",
                          w->driver, "--jobs", arena_printf(a, "%d", w->jobs),
                          "--out",   dir,      file,
                          "--exact"};
    const Process run =
        run_planner(a, paths_program(a, "tenon-plan"), word, w->exact ? 10 : 9,
                    arena_printf(a, "planning %d graph%s of cuDNN", n, n == 1 ? "" : "s"));
    const bool ok =
        run.status == 0 ? read_answers(a, dir, &run, w, version, cache, p, n, d) : broken(d, &run);
    remove_dir(a, dir, n);
    process_pass_on();
    return ok;
}

/* Plans all graphs; equal graphs are planned once.  Returns false after an error; a graph without
 * an engine is no error. */
static bool plans_make(Arena *a, const char *version, const PlanWish *w, GraphPlan *p, int n,
                       Diag *d)
{
    Cache cache;
    GraphPlan **missing = NULL;
    int *same = arena_alloc(a, (size_t)(n + 1) * sizeof *same), nmissing = 0;
    cache_open(a, &cache);
    for (int i = 0; i < n; i++) {
        for (same[i] = 0; strcmp(p[same[i]].variants, p[i].variants) != 0;)
            same[i]++;
        if (same[i] == i && !find_plan(a, &cache, version, w, &p[i]))
            ARENA_PUSH(a, missing, nmissing, &p[i]);
    }
    const bool ok = nmissing == 0 || plan_missing(a, version, w, &cache, missing, nmissing, d);
    for (int i = 0; i < n; i++)
        p[i] = p[same[i]];
    cache_close(a, &cache, NULL);
    return ok;
}

/* ---- plans of a program */

static bool no_engine(const EmitPlan *e, const GraphPlan *p, const char *arch, Diag *d)
{
    diag_error(d, e->node->span, "cuDNN has no engine on %s for this %s", arch, e->node->op->name);
    diag_note(d, "%s", p->why);
    diag_note(d, "the graph: %s", e->variants);
    diag_help(d, "leave out --kernels=cudnn: Tenon's own kernels compute it");
    return false;
}

bool plans_embed(Arena *a, const PlanWish *w, EmitInput *in, EmitPlan *plan, int n, Diag *d)
{
    const char *why = NULL;
    const char *version = plans_version(a, &why);
    GraphPlan *p = arena_alloc(a, (size_t)(n + 1) * sizeof *p);
    if (!version) {
        diag_warn(d, nowhere, "the convolutions are not planned: %s", why);
        diag_help(d, "the program plans them at its first start, and keeps the plans");
        return true;
    }
    for (int i = 0; i < n; i++)
        p[i].variants = plan[i].variants;
    if (!plans_make(a, version, w, p, n, d))
        return false;
    bool ok = true;
    for (int i = 0; i < n; i++) {
        ok &= p[i].planned || no_engine(&plan[i], &p[i], w->arch, d);
        plan[i].text = p[i].text, plan[i].bytes = p[i].bytes, plan[i].workspace = p[i].workspace;
        plan[i].engine = p[i].engine, plan[i].notes = p[i].notes;
        if (p[i].planned)
            emit_plan_take(a, &plan[i], plan[i].first + p[i].variant);
    }
    in->plan = plan, in->nplan = n;
    return ok;
}
