/* load.c -- front_load: reads the file and its imports, checks names, reads the recipe, and lowers
 * the models, in this order.
 *
 * After an error, the following steps still process the rest of the file.  A value that depends on
 * an error is poison (value.h), and poison causes no message.  So one run reports all errors of a
 * file, each at its cause.
 */
#include "base/text.h"
#include "front/front.h"
#include "front/parse.h"
#include "front/share.h"
#include "front/train.h"
#include <string.h>

/* ---- files */

typedef struct Chain {
    const struct Chain *up;
    const Source *source;
} Chain;

typedef struct Loader {
    Unit *u;
    const FrontOptions *options;
    Map loaded; /* by canonical path: Source * */
    int files;
} Loader;

/* The path of an imported file relative to the directory of the importing file. */
static const char *beside(Arena *a, const Source *from, const char *name)
{
    const char *slash = strrchr(from->name, '/');
    if (name[0] == '/' || !slash)
        return name;
    return arena_printf(a, "%.*s%s", (int)(slash + 1 - from->name), from->name, name);
}

static bool reports_cycle(Loader *l, const Chain *chain, const Source *s, Span at)
{
    const char *text = s->name;
    for (const Chain *c = chain; c; c = c->up) {
        text = arena_printf(l->u->arena, "%s -> %s", c->source->name, text);
        if (strcmp(c->source->path, s->path) != 0)
            continue;
        diag_error(l->u->diag, at, "the imports form a cycle");
        diag_note(l->u->diag, "the chain is %s", text);
        return true;
    }
    return false;
}

static void load(Loader *l, const Source *s, const Chain *up);

/* Opens an imported file: beside the importing file, else in the library of Tenon.  NULL, with the
 * reason why the first one cannot be read, if neither can. */
static Source *open_import(const Loader *l, const Source *from, const char *name, const char **why)
{
    const FrontOptions *o = l->options;
    Arena *a = l->u->arena;
    const char *other;
    Source *s = (Source *)source_open(a, beside(a, from, name), o->unsaved, o->nunsaved, why);
    if (s || !o->shipped || strchr(name, '/') || source_exists(beside(a, from, name)))
        return s;
    s = (Source *)source_open(a, arena_printf(a, "%s/%s", o->shipped, name), o->unsaved,
                              o->nunsaved, &other);
    if (s)
        s->shipped = true;
    return s;
}

/* Adds the help for a misspelt file of Tenon's library. */
static void suggest_library(const Loader *l, const char *name)
{
    Arena *a = l->u->arena;
    int n = 0;
    const char **file = l->options->shipped ? source_list(a, l->options->shipped, &n) : NULL;
    const char *nearest = text_nearest(name, file, n);
    if (!nearest || strcmp(nearest, name) == 0) /* a directory hides the library's file */
        return;
    diag_help(l->u->diag, "did you mean '%s', which comes with Tenon?", nearest);
    diag_replace(l->u->diag, arena_printf(a, "\"%s\"", name), arena_printf(a, "\"%s\"", nearest));
}

static void import(Loader *l, const Chain *chain, const Decl *decl)
{
    Unit *u = l->u;
    const char *why;
    Source *s = open_import(l, chain->source, decl->name, &why);
    const Source *known = s ? map_get(&l->loaded, s->path) : NULL;
    ARENA_PUSH(u->arena, u->import, u->nimport, ((Import){decl, known ? known : s}));
    if (!s) {
        diag_error(u->diag, decl->name_span, "cannot import '%s': %s", decl->name, why);
        diag_note(u->diag, "the path is relative to the importing file: %s",
                  beside(u->arena, chain->source, decl->name));
        suggest_library(l, decl->name);
        u->decls.broken = true; /* missing names may be defined in that file */
    } else if (reports_cycle(l, chain, s, decl->name_span) || map_get(&l->loaded, s->path)) {
        return;
    } else if (l->files == IMPORTS_MAX) {
        diag_error(u->diag, decl->name_span, "more than %d files are imported", IMPORTS_MAX);
        u->decls.broken = true;
    } else {
        s->order = ++l->files;
        load(l, s, chain);
    }
}

