/* measures.c -- the key `metrics`: metrics that the recipe writes as expressions.
 *
 *   metrics = [larger(near = mean(abs(output - price) < 0.5, axes = [0])), report(bias = ...)]
 *
 * A metric is the mean of its expression over the samples of a split.  The form says which values
 * are better, so that no run can keep the worst weights by mistake.
 */
#include "base/text.h"
#include "front/train.h"
#include <string.h>

enum { MEASURE_NAME = 32 }; /* letters of a name, which becomes a part of names in the log */

/* Names that Tenon gives to metrics, alone or before a name: accuracy_digit. */
static const char *const taken[] = {"accuracy", "auc",        "dice", "f1",        "iou",
                                    "loss",     "mae",        "r2",   "precision", "recall",
                                    "rmse",     "perplexity", "top5", NULL};

static const char example[] = "larger(near = mean(abs(output - price) < 0.5, axes = [0]))";

/* ---- names */

static bool check_taken(Unit *u, const Arg *arg)
{
    for (int i = 0; taken[i]; i++)
        if (strcmp(taken[i], arg->name) == 0 ||
            text_glob(arena_printf(u->arena, "%s_*", taken[i]), arg->name)) {
            diag_error(u->diag, arg->name_span, "the name '%s' belongs to Tenon's metric %s",
                       arg->name, taken[i]);
            diag_help(u->diag, "give it another name: own_%s", arg->name);
            return false;
        }
    return true;
}

static bool check_name(Unit *u, const Recipe *r, const Arg *arg)
{
    if (!arg->name) {
        diag_error(u->diag, arg->value->span, "this metric has no name");
        diag_help(u->diag, "write it in front, as in %s", example);
        return false;
    }
    if (strlen(arg->name) > MEASURE_NAME) {
        diag_error(u->diag, arg->name_span, "the name of a metric has at most %d letters, not %zu",
                   MEASURE_NAME, strlen(arg->name));
        return false;
    }
    for (int i = 0; i < r->nmeasure; i++)
        if (strcmp(r->measure[i].name, arg->name) == 0) {
            diag_error(u->diag, arg->name_span, "the recipe has two metrics '%s'", arg->name);
            diag_note(u->diag, "the first one is on line %d", r->measure[i].span.line);
            return false;
        }
    return check_taken(u, arg);
}

static void add_measure(Unit *u, Recipe *r, Better better, const Arg *arg, Expr **measure)
{
    if (!check_name(u, r, arg))
        return;
    if (r->nmeasure == RT_MEASURES) {
        diag_error(u->diag, arg->name_span, "a recipe has at most %d metrics of its own",
                   RT_MEASURES);
        return;
    }
    measure[r->nmeasure] = arg->value;
    r->measure[r->nmeasure++] =
        (Measure){.name = arg->name, .better = better, .span = arg->name_span};
}

/* Reads larger(NAME = EXPRESSION, ...), smaller(...) or report(...). */
static void read_form(Unit *u, Recipe *r, const Expr *e, Expr **measure)
{
    const char *word = e->kind == EX_CALL && e->a->kind == EX_NAME ? e->a->s : NULL,
               *known[FORM_NAMES];
    const Form *form = word ? form_find(measure_forms, word) : NULL;
    if (!word) {
        diag_error(u->diag, e->span, "this is no metric: a metric has a name and a form");
        diag_help(u->diag, "write %s", example);
    } else if (!form) {
        diag_error(u->diag, e->a->span, "there is no metric form '%s'", word);
        suggest(u->diag, word, known, form_names(measure_forms, known), "the forms");
    } else if (e->args.n == 0) {
        diag_error(u->diag, e->span, "'%s' has no metric", word);
        diag_help(u->diag, "write %s", example);
    }
    for (int k = 0; form && k < e->args.n; k++)
        add_measure(u, r, (Better)form->tag, &e->args.v[k], measure);
}

void measures_read(Unit *u, Recipe *r, Expr *e, Expr *measure[RT_MEASURES])
{
    const bool list = e->kind == EX_LIST;
    for (int i = 0; !e->bad && i < (list ? e->list.n : 1); i++)
        read_form(u, r, list ? e->list.v[i] : e, measure);
}

/* ---- results */

const Measure *measure_of(const Recipe *r, const char *result)
{
    static const char *const split[] = {"test_*", "validation_*"};
    for (size_t s = 0; r && s < sizeof split / sizeof *split; s++)
        for (int i = 0; i < r->nmeasure; i++)
            if (text_glob(split[s], result) &&
                strcmp(result + strlen(split[s]) - 1, r->measure[i].name) == 0)
                return &r->measure[i];
    return NULL;
}

const char **measure_results(Arena *a, const Recipe *r, const char *const *word, bool tests, int *n)
{
    const char **all = NULL;
    *n = 0;
    for (int i = 0; word[i]; i++)
        ARENA_PUSH(a, all, *n, word[i]);
    for (int i = 0; i < r->nmeasure; i++) {
        ARENA_PUSH(a, all, *n, arena_printf(a, "validation_%s", r->measure[i].name));
        if (tests)
            ARENA_PUSH(a, all, *n, arena_printf(a, "test_%s", r->measure[i].name));
    }
    ARENA_PUSH(a, all, *n, NULL);
    --*n;
    return all;
}

