/* objective.c -- adds label, loss and metrics to a graph. */
#include "front/lower.h"
#include "front/terms.h"
#include <string.h>

/* The op for the metric accuracy; NULL if the output does not name a class. sigmoid_cross_entropy
 * is tested by name: only with this loss, each number of the output is a binary class. */
static const char *accuracy_of(const Graph *g)
{
    const Shape *y = &g->output->shape;
    const int rank = g->target->shape.rank + 1;
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], "sigmoid_cross_entropy") && g->node[i]->in[0] == g->output)
            return "binary_accuracy";
    return y->rank == rank && y->dim[rank - 1] > 1 ? "accuracy" : NULL;
}

static void add_metric(Graph *g, const char *name, const char *op, Span at)
{
    Node *n = op_make(g, op, at, 2, g->output, g->target);
    g->metric[g->nmetric++] = (Metric){name, n};
}

/* Adds what is reported besides the loss.  For numbers: the mean absolute error, and the mean
 * squared error, from which the runtime makes rmse and r2.  r2 compares with the mean of the
 * targets, which is not useful for images. */
static void add_metrics(Graph *g, Span at)
{
    const TargetSpec *target = &g->recipe.target;
    if (target->kind == LEARN_CLASS && accuracy_of(g))
        add_metric(g, "accuracy", accuracy_of(g), at);
    if (target->kind == LEARN_CLASS || g->output->dtype != DT_REAL ||
        !shape_same(&g->output->shape, &g->target->shape))
        return;
    add_metric(g, "mae", "l1", at);
    add_metric(g, "rmse", "mse", at);
    if (target->kind == LEARN_NUMBERS && target->rank == 1)
        add_metric(g, "r2", "mse", at);
}

/* The label is a class for each sample, or a class for each position if the output has a vector for
 * each position. */
static Shape label_shape(const Graph *g)
{
    const Shape *y = &g->output->shape;
    bool each = false;
    for (int i = 0; i < g->ninput; i++) {
        const Shape *x = &g->inputs[i]->shape;
        const bool sequence = g->inputs[i]->dtype == DT_I32 ? x->rank == 1 : x->rank == 2;
        each |= sequence && y->rank == 2 && y->dim[0] == x->dim[0];
    }
    return shape_make(true, "T", y->dim, each);
}

/* The input of this name; NULL: there is none. */
static Node *input_named(const Graph *g, const char *name)
{
    for (int i = 0; i < g->ninput; i++)
        if (strcmp(g->inputs[i]->name, name) == 0)
            return g->inputs[i];
    return NULL;
}

/* " is 'image'", "s are 'left', 'right'" */
static const char *input_names(Arena *a, const Graph *g)
{
    const char *all = g->ninput > 1 ? "s are" : " is";
    for (int i = 0; i < g->ninput; i++)
        all = arena_printf(a, "%s%s '%s'", all, i ? "," : "", g->inputs[i]->name);
    return all;
}

/* Makes the target of lower_loss: the label, numbers, or the input.  False after reporting. */
static bool make_target(const Unit *u, Graph *g, Span loss)
{
    const TargetSpec *t = &g->recipe.target;
    Node *own = t->kind == LEARN_INPUT ? input_named(g, t->name) : NULL;
    if (t->bad)
        return false;
    if (t->kind == LEARN_CLASS) {
        graph_label(g, label_shape(g), loss);
    } else if (t->kind == LEARN_NUMBERS) {
        graph_target(g, t->name, shape_make(true, NULL, t->dim, t->rank), t->span);
    } else if (!own) {
        diag_error(u->diag, t->span, "model '%s' has no input '%s'", g->name, t->name);
        diag_help(u->diag,
                  "its input%s; other targets are declared with their shape: target = %s: f32[1]",
                  input_names(u->arena, g), t->name);
        return false;
    } else if (own->dtype != DT_REAL) {
        diag_error(u->diag, t->span, "the target '%s' is tokens, and a target is numbers", t->name);
        diag_help(u->diag, "remove the key target: the network then learns a class");
        return false;
    } else {
        g->target = own;
    }
    return true;
}

/* Evaluates loss = NAME, or a layer value such as softmax_cross_entropy(smoothing = 0.1): calls the
 * op with output and target.  For mse, a label becomes a one-hot vector. */
