/* copy.c -- a second graph with the same nodes, numbers, parameters and loops.
 *
 * The graph comes from the front end; no pass has changed it yet.  The copy shares names, places in
 * the model file, and lists of attributes: node_set_attr replaces a list, and never changes one.
 */
#include "ir/graph.h"

typedef struct Copies {
    Arena *arena;
    Node **node;   /* by id; NULL: not copied yet */
    Loop **loop;   /* by id */
    Param **param; /* in the order of both graphs */
    const Graph *from;
} Copies;

static Node *node_of(Copies *c, const Node *n);

/* Rounds the capacity up to a power of two: ARENA_PUSH assumes this capacity of a list. */
static void *list_alloc(const Copies *c, int n, size_t bytes)
{
    size_t room = 1;
    while (room < (size_t)n)
        room *= 2;
    return arena_alloc(c->arena, room * bytes);
}

static Node **nodes_of(Copies *c, Node *const *list, int n)
{
    Node **copy = list_alloc(c, n, sizeof *copy);
    for (int i = 0; i < n; i++)
        copy[i] = node_of(c, list[i]);
    return copy;
}

static Param *param_of(const Copies *c, const Param *p)
{
    for (int i = 0; i < c->from->nparam; i++)
        if (c->from->param[i] == p)
            return c->param[i];
    return NULL;
}

/* The copy of a node that need not be in the list, such as Loop.call. */
static Node *copy_node(Copies *c, const Node *n)
{
    Node *y = arena_alloc(c->arena, sizeof *y);
    *y = *n;
    y->in = nodes_of(c, n->in, n->nin);
    y->param = n->param ? param_of(c, n->param) : NULL;
    y->loop = n->loop ? c->loop[n->loop->id] : NULL;
    return y;
}

static Node *node_of(Copies *c, const Node *n)
{
    if (n && !c->node[n->id])
        c->node[n->id] = copy_node(c, n);
    return n ? c->node[n->id] : NULL;
}

/* Nodes point to loops and parameters, and loops and parameters point to nodes.  So this function
 * allocates all loops and parameters, and copy_lists fills them. */
static void make_places(Copies *c)
{
    const Graph *g = c->from;
    c->node = arena_alloc(c->arena, (size_t)(g->next_id + 1) * sizeof *c->node);
    c->loop = arena_alloc(c->arena, (size_t)(g->nloop + 1) * sizeof *c->loop);
    c->param = list_alloc(c, g->nparam, sizeof *c->param);
    for (int i = 0; i < g->nloop; i++)
        c->loop[g->loop[i]->id] = arena_alloc(c->arena, sizeof(Loop));
    for (int i = 0; i < g->nparam; i++)
        c->param[i] = arena_alloc(c->arena, sizeof(Param));
}

static void copy_loop(Copies *c, const Loop *l, Loop *y)
{
    *y = *l;
    y->carry = list_alloc(c, l->ncarry, sizeof *y->carry);
    for (int i = 0; i < l->ncarry; i++)
        y->carry[i] = (Carry){node_of(c, l->carry[i].state), node_of(c, l->carry[i].next)};
    y->call = l->call ? copy_node(c, l->call) : NULL;
    y->mirror = l->mirror ? c->loop[l->mirror->id] : NULL;
    y->inside = l->inside ? c->loop[l->inside->id] : NULL;
    y->stack = nodes_of(c, l->stack, l->nstack);
}

static void copy_lists(Copies *c, Graph *y)
{
    const Graph *g = c->from;
    y->node = nodes_of(c, g->node, g->nnode);
    y->loop = list_alloc(c, g->nloop, sizeof *y->loop);
    for (int i = 0; i < g->nloop; i++) {
        y->loop[i] = c->loop[g->loop[i]->id];
        copy_loop(c, g->loop[i], y->loop[i]);
    }
    y->param = c->param;
    for (int i = 0; i < g->nparam; i++) {
        *c->param[i] = *g->param[i];
        c->param[i]->node = node_of(c, g->param[i]->node);
    }
}

Graph *graph_copy(const Graph *g)
{
    Copies c = {.arena = g->arena, .from = g};
    Graph *y = arena_alloc(g->arena, sizeof *y);
    *y = *g;
    make_places(&c);
    copy_lists(&c, y);
    y->input = node_of(&c, g->input), y->label = node_of(&c, g->label);
    y->output = node_of(&c, g->output), y->loss = node_of(&c, g->loss);
    for (int i = 0; i < g->nmetric; i++)
        y->metric[i].node = node_of(&c, g->metric[i].node);
    return y;
}
