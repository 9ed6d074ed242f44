/* share.c -- a model without a train block beside one that has it: its program predicts with the
 * weights of the trained model, as an encoder alone does.
 *
 * Weights are shared by their names and shapes.  The samples of inputs of the same names are
 * prepared in the same way.
 */
#include "front/share.h"
#include "base/text.h"
#include "ops/op.h"
#include <string.h>

/* The input number k of a model; NULL: it has fewer. */
static const ParamDecl *input_at(const Decl *model, int k)
{
    for (int i = 0; i < model->params.n; i++)
        if (model->params.v[i].type == TYPE_INPUT && k-- == 0)
            return &model->params.v[i];
    return NULL;
}

/* The place of the input with the name and the type of `x` in a model; -1: it has none. */
static int place_of(const Decl *model, const ParamDecl *x)
{
    const ParamDecl *p;
    for (int k = 0; (p = input_at(model, k)); k++)
        if (strcmp(p->name, x->name) == 0)
            return p->tokens == x->tokens ? k : -1;
    return -1;
}

/* Whether `trained` has all inputs of `own`; in_order: these and no others, in this order. */
static bool has_inputs(const Decl *own, const Decl *trained, bool in_order)
{
    const ParamDecl *p;
    int k = 0;
    for (; (p = input_at(own, k)); k++) {
        const int place = place_of(trained, p);
        if (place < 0 || (in_order && place != k))
            return false;
    }
    return !in_order || !input_at(trained, k);
}

void share_vocab(Recipe *own, const Decl *model, const Recipe *from, const Decl *trained)
{
    if (has_inputs(model, trained, false))
        own->data.vocab = from->data.vocab;
}

void share_recipe(Recipe *own, const Decl *model, const Recipe *from, const Decl *trained)
{
    own->trained = trained->name;
    own->batch = from->batch;
    own->shards = from->shards;
    own->dtype = from->dtype;
    own->target[0] = (TargetSpec){.kind = LEARN_INPUT, .name = "none"};
    share_vocab(own, model, from, trained);
}

/* Whether each input has the shape of the input of this name in `trained`. */
static bool has_shapes(const Graph *own, const Graph *trained)
{
    for (int i = 0; i < own->ninput; i++)
        for (int k = 0; k < trained->ninput; k++)
            if (strcmp(own->inputs[i]->name, trained->inputs[k]->name) == 0 &&
                !shape_same(&own->inputs[i]->shape, &trained->inputs[k]->shape))
                return false;
    return true;
}

bool share_samples(Recipe *own, const Decl *model, const Graph *g, const Recipe *from,
                   const Decl *trained, const Graph *whole)
{
    const bool in_order = from->data.columns || from->data.unit || from->data.images;
    if (!g || !whole || !has_inputs(model, trained, in_order) || !has_shapes(g, whole))
        return false;
    own->data = from->data;
    own->data.test = own->data.validation = 0;
    own->normalize = from->normalize;
    own->resize = from->resize;
    own->resize_span = from->resize_span;
    return true;
}

void share_targets(Graph *g)
{
    g->targets[0] = g->target = g->input;
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

/* "weight", the last part of a parameter's name. */
static const char *last_part(const Param *p)
{
    const char *dot = strrchr(p->name, '.');
    return dot ? dot + 1 : p->name;
}

/* The only parameter of g with the shape of p and the last part of its name; NULL: there is none,
 * or several. */
static const Param *param_like(const Graph *g, const Param *p)
{
    const Param *found = NULL;
    for (int i = 0; i < g->nparam; i++) {
        const Param *q = g->param[i];
        if (!shape_same(&q->file, &p->file) || strcmp(last_part(q), last_part(p)) != 0)
            continue;
        if (found)
            return NULL;
        found = q;
    }
    return found;
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
        diag_help(d,
                  "give it the name of the input of '%s' that holds these tokens, or write a train "
                  "block",
                  g->recipe.trained);
        return false;
    }
    return true;
}

