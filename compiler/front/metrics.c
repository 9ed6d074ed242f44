/* metrics.c -- what is reported besides the loss, and what the numbers of each output mean.
 *
 * With several outputs or targets, a target has metrics if a loss compares it directly with an
 * output, as in mse(output, price), (output - price) ** 2 or mse(output, one_hot(digit, 10)).  If
 * several outputs are compared with it, the first one of the model counts.  One target that is
 * numbers follows the same rule: an error of log(price) or of a logit would mean nothing.
 */
#include "front/lower.h"
#include <string.h>

/* The operand of a loss as the model made it.  For a class for each pixel, the rule `build` of the
 * loss has put two nodes after this operand, which make a sequence of its pixels. */
static const Node *compared_by(const Node *n)
{
    return node_attr(n, "pixels") ? n->in[0]->in[0]->in[0] : n->in[0];
}

/* The loss that compares this output with classes of this target; NULL: none. */
static const Node *classes_loss(const Graph *g, const Node *output, const Node *target)
{
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (n->op->outputs == OUTPUTS_CLASSES && compared_by(n) == output &&
            (!target || n->in[1] == target))
            return n;
    }
    return NULL;
}

static bool is_one_hot(const Node *n, const Node *of)
{
    return node_is(n, "one_hot") && n->in[0] == of;
}

/* Whether n is an operation of this output and this target. */
static bool compares(const Node *n, const Node *output, const Node *target)
{
    if (n->nin < 2)
        return false;
    const Node *a = compared_by(n), *b = n->in[1];
    if (a == output)
        return b == target || is_one_hot(b, target);
    return (n->op->flags & OP_ELEMENTWISE) && b == output && (a == target || is_one_hot(a, target));
}

/* The output that target k is compared with; NULL: none. */
static Node *output_of(const Graph *g, int k)
{
    if (lower_output_count(g) == 1 && g->recipe.ntarget == 1)
        return g->output;
    for (int i = 0; i < lower_output_count(g); i++)
        for (int m = 0; m < g->nnode; m++)
            if (compares(g->node[m], lower_output(g, i), g->targets[k]))
                return lower_output(g, i);
    return NULL;
}

static bool is_binary(const Graph *g, const Node *output)
{
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->op->outputs == OUTPUTS_BINARY && g->node[i]->in[0] == output)
            return true;
    return false;
}

/* ---- metrics */

/* The op for the metric accuracy; NULL if the output does not name a class. */
static const char *accuracy_of(const Graph *g, const Node *output, const Node *target)
{
    const Shape *y = &output->shape;
    const int rank = target->shape.rank + 1;
    if (y->rank != rank)
        return NULL;
    if (y->dim[rank - 1] > 1)
        return "accuracy";
    return is_binary(g, output) ? "binary_accuracy" : NULL;
}

/* The index of an output of the model. */
static int index_of(const Graph *g, const Node *output)
{
    int i = 0;
    while (i + 1 < lower_output_count(g) && lower_output(g, i) != output)
        i++;
    return i;
}

/* Adds a metric.  With several targets, its name has the target: "accuracy_digit". */
static void add_metric(Graph *g, const char *name, const char *op, Span at, Node *output, int k)
{
    if (g->recipe.ntarget > 1)
        name = arena_printf(g->arena, "%s_%s", name, target_name(&g->recipe.target[k]));
    g->metric[g->nmetric++] = (Metric){name, op_make(g, op, at, 2, output, g->targets[k])};
}

/* How the loss compares an output with numbers: by their difference, or as truths by
 * sigmoid_cross_entropy. */
typedef enum { COMPARED_NOT, COMPARED_ERRORS, COMPARED_TRUTHS } Compared;

/* A product or a sum of both, as in softplus(x) - t * x, is no comparison. */
static Compared comparison_in(const Node *n, const Node *output, const Node *target)
{
    if (n->nin < 2 || (n->op->flags & OP_COMMUTES) || !compares(n, output, target) ||
        (n->in[0] != target && n->in[1] != target))
        return COMPARED_NOT;
    return n->op->outputs == OUTPUTS_BINARY ? COMPARED_TRUTHS : COMPARED_ERRORS;
}

static Compared comparison_of(const Graph *g, const Node *output, const Node *target)
{
    Compared found = COMPARED_NOT;
    if (output->dtype != DT_REAL || !shape_same(&output->shape, &target->shape))
        return COMPARED_NOT;
    for (int i = 0; i < g->nnode && found != COMPARED_TRUTHS; i++) {
        const Compared c = comparison_in(g->node[i], output, target);
        found = c != COMPARED_NOT ? c : found;
    }
    return found;
}