/* Imports come first, so that a definition precedes its use.  Train blocks of imported files stand
 * apart: they choose no model. */
static void load(Loader *l, const Source *s, const Chain *up)
{
    Unit *u = l->u;
    const Chain here = {up, s};
    map_set(&l->loaded, s->path, (void *)s);
    ARENA_PUSH(u->arena, u->file, u->nfile, s);
    const Decls own = parse_file(u->arena, u->diag, s);
    u->decls.broken |= own.broken;
    for (int i = 0; i < own.n; i++)
        if (own.v[i]->kind == DECL_IMPORT)
            import(l, &here, own.v[i]);
    for (int i = 0; i < own.n; i++) {
        Decls *all = own.v[i]->kind == DECL_TRAIN && up ? &u->imported : &u->decls;
        if (own.v[i]->kind != DECL_IMPORT)
            ARENA_PUSH(u->arena, all->v, all->n, own.v[i]);
    }
}

static bool read_files(Unit *u, const char *file, const FrontOptions *o)
{
    const char *why;
    Loader l = {.u = u, .options = o, .loaded = map_new(u->arena)};
    u->source = source_open(u->arena, file, o->unsaved, o->nunsaved, &why);
    if (!u->source) {
        diag_error(u->diag, (Span){0}, "cannot read %s: %s", file, why);
        return false;
    }
    const int before = diag_errors(u->diag);
    load(&l, u->source, NULL);
    if (u->decls.n == 0 && diag_errors(u->diag) == before) {
        diag_error(u->diag, (Span){u->source, 1, 1, 1, 1}, "the file defines nothing");
        diag_help(u->diag, "a model begins like this: model NAME(image: f32[1, 28, 28]) {");
    }
    return true;
}

/* ---- models */

typedef struct Job { /* one model of the file, and its graphs */
    Decl *model, *train;
    const struct Job *trained; /* no train block: the model whose data it shares, or NULL */
    bool predicts;             /* its program reads the weights of that model */
    Graph *graph;              /* for training */
    Recipe recipe;
    Expr *loss, *measure[RT_MEASURES]; /* of the keys loss and metrics */
} Job;

/* The last model that is trained; NULL if none is. */
static Decl *pick_trained(const Unit *u)
{
    Decl *trained = NULL;
    for (int i = 0; i < u->decls.n; i++)
        if (u->decls.v[i]->kind == DECL_TRAIN && !u->decls.v[i]->bad)
            trained = map_get(&u->functions, u->decls.v[i]->name);
    return trained;
}

/* The model to use: the named one, the one that is trained, or the last one.  NULL if there is
 * none. */
static Decl *pick(Unit *u, const char *name)
{
    Decl *last = NULL, *trained = pick_trained(u);
    const char **word = NULL;
    int n = 0;
    for (int i = 0; i < u->decls.n; i++) {
        Decl *d = u->decls.v[i];
        if (d->kind != DECL_MODEL)
            continue;
        if (name && strcmp(d->name, name) == 0)
            return d;
        ARENA_PUSH(u->arena, word, n, d->name);
        last = d->name_span.source == u->source || !last ? d : last;
    }
    if (!name)
        return trained ? trained : last;
    if (!u->decls.broken) {
        diag_error(u->diag, (Span){0}, "%s has no model '%s'", u->source->name, name);
        suggest(u->diag, name, word, n, n == 1 ? "the model" : "the models");
    }
    return NULL;
}

static Graph *lower(Unit *u, const Job *job, const Settings *set, bool training)
{
    Graph *g = lower_model(u, job->model, &job->recipe, set ? set->model : NULL,
                           set ? set->nmodel : 0, training);
    if (!g)
        return NULL;
    if (job->loss && !lower_loss(u, g, job->loss, job->measure))
        return NULL;
    if (!training)
        front_pack_outputs(g);
    factors_apply(g, u->diag);
    if (training)
        start_check(g, u->diag);
    if (job->recipe.present)
        g->nstate = optimizer_states(&job->recipe.optimizer);
    return g;
}

