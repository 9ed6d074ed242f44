/* stretch.c -- scans with `recompute = every k`: the backward pass makes the values of the steps again, k steps at a time.
 *
 * Without it the loop that goes back reads each value of the loop forward from a sequence of all steps.  With it the loop
 * forward saves its states at the first step of every k only, a stretch.  At the first step of a stretch, counted from its
 * end, the loop back runs the stretch forward once more, from the saved states, by the same kernels on the same operands:
 * the same bits, in sequences of k steps.
 *
 *   loop L, T steps     scan_save(state)                     T / k states kept
 *   loop M, back        at steps k - 1, 2 k - 1 ..:          loop A (Loop.inside = M), k steps: scan_resume, what M needs of
 *                                                            L's body, stacks of k steps
 *                       reads A's stacks
 *
 * What is read by whole sequences is kept anyway and not made again: the operands of the weights' gradients, which are
 * one product over all steps, in an order that must not change, and what the scan yields to readers behind it.  What pass
 * hoist took out of the loop is made again inside, so that it need not wait for the backward pass.
 *
 * After dce, which has dropped the stacks that nobody reads; before fuse, which may then compute in L without storing.
 *
 * Idea: Chen, Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost".
 */
#include "ir/readers.h"
#include "ir/target.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include <string.h>

/* One loop at work. */
typedef struct Stretch {
    Graph *g;
    Readers *readers;
    Loop *from, *again;
    int count;      /* nodes in the list when it began */
    Node **by;      /* by id: what stands for it in the loop `again` */
    bool by_step;   /* a product of one step has the bits of one of all steps: not by a BLAS */
    bool *replaced; /* by id: a stack that nobody will read any more */
} Stretch;

static Node *value_again(Stretch *s, Node *v);

/* ---- what is made again */

static Node *copied(Stretch *s, const Node *n, Node *const *in)
{
    Graph *g = s->g;
    Node *c = graph_add(g, n->op, in, n->nin, n->span);
    node_copy_attrs(g, c, n);
    node_drop_attr(g->arena, c, "rows"); /* of a dense product over a whole sequence */
    c->loop = s->again, c->backward = true, c->dtype = n->dtype;
    c->name = n->name, c->needs_grad = n->needs_grad, c->block = n->block;
    c->op->shape(c, diag_new(g->arena, DIAG_NEVER));
    return c;
}

/* The stack of v that is read as a whole and so kept; NULL: none. */
static Node *kept_stack(const Stretch *s, const Node *v)
{
    for (int i = 0; i < s->from->nstack; i++) {
        Node *stack = s->from->stack[i];
        if (stack->in[0] == v && !s->replaced[stack->id] && readers_count(s->readers, stack) > 0)
            return stack;
    }
    return NULL;
}

/* A layer's result for a whole sequence that only steps of the loop forward read. */
static bool only_for_steps(const Stretch *s, const Node *x)
{
    bool only = s->by_step && (node_is(x, "dense") || node_is(x, "bias")) && x->shape.rank == 2 &&
                !x->loop && x->shape.batched && !graph_keeps(s->g, x);
    for (int i = 0; only && i < readers_count(s->readers, x); i++) {
        const Node *u = readers_at(s->readers, x, i);
        only =
            !u->backward && ((node_is(u, "scan_item") && u->loop == s->from) || node_is(u, "bias"));
        if (only && node_is(u, "bias"))
            only = only_for_steps(s, u);
    }
    return only;
}

/* The element of the sequence x: made from elements of what it is made from where it can be. */
static Node *item_again(Stretch *s, Node *x, Span at)
{
    Node *in[2];
    if (!only_for_steps(s, x) || x->nin > 2)
        return scan_item(s->g, s->again, x, at);
    for (int i = 0; i < x->nin; i++)
        in[i] = x->in[i]->shape.batched ? item_again(s, x->in[i], at) : x->in[i];
    return copied(s, x, in);
}

/* A state goes on from what was saved.  What its steps hand on is made last: hand_on. */
static Node *state_again(Stretch *s, Node *state)
{
    Node *r = scan_resume(s->g, s->again, scan_save(s->g, state), state->span);
    r->name = state->name;
    return r;
}

/* v of the loop forward, in the loop that runs a stretch again. */
static Node *value_again(Stretch *s, Node *v)
{
    Node *in[8];
    if (node_loop(v) != s->from)
        return v;
    if (s->by[v->id])
        return s->by[v->id];
    Node *stack = kept_stack(s, v), *c;
    if (stack)
        c = scan_item(s->g, s->again, stack, v->span);
    else if (node_is(v, "scan_item")) /* copied: fuse then sees what it sees in the loop forward */
        c = only_for_steps(s, v->in[0])
                ? scan_keep(s->g, s->again, item_again(s, v->in[0], v->span))
                : scan_item(s->g, s->again, v->in[0], v->span);
    else if (node_is(v, "scan_state"))
        c = state_again(s, v);
    else {
        for (int i = 0; i < v->nin && i < 8; i++)
            in[i] = value_again(s, v->in[i]);
        c = copied(s, v, in);
    }
    c->backward = true;
    return s->by[v->id] = c;
}

/* ---- which values */

static bool read_by_steps_back(const Stretch *s, const Node *stack)
{
    const int n = readers_count(s->readers, stack);
    for (int i = 0; i < n; i++) {
        const Node *u = readers_at(s->readers, stack, i);
        if (!node_is(u, "scan_item") || u->loop != s->from->mirror)
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
        if (node_is(u, "scan_item") && u->in[0] == stack)
            u->in[0] = again;
    }
}

/* What is handed on may need further states. */
static void hand_on(Stretch *s)
{
    bool *done = arena_alloc(s->g->arena, (size_t)s->from->ncarry + 1);
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < s->from->ncarry; i++) {
            const Carry *c = &s->from->carry[i];
            Node *state = s->by[c->state->id];
            if (done[i] || !state || !node_is(state, "scan_resume"))
                continue;
            scan_next(s->g, state, value_again(s, c->next->in[0]))->backward = true;
            done[i] = more = true;
        }
    }
}

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
    hand_on(&s);
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
