/* share.c -- a model without a train block beside one that has it: its program predicts with the
 * weights of the trained model, as an encoder alone does.
 *
 * Weights are shared by their names and shapes.  The samples of inputs of the same names are
 * prepared in the same way.
 */
#include "front/share.h"
#include "base/text.h"
#include <string.h>

/* The input number k of a model; NULL: it has fewer. */
static const ParamDecl *input_at(const Decl *model, int k)
{
    for (int i = 0; i < model->params.n; i++)
        if (model->params.v[i].type == TYPE_INPUT && k-- == 0)
            return &model->params.v[i];
    return NULL;
}

/* Whether both models have inputs of the same names and types, in the same order. */
static bool same_inputs(const Decl *one, const Decl *other)
{
    for (int k = 0;; k++) {
        const ParamDecl *a = input_at(one, k), *b = input_at(other, k);
        if (!a || !b)
            return !a && !b;
        if (a->tokens != b->tokens || strcmp(a->name, b->name) != 0)
            return false;
    }
}

void share_recipe(Recipe *own, const Decl *model, const Recipe *from, const Decl *trained,
                  bool predicts)
{
    const bool same = same_inputs(model, trained);
    if (same)
        own->data.vocab = from->data.vocab;
    if (!predicts)
        return;
    own->trained = trained->name;
    own->target[0] = (TargetSpec){.kind = LEARN_INPUT, .name = "none"};
    if (!same)
        return;
    own->data = from->data;
    own->data.test = own->data.validation = 0;
    own->normalize = from->normalize;
    own->resize = from->resize;
    own->resize_span = from->resize_span;
}

void share_targets(Graph *g)
{
    g->targets[0] = g->target = g->input;
}

static const Param *param_named(const Graph *g, const char *name)
{
    for (int i = 0; i < g->nparam; i++)
        if (strcmp(g->param[i]->name, name) == 0)
            return g->param[i];
    return NULL;
}

static void suggest_param(const Graph *g, const char *name, Diag *d)
{
    const char **known = NULL;
    int n = 0;
    for (int i = 0; i < g->nparam; i++)
        ARENA_PUSH(g->arena, known, n, g->param[i]->name);
    if (text_nearest(name, known, n))
        diag_suggest(d, name, known, n);
}

/* Reports an input of tokens if nothing says how many there are. */
static bool check_vocab(const Graph *g, Diag *d)
{
    for (int i = 0; i < g->ninput; i++) {
        const Node *x = g->inputs[i];
        if (x->dtype == DT_REAL || g->recipe.data.vocab)
            continue;
        diag_error(d, x->span,
                   "'%s' holds tokens, and '%s' has no train block with the size of their "
                   "vocabulary",
                   x->name, g->name);
        diag_help(d, "give its inputs the names of those of '%s', or write a train block",
                  g->recipe.trained);
        return false;
    }
    return true;
}

const Param *share_missing(const Graph *own, const Graph *trained)
{
    for (int i = 0; i < own->nparam; i++) {
        const Param *p = own->param[i], *q = param_named(trained, p->name);
        if (!q || !shape_same(&p->file, &q->file))
            return p;
    }
    return NULL;
}

bool share_check(const Graph *own, const Graph *trained, Diag *d)
{
    Arena *a = own->arena;
    if (!check_vocab(own, d))
        return false;
    const Param *p = share_missing(own, trained), *q = p ? param_named(trained, p->name) : NULL;
    if (!p)
        return true;
    if (q)
        diag_error(d, p->span, "'%s' has no train block, and its weight %s is %s, but %s in '%s'",
                   own->name, p->name, shape_text(a, &p->file), shape_text(a, &q->file),
                   trained->name);
    else
        diag_error(d, p->span, "'%s' has no train block, and its weight %s is none of '%s'",
                   own->name, p->name, trained->name);
    diag_note(d, "a model without a train block predicts with the weights of the one that is "
                 "trained, so their names and shapes agree");
    if (!q)
        suggest_param(trained, p->name, d);
    diag_help(d,
              "bind the same blocks and layers to the same variables as in '%s', or give '%s' a "
              "train block",
              trained->name, own->name);
    return false;
}
