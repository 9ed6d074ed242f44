/* verify.c -- checks a graph between passes: order, arity, attributes, shapes (by the rule of
 * each op), layouts, places. */
#include "ir/vocabulary.h"
#include <string.h>

typedef struct Verify {
    const Graph *g;
    Diag *scratch;
    char *seen;        /* by id: whether the node stands earlier in the list */
    const char *wrong; /* the first fault */
} Verify;

static bool fail(Verify *v, const Node *n, const char *what)
{
    v->wrong = arena_printf(v->g->arena, "%%%d %s: %s", n->id, op_name(n->op), what);
    return false;
}

static bool check_order(Verify *v, const Node *n)
{
    if (n->id < 0 || n->id >= v->g->next_id || v->seen[n->id])
        return fail(v, n, "its number is not unique");
    for (int i = 0; i < n->nin; i++) {
        const Node *in = n->in[i];
        if (!in || in->id < 0 || in->id >= v->g->next_id || !v->seen[in->id])
            return fail(v, n, arena_printf(v->g->arena, "input %d does not stand before it", i));
        if (in->phase >= 0 && n->phase >= 0 && in->phase > n->phase)
            return fail(v, n, arena_printf(v->g->arena, "input %d is made in a later phase", i));
    }
    v->seen[n->id] = 1;
    return true;
}

/* Runs the rule of the op on a copy, so that the graph stays unchanged. */
static bool check_shape(Verify *v, const Node *n)
{
    Node copy = *n;
    const char *what = op_complaint(n, v->g->arena);
    if (what)
        return fail(v, n, what);
    if (!op_infer(&copy, v->scratch))
        return fail(v, n, "its shape rule reports an error");
    if (!shape_same(&copy.shape, &n->shape) || copy.dtype != n->dtype)
        return fail(v, n,
                    arena_printf(v->g->arena, "its shape is %s, its rule says %s",
                                 shape_text(v->g->arena, &n->shape),
                                 shape_text(v->g->arena, &copy.shape)));
    return true;
}

static bool check_memory(Verify *v, const Node *n)
{
    const int64_t *f = n->flat;
    if (n->layout == LAYOUT_LAST && n->shape.rank == 1 && f[0] * f[1] * f[2] != n->shape.dim[0])
        return fail(v, n, "a flattened value stored channels last has a wrong flat[]");
    /* a step of a sequence */
    const bool step = n->nin == 1 && n->in[0]->layout == LAYOUT_TIME && n->loop;
    if (n->place == PLACE_VIEW && !n->within && !step &&
        (n->nin < 1 || shape_count(&n->shape) != shape_count(&n->in[0]->shape)))
        return fail(v, n, "a view has another size than what it views");
    if (n->param && n->param->count_memory < shape_count(&n->param->file))
        return fail(v, n, "its parameter has less memory than its numbers need");
    return true;
}

static bool check_end(Verify *v, const Node *n, const char *what)
{
    if (!n || v->seen[n->id])
        return true;
    v->wrong = arena_printf(v->g->arena, "the graph's %s %%%d is not in its list", what, n->id);
    return false;
}

const char *graph_verify(const Graph *g, Diag *scratch)
{
    Verify v = {.g = g, .scratch = scratch, .seen = arena_alloc(g->arena, (size_t)g->next_id + 1)};
    for (int i = 0; i < g->nnode; i++)
        if (!check_order(&v, g->node[i]) || !check_shape(&v, g->node[i]) ||
            !check_memory(&v, g->node[i]))
            return v.wrong;
    if (check_end(&v, g->input, "input") && check_end(&v, g->label, "label") &&
        check_end(&v, g->output, "output"))
        check_end(&v, g->loss, "loss");
    for (int i = 0; !v.wrong && i < g->nmetric; i++)
        check_end(&v, g->metric[i].node, g->metric[i].name);
    return v.wrong;
}
