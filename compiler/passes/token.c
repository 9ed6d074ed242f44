/* token.c -- derives a network for one token at a time from a network over windows of tokens, so
 * that a text continues at constant cost.
 *
 *   a value of a sequence (N, T, ...)      the value of this token, (1, ...)
 *   scan_item, scan_stack                  none: the body of the loop remains
 *   scan_state, scan_next                  token_state, token_next: the runtime keeps the states
 *   an op with Op.token, like attention    the op Op.token, which reads the position of the token
 *                                          and stored values of earlier tokens
 *   a table with one row for a position    token_row
 *
 * The network must have one label for each position, and no position may depend on a later one.  If
 * this is not certain for a node, no graph is derived, and `generate` computes the whole window
 * again for each token.  The graph is derived from the evaluation graph before the passes.  The
 * derived graph goes through the same passes, and its parameters have the offsets of the training
 * graph.
 */
#include "ops/op.h"
#include "passes/hoist.h"
#include "passes/pass.h"
#include <string.h>

typedef struct Derived {
    const Graph *from;
    Graph *g;
    Node **by;    /* by id of a node of `from`: its value for this token; NULL: none */
    int64_t time; /* tokens in a window */
    bool *leaves; /* by id of a node of `from`: pass hoist moves it out of its loop */
} Derived;

/* Whether n computes each position independently, along `axis` or the last dimension. */
static bool keeps_position(const Node *n)
{
    return n->op->flags & (OP_POSITION | OP_MAP);
}

static bool has_time(const Derived *v, const Node *n)
{
    return n->shape.batched && !node_loop(n) && n->shape.rank > 0 && n->shape.dim[0] == v->time;
}

/* The shape without its first dimension. */
static Shape of_token(const Shape *s)
{
    return shape_make(s->batched, strlen(s->axis) == (size_t)s->rank ? s->axis + 1 : NULL,
                      s->dim + 1, s->rank - 1);
}

/* A copy of n with other inputs; NULL if an input is missing. */
static Node *again(Derived *v, const Node *n, const Op *op, Node **in, int nin)
{
    for (int i = 0; i < nin; i++)
        if (!in[i])
            return NULL;
    Node *y = graph_add(v->g, op, in, nin, n->span);
    node_copy_attrs(v->g, y, n);
    y->shape = n->shape, y->dtype = n->dtype, y->name = n->name, y->call = n->call;
    y->looped = n->loop && !v->leaves[n->id];
    return y;
}

/* Returns y, the last node of the graph, if `fits` is true and its shape rule succeeds.  Else
 * removes y from the graph and returns NULL. */
static Node *proved(Derived *v, Node *y, bool fits)
{
    if (!y || (fits && (!y->op->shape || y->op->shape(y, diag_new(v->g->arena, DIAG_NEVER)))))
        return y;
    v->g->nnode--;
    return NULL;
}

static Node *param(Derived *v, const Node *n)
{
    Param *p = arena_alloc(v->g->arena, sizeof *p);
    Node *y = again(v, n, n->op, NULL, 0);
    *p = *n->param;
    p->node = y, y->param = p;
    ARENA_PUSH(v->g->arena, v->g->param, v->g->nparam, p);
    return y;
}

/* Operand i of n for this token.  If n is elementwise and the operand is a table (T, ...), returns
 * the row of this token. */
static Node *operand(Derived *v, const Node *n, int i)
{
    const Node *x = n->in[i];
    Node *by = v->by[x->id];
    const bool broadcast = n->op->flags & OP_ELEMENTWISE && has_time(v, n);
    if (!by || !broadcast || has_time(v, x) || x->shape.rank < n->shape.rank)
        return by;
    if (x->shape.batched || x->shape.dim[0] != v->time)
        return NULL;
    v->g->window = v->time;
    Node *row = graph_add(v->g, op_find("token_row"), &by, 1, x->span);
    return proved(v, row, true);
}

/* Subtracts 1 from the argument `axis`, because y has no dimension of time; false if `axis` is the
 * dimension of time. */
static bool lower_axis(Derived *v, const Node *n, Node *y)
{
    const Attr *a = node_attr(n, "axis");
    if (!a)
        return true;
    const int64_t axis = a->i < 0 ? a->i + n->shape.rank : a->i;
    node_set_int(v->g, y, "axis", axis - 1);
    return axis > 0;
}

static bool same_token(const Derived *v, const Node *n, const Node *y)
{
    const Shape want = has_time(v, n) ? of_token(&n->shape) : n->shape;
    return shape_same(&want, &y->shape);
}

/* A copy of n for this token, if n has no dimension of time or computes each position
 * independently; else NULL. */
static Node *by_position(Derived *v, const Node *n)
{
    Node *in[16];
    if (n->nin > 16)
        return NULL;
    for (int i = 0; i < n->nin; i++)
        in[i] = operand(v, n, i);
    Node *y = again(v, n, n->op, in, n->nin);
    if (!y || !has_time(v, n))
        return proved(v, y, true);
    const Attr *mask = node_attr(n, "mask");
    node_drop_attr(v->g->arena, y, "rows");
    const bool masked = mask && strcmp(mask->s, "none") != 0;
    y = proved(v, y, keeps_position(n) && !masked && lower_axis(v, n, y));
    return proved(v, y, y && same_token(v, n, y));
}

