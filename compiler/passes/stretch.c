/* stretch.c -- scans with `recompute = every k`: the backward pass recomputes the values of the
 * steps, k steps at a time.
 *
 * Without this option, the backward loop reads each value of the forward loop from a sequence of
 * all steps.  With the option, k steps are a stretch, and the forward loop saves its states only at
 * the first step of each stretch.  The backward loop reaches a stretch at the last step of the
 * stretch.  There, it first runs the whole stretch forward again, from the saved states, and stores
 * the values in sequences of k steps.  The same kernels and operands give the same bits.
 *
 *   loop L, T steps     scan_save(state)            keeps T / k states
 *   loop M, backward    at steps k - 1, 2 k - 1 ..: loop A (Loop.inside = M), k steps: scan_resume,
 *                                                   nodes of L that M needs, stacks of k steps
 *                       reads the stacks of A
 *
 * Sequences that are read as a whole are kept: the operands of gradients of weights, which are one
 * product over all steps in a fixed order, and the results of the scan.  A value that pass hoist
 * has moved out of the loop is recomputed in the loop, so that it need not be kept for the backward
 * pass.
 *
 * This pass runs after dce, which has dropped stacks without readers, and before fuse, which then
 * need not store these values in L.
 *
 * Idea: Chen, Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost".
 */
#include "ir/readers.h"
#include "ir/target.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include <string.h>

/* The work on one loop. */
typedef struct Stretch {
    Graph *g;
    Readers *readers;
    Loop *from, *again;
    int count;    /* nodes in the list at the beginning */
    Node **by;    /* by id: the recomputed value, in the loop `again` */
    bool by_step; /* a product of one step has the bits of a product of all steps: not in a BLAS */
    bool *replaced; /* by id: stacks that have lost all readers */
} Stretch;

static Node *value_again(Stretch *s, Node *v);

/* ---- recomputing values */

static Node *copy_into_loop(Stretch *s, const Node *n, Node *const *in)
{
    Graph *g = s->g;
    Node *c = graph_add(g, n->op, in, n->nin, n->span);
    node_copy_attrs(g, c, n);
    node_drop_attr(g->arena, c, "rows"); /* an attribute of a product over a whole sequence */
    c->loop = s->again, c->backward = true, c->dtype = n->dtype;
    c->name = n->name, c->needs_grad = n->needs_grad, c->call = n->call;
    c->op->shape(c, diag_new(g->arena, DIAG_NEVER));
    return c;
}

/* The stack of v if its readers need the whole sequence, so that it is kept; NULL: none. */
static Node *kept_stack(const Stretch *s, const Node *v)
{
    for (int i = 0; i < s->from->nstack; i++) {
        Node *stack = s->from->stack[i];
        if (stack->in[0] == v && !s->replaced[stack->id] && readers_count(s->readers, stack) > 0)
            return stack;
    }
    return NULL;
}

static bool is_bias(const Node *n)
{
    return n->op->epilogue == EPILOGUE_BIAS;
}

/* Whether x is the result of dense or bias for a whole sequence, and only steps of the forward loop
 * read it. */
static bool only_for_steps(const Stretch *s, const Node *x)
{
    bool only = s->by_step && (op_computes(x, PRODUCT_DENSE, ROLE_Y) || is_bias(x)) &&
                x->shape.rank == 2 && !x->loop && x->shape.batched && !graph_keeps(s->g, x);
    for (int i = 0; only && i < readers_count(s->readers, x); i++) {
        const Node *u = readers_at(s->readers, x, i);
        only = !u->backward && ((u->op->scan == SCAN_ITEM && u->loop == s->from) || is_bias(u));
        if (only && is_bias(u))
            only = only_for_steps(s, u);
    }
    return only;
}

/* The element of the sequence x, computed from elements of its inputs if possible. */
static Node *item_again(Stretch *s, Node *x, Span at)
{
    Node *in[2];
    if (!only_for_steps(s, x) || x->nin > 2)
        return scan_item(s->g, s->again, x, at);
    for (int i = 0; i < x->nin; i++)
        in[i] = x->in[i]->shape.batched ? item_again(s, x->in[i], at) : x->in[i];
    return copy_into_loop(s, x, in);
}

