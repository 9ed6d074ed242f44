/* expect.c -- the key `expect`: the result that a full run must reach. */
#include "base/text.h"
#include "front/train.h"
#include <math.h>
#include <string.h>

/* clang-format off */
#define RESULTS_OF(split)                                                                          \
    split "_accuracy", split "_loss", split "_mae", split "_rmse", split "_r2", split "_iou",      \
    split "_dice"
/* clang-format on */

const char *const expect_results[] = {RESULTS_OF("test"),  RESULTS_OF("validation"),
                                      "test_auc",          "validation_auc",
                                      RESULTS_OF("train"), "test_perplexity",
                                      "train_perplexity",  NULL};

typedef struct Known {
    const char *metric;
    const char *named; /* test_loss_NAME: of several terms or targets; NULL: there is none */
    bool larger;       /* a larger value is better */
    double low, high;
    const char *range; /* of its values, in words; NULL: any number */
} Known;

static const Known known_metrics[] = {
    {"accuracy", "accuracy_*", true, 0, 1, "from 0 to 1"},
    {"auc", NULL, true, 0, 1, "from 0 to 1"},
    {"dice", "dice_*", true, 0, 1, "from 0 to 1"},
    {"iou", "iou_*", true, 0, 1, "from 0 to 1"},
    {"loss", "loss_*", false, -INFINITY, INFINITY, NULL},
    {"mae", "mae_*", false, 0, INFINITY, "at least 0"},
    {"perplexity", NULL, false, -INFINITY, INFINITY, NULL},
    {"r2", "r2_*", true, -INFINITY, 1, "at most 1"},
    {"rmse", "rmse_*", false, 0, INFINITY, "at least 0"},
};

/* "mae_price" of "test_mae_price". */
static const char *without_split(const char *result)
{
    return strchr(result, '_') + 1;
}

/* The metric of a result such as "test_mae" or "test_mae_NAME"; NULL: there is no such result.
 * expect_check reports a NAME that does not exist. */
static const Known *metric_of(const char *result)
{
    static const char *const split[] = {"test_*", "validation_*", "train_*"};
    for (size_t i = 0; i < sizeof split / sizeof *split; i++)
        for (size_t k = 0; k < sizeof known_metrics / sizeof *known_metrics; k++) {
            const Known *known = &known_metrics[k];
            if (text_glob(split[i], result) &&
                (strcmp(known->metric, without_split(result)) == 0 ||
                 (known->named && text_glob(known->named, without_split(result)))))
                return known;
        }
    return NULL;
}

const char *expect_metric(const Recipe *r, const char *result)
{
    return metric_of(result) || measure_of(r, result) ? without_split(result) : NULL;
}

Better expect_better(const Recipe *r, const char *result)
{
    const Measure *own = measure_of(r, result);
    return own ? own->better : metric_of(result)->larger ? BETTER_LARGER : BETTER_SMALLER;
}

/* Reports a comparison that is always false: the metric is never below low or above high. */
static void check_possible(Unit *u, const Expect *x, Span at)
{
    const Known *known = metric_of(x->metric);
    const double v = x->value;
    const bool above = x->op[0] == '>', equal = x->op[1] == '=';
    if (known && known->range &&
        (above ? v > known->high || (v == known->high && !equal)
               : v < known->low || (v == known->low && !equal)))
        diag_error(u->diag, at, "%s is %s, never %s %.10g", x->metric, known->range, x->op, v);
}

void expect_read(Unit *u, Recipe *r, Expr *e)
{
    static const Field any = {.name = "expect", .low = -INFINITY, .high = INFINITY};
    int known = 0, i = 0;
    if (e->bad)
        return;
    if (e->kind != EX_BINARY || e->op < DO_LT || e->op > DO_GE || e->a->kind != EX_NAME) {
        diag_error(u->diag, e->span, "'expect' compares a result with a number");
        diag_help(u->diag, "write test_accuracy >= 0.99");
        return;
    }
    const char **metric = measure_results(u->arena, r, expect_results, true, &known);
    while (i < known && strcmp(metric[i], e->a->s) != 0)
        i++;
    const Known *named = metric_of(e->a->s);
    const char *name = named && named->named ? e->a->s : metric[i];
    const char *of_test = text_glob("train_*", e->a->s)
                              ? arena_printf(u->arena, "test_%s", without_split(e->a->s))
                              : NULL;
    if (!name && of_test && measure_of(r, of_test)) {
        diag_error(u->diag, e->a->span,
                   "training steps do not compute '%s', a metric of the recipe",
                   without_split(e->a->s));
        diag_help(u->diag, "write %s", of_test);
    } else if (!name) {
        diag_error(u->diag, e->a->span, "there is no result '%s'", e->a->s);
        suggest(u->diag, e->a->s, metric, known, "the results");
    } else if (form_number(u, e->b, "expect", &any, &r->expect.value)) {
        r->expect.metric = name;
        r->expect.span = e->a->span;
        r->expect.op = operator_text(e->op);
        check_possible(u, &r->expect, e->span);
    }
}

bool expect_reported(const Graph *g, const char *metric)
{
    const bool binary = !graph_several(g) && g->recipe.target->kind == LEARN_CLASS &&
                        shape_count(&g->output->shape) == 1;
    return (strcmp(metric, "perplexity") == 0 && graph_next_token(g)) ||
           (strcmp(metric, "auc") == 0 && binary) || graph_metric(g, metric) >= 0 ||
           measure_of(&g->recipe, arena_printf(g->arena, "test_%s", metric));
}

void expect_check(const Unit *u, const Graph *g)
{
    const Expect *e = &g->recipe.expect;
    const char *name = e->metric ? without_split(e->metric) : "loss", *all = "test_loss";
    const bool found = expect_reported(g, name);
    for (int i = 1; i < g->nmetric; i++)
        all = arena_printf(u->arena, "%s, test_%s", all, g->metric[i].name);
    for (int i = 0; g->training && i < g->recipe.nmeasure; i++)
        all = arena_printf(u->arena, "%s, test_%s", all, g->recipe.measure[i].name);
    if (found)
        return;
    diag_error(u->diag, e->span, "'%s' has no %s to compare with", g->name, name);
    if (strcmp(name, "auc") == 0)
        diag_help(u->diag, "auc is reported for one output with sigmoid_cross_entropy");
    else if (strcmp(name, "perplexity") == 0)
        diag_help(u->diag, "perplexity is reported for data = text(...) with the plain "
                           "softmax_cross_entropy");
    else
        diag_help(u->diag, "it reports %s", all);
}