static Value named_loss(Lower *l, Expr *e)
{
    const bool class = l->g->recipe.target.kind == LEARN_CLASS;
    Expr call = {.kind = EX_CALL, .span = e->span, .a = e};
    Expr *arg = arena_alloc(l->arena, 2 * sizeof *arg);
    arg[0] = (Expr){.kind = EX_NAME, .span = e->span, .s = "output"};
    arg[1] =
        (Expr){.kind = EX_NAME, .span = e->span, .s = class ? "label" : l->g->recipe.target.name};
    Expr one_hot = {.kind = EX_CALL,
                    .span = e->span,
                    .a = &(Expr){.kind = EX_NAME, .span = e->span, .s = "one_hot"}};
    Expr classes = {.kind = EX_INT,
                    .span = e->span,
                    .i = l->g->output->shape.rank
                             ? shape_count(&l->g->output->shape) / shape_count(&l->g->target->shape)
                             : 1};
    one_hot.args = (Args){(Arg[]){{.value = &arg[1]}, {.name = "classes", .value = &classes}}, 2};
    const bool encoded = class && e->kind == EX_NAME && strcmp(e->s, "mse") == 0;
    call.args = (Args){(Arg[]){{.value = &arg[0]}, {.value = encoded ? &one_hot : &arg[1]}}, 2};
    return lower_eval(l, &call);
}

/* Reports data that can only give classes, if the recipe has a target of numbers. */
static bool check_source(const Unit *u, const Graph *g)
{
    const DataSpec *data = &g->recipe.data;
    const TargetSpec *t = &g->recipe.target;
    if (t->kind == LEARN_CLASS || (!data->unit && !data->images) ||
        (t->kind == LEARN_INPUT && data->images))
        return true;
    diag_error(u->diag, data->span,
               "these data give classes or tokens, and the target '%s' is "
               "numbers",
               t->name);
    diag_help(u->diag, "take a directory with train_x.npy and train_y.npy: data = \"directory\"");
    return false;
}

/* Reports an operation of output and target that would broadcast one to the shape of the other: a
 * formula such as (output - price) ** 2 is then no comparison of each number with its own. */
static bool check_fit(const Unit *u, const Graph *g)
{
    for (int i = 0; g->target->dtype == DT_REAL && i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!(n->op->flags & OP_ELEMENTWISE) || n->nin != 2 ||
            !((n->in[0] == g->output && n->in[1] == g->target) ||
              (n->in[1] == g->output && n->in[0] == g->target)) ||
            shape_same(&g->output->shape, &g->target->shape))
            continue;
        diag_error(u->diag, n->span, "%s of the output %s and the target %s: the shapes differ",
                   n->op->name, shape_text(u->arena, &g->output->shape),
                   shape_text(u->arena, &g->target->shape));
        diag_help(u->diag, "reshape or slice one to the shape of the other, as in "
                           "reshape(output, [1])");
        return false;
    }
    return true;
}

/* Checks the labels of texts: a class for each text (tsv), or the next token after each position or
 * window. */
static bool check_answers(const Unit *u, const Graph *g)
{
    const DataSpec *data = &g->recipe.data;
    const char *y = shape_text(u->arena, &g->output->shape);
    if (!g->label || !g->recipe.present || !data->unit || diag_errors(u->diag))
        return true;
    const long long classes = shape_count(&g->output->shape) / shape_count(&g->label->shape);
    if (data->table ? g->label->shape.rank == 0 : classes >= data->vocab)
        return true;
    if (data->table) {
        diag_error(u->diag, data->span,
                   "tsv has one class for each text, and the model returns a vector for each "
                   "position, %s",
                   y);
        diag_help(u->diag, "return one: the last of lstm(h, ...), or mean(h, axes = [0])");
    } else {
        diag_error(u->diag, data->span,
                   "the data have %lld tokens, and the model distinguishes %lld, %s",
                   (long long)data->vocab, classes, y);
        diag_help(u->diag, "end it with dense(vocab)");
    }
    return false;
}

/* Reports an expectation of a metric that the program does not have.  Perplexity is reported if the
 * loss is that of the next token. */
