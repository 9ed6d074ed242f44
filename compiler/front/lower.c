/* lower.c -- turns a model into a graph: declares the parameters and the input of the model, then
 * runs the body. */
#include "front/lower.h"
#include <string.h>

/* Makes the input node.  Its dimensions are expressions of the other parameters of the model. */
static Node *input_node(Lower *l, const ParamDecl *p)
{
    static const char *const letters[SHAPE_MAX + 1] = {"",     "F",     "TF",    "CHW",
                                                       "....", ".....", "......"};
    const int before = diag_errors(l->diag);
    int64_t dim[SHAPE_MAX], count = 1;
    if (p->dims.n > SHAPE_MAX) {
        diag_error(l->diag, p->type_span, "the input has %d dimensions, more than %d", p->dims.n,
                   SHAPE_MAX);
        return NULL;
    }
    bool poison = false;
    for (int i = 0; i < p->dims.n; i++) {
        Expr *e = p->dims.v[i];
        const Value v = lower_eval(l, e);
        dim[i] = v.kind == V_INT ? v.i : 1;
        poison |= v.kind == V_POISON;
        if (v.kind != V_INT && v.kind != V_POISON)
            lower_fail(l, e, e->span, "a dimension is an int, this is %s", value_kind(v));
        else if (dim[i] < 1 || dim[i] > INT32_MAX)
            lower_fail(l, e, e->span, "the dimension %lld is outside 1 to 2147483647",
                       (long long)dim[i]);
    }
    if (poison || diag_errors(l->diag) != before)
        return NULL;
    for (int i = 0; i < p->dims.n; i++)
        if (__builtin_mul_overflow(count, dim[i], &count) || count > (INT64_C(1) << 40) / 4) {
            const Span at = span_join(p->dims.v[0]->span, p->dims.v[p->dims.n - 1]->span);
            diag_error(l->diag, at, "one sample of '%s' is larger than 2^40 bytes", p->name);
            return NULL;
        }
    const char *axes = p->tokens && p->dims.n == 1 ? "T" : letters[p->dims.n];
    return graph_input(l->g, p->name, shape_make(true, axes, dim, p->dims.n),
                       p->tokens ? DT_I32 : DT_REAL, p->span);
}

static bool of_tokens(const Decl *model)
{
    for (int i = 0; i < model->params.n; i++)
        if (model->params.v[i].tokens)
            return true;
    return false;
}

bool lower_takes_vocab(const Decl *model, const ParamDecl *p)
{
    return model->kind == DECL_MODEL && !p->fallback && p->type == TYPE_INT &&
           strcmp(p->name, "vocab") == 0 && of_tokens(model);
}

/* A parameter `vocab` that has no value gets the size of the data's vocabulary.  lower_samples
 * reports data without a vocabulary. */
static bool vocab_of_data(Lower *l, const Decl *model, const ParamDecl *p, Slot *slot)
{
    const Recipe *r = &l->g->recipe;
    if (slot->given || !(r->present || r->data.vocab) || !lower_takes_vocab(model, p))
        return false;
    *slot = (Slot){r->data.vocab ? value_int(r->data.vocab) : value_poison(), p->span, true};
    return true;
}

/* Declares the input last, because its dimensions can use the other parameters. */
static void model_params(Lower *l, const Decl *model, Override *set, int nset)
{
    for (int i = 0; i < model->params.n; i++) {
        const ParamDecl *p = &model->params.v[i];
        Slot slot = {0};
        for (int k = 0; k < nset; k++) {
            if (strcmp(set[k].name, p->name) != 0 || p->type == TYPE_INPUT)
                continue;
            set[k].used = true;
            slot = (Slot){lower_const(l->u, set[k].value), set[k].value->span, true};
            const Value v = slot.v;
            if (!value_as(v, p->type, &slot.v))
                slot.v = lower_fail(l, set[k].value, slot.span, "'%s' is %s, this is %s", p->name,
                                    type_kind(p->type), value_kind(v));
        }
        if (!slot.given && !vocab_of_data(l, model, p, &slot) && !p->fallback &&
            p->type >= TYPE_INT && p->type <= TYPE_LIST) {
            diag_error(l->diag, p->span, "the parameter '%s' of model '%s' has no value", p->name,
                       model->name);
            diag_help(l->diag, "give it a default, or use --set model.%s=...", p->name);
        }
        if (p->type != TYPE_INPUT)
            lower_declare(l, p->name, lower_argument(l, model, i, &slot));
    }
    for (int i = 0; i < model->params.n; i++)
        if (model->params.v[i].type == TYPE_INPUT)
            lower_declare(l, model->params.v[i].name,
                          l->g->ninput < RT_INPUTS ? value_node(input_node(l, &model->params.v[i]))
                                                   : value_poison()); /* sem.c reports it */
    for (int i = 0; i < l->g->ninput && l->g->ninput > 1; i++)
        node_set_int(l->g, l->g->inputs[i], "part", i);
}