/* The nearest parameter before a node: one of the layer that computes it. */
static const Param *param_before(const Graph *g, const Node *n)
{
    const Node **queue = arena_alloc(g->arena, sizeof *queue * (size_t)(g->next_id + 1));
    bool *seen = arena_alloc(g->arena, sizeof *seen * (size_t)(g->next_id + 1));
    int first = 0, end = 0;
    queue[end++] = n;
    for (seen[n->id] = true; first < end && !queue[first]->param; first++)
        for (int k = 0; k < queue[first]->nin; k++)
            if (!seen[queue[first]->in[k]->id]) {
                seen[queue[first]->in[k]->id] = true;
                queue[end++] = queue[first]->in[k];
            }
    return first < end ? queue[first]->param : NULL;
}

static void set_compared(Graph *g, int k, const Node *output)
{
    g->recipe.target[k].compared = output ? index_of(g, output) : 0;
    g->recipe.target[k].head = output ? param_before(g, output) : NULL;
}

/* Adds the metrics of a target that is numbers.  For errors: the mean absolute error, and the mean
 * squared error, from which the runtime makes rmse and r2.  r2 compares with the mean of the
 * targets, which is not useful for images. For truths: the accuracy of each number; for masks also
 * the overlap and the union, from which the runtime makes iou and dice.  An input as a target has
 * no truths. */
static void add_number_metrics(Graph *g, Span at, int k)
{
    const TargetSpec *spec = &g->recipe.target[k];
    Compared how = COMPARED_NOT;
    Node *output = NULL;
    for (int i = 0; i < lower_output_count(g) && how == COMPARED_NOT; i++) {
        output = lower_output(g, i);
        how = comparison_of(g, output, g->targets[k]);
    }
    set_compared(g, k, output);
    if (how == COMPARED_ERRORS) {
        add_metric(g, "mae", "l1", at, output, k);
        add_metric(g, "rmse", "mse", at, output, k);
        if (spec->kind == LEARN_NUMBERS && spec->rank == 1)
            add_metric(g, "r2", "mse", at, output, k);
    }
    if (how == COMPARED_TRUTHS && spec->kind == LEARN_NUMBERS) {
        add_metric(g, "accuracy", "numbers_accuracy", at, output, k);
        if (spec->rank > 1) {
            add_metric(g, "iou", "mask_overlap", at, output, k);
            add_metric(g, "dice", "mask_union", at, output, k);
        }
    }
}

/* A class that the loss does not use has no metrics. */
static void add_metrics(Graph *g, Span at, int k)
{
    if (g->recipe.target[k].kind != LEARN_CLASS) {
        add_number_metrics(g, at, k);
        return;
    }
    Node *output = graph_needed(g, g->loss)[g->targets[k]->id] ? output_of(g, k) : NULL;
    const Node *loss = output ? classes_loss(g, output, g->targets[k]) : NULL;
    const bool pixels = loss && node_attr(loss, "pixels");
    const char *op = pixels ? "accuracy" : output ? accuracy_of(g, output, g->targets[k]) : NULL;
    set_compared(g, k, output);
    if (op)
        add_metric(g, "accuracy", op, at, pixels ? loss->in[0] : output, k);
}

void lower_metrics(Graph *g, Span at)
{
    for (int k = 0; k < g->recipe.ntarget; k++)
        add_metrics(g, at, k);
}

/* ---- classes */

/* The classes that n distinguishes in a target of classes; 0: n does not say. */
static int64_t classes_in(const Node *n, const Node *target)
{
    if (is_one_hot(n, target))
        return node_int(n, "classes");
    if (n->nin < 2 || n->in[1] != target || n->op->outputs == OUTPUTS_NUMBERS)
        return 0;
    const Shape *x = &n->in[0]->shape;
    const int64_t last = x->rank > 0 ? x->dim[x->rank - 1] : 0;
    return n->op->outputs == OUTPUTS_BINARY && last == 1 ? 2 : last;
}