/* Gives a model without a train block what it shares with a trained one: the vocabulary; and if its
 * program predicts with the weights of that model, also sizes and, after the first lowering, the
 * way in which samples are read.  Returns whether the latter has changed. */
static bool share_job(Job *job)
{
    const Job *t = job->trained;
    if (t && !job->predicts)
        share_vocab(&job->recipe, job->model, &t->recipe, t->model);
    else if (t)
        share_recipe(&job->recipe, job->model, &t->recipe, t->model);
    return t && job->predicts &&
           share_samples(&job->recipe, job->model, job->graph, &t->recipe, t->model, t->graph);
}

/* Reads the recipe and lowers the graph for training, which finds every error of the model.
 * job->graph stays NULL after an error. */
static void prepare_graph(Unit *u, Job *job, const Settings *set)
{
    job->recipe = train_defaults(job->model->name);
    if (job->train) {
        if (set)
            settings_apply(u, set, job->train);
        train_read(u, job->train, &job->recipe, &job->loss, job->measure);
    }
    share_job(job);
    if (!job->model->bad)
        job->graph = lower(u, job, set, true);
    if (job->graph && share_job(job)) /* normalize can add a parameter */
        job->graph = lower(u, job, set, true);
}

/* Handles settings without a train block: --batch and --dtype still apply; other settings are
 * errors. */
static void settle_untrained(Unit *u, Job *job, const Settings *set)
{
    Decl none = {.kind = DECL_TRAIN, .name = job->model->name, .entries = {.broken = true}};
    for (int i = 0; i < set->ntrain; i++) {
        const Entry *e = &set->train[i];
        if (strcmp(e->key_span.source->name, "--set") == 0) {
            diag_error(u->diag, e->key_span, "model '%s' has no train block, so '%s' cannot be set",
                       job->model->name, e->key);
            return;
        }
        ARENA_PUSH(u->arena, none.entries.v, none.entries.n, *e);
    }
    train_read(u, &none, &job->recipe, &job->loss, job->measure);
    job->recipe.present = false;
    const Recipe given = job->recipe;
    share_job(job);
    for (int i = 0; i < none.entries.n; i++) {
        const char *key = none.entries.v[i].key;
        if (strcmp(key, "batch") == 0)
            job->recipe.batch = given.batch, job->recipe.shards = given.shards;
        if (strcmp(key, "shards") == 0)
            job->recipe.shards = given.shards;
        if (strcmp(key, "dtype") == 0)
            job->recipe.dtype = given.dtype;
    }
}

/* Also checks train blocks that no model uses: those without a model, and the second block of a
 * model. */
static void check_other_trains(Unit *u)
{
    for (int i = 0; i < u->decls.n; i++) {
        Decl *train = u->decls.v[i];
        Recipe recipe;
        Expr *loss, *measure[RT_MEASURES];
        if (train->kind == DECL_TRAIN && (train->bad || map_get(&u->trains, train->name) != train))
            train_read(u, train, &recipe, &loss, measure);
    }
}

/* Makes the graphs of the chosen model. */
static void lower_chosen(Unit *u, Job *job, Settings *set, Front *out)
{
    settings_check_model(u, set, job->model);
    if (!job->train)
        settle_untrained(u, job, set);
    out->recipe = job->recipe;
    if (!job->graph || diag_errors(u->diag))
        return;
    out->layers = job->graph;
    out->test = lower(u, job, set, false);
    if (job->train)
        out->train = job->graph;
    if (job->predicts && out->test) {
        share_targets(out->test);
        out->train = out->test;
        out->trained = job->trained->graph;
        if (out->trained && !share_missing(job->graph, out->trained))
            share_warn(job->model, job->graph, out->trained, u->diag);
    }
}

typedef struct Jobs {
    Job **v;
    int n;
} Jobs;