/* Reports each input that the output does not depend on, if the model has several inputs. */
static void check_inputs(Lower *l)
{
    const Graph *g = l->g;
    bool used[RT_INPUTS] = {0};
    if (!g->output || g->ninput < 2)
        return;
    for (int k = 0; k < lower_output_count(g); k++) {
        const bool *needed = graph_needed(g, lower_output(g, k));
        for (int i = 0; i < g->ninput; i++)
            used[i] |= needed[g->inputs[i]->id];
    }
    for (int i = 0; i < g->ninput; i++)
        if (!used[i]) {
            diag_error(l->diag, g->inputs[i]->span,
                       "the output of model '%s' does not depend on its input '%s'", g->name,
                       g->inputs[i]->name);
            diag_help(l->diag, "use it, or remove it from the model and from the data; if only the "
                               "loss reads it, return it as one more output");
        }
}

static Expr *last_return(const Body *body)
{
    for (int i = body->n - 1; i >= 0; i--)
        if (body->v[i]->kind == ST_RETURN)
            return body->v[i]->value;
    return NULL;
}

/* Reports readers of a lazy table other than embedding: a product, for example, would give every
 * row a gradient. */
static void check_tables(Lower *l)
{
    for (int i = 0; i < l->g->nnode; i++) {
        const Node *n = l->g->node[i];
        for (int k = 0; k < n->nin; k++) {
            const Param *p = n->in[k]->param;
            if (!p || !p->lazy || op_computes(n, PRODUCT_TABLE, ROLE_Y))
                continue;
            diag_error(l->diag, n->span, "this reads %s, the table of a lazy embedding", p->name);
            diag_note(l->diag, "then every row has a gradient, so the update cannot skip rows");
            diag_help(l->diag, "remove lazy = true on line %d, or give this layer its own weights",
                      p->span.line);
        }
    }
}

Graph *lower_model(Unit *u, const Decl *model, const Recipe *recipe, Override *set, int nset,
                   bool training)
{
    const int before = diag_errors(u->diag);
    Lower l = {.u = u,
               .arena = u->arena,
               .diag = u->diag,
               .model = model,
               .g = graph_new(u->arena, model->name, training)};
    l.g->source = model->name_span.source;
    l.g->recipe = *recipe;
    l.scope = lower_scope(&l, model, "");
    model_params(&l, model, set, nset);
    if (l.g->input)
        lower_samples(&l);
    lower_run(&l, &model->body);
    const Value v = lower_result(&l, l.scope, NULL);
    const Expr *returned = last_return(&model->body);
    if (l.scope->outputs)
        lower_outputs(&l, l.scope->outputs);
    else if (v.kind != V_TENSOR && v.kind != V_POISON)
        diag_error(u->diag, returned ? returned->span : model->name_span,
                   "model '%s' returns %s, not a tensor", model->name, value_kind(v));
    else if (v.kind == V_TENSOR && (!v.node->shape.batched || v.node->op->leaf == LEAF_CONST))
        diag_error(u->diag, returned ? returned->span : model->name_span,
                   "the output of model '%s' does not depend on its input", model->name);
    if (!l.scope->outputs)
        l.g->output = v.kind == V_TENSOR ? v.node : NULL;
    check_tables(&l);
    check_inputs(&l);
    return diag_errors(u->diag) == before && l.g->output ? l.g : NULL;
}

Value lower_const(Unit *u, Expr *e)
{
    Lower l = {.u = u, .arena = u->arena, .diag = u->diag};
    return lower_eval(&l, e);
}
