/* expect.c -- the key `expect`: the result that a full run must reach. */
#include "base/text.h"
#include "front/train.h"
#include <math.h>
#include <string.h>

const char *const expect_results[] = {"test_accuracy",    "test_loss",
                                      "test_mae",         "test_rmse",
                                      "test_r2",          "test_iou",
                                      "test_dice",        "validation_accuracy",
                                      "validation_loss",  "validation_mae",
                                      "validation_rmse",  "validation_r2",
                                      "validation_iou",   "validation_dice",
                                      "test_auc",         "validation_auc",
                                      "train_accuracy",   "train_loss",
                                      "train_mae",        "train_rmse",
                                      "train_r2",         "train_iou",
                                      "train_dice",       "test_perplexity",
                                      "train_perplexity", NULL};
/* Whether the result is this metric of a split; `form` can have a `*`. */
static bool is_metric(Unit *u, const char *result, const char *form)
{
    static const char *const split[] = {"test", "validation", "train"};
    bool any = false;
    for (size_t i = 0; i < sizeof split / sizeof *split; i++)
        any |= text_glob(arena_printf(u->arena, "%s_%s", split[i], form), result);
    return any;
}

/* Reports a comparison that is always false: the metric is never below low or above high. */
static void check_possible(Unit *u, const Expect *x, Span at)
{
    static const struct {
        const char *metric;
        double low, high;
        const char *range;
    } known[] = {{"accuracy*", 0, 1, "from 0 to 1"},  {"auc", 0, 1, "from 0 to 1"},
                 {"iou*", 0, 1, "from 0 to 1"},       {"dice*", 0, 1, "from 0 to 1"},
                 {"r2*", -INFINITY, 1, "at most 1"},  {"mae*", 0, INFINITY, "at least 0"},
                 {"rmse*", 0, INFINITY, "at least 0"}};
    const double v = x->value;
    const bool above = x->op[0] == '>', equal = x->op[1] == '=';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is_metric(u, x->metric, known[i].metric) &&
            (above ? v > known[i].high || (v == known[i].high && !equal)
                   : v < known[i].low || (v == known[i].low && !equal)))
            diag_error(u->diag, at, "%s is %s, never %s %.10g", x->metric, known[i].range, x->op,
                       v);
}

/* test_loss_NAME: a term of the loss; test_accuracy_NAME: a metric of one of several targets.
 * lower_loss checks that it exists. */
static bool is_named(Unit *u, const char *result)
{
    static const char *const form[] = {"loss_*", "accuracy_*", "mae_*", "rmse_*",
                                       "r2_*",   "iou_*",      "dice_*"};
    bool any = false;
    for (size_t i = 0; i < sizeof form / sizeof *form; i++)
        any |= is_metric(u, result, form[i]);
    return any;
}

void expect_read(Unit *u, Recipe *r, Expr *e)
{
    const char *const *const metric = expect_results;
    static const Field any = {.name = "expect", .low = -INFINITY, .high = INFINITY};
    int known = 0;
    int i = 0;
    if (e->bad)
        return;
    if (e->kind != EX_BINARY || e->op < DO_LT || e->op > DO_GE || e->a->kind != EX_NAME) {
        diag_error(u->diag, e->span, "'expect' compares a result with a number");
        diag_help(u->diag, "write test_accuracy >= 0.99");
        return;
    }
    while (metric[known])
        known++;
    while (i < known && strcmp(metric[i], e->a->s) != 0)
        i++;
    const char *name = is_named(u, e->a->s) ? e->a->s : metric[i];
    if (!name) {
        diag_error(u->diag, e->a->span, "there is no result '%s'", e->a->s);
        suggest(u->diag, e->a->s, metric, known, "the results");
    } else if (form_number(u, e->b, "expect", &any, &r->expect.value)) {
        r->expect.metric = name;
        r->expect.span = e->a->span;
        r->expect.op = operator_text(e->op);
        check_possible(u, &r->expect, e->span);
    }
}

void expect_check(const Unit *u, const Graph *g)
{
    const Expect *e = &g->recipe.expect;
    const char *name = e->metric ? strchr(e->metric, '_') + 1 : "loss", *all = "test_loss";
    const bool binary = !graph_several(g) && g->recipe.target->kind == LEARN_CLASS &&
                        shape_count(&g->output->shape) == 1;
    bool found = (strcmp(name, "perplexity") == 0 && graph_next_token(g)) ||
                 (strcmp(name, "auc") == 0 && binary);
    for (int i = 0; i < g->nmetric; i++) {
        found |= strcmp(g->metric[i].name, name) == 0;
        if (i > 0)
            all = arena_printf(u->arena, "%s, test_%s", all, g->metric[i].name);
    }
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