const Param *share_missing(const Graph *own, const Graph *trained)
{
    for (int i = 0; i < own->nparam; i++) {
        const Param *p = own->param[i], *q = graph_find_param(trained, p->name);
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
    const Param *p = share_missing(own, trained),
                *q = p ? graph_find_param(trained, p->name) : NULL;
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
    const Param *like = param_like(trained, p);
    if (like)
        diag_help(d, "'%s' has the weight %s of this shape", trained->name, like->name);
    else if (!q)
        suggest_param(trained, p->name, d);
    diag_help(d,
              "bind the same blocks and layers to the same variables as in '%s', or give '%s' a "
              "train block",
              trained->name, own->name);
    return false;
}

/* ---- weights with numbered names */

/* Whether nodes of two graphs have the same value.  same[id]: the node of the other graph that is
 * known to have the value of a node of the first one. */
static bool same_value(const Node **same, const Node *a, const Node *b)
{
    if (same[a->id] == b)
        return true;
    if (a->op != b->op || a->nin != b->nin || !shape_same(&a->shape, &b->shape) ||
        !node_same_attrs(a, b))
        return false;
    if ((a->param || a->op->leaf == LEAF_INPUT) && strcmp(a->name, b->name) != 0)
        return false;
    for (int i = 0; i < a->nin; i++)
        if (!same_value(same, a->in[i], b->in[i]))
            return false;
    same[a->id] = b;
    return true;
}

static bool reads(const Node *n, const Param *p)
{
    bool found = false;
    for (int k = 0; k < n->nin; k++)
        found |= n->in[k] == p->node;
    return found;
}

/* Whether a layer computes the same with p as a layer of `trained` with q: both read one value. */
static bool serves_equally(const Node **same, const Graph *own, const Param *p,
                           const Graph *trained, const Param *q)
{
    for (int i = 0; i < own->nnode; i++) {
        if (!reads(own->node[i], p))
            continue;
        for (int k = 0; k < trained->nnode; k++)
            if (reads(trained->node[k], q) && same_value(same, own->node[i], trained->node[k]))
                return true;
    }
    return false;
}

/* "dense12", the first part of the name of dense12.weight: a layer or a block of the model. */
static const char *first_part(Arena *a, const Param *p)
{
    return arena_printf(a, "%.*s", (int)strcspn(p->name, "."), p->name);
}

/* "dense" of dense12; NULL: the part ends without a number. */
static const char *kind_of(Arena *a, const char *part)
{
    const size_t all = strlen(part);
    size_t n = all;
    while (n > 0 && part[n - 1] >= '0' && part[n - 1] <= '9')
        n--;
    return n < all ? arena_printf(a, "%.*s", (int)n, part) : NULL;
}

/* Whether a variable of the model gives a layer this name. */
static bool names_layer(const Decl *model, const char *name)
{
    for (int i = 0; i < model->body.n; i++)
        if (model->body.v[i]->names_layer && strcmp(model->body.v[i]->name, name) == 0)
            return true;
    return false;
}

/* Whether the model has another layer or block of this kind with a number. */
static bool has_others(const Graph *g, const char *part, const char *kind)
{
    for (int i = 0; i < g->nparam; i++) {
        const char *other = first_part(g->arena, g->param[i]), *its_kind = kind_of(g->arena, other);
        if (its_kind && strcmp(its_kind, kind) == 0 && strcmp(other, part) != 0)
            return true;
    }
    return false;
}

void share_warn(const Decl *model, const Graph *own, const Graph *trained, Diag *d)
{
    const Node **same = arena_alloc(own->arena, sizeof *same * (size_t)(own->next_id + 1));
    const char *last = "";
    for (int i = 0; i < own->nparam; i++) {
        const Param *p = own->param[i], *q = graph_find_param(trained, p->name);
        const char *part = first_part(own->arena, p), *kind = kind_of(own->arena, part);
        if (!q || !kind || strcmp(last, part) == 0 || names_layer(model, part) ||
            !has_others(trained, part, kind) || serves_equally(same, own, p, trained, q))
            continue;
        last = part;
        diag_warn(d, p->span,
                  "this layer of '%s' gets the weights of %s of '%s', which reads another value "
                  "there",
                  own->name, part, trained->name);
        diag_note(d, "layers without a variable are numbered in each model");
        diag_help(d, "bind the layer to a variable of the same name in both models");
    }
}