/* ---- nodes */

/* Reports a metric of a text: the last window of a text is filled up, and an expression cannot know
 * with how many tokens. */
static bool check_data(const Lower *l)
{
    const Recipe *r = &l->g->recipe;
    if (!r->data.unit || r->data.table)
        return true;
    diag_error(l->diag, r->measure->span,
               "metrics of your own are not for the next token of a text");
    diag_note(l->diag, "the data are declared on line %d", r->data.span.line);
    diag_help(l->diag, "leave out the key metrics: a text reports the loss and the perplexity");
    return false;
}

/* Reports weights of classes, or an ignored class, that the loss does not have: the program counts
 * the labels of the loss.  from: index of the first node of the metric. */
static bool check_counted(const Lower *l, int from)
{
    const Recipe *r = &l->g->recipe;
    for (int i = from; i < l->g->nnode; i++) {
        const Node *n = l->g->node[i];
        const bool classes = n->op->outputs == OUTPUTS_CLASSES;
        const Attr *weights = classes ? node_attr(n, "class_weights") : NULL,
                   *ignore = classes ? node_attr(n, "ignore") : NULL;
        bool same = !weights || (r->target->weights && strcmp(r->target->weights, weights->s) == 0);
        for (int k = 0; ignore && k < r->ntarget; k++)
            same &=
                n->in[1] != l->g->targets[k] || node_int(n, "ignore") + 1 == r->target[k].ignored;
        if (same)
            continue;
        diag_error(l->diag, node_span(n, weights ? "class_weights" : "ignore"),
                   "the loss does not have this %s", weights ? "class_weights" : "ignore");
        diag_help(l->diag, "give the loss the same one, or leave it out");
        return false;
    }
    return true;
}

/* Checks the node of a metric; false after reporting. */
static bool check_node(const Lower *l, const Expr *e, const char *name, const Node *n)
{
    if (n->shape.rank != 0) {
        diag_error(l->diag, e->span,
                   "the metric '%s' must be one number for each sample, this is %s", name,
                   shape_text(l->arena, &n->shape));
        diag_help(l->diag, "take the mean over its dimensions: mean(..., axes = [0])");
        return false;
    }
    if (!lower_uses_compared(l->g, n)) {
        diag_error(l->diag, e->span, "the metric '%s' does not depend on an output or a target",
                   name);
        diag_help(l->diag, "compare %s, as in mse(%s, %s)", lower_output_name(l->g, 0),
                  lower_output_name(l->g, 0), target_name(l->g->recipe.target));
        return false;
    }
    if (n->dtype != DT_REAL || n->op->leaf) {
        diag_error(l->diag, e->span, "the metric '%s' computes nothing from the target", name);
        diag_help(l->diag, "compare it, as in mse(%s, one_hot(%s, CLASSES))",
                  lower_output_name(l->g, 0), target_name(l->g->recipe.target));
        return false;
    }
    return true;
}

static Node *measure_value(Lower *l, Expr *e, const char *name)
{
    const int from = l->g->nnode, params = l->g->nparam;
    const Value v = e->bad ? value_poison() : lower_eval(l, e);
    if (v.kind == V_POISON)
        return NULL;
    if (l->g->nparam > params) {
        diag_error(l->diag, e->span, "the metric '%s' has a layer with parameters, '%s'", name,
                   l->g->param[params]->name);
        diag_help(l->diag, "nothing would train them: put the layer into the model");
        return NULL;
    }
    if (v.kind != V_TENSOR) {
        diag_error(l->diag, e->span,
                   "the metric '%s' must be a tensor with one number for each sample, this is %s",
                   name, value_kind(v));
        diag_help(l->diag, "write what it compares, as in mse(%s, %s)", lower_output_name(l->g, 0),
                  target_name(l->g->recipe.target));
        return NULL;
    }
    if (!lower_check_fit(l->u, l->g) || !check_node(l, e, name, v.node) || !check_counted(l, from))
        return NULL;
    return v.node;
}

bool lower_measures(Lower *l, Expr *const *measure)
{
    Graph *g = l->g;
    const int nodes = g->nnode, ids = g->next_id, loops = g->nloop;
    bool ok = g->recipe.nmeasure == 0 || check_data(l);
    for (int i = 0; ok && i < g->recipe.nmeasure; i++) {
        const char *name = g->recipe.measure[i].name;
        Node *n = measure_value(l, measure[i], name);
        ok = n;
        if (ok && !g->training)
            g->metric[g->nmetric++] = (Metric){name, n};
    }
    if (g->training) /* the nodes have shown that there are no errors */
        g->nnode = nodes, g->next_id = ids, g->nloop = loops;
    return ok;
}