/* ---- ops that read earlier positions */

/* The state of a scan over the window; the runtime keeps its value from token to token. */
static Node *state(Derived *v, const Node *n)
{
    Node *first = v->by[n->in[0]->id];
    if (n->in[0]->op->leaf != LEAF_CONST || n->loop->reversed || n->loop->steps != v->time)
        return NULL;
    Node *y = again(v, n, op_find("token_state"), &first, 1);
    if (!y)
        return NULL;
    node_set_int(v->g, y, "at", v->g->carried);
    v->g->carried += shape_count(&n->shape);
    return proved(v, y, true);
}

static Node *next(Derived *v, const Node *n)
{
    const Loop *l = n->loop;
    for (int i = 0; i < l->ncarry; i++) {
        const Node *s = l->carry[i].next == n ? v->by[l->carry[i].state->id] : NULL;
        if (!s)
            continue;
        Node *y = again(v, n, op_find("token_next"), &v->by[n->in[0]->id], 1);
        if (y)
            node_set_int(v->g, y, "at", node_int(s, "at"));
        return proved(v, y, true);
    }
    return NULL;
}

/* The op Op.token in place of n.  NULL for an attention that is not causal: it reads later
 * positions. */
static Node *looking_back(Derived *v, const Node *n)
{
    const Attr *mask = node_attr(n, "mask");
    if (mask && strcmp(mask->s, "causal") != 0)
        return NULL;
    Node *y = again(v, n, op_find(n->op->token), &v->by[n->in[0]->id], 1);
    if (!y)
        return NULL;
    v->g->window = v->time;
    if (mask) { /* an attention: only it has the attribute mask */
        node_drop_attr(v->g->arena, y, "mask");
        node_set_int(v->g, y, "time", v->time);
        node_set_int(v->g, y, "at", v->g->cached);
        /* keys, values, and a score for each token */
        v->g->cached += 2 * shape_count(&n->shape) + v->time;
    }
    y = proved(v, y, true);
    return proved(v, y, y && same_token(v, n, y));
}

/* ---- the graph */

static Node *input(Derived *v, const Node *n)
{
    Node *y = again(v, n, n->op, NULL, 0);
    y->shape = of_token(&n->shape);
    return v->g->input = y;
}

/* Whether n, in the body of a loop, reads a whole sequence, and not one element in each step. */
static bool reads_sequence(const Derived *v, const Node *n)
{
    for (int i = 0; n->loop && i < n->nin; i++)
        if (has_time(v, n->in[i]))
            return true;
    return false;
}

/* The value of n for this token; NULL: none. */
static Node *derived(Derived *v, const Node *n)
{
    if (n->op->leaf == LEAF_INPUT)
        return input(v, n);
    if (n->op->leaf == LEAF_PARAM)
        return param(v, n);
    if (n->op->scan == SCAN_STATE)
        return state(v, n);
    if (n->op->scan == SCAN_NEXT)
        return next(v, n);
    if (n->op->scan == SCAN_ITEM)
        return n->loop->reversed || !has_time(v, n->in[0]) ? NULL : v->by[n->in[0]->id];
    if (n->op->scan == SCAN_STACK || n->op->scan == SCAN_KEEP)
        return v->by[n->in[0]->id];
    if (n->op->token)
        return looking_back(v, n);
    /* the last state, a class, or another value without time outside of a loop belongs to the whole
     * window */
    const bool whole = n->shape.batched && n->op->leaf != LEAF_CONST && !n->loop && !has_time(v, n);
    if (whole || n->op->leaf == LEAF_LABEL || reads_sequence(v, n))
        return NULL;
    return by_position(v, n);
}

/* Whether each state of each loop has its next value; without one, the next token would start from
 * a wrong state. */
static bool passes_on(const Derived *v)
{
    for (int i = 0; i < v->from->nloop; i++)
        for (int k = 0; k < v->from->loop[i]->ncarry; k++) {
            const Carry *c = &v->from->loop[i]->carry[k];
            if (v->by[c->state->id] && !v->by[c->next->id])
                return false;
        }
    return true;
}

Graph *pass_token(const Graph *from)
{
    const Recipe *q = &from->recipe;
    if (!from->label || from->input->dtype != DT_I32 || !q->data.unit || q->data.table ||
        from->input->shape.rank != 1 || from->input->shape.dim[0] < 2 ||
        !shape_same(&from->label->shape, &from->input->shape))
        return NULL;
    Derived v = {from, graph_new(from->arena, from->name, false),
                 arena_alloc(from->arena, sizeof(Node *) * (size_t)(from->next_id + 1)),
                 from->input->shape.dim[0], arena_alloc(from->arena, (size_t)from->next_id + 1)};
    v.g->source = from->source, v.g->recipe = *q, v.g->token = true;
    for (int i = 0; i < from->nnode; i++) {
        const Node *n = from->node[i];
        v.leaves[n->id] = hoist_can_leave(n, v.leaves);
        v.by[n->id] = derived(&v, n);
    }
    v.g->output = v.by[from->output->id];
    return v.g->output && passes_on(&v) ? v.g : NULL;
}