static void add_trained(Unit *u, Jobs *jobs, Decl *train, const Settings *set)
{
    Decl *model = map_get(&u->functions, train->name);
    if (!model || model->kind != DECL_MODEL)
        return;
    Job *job = arena_alloc(u->arena, sizeof *job);
    *job = (Job){.model = model, .train = train};
    prepare_graph(u, job, set);
    ARENA_PUSH(u->arena, jobs->v, jobs->n, job);
}

/* Lowers the models with a train block; if the chosen one has none, also those of imported files:
 * it can share their weights. */
static Jobs lower_trained(Unit *u, const Decl *chosen, const Settings *set)
{
    const bool shares = chosen && !map_get(&u->trains, chosen->name);
    const Settings *same = &(Settings){.model = set->model, .nmodel = set->nmodel};
    Jobs jobs = {0};
    for (int i = 0; i < u->imported.n && shares; i++)
        add_trained(u, &jobs, u->imported.v[i], same);
    for (int i = 0; i < u->decls.n; i++) {
        Decl *train = u->decls.v[i];
        if (train->kind == DECL_TRAIN && !train->bad && map_get(&u->trains, train->name) == train)
            add_trained(u, &jobs, train,
                        map_get(&u->functions, train->name) == chosen ? set
                        : shares                                      ? same
                                                                      : NULL);
    }
    return jobs;
}

static Job *job_of(const Jobs *jobs, const Decl *model)
{
    for (int i = 0; i < jobs->n; i++)
        if (jobs->v[i]->model == model)
            return jobs->v[i];
    return NULL;
}

/* Lowers the chosen model, which has no train block.  It shares the weights of the last trained
 * model that has them all, else those of the last one, and share_check reports what differs. */
static void lower_sharing(Unit *u, Job *job, const Jobs *jobs, const Settings *set)
{
    const Job *last = jobs->n ? jobs->v[jobs->n - 1] : NULL;
    job->predicts = last != NULL;
    for (int i = jobs->n - 1; i >= 0; i--) {
        job->trained = jobs->v[i], job->graph = NULL;
        prepare_graph(u, job, set);
        if (!job->graph || !job->trained->graph || !share_missing(job->graph, jobs->v[i]->graph))
            return;
    }
    if (last && job->trained == last)
        return;
    job->trained = last, job->graph = NULL;
    prepare_graph(u, job, set);
}

/* Lowers every model of the file, so that errors in all of them are reported; *out gets the chosen
 * one.  Trained models come first, because others share their data. */
static void lower_all(Unit *u, const FrontOptions *o, Front *out)
{
    Settings set;
    settings_read(u, o, &set);
    Decl *chosen = pick(u, o->model);
    const Jobs trained = lower_trained(u, chosen, &set);
    for (int i = 0; i < u->decls.n; i++) {
        Decl *model = u->decls.v[i];
        if (model->kind != DECL_MODEL ||
            (model != chosen && (model->name_span.source != u->source || job_of(&trained, model))))
            continue;
        Job job = {.model = model}, *found = job_of(&trained, model);
        if (found && found->train == map_get(&u->trains, model->name)) {
            job = *found;
        } else if (model == chosen) {
            lower_sharing(u, &job, &trained, &set);
        } else {
            job.trained = trained.n ? trained.v[trained.n - 1] : NULL;
            prepare_graph(u, &job, NULL);
        }
        if (model == chosen)
            lower_chosen(u, &job, &set, out);
    }
    check_other_trains(u);
}

bool front_load(Arena *a, const char *file, const FrontOptions *o, Diag *d, Front *out)
{
    static const FrontOptions none = {0};
    Unit *u = arena_alloc(a, sizeof *u);
    const int before = diag_errors(d);
    o = o ? o : &none;
    *u = (Unit){.arena = a, .diag = d, .trace = o->trace};
    *out = (Front){0};
    if (read_files(u, file, o)) {
        out->source = u->source;
        out->unit = u;
        sem_check(u);
        lower_all(u, o, out);
    }
    return diag_errors(d) == before;
}