static bool find_classes(Lower *l, int k)
{
    const Graph *g = l->g;
    TargetSpec *t = &l->g->recipe.target[k];
    const Node *first = NULL;
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        const int64_t classes = classes_in(n, g->targets[k]);
        if (classes == 0)
            continue;
        if (first && classes != t->classes) {
            diag_error(l->diag, n->span, "the target '%s' has %lld classes here and %lld in %s",
                       target_name(t), (long long)classes, (long long)t->classes, first->op->name);
            diag_help(l->diag, "end each of the outputs with one number for each class");
            return false;
        }
        first = n;
        t->classes = classes;
    }
    if (!first) {
        diag_error(l->diag, t->name ? t->span : g->loss->span,
                   "the loss does not say how many classes the target '%s' has", target_name(t));
        diag_help(l->diag, "compare it by softmax_cross_entropy, or use one_hot(%s, CLASSES)",
                  target_name(t));
    }
    return first;
}

static void find_meaning(const Graph *g, Output *o)
{
    const Shape *y = &o->shape;
    const Node *loss = classes_loss(g, o->node, NULL);
    o->binary = is_binary(g, o->node);
    o->pixels = loss && node_attr(loss, "pixels") ? node_int(loss, "pixels") : 0;
    o->classes = !loss ? 0 : y->dim[o->pixels ? 0 : y->rank - 1];
}

/* Marks the targets that a loss compares as truths: the runtime checks their numbers. */
static void find_truths(Graph *g)
{
    for (int i = 0; i < g->nnode; i++)
        for (int k = 0; k < g->recipe.ntarget && g->node[i]->op->outputs == OUTPUTS_BINARY; k++)
            g->recipe.target[k].truths |=
                g->node[i]->in[1] == g->targets[k] && g->recipe.target[k].kind == LEARN_NUMBERS;
}

/* Finds the weights of the classes: the program divides by the sum of the labels' weights.  All
 * losses must give the same weights, or none.  Only labels that the data hold as classes can have
 * weights. */
static bool find_weights(Lower *l)
{
    Recipe *r = &l->g->recipe;
    for (int i = 0; i < l->g->nnode; i++) {
        const Node *n = l->g->node[i];
        if (n->op->outputs != OUTPUTS_CLASSES || !node_attr(n, "class_weights"))
            continue;
        const char *weights = node_list(n, "class_weights")->s;
        const bool alone = r->ntarget == 1, text = r->data.unit && !r->data.table,
                   same = !r->target->weights || strcmp(r->target->weights, weights) == 0;
        r->target->weights = weights;
        if (alone && !text && same)
            continue;
        diag_error(l->diag, node_span(n, "class_weights"), "%s",
                   !alone ? "class_weights are for a recipe with one target"
                   : text ? "class_weights are not for the next token of a text"
                          : "another loss has other class_weights");
        diag_help(l->diag, alone && !text ? "give both losses the same ones"
                                          : "leave them out: a factor can weight the whole loss");
        return false;
    }
    return true;
}

/* Finds the class that is not scored: all losses of a target name the same one, or none. */
static bool find_ignored(Lower *l, int k)
{
    TargetSpec *t = &l->g->recipe.target[k];
    for (int i = 0; i < l->g->nnode; i++) {
        const Node *n = l->g->node[i];
        if (n->op->outputs != OUTPUTS_CLASSES || n->in[1] != l->g->targets[k] ||
            !node_attr(n, "ignore"))
            continue;
        const int64_t ignored = node_int(n, "ignore") + 1;
        if (t->ignored && t->ignored != ignored) {
            diag_error(l->diag, node_span(n, "ignore"),
                       "another loss ignores the class %lld of '%s', and this one ignores %lld",
                       (long long)t->ignored - 1, target_name(t), (long long)ignored - 1);
            diag_help(l->diag, "name the same class in both");
            return false;
        }
        t->ignored = ignored;
    }
    return true;
}

bool lower_classes(Lower *l)
{
    Graph *g = l->g;
    bool ok = true;
    find_truths(g);
    g->probable = is_binary(g, g->output);
    const Node *loss = g->output ? classes_loss(g, g->output, NULL) : NULL;
    g->pixels = loss && node_attr(loss, "pixels") ? node_int(loss, "pixels") : 0;
    for (int k = 0; k < g->recipe.ntarget; k++)
        ok = find_ignored(l, k) && ok;
    ok = find_weights(l) && ok;
    if (!graph_several(g))
        return ok;
    for (int k = 0; k < g->recipe.ntarget; k++)
        if (g->recipe.target[k].kind == LEARN_CLASS)
            ok = find_classes(l, k) && ok;
    for (int i = 0; i < g->noutput; i++)
        find_meaning(g, &g->outputs[i]);
    return ok;
}