/* The recomputed state, which begins with the saved state.  Function carry_on later makes the
 * values that this state has in the next steps. */
static Node *state_again(Stretch *s, Node *state)
{
    Node *r = scan_resume(s->g, s->again, scan_save(s->g, state), state->span);
    r->name = state->name;
    return r;
}

/* The recomputed value of v, a node of the forward loop, in the loop `again`.  If v is an element
 * of a sequence that is recomputed element by element, the result is a copy of the recomputed
 * element, so that pass fuse finds the same pattern as in the forward loop. */
static Node *value_again(Stretch *s, Node *v)
{
    if (node_loop(v) != s->from)
        return v;
    if (s->by[v->id])
        return s->by[v->id];
    Node *stack = kept_stack(s, v), *c;
    if (stack)
        c = scan_item(s->g, s->again, stack, v->span);
    else if (v->op->scan == SCAN_ITEM && only_for_steps(s, v->in[0]))
        c = scan_keep(s->g, s->again, item_again(s, v->in[0], v->span));
    else if (v->op->scan == SCAN_ITEM)
        c = scan_item(s->g, s->again, v->in[0], v->span);
    else if (v->op->scan == SCAN_STATE)
        c = state_again(s, v);
    else {
        Node **in = arena_alloc(s->g->arena, (size_t)v->nin * sizeof *in);
        for (int i = 0; i < v->nin; i++)
            in[i] = value_again(s, v->in[i]);
        c = copy_into_loop(s, v, in);
    }
    c->backward = true;
    return s->by[v->id] = c;
}

/* ---- choosing values */

static bool read_by_steps_back(const Stretch *s, const Node *stack)
{
    const int n = readers_count(s->readers, stack);
    for (int i = 0; i < n; i++) {
        const Node *u = readers_at(s->readers, stack, i);
        if (u->op->scan != SCAN_ITEM || u->loop != s->from->mirror)
            return false;
    }
    return n > 0 && !graph_keeps(s->g, stack);
}

static void read_again(Stretch *s, const Node *stack)
{
    Node *again = scan_stack(s->g, value_again(s, stack->in[0]));
    again->backward = true;
    for (int i = 0; i < s->count; i++) {
        Node *u = s->g->node[i];
        if (u->op->scan == SCAN_ITEM && u->in[0] == stack)
            u->in[0] = again;
    }
}

/* Makes the values that recomputed states pass to the next step; these values can need other
 * states. */
static void carry_on(Stretch *s)
{
    bool *done = arena_alloc(s->g->arena, (size_t)s->from->ncarry + 1);
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < s->from->ncarry; i++) {
            const Carry *c = &s->from->carry[i];
            Node *state = s->by[c->state->id];
            if (done[i] || !state || state->op->scan != SCAN_RESUME)
                continue;
            scan_next(s->g, state, value_again(s, c->next->in[0]))->backward = true;
            done[i] = more = true;
        }
    }
}

/* Makes the loop `again`, which recomputes the stretches of l, if steps of the backward loop read
 * values of l. */
static void run_again(Graph *g, const Options *o, Loop *l)
{
    const size_t ids = (size_t)g->next_id + 1;
    Stretch s = {.g = g,
                 .readers = readers_new(g),
                 .from = l,
                 .by_step = target_of(o).by_step,
                 .count = g->nnode,
                 .by = arena_alloc(g->arena, ids * sizeof(Node *)),
                 .replaced = arena_alloc(g->arena, ids)};
    int any = 0;
    for (int i = 0; i < l->nstack; i++)
        any += s.replaced[l->stack[i]->id] = read_by_steps_back(&s, l->stack[i]);
    if (any == 0)
        return;
    s.again = graph_loop(g, l->steps, l->reversed, l->span);
    s.again->every = l->every, s.again->inside = l->mirror;
    const int count = l->nstack;
    for (int i = 0; i < count; i++)
        if (s.replaced[l->stack[i]->id])
            read_again(&s, l->stack[i]);
    carry_on(&s);
    graph_sort(g);
}

void pass_stretch(Graph *g, const Options *o, Diag *d)
{
    const int count = g->nloop;
    (void)d;
    for (int i = 0; i < count; i++)
        if (g->loop[i]->every > 0 && g->loop[i]->mirror)
            run_again(g, o, g->loop[i]);
}
