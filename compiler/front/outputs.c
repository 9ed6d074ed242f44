/* outputs.c -- several outputs of a model, or one output with a name.
 *
 * Losses read each output by its name.  The graph for evaluation also has one row with all outputs,
 * one after another, which predict takes apart (rt.h: RtOutput). */
#include "base/text.h"
#include "front/front.h"
#include "front/lower.h"
#include <string.h>

int lower_output_count(const Graph *g)
{
    return g->noutput > 0 ? g->noutput : 1;
}

const char *lower_output_name(const Graph *g, int i)
{
    return g->noutput > 0 ? g->outputs[i].name : "output";
}

Node *lower_output(const Graph *g, int i)
{
    return g->noutput > 0 ? g->outputs[i].node : g->output;
}

static bool check_output(Lower *l, const Stmt *t, Value v)
{
    if (v.kind == V_POISON)
        return false;
    if (v.kind != V_TENSOR)
        diag_error(l->diag, t->value->span, "the output '%s' is %s, not a tensor", t->name,
                   value_kind(v));
    else if (!v.node->shape.batched || v.node->op->leaf == LEAF_CONST)
        diag_error(l->diag, t->value->span,
                   "the output '%s' of model '%s' does not depend on its input", t->name,
                   l->g->name);
    else if (v.node->dtype != DT_REAL)
        diag_error(l->diag, t->value->span, "the output '%s' is tokens, and an output is numbers",
                   t->name);
    else
        return true;
    return false;
}

/* Whether predict writes a column `name` for one of the numbers of o.  If o is called "y", its
 * columns are "y_0", "y_1" and so on. */
static bool has_column(Arena *a, const Output *o, const char *name)
{
    const size_t length = strlen(o->name);
    const int64_t count = shape_count(&o->shape);
    if (count == 1 || !text_glob(arena_printf(a, "%s_*", o->name), name))
        return false;
    int64_t at = 0;
    for (const char *c = name + length + 1; *c >= '0' && *c <= '9' && at < count; c++)
        at = 10 * at + (*c - '0');
    return at < count && strcmp(name, arena_printf(a, "%s_%lld", o->name, (long long)at)) == 0;
}

static bool check_columns(Lower *l, const Graph *g)
{
    for (int i = 0; i < g->noutput; i++)
        for (int k = 0; k < g->noutput; k++) {
            const Output *one = &g->outputs[i], *many = &g->outputs[k];
            if (shape_count(&one->shape) != 1 || !has_column(g->arena, many, one->name))
                continue;
            diag_error(l->diag, one->span, "predict would write two columns called '%s'",
                       one->name);
            diag_help(l->diag,
                      "the numbers of the output '%s' are %s_0 to %s_%lld: give '%s' another name",
                      many->name, many->name, many->name, (long long)shape_count(&many->shape) - 1,
                      one->name);
            return false;
        }
    return true;
}

void lower_outputs(Lower *l, const Body *outputs)
{
    Graph *g = l->g;
    bool ok = true;
    for (int i = 0; i < outputs->n && i < RT_OUTPUTS; i++) {
        const Stmt *t = outputs->v[i];
        const Var *var = lower_find(l, t->name);
        const Value v = var ? var->v : value_poison();
        if (!check_output(l, t, v)) {
            ok = false;
            continue;
        }
        for (int k = 0; k < g->noutput; k++)
            if (g->outputs[k].node == v.node && strcmp(g->outputs[k].name, t->name) != 0) {
                diag_error(l->diag, t->value->span, "the outputs '%s' and '%s' are one value",
                           g->outputs[k].name, t->name);
                diag_help(l->diag, "return it once; a loss can use it several times");
                ok = false;
            }
        g->outputs[g->noutput++] =
            (Output){.name = t->name, .node = v.node, .shape = v.node->shape, .span = t->name_span};
    }
    ok = ok && check_columns(l, g);
    g->output = ok && g->noutput > 0 ? g->outputs[0].node : NULL;
}

void front_pack_outputs(Graph *g)
{
    Node *row = NULL;
    if (g->noutput < 2)
        return;
    for (int i = 0; i < g->noutput; i++) {
        const Output *o = &g->outputs[i];
        const int64_t count = shape_count(&o->shape);
        Node like = {.op = op_find("reshape"), .span = o->span};
        node_set_ints(g, &like, "shape", &count, 1);
        Node *flat = o->shape.rank == 1 ? o->node : op_make_like(g, "reshape", &like, 1, o->node);
        Node join = {.op = op_find("concat"), .span = o->span};
        node_set_int(g, &join, "axis", 0);
        row = row ? op_make_like(g, "concat", &join, 2, row, flat) : flat;
    }
    g->output = row;
}
