/* token.c -- from a network over windows of tokens the same for one token at a time, so that a text goes on at a constant cost.
 *
 *   a value of a sequence (N, T, ...)      that of this token, (1, ...)
 *   scan_item, scan_stack                  nothing: the loop's body is left
 *   scan_state, scan_next                  token_state, token_next: the runtime keeps states from token to token
 *   attention, causal                      token_attention, which keeps keys and values
 *   a table with a row a position          token_row
 *
 * For networks with a label a position in which no position sees one behind it.  Where a node is not known to keep to
 * that, there is no such graph, and `generate` looks at the whole window anew for each token.  It is taken from the evaluation
 * graph before the passes, goes through them as that one does, and uses the parameters where training planned them.
 */
#include "ops/op.h"
#include "passes/pass.h"
#include <string.h>

typedef struct Derived {
    const Graph *from;
    Graph *g;
    Node **by;    /* of each node of `from` by id: that of this token; NULL: there is none */
    int64_t time; /* tokens of a window */
} Derived;

/* Ops that treat each position by itself, along `axis` or the last dimension. */
static bool keeps_position(const Node *n)
{
    static const char *const name[] = {"dense",   "bias",  "layer_norm", "rms_norm", "embedding",
                                       "one_hot", "slice", "concat",     "softmax"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (node_is(n, name[i]))
            return true;
    return n->op->flags & OP_ELEMENTWISE;
}

static bool is_sequence(const Derived *v, const Node *n)
{
    return n->shape.batched && !node_loop(n) && n->shape.rank > 0 && n->shape.dim[0] == v->time;
}

/* The same without its first dimension. */
static Shape of_token(const Shape *s)
{
    return shape_make(s->batched, strlen(s->axis) == (size_t)s->rank ? s->axis + 1 : NULL,
                      s->dim + 1, s->rank - 1);
}

/* A copy of n over other inputs; NULL where one is missing. */
static Node *again(Derived *v, const Node *n, const Op *op, Node **in, int nin)
{
    for (int i = 0; i < nin; i++)
        if (!in[i])
            return NULL;
    Node *y = graph_add(v->g, op, in, nin, n->span);
    node_copy_attrs(v->g, y, n);
    y->shape = n->shape, y->dtype = n->dtype, y->name = n->name, y->block = n->block;
    return y;
}

/* y, the node that was made last, whose shape its own rule proves; NULL, and no such node, when it does not. */
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

/* An operand of n: where n is a formula, of a table (T, ...) this token's row. */
static Node *operand(Derived *v, const Node *n, int i)
{
    const Node *x = n->in[i];
    Node *by = v->by[x->id];
    const bool broadcast = n->op->flags & OP_ELEMENTWISE && is_sequence(v, n);
    if (!by || !broadcast || is_sequence(v, x) || x->shape.rank < n->shape.rank)
        return by;
    if (x->shape.batched || x->shape.dim[0] != v->time)
        return NULL;
    v->g->window = v->time;
    Node *row = graph_add(v->g, op_find("token_row"), &by, 1, x->span);
    return proved(v, row, true);
}

/* The argument `axis` counts one dimension less; false where it is that of time. */
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
    const Shape want = is_sequence(v, n) ? of_token(&n->shape) : n->shape;
    return shape_same(&want, &y->shape);
}

static Node *by_position(Derived *v, const Node *n)
{
    Node *in[16];
    if (n->nin > 16)
        return NULL;
    for (int i = 0; i < n->nin; i++)
        in[i] = operand(v, n, i);
    Node *y = again(v, n, n->op, in, n->nin);
    if (!y || !is_sequence(v, n))
        return proved(v, y, true);
    const Attr *mask = node_attr(n, "mask");
    node_drop_attr(v->g->arena, y, "rows");
    const bool masked = mask && strcmp(mask->s, "none") != 0;
    y = proved(v, y, keeps_position(n) && !masked && lower_axis(v, n, y));
    return proved(v, y, y && same_token(v, n, y));
}

/* ---- what looks back */

static Node *state(Derived *v, const Node *n)
{
    Node *first = v->by[n->in[0]->id];
    if (!node_is(n->in[0], "const") || n->loop->reversed || n->loop->steps != v->time)
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

static Node *looking_back(Derived *v, const Node *n, const char *op)
{
    if (node_is(n, "attention") && strcmp(node_string(n, "mask"), "causal") != 0)
        return NULL;
    Node *y = again(v, n, op_find(op), &v->by[n->in[0]->id], 1);
    if (!y)
        return NULL;
    v->g->window = v->time;
    if (node_is(n, "attention")) {
        node_drop_attr(v->g->arena, y, "mask");
        node_set_int(v->g, y, "time", v->time);
        node_set_int(v->g, y, "at", v->g->cached);
        v->g->cached += 2 * shape_count(&n->shape) + v->time; /* and a score each */
    }
    y = proved(v, y, true);
    return proved(v, y, y && same_token(v, n, y));
}

/* ---- the whole */

static Node *input(Derived *v, const Node *n)
{
    Node *y = again(v, n, n->op, NULL, 0);
    y->shape = of_token(&n->shape);
    return v->g->input = y;
}

/* The body of a loop sees sequences a step at a time. */
static bool reads_sequence(const Derived *v, const Node *n)
{
    for (int i = 0; n->loop && i < n->nin; i++)
        if (is_sequence(v, n->in[i]))
            return true;
    return false;
}

static Node *derived(Derived *v, const Node *n)
{
    static const char *const back[][2] = {{"attention", "token_attention"},
                                          {"rotary", "token_rotary"},
                                          {"sinusoidal", "token_sinusoidal"}};
    if (node_is(n, "input"))
        return input(v, n);
    if (node_is(n, "param"))
        return param(v, n);
    if (node_is(n, "scan_state"))
        return state(v, n);
    if (node_is(n, "scan_next"))
        return next(v, n);
    if (node_is(n, "scan_item"))
        return n->loop->reversed || !is_sequence(v, n->in[0]) ? NULL : v->by[n->in[0]->id];
    if (node_is(n, "scan_stack") || node_is(n, "scan_keep"))
        return v->by[n->in[0]->id];
    for (int i = 0; i < 3; i++)
        if (node_is(n, back[i][0]))
            return looking_back(v, n, back[i][1]);
    /* the last state, a class, or what has lost its time outside of a loop: not of one token */
    const bool whole = n->shape.batched && !node_is(n, "const") && !n->loop && !is_sequence(v, n);
    if (whole || node_is(n, "label") || reads_sequence(v, n))
        return NULL;
    return by_position(v, n);
}

/* A loop whose states are not all handed on would go on from the wrong ones. */
static bool hands_on(const Derived *v)
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
                 from->input->shape.dim[0]};
    v.g->source = from->source, v.g->recipe = *q, v.g->token = true;
    for (int i = 0; i < from->nnode; i++)
        v.by[from->node[i]->id] = derived(&v, from->node[i]);
    v.g->output = v.by[from->output->id];
    return v.g->output && hands_on(&v) ? v.g : NULL;
}
