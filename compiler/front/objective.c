/* objective.c -- adds label, loss and metrics to a graph. */
#include "front/lower.h"
#include <string.h>

/* The op for the metric accuracy; NULL if the output does not name a class. sigmoid_cross_entropy
 * is tested by name: only with this loss, each number of the output is a binary class. */
static const char *accuracy_of(const Graph *g)
{
    const Shape *y = &g->output->shape;
    const int rank = g->label->shape.rank + 1;
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], "sigmoid_cross_entropy") && g->node[i]->in[0] == g->output)
            return "binary_accuracy";
    return y->rank == rank && y->dim[rank - 1] > 1 ? "accuracy" : NULL;
}

/* The label is a class for each sample, or a class for each position if the output has a vector for
 * each position. */
static Shape label_shape(const Graph *g)
{
    const Shape *x = &g->input->shape, *y = &g->output->shape;
    const bool sequence = g->input->dtype == DT_I32 ? x->rank == 1 : x->rank == 2;
    const bool each = sequence && y->rank == 2 && y->dim[0] == x->dim[0];
    return shape_make(true, "T", y->dim, each);
}

/* Evaluates loss = NAME, or a layer value such as softmax_cross_entropy(smoothing = 0.1): calls the
 * op with output and label.  For mse, the label becomes a one-hot vector. */
static Value named_loss(Lower *l, Expr *e)
{
    Expr call = {.kind = EX_CALL, .span = e->span, .a = e};
    Expr *arg = arena_alloc(l->arena, 2 * sizeof *arg);
    arg[0] = (Expr){.kind = EX_NAME, .span = e->span, .s = "output"};
    arg[1] = (Expr){.kind = EX_NAME, .span = e->span, .s = "label"};
    Expr one_hot = {.kind = EX_CALL,
                    .span = e->span,
                    .a = &(Expr){.kind = EX_NAME, .span = e->span, .s = "one_hot"}};
    Expr classes = {.kind = EX_INT,
                    .span = e->span,
                    .i = l->g->output->shape.rank
                             ? shape_count(&l->g->output->shape) / shape_count(&l->g->label->shape)
                             : 1};
    one_hot.args = (Args){(Arg[]){{.value = &arg[1]}, {.name = "classes", .value = &classes}}, 2};
    call.args = (Args){(Arg[]){{.value = &arg[0]},
                               {.value = e->kind == EX_NAME && strcmp(e->s, "mse") == 0 ? &one_hot
                                                                                        : &arg[1]}},
                       2};
    return lower_eval(l, &call);
}

/* Checks the labels of texts: a class for each text (tsv), or the next token after each position or
 * window. */
static bool check_answers(const Unit *u, const Graph *g)
{
    const DataSpec *data = &g->recipe.data;
    const char *y = shape_text(u->arena, &g->output->shape);
    const long long classes = shape_count(&g->output->shape) / shape_count(&g->label->shape);
    if (!g->recipe.present || !data->unit || diag_errors(u->diag) ||
        (data->table ? g->label->shape.rank == 0 : classes >= data->vocab))
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

/* Perplexity is reported if the loss is that of the next token. */
static void check_expect(const Unit *u, const Graph *g)
{
    const Expect *e = &g->recipe.expect;
    if (!e->metric || !strstr(e->metric, "perplexity") || graph_next_token(g))
        return;
    diag_error(u->diag, e->span, "'%s' has no perplexity to compare with", g->name);
    diag_help(u->diag,
              "perplexity is reported for data = text(...) with the plain softmax_cross_entropy");
}

bool lower_loss(Unit *u, Graph *g, Expr *loss)
{
    Lower l = {.u = u, .arena = u->arena, .diag = u->diag, .g = g};
    const int before = diag_errors(u->diag);
    Callee c;
    l.scope = lower_scope(&l, NULL, "train"); /* a reserved word, so no layer has this path */
    graph_label(g, label_shape(g), loss->span);
    if (!check_answers(u, g))
        return false;
    lower_declare(&l, "output", value_node(g->output));
    lower_declare(&l, "label", value_node(g->label));
    const bool named = loss->kind == EX_NAME && !loss->bad && callee_find(u, loss->s, &c);
    Value v = named ? named_loss(&l, loss) : lower_eval(&l, loss);
    if (v.kind == V_LAYER)
        v = named_loss(&l, loss);
    if (v.kind != V_TENSOR) {
        if (v.kind != V_POISON)
            diag_error(u->diag, loss->span,
                       "the loss is a tensor with one number for each sample, this is %s",
                       value_kind(v));
        return false;
    }
    if (v.node->shape.rank != 0) {
        diag_error(u->diag, loss->span, "the loss is one number for each sample, this is %s",
                   shape_text(u->arena, &v.node->shape));
        diag_help(u->diag, "end it with a loss such as softmax_cross_entropy or mse");
        return false;
    }
    g->loss = v.node;
    g->metric[g->nmetric++] = (Metric){"loss", v.node};
    check_expect(u, g);
    if (accuracy_of(g)) {
        Node *accuracy = op_make(g, accuracy_of(g), loss->span, 2, g->output, g->label);
        g->metric[g->nmetric++] = (Metric){"accuracy", accuracy};
    }
    return diag_errors(u->diag) == before;
}
