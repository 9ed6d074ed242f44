/* objective.c -- adds label, loss and metrics to a graph. */
#include "base/round.h"
#include "front/terms.h"
#include "front/train.h"
#include <string.h>

/* The label has its declared shape.  Else it is a class for each sample, or a class for each
 * position if the output has a vector for each position. */
static Shape label_shape(const Graph *g, const TargetSpec *t)
{
    if (t->rank > 0)
        return shape_make(true, t->rank > 1 ? "HW" : "T", t->dim, t->rank);
    const Shape *y = &lower_output(g, 0)->shape;
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

/* Makes a target: a label, numbers, or an input.  NULL after reporting. */
static Node *make_target(const Unit *u, Graph *g, const TargetSpec *t, Span loss)
{
    Node *own = t->kind == LEARN_INPUT ? input_named(g, t->name) : NULL;
    const bool several = g->recipe.ntarget > 1;
    if (t->kind == LEARN_CLASS) {
        Node *n = graph_label(g, several ? shape_make(true, NULL, NULL, 0) : label_shape(g, t),
                              t->name ? t->span : loss);
        n->name = target_name(t);
        return n;
    }
    if (t->kind == LEARN_NUMBERS)
        return graph_target(g, t->name, shape_make(true, NULL, t->dim, t->rank), t->span);
    if (!own) {
        diag_error(u->diag, t->span, "model '%s' has no input '%s'", g->name, t->name);
        diag_help(u->diag,
                  "its input%s; other targets are declared with their shape: target = %s: f32[1]",
                  input_names(u->arena, g), t->name);
        return NULL;
    }
    if (own->dtype != DT_REAL) {
        diag_error(u->diag, t->span, "the target '%s' is tokens, and a target is numbers", t->name);
        diag_help(u->diag, "remove the key target: the network then learns a class");
        return NULL;
    }
    return own;
}

/* Reports a target that has the name of an output, and one of several targets that has the name of
 * an input's array. */
static bool check_target_name(const Unit *u, const Graph *g, const TargetSpec *t)
{
    bool ok = true;
    for (int i = 0; i < g->noutput; i++)
        if (strcmp(g->outputs[i].name, target_name(t)) == 0) {
            diag_error(u->diag, t->name ? t->span : g->outputs[i].span,
                       "'%s' is the name of an output and of a target", target_name(t));
            diag_help(u->diag, "give one of them another name: a loss uses both");
            ok = false;
        }
    if (g->recipe.ntarget < 2 || t->kind == LEARN_INPUT)
        return ok;
    const bool array = g->ninput > 1 ? input_named(g, t->name) != NULL : strcmp(t->name, "x") == 0;
    if (array) {
        diag_error(u->diag, t->span, "train_%s.npy holds an input, so no target can be called '%s'",
                   t->name, t->name);
        diag_help(u->diag, "give the target another name, as in (%s_of_sample: class, ...)",
                  t->name);
    }
    return ok && !array;
}

/* Makes the targets.  In a row of several targets, each target begins at a multiple of 8 bytes. */
static bool make_targets(const Unit *u, Graph *g, Span loss)
{
    Recipe *r = &g->recipe;
    bool ok = true;
    for (int i = 0; i < r->ntarget; i++) {
        TargetSpec *t = &r->target[i];
        Node *n = t->bad || !check_target_name(u, g, t) ? NULL : make_target(u, g, t, loss);
        ok = ok && n;
        g->targets[i] = n;
        if (!n || r->ntarget < 2 || t->kind == LEARN_INPUT)
            continue;
        const int64_t each = n->dtype == DT_I32 ? (int64_t)sizeof(int32_t) : dtype_bytes(r->dtype);
        t->at = r->target_bytes;
        node_set_int(g, n, "at", t->at);
        r->target_bytes += round_up(shape_count(&n->shape) * each, 8);
    }
    g->target = g->targets[0];
    return ok;
}

/* Reports a loss without arguments if there is not one output and one target to compare. */
static bool check_one(const Lower *l, const Expr *e)
{
    const Graph *g = l->g;
    const int outputs = lower_output_count(g), targets = g->recipe.ntarget;
    if (outputs == 1 && targets == 1)
        return true;
    diag_error(l->diag, e->span,
               "this loss does not say what it compares: '%s' has %d output%s and %d target%s",
               g->name, outputs, outputs > 1 ? "s" : "", targets, targets > 1 ? "s" : "");
    Callee c = {0};
    const bool named = e->kind == EX_NAME && callee_find(l->u, e->s, &c);
    const bool class = c.op && c.op->outputs != OUTPUTS_NUMBERS;
    int k = 0;
    while (k < targets - 1 && (g->recipe.target[k].kind == LEARN_CLASS) != class)
        k++;
    diag_help(l->diag, "name them, as in %s(%s, %s)", named ? e->s : "mse",
              lower_output_name(g, k < outputs ? k : 0), target_name(&g->recipe.target[k]));
    return false;
}

/* Evaluates loss = NAME, or a layer value such as softmax_cross_entropy(smoothing = 0.1): calls the
 * op with output and target.  For mse, a label becomes a one-hot vector. */
static Value named_loss(Lower *l, Expr *e)
{
    if (!check_one(l, e))
        return value_poison();
    const bool class = l->g->recipe.target->kind == LEARN_CLASS;
    Expr call = {.kind = EX_CALL, .span = e->span, .a = e};
    Expr *arg = arena_alloc(l->arena, 2 * sizeof *arg);
    arg[0] = (Expr){.kind = EX_NAME, .span = e->span, .s = lower_output_name(l->g, 0)};
    arg[1] = (Expr){.kind = EX_NAME, .span = e->span, .s = target_name(l->g->recipe.target)};
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

/* Reports data that cannot give the recipe's targets, or a text whose next token has no single
 * output. */
static bool check_source(const Unit *u, const Graph *g)
{
    const DataSpec *data = &g->recipe.data;
    const TargetSpec *t = g->recipe.target;
    const bool read = data->unit || data->images;
    if (read && g->recipe.ntarget > 1) {
        diag_error(u->diag, data->span, "these data give one target, and the recipe has %d",
                   g->recipe.ntarget);
        diag_help(u->diag,
                  "take a directory with train_x.npy, train_%s.npy, train_%s.npy: data = "
                  "\"directory\"",
                  target_name(&t[0]), target_name(&t[1]));
        return false;
    }
    if (g->noutput > 1 && data->unit && !data->table) {
        diag_error(u->diag, data->span,
                   "a text is learned by one output, the next token, and '%s' has %d", g->name,
                   g->noutput);
        diag_help(u->diag, "return one of them; labelled texts can have several: data = tsv(...)");
        return false;
    }
    if (t->kind == LEARN_CLASS && t->rank > 0 && read) {
        diag_error(u->diag, data->span, "these data give no class for each %s of '%s'",
                   t->rank > 1 ? "pixel" : "position", t->name);
        diag_help(u->diag, "take a directory with train_x.npy and train_y.npy: data = "
                           "\"directory\"");
        return false;
    }
    if (t->kind == LEARN_CLASS || !read || (t->kind == LEARN_INPUT && data->images))
        return true;
    diag_error(u->diag, data->span,
               "these data give classes or tokens, and the target '%s' is "
               "numbers",
               t->name);
    diag_help(u->diag, "take a directory with train_x.npy and train_y.npy: data = \"directory\"");
    return false;
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
    if (!lower_check_fit(l->u, l->g))
        return NULL;
    if (v.node->shape.rank != 0) {
        diag_error(d, e->span, "the loss is one number for each sample, this is %s",
                   shape_text(l->arena, &v.node->shape));
        if (l->g->recipe.target->kind == LEARN_CLASS)
            diag_help(d, "end it with a loss such as softmax_cross_entropy or mse");
        else
            diag_help(d, "take the mean over its dimensions: mean(..., axes = [0]); or use mse, l1 "
                         "or huber");
        return NULL;
    }
    return v.node;
}

/* Reports a loss of inputs and targets alone. */
static bool check_dependent(const Lower *l, const Expr *e)
{
    const bool *needed = graph_needed(l->g, l->g->loss);
    for (int i = 0; i < lower_output_count(l->g); i++)
        if (needed[lower_output(l->g, i)->id])
            return true;
    diag_error(l->diag, e->span, "the loss does not depend on the output of the model");
    diag_help(l->diag, "compare %s, as in mse(%s, %s)", lower_output_name(l->g, 0),
              lower_output_name(l->g, 0), target_name(l->g->recipe.target));
    return false;
}

/* Reports each output or target that the loss does not use, if there are several. */
static void check_used(const Unit *u, const Graph *g, Span loss)
{
    const bool *needed = graph_needed(g, g->loss);
    for (int i = 0; i < g->noutput && g->noutput > 1; i++)
        if (!needed[g->outputs[i].node->id]) {
            diag_error(u->diag, loss, "no loss uses the output '%s'", g->outputs[i].name);
            diag_note(u->diag, "it is returned on line %d", g->outputs[i].span.line);
            diag_help(u->diag, "add a term for it, or do not return it");
        }
    for (int i = 0; i < g->recipe.ntarget && g->recipe.ntarget > 1; i++)
        if (!needed[g->targets[i]->id]) {
            diag_error(u->diag, g->recipe.target[i].span, "no loss uses the target '%s'",
                       target_name(&g->recipe.target[i]));
            diag_help(u->diag, "add a term for it, or remove the target");
        }
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
        if (!lower_uses_compared(g, term)) {
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

/* Whether the target has a number or class for each pixel of an image of this size. */
static bool has_pixels(const TargetSpec *t, const Shape *x)
{
    return x->rank == 3 && t->rank >= 2 && t->dim[t->rank - 2] == x->dim[1] &&
           t->dim[t->rank - 1] == x->dim[2] && (t->kind == LEARN_NUMBERS || t->rank == 2);
}

/* Finds the targets that augment moves with the image: those of its height and width.  Reports
 * masks of another size, which cannot be moved. */
static void find_moved(const Unit *u, Graph *g)
{
    const Augment *a = &g->recipe.augment;
    for (int i = 0; i < g->recipe.ntarget && augment_moves(a); i++) {
        const TargetSpec *t = &g->recipe.target[i];
        Node *n = g->targets[i];
        if (t->kind == LEARN_INPUT || t->rank < 2)
            continue;
        if (has_pixels(t, &g->input->shape)) {
            node_set_int(g, n, "moved",
                         t->kind == LEARN_CLASS || t->truths ? MOVED_NEAREST : MOVED_BILINEAR);
            if (t->kind == LEARN_CLASS)
                node_set_int(g, n, "fill", t->ignored ? -1 : 0);
        } else if (t->kind == LEARN_CLASS || t->truths) {
            diag_error(u->diag, a->span,
                       "augment moves the pixels of '%s', %s, but cannot move '%s', %s",
                       g->input->name, shape_text(u->arena, &g->input->shape), t->name,
                       shape_text(u->arena, &n->shape));
            diag_note(u->diag, "'%s' is declared on line %d", t->name, t->span.line);
            diag_help(u->diag, "give the target the height and width of the input, or leave out "
                               "the augmentations that move pixels");
            return;
        }
    }
}

/* Makes the names of a loss known: outputs, targets, and those inputs whose name is not taken. */
static void declare_compared(Lower *l, Node *const *target)
{
    const Graph *g = l->g;
    for (int i = 0; i < lower_output_count(g); i++)
        lower_declare(l, lower_output_name(g, i), value_node(lower_output(g, i)));
    for (int i = 0; i < g->recipe.ntarget; i++)
        lower_declare(l, target_name(&g->recipe.target[i]), value_node(target[i]));
    for (int i = 0; i < g->ninput; i++)
        if (!lower_find(l, g->inputs[i]->name))
            lower_declare(l, g->inputs[i]->name, value_node(g->inputs[i]));
}

/* ---- mixtures of two samples */

/* Reports a target that cannot be mixed: the loss would not be a mean of two losses. */
static bool check_mixed(const Unit *u, const Graph *g, const TargetSpec *t)
{
    const Augment *a = &g->recipe.augment;
    const char *form = augment_mixture(a);
    const bool positions = t->kind == LEARN_CLASS && t->rank > 0,
               pixels = has_pixels(t, &g->input->shape);
    if (!positions && !pixels && !t->weights)
        return true;
    if (t->weights)
        diag_error(u->diag, a->span,
                   "%s cannot be combined with class_weights, which the loss has for '%s'", form,
                   target_name(t));
    else
        diag_error(u->diag, a->span,
                   "%s can mix the targets of two samples if they are one class or a row of "
                   "numbers; '%s' is %s",
                   form, target_name(t), t->rank > 1 ? "an image" : "a class for each position");
    if (!t->weights)
        diag_note(u->diag, "'%s' is declared on line %d", target_name(t), t->span.line);
    diag_help(u->diag, "leave out %s%s", form,
              t->weights && !positions && !pixels ? ", or class_weights" : "");
    return false;
}

static Node *mixed_leaf(Graph *g, const char *name, const Node *like, Shape s, int which)
{
    Node *const target = g->target, *n = graph_label(g, s, like->span);
    n->name = name;
    n->dtype = which == MIXED_WEIGHT ? DT_REAL : like->dtype;
    node_set_int(g, n, "mixed", which);
    if (which == MIXED_LESS && node_attr(like, "at"))
        node_set_int(g, n, "at", node_int(like, "at"));
    g->target = target;
    return n;
}

/* Makes a leaf with less weight beside each target; an input is its own. */
static void make_others(Graph *g, Node **other)
{
    for (int i = 0; i < g->recipe.ntarget; i++) {
        Node *n = other[i] = g->targets[i];
        if (g->recipe.target[i].kind == LEARN_INPUT)
            continue;
        node_set_int(g, n, "mixed", MIXED_MORE);
        other[i] = mixed_leaf(g, arena_printf(g->arena, "%s of the other", n->name), n, n->shape,
                              MIXED_LESS);
    }
}

/* weight more + (1 - weight) less */
static Node *mixture(Graph *g, Node *weight, Node *more, Node *less)
{
    const Span at = more->span;
    Node *apart = op_make(g, "sub", at, 2, more, less);
    return op_make(g, "add", at, 2, op_make(g, "mul", at, 2, weight, apart), less);
}

/* Evaluates the loss and its terms a second time, with the other samples' targets, and mixes both
 * values.  Targets that are inputs are mixed already. */
static bool mix_loss(Unit *u, Graph *g, Expr *loss, const Args *terms)
{
    Lower l = {.u = u, .arena = u->arena, .diag = u->diag, .g = g};
    Node *other[RT_TARGETS];
    bool apart = false;
    for (int i = 0; i < g->recipe.ntarget; i++) {
        apart |= g->recipe.target[i].kind != LEARN_INPUT;
        if (!check_mixed(u, g, &g->recipe.target[i]))
            return false;
    }
    node_set_int(g, g->input, "mixed", MIXED_MORE);
    g->unmixed = g->loss;
    if (!apart)
        return true;
    l.scope = lower_scope(&l, NULL, "train");
    make_others(g, other);
    declare_compared(&l, other);
    Node *weight = mixed_leaf(g, "weight", g->loss, shape_make(true, NULL, NULL, 0), MIXED_WEIGHT);
    Node *sum = NULL;
    for (int i = 0; i < (terms ? terms->n : 1); i++) {
        Node *less = loss_value(&l, terms ? terms->v[i].value : loss);
        if (!less)
            return false;
        Metric *more = &g->metric[terms ? i + 1 : 0];
        more->node = mixture(g, weight, more->node, less);
        sum = sum ? op_make(g, "add", loss->span, 2, sum, more->node) : more->node;
    }
    g->loss = g->metric[0].node = sum;
    return true;
}

/* Reports an input that is a target of truths, but is moved out of 0 to 1. */
static void check_normalized(const Unit *u, const Graph *g)
{
    const Normalize *z = &g->recipe.normalize;
    for (int i = 0; i < g->nnode && z->kind != NORM_NONE; i++) {
        const Node *n = g->node[i];
        if (n->op->outputs != OUTPUTS_BINARY || n->in[1]->op->leaf != LEAF_INPUT)
            continue;
        diag_error(u->diag, z->span,
                   "%s compares with numbers from 0 to 1, and normalize moves '%s'", n->op->name,
                   n->in[1]->name);
        diag_help(u->diag, "leave out normalize, or compare by mse");
        return;
    }
}

bool lower_loss(Unit *u, Graph *g, Expr *loss, Expr *const *measure)
{
    Lower l = {.u = u, .arena = u->arena, .diag = u->diag, .g = g};
    const int before = diag_errors(u->diag);
    const Args *terms = terms_of(u, loss);
    l.scope = lower_scope(&l, NULL, "train"); /* a reserved word, so no layer has this path */
    if (g->recipe.ntarget > 1 && g->noutput == 0)
        g->outputs[g->noutput++] =
            (Output){"output", g->output, g->output->shape, .span = g->output->span};
    if (!make_targets(u, g, loss->span) || !check_source(u, g) || !check_answers(u, g) ||
        (g->recipe.data.columns && !data_name_columns(u, g)))
        return false;
    declare_compared(&l, g->targets);
    if (terms && loss->bad) /* already reported */
        return false;
    if (terms && !add_terms(&l, terms, loss->span))
        return false;
    if (!terms) {
        g->loss = loss_value(&l, loss);
        g->nmetric = 1;
    }
    if (!g->loss || (!terms && !check_dependent(&l, loss)))
        return false;
    g->metric[0] = (Metric){"loss", g->loss};
    check_used(u, g, loss->span);
    if (!lower_classes(&l))
        return false;
    find_moved(u, g);
    check_normalized(u, g);
    lower_metrics(g, loss->span);
    if (!lower_measures(&l, measure))
        return false;
    if (g->training && augment_mixes(&g->recipe.augment) && diag_errors(u->diag) == before &&
        !mix_loss(u, g, loss, terms))
        return false;
    expect_check(u, g);
    watch_check(u, g);
    average_check(u, g);
    return diag_errors(u->diag) == before;
}