static void check_expect(const Unit *u, const Graph *g)
{
    const Expect *e = &g->recipe.expect;
    const char *name = e->metric ? strchr(e->metric, '_') + 1 : "loss", *all = "test_loss";
    bool found = strcmp(name, "perplexity") == 0 && graph_next_token(g);
    for (int i = 0; i < g->nmetric; i++) {
        found |= strcmp(g->metric[i].name, name) == 0;
        if (i > 0)
            all = arena_printf(u->arena, "%s, test_%s", all, g->metric[i].name);
    }
    if (found)
        return;
    diag_error(u->diag, e->span, "'%s' has no %s to compare with", g->name, name);
    if (strcmp(name, "perplexity") == 0)
        diag_help(u->diag, "perplexity is reported for data = text(...) with the plain "
                           "softmax_cross_entropy");
    else
        diag_help(u->diag, "it reports %s", all);
}

/* Evaluates a loss or a term; NULL after reporting. */
static Node *loss_value(Lower *l, Expr *e)
{
    Diag *d = l->u->diag;
    Callee c;
    const bool named = e->kind == EX_NAME && !e->bad && callee_find(l->u, e->s, &c);
    Value v = named ? named_loss(l, e) : lower_eval(l, e);
    if (v.kind == V_LAYER)
        v = named_loss(l, e);
    if (v.kind != V_TENSOR) {
        if (v.kind != V_POISON)
            diag_error(d, e->span,
                       "the loss is a tensor with one number for each sample, this is %s",
                       value_kind(v));
        return NULL;
    }
    if (!check_fit(l->u, l->g))
        return NULL;
    if (v.node->shape.rank != 0) {
        diag_error(d, e->span, "the loss is one number for each sample, this is %s",
                   shape_text(l->arena, &v.node->shape));
        if (l->g->recipe.target.kind == LEARN_CLASS)
            diag_help(d, "end it with a loss such as softmax_cross_entropy or mse");
        else
            diag_help(d, "take the mean over its dimensions: mean(..., axes = [0]); or use mse, l1 "
                         "or huber");
        return NULL;
    }
    return v.node;
}

/* Whether n depends on the output or the target. */
static bool compares(const Graph *g, const Node *n)
{
    const bool *needed = graph_needed(g, n);
    return needed[g->output->id] || needed[g->target->id];
}

/* Adds the terms in their order.  Each one is a metric after the loss; false after reporting. */
static bool add_terms(Lower *l, const Args *terms, Span at)
{
    Graph *g = l->g;
    Node *sum = NULL;
    int n = 1;
    for (int i = 0; i < terms->n; i++) {
        Node *term = loss_value(l, terms->v[i].value);
        if (!term)
            return false;
        if (!compares(g, term)) {
            diag_error(l->diag, terms->v[i].value->span,
                       "the term '%s' of the loss does not depend on the output or the target",
                       terms->v[i].name);
            return false;
        }
        g->metric[n++] = (Metric){arena_printf(l->arena, "loss_%s", terms->v[i].name), term};
        sum = sum ? op_make(g, "add", at, 2, sum, term) : term;
    }
    g->loss = sum;
    g->nmetric = n;
    return true;
}

bool lower_loss(Unit *u, Graph *g, Expr *loss)
{
    Lower l = {.u = u, .arena = u->arena, .diag = u->diag, .g = g};
    const int before = diag_errors(u->diag);
    const Args *terms = terms_of(u, loss);
    l.scope = lower_scope(&l, NULL, "train"); /* a reserved word, so no layer has this path */
    if (!make_target(u, g, loss->span) || !check_source(u, g) || !check_answers(u, g))
        return false;
    lower_declare(&l, "output", value_node(g->output));
    lower_declare(&l, g->recipe.target.kind == LEARN_CLASS ? "label" : g->recipe.target.name,
                  value_node(g->target));
    if (terms && loss->bad) /* already reported */
        return false;
    if (terms && !add_terms(&l, terms, loss->span))
        return false;
    if (!terms) {
        g->loss = loss_value(&l, loss);
        g->nmetric = 1;
    }
    if (!g->loss)
        return false;
    g->metric[0] = (Metric){"loss", g->loss};
    add_metrics(g, loss->span);
    check_expect(u, g);
    return diag_errors(u->diag) == before;
}
