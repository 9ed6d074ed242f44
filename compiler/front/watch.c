/* watch.c -- the keys `keep` and `stop`, which depend on a result of the validation split, and the
 * schedule plateau, which can also depend on one of the test split.
 */
#include "base/text.h"
#include "front/train.h"
#include <string.h>

#define SPLIT "validation_"

const char *const watch_results[] = {SPLIT "loss", SPLIT "accuracy", SPLIT "auc",
                                     SPLIT "mae",  SPLIT "rmse",     SPLIT "r2",
                                     SPLIT "iou",  SPLIT "dice",     NULL};

#define TEST "test_"
const char *const plateau_results[] = {SPLIT "loss", SPLIT "accuracy", SPLIT "auc", SPLIT "mae",
                                       SPLIT "rmse", SPLIT "r2",       SPLIT "iou", SPLIT "dice",
                                       TEST "loss",  TEST "accuracy",  TEST "auc",  TEST "mae",
                                       TEST "rmse",  TEST "r2",        TEST "iou",  TEST "dice",
                                       NULL};

static bool of_test(const Recipe *r, const char *result)
{
    return text_glob(TEST "*", result) && expect_metric(r, result) &&
           strcmp(result, TEST "perplexity") != 0;
}

static bool of_validation(const Recipe *r, const char *result)
{
    return text_glob(SPLIT "*", result) && expect_metric(r, result);
}

/* The result of the validation split that the name probably means: validation_accuracy for accuracy
 * or test_accuracy.  NULL: there is none. */
static const char *meant(Arena *a, const Recipe *r, const char *name)
{
    const char *metric = expect_metric(r, name),
               *result = arena_printf(a, SPLIT "%s", metric ? metric : name);
    return of_validation(r, result) ? result : NULL;
}

void watch_read(Unit *u, const Expr *e, const Field *f, const char **out)
{
    const Recipe *r = u->recipe;
    const char *name = e->kind == EX_NAME || e->kind == EX_STRING ? e->s : NULL;
    const bool tests = f->words == plateau_results;
    const bool known = name && (of_validation(r, name) || (tests && of_test(r, name)));
    int n = 0;
    if (known)
        *out = name;
    if (e->bad || known)
        return;
    const char **word = measure_results(u->arena, r, f->words, tests, &n);
    const char *better = name ? meant(u->arena, r, name) : NULL;
    if (!name)
        diag_error(u->diag, e->span, "'%s' is a result of the validation%s split", f->name,
                   tests ? " or test" : "");
    else if (tests)
        diag_error(u->diag, e->span, "the validation and the test split have no result '%s'", name);
    else if (expect_metric(r, name))
        diag_error(u->diag, e->span, "'%s' is a result of the validation split, this is %s",
                   f->name, name);
    else
        diag_error(u->diag, e->span, "the validation split has no result '%s'", name);
    if (better)
        diag_help(u->diag, "write %s", better);
    else
        suggest(u->diag, name ? name : "", word, n, tests ? "the results" : "its results");
}

static void check_result(const Unit *u, const Graph *g, const Watch *w, const char *key)
{
    const char *metric = expect_metric(&g->recipe, w->result), *all = SPLIT "loss";
    if (expect_better(&g->recipe, w->result) == BETTER_NEITHER) {
        diag_error(u->diag, w->span,
                   "'%s' does not know whether larger values of '%s' are better: 'metrics' only "
                   "reports it",
                   key, metric);
        diag_help(u->diag, "write larger(%s = ...) or smaller(%s = ...) in place of report(...)",
                  metric, metric);
        return;
    }
    if (expect_reported(g, metric))
        return;
    for (int i = 1; i < g->nmetric; i++)
        all = arena_printf(u->arena, "%s, " SPLIT "%s", all, g->metric[i].name);
    for (int i = 0; g->training && i < g->recipe.nmeasure; i++)
        all = arena_printf(u->arena, "%s, " SPLIT "%s", all, g->recipe.measure[i].name);
    diag_error(u->diag, w->span, "'%s' has no %s that '%s' could watch", g->name, metric, key);
    diag_help(u->diag, "it reports %s", all);
}

/* Reports data that never have a validation split.  For all others, the program looks for one. */
static bool check_data(const Unit *u, const Recipe *r, const Watch *w, const char *key)
{
    const bool schedule = w == &r->schedule.watch;
    if (!r->data.unit)
        return true;
    diag_error(u->diag, w->span, "'%s' watches the validation split, and texts have none", key);
    diag_note(u->diag, "the data are declared on line %d", r->data.span.line);
    if (schedule)
        diag_help(u->diag, "watch the test split: test_%s", w->result + strlen(SPLIT));
    else
        diag_help(u->diag, "leave out '%s'; --stop-at and --epochs of the program end a training",
                  key);
    return false;
}

static void check_schedule(const Unit *u, Graph *g)
{
    Watch *w = &g->recipe.schedule.watch;
    if (g->recipe.schedule.kind != SCHED_PLATEAU)
        return;
    if (!w->result)
        w->result = SPLIT "loss";
    w->larger = expect_better(&g->recipe, w->result) == BETTER_LARGER;
    if (!of_validation(&g->recipe, w->result) || check_data(u, &g->recipe, w, "schedule"))
        check_result(u, g, w, "schedule");
}

void watch_check(const Unit *u, Graph *g)
{
    check_schedule(u, g);
    Watch *keep = &g->recipe.keep, *stop = &g->recipe.stop;
    if ((keep->result && !check_data(u, &g->recipe, keep, "keep")) ||
        (stop->epochs > 0 && !check_data(u, &g->recipe, stop, "stop")))
        return;
    if (stop->epochs > 0 && !stop->result)
        stop->result = keep->result ? keep->result : SPLIT "loss";
    if (keep->result)
        check_result(u, g, keep, "keep");
    if (stop->result && (!keep->result || strcmp(stop->result, keep->result) != 0))
        check_result(u, g, stop, "stop");
    keep->larger = keep->result && expect_better(&g->recipe, keep->result) == BETTER_LARGER;
    stop->larger = stop->result && expect_better(&g->recipe, stop->result) == BETTER_LARGER;
}
