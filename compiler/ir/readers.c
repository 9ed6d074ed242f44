/* readers.c -- the index of readers: a list of readers for each node. */
#include "ir/readers.h"
#include "ir/vocabulary.h"

typedef struct Seat { /* the entry of one node */
    Node **reader;
    int nreader;
    int at; /* index of the node in graph->node */
    bool retired;
} Seat;

struct Readers {
    Graph *graph;
    Seat *seat;
    int nseat;
};

static void add(Readers *r, Node *n, Node *reader)
{
    Seat *s = &r->seat[n->seat];
    for (int i = s->nreader; i > 0; i--)
        if (s->reader[i - 1] == reader)
            return;
    ARENA_PUSH(r->graph->arena, s->reader, s->nreader, reader);
}

static void drop(Readers *r, const Node *n, const Node *reader)
{
    Seat *s = &r->seat[n->seat];
    for (int i = 0; i < s->nreader; i++)
        if (s->reader[i] == reader) {
            s->reader[i] = s->reader[--s->nreader];
            return;
        }
}

static void add_node(Readers *r, Node *n, int at)
{
    n->seat = r->nseat;
    ARENA_PUSH(r->graph->arena, r->seat, r->nseat, ((Seat){.at = at}));
    for (int i = 0; i < n->nin; i++)
        add(r, n->in[i], n);
}

Readers *readers_new(Graph *g)
{
    Readers *r = arena_alloc(g->arena, sizeof *r);
    r->graph = g;
    for (int i = 0; i < g->nnode; i++)
        add_node(r, g->node[i], i);
    return r;
}

int readers_count(const Readers *r, const Node *n)
{
    return r->seat[n->seat].nreader;
}

Node *readers_at(const Readers *r, const Node *n, int i)
{
    return r->seat[n->seat].reader[i];
}

bool graph_keeps(const Graph *g, const Node *n)
{
    bool kept = g->output == n || g->loss == n;
    for (int i = 0; i < g->nmetric; i++)
        kept |= g->metric[i].node == n;
    return kept;
}

Node *readers_only(const Readers *r, const Node *n)
{
    return readers_count(r, n) == 1 && !graph_keeps(r->graph, n) ? readers_at(r, n, 0) : NULL;
}

int readers_uses(const Readers *r, const Node *n)
{
    int uses = graph_keeps(r->graph, n);
    for (int i = 0; i < readers_count(r, n); i++)
        for (int k = 0; k < readers_at(r, n, i)->nin; k++)
            uses += readers_at(r, n, i)->in[k] == n;
    return uses;
}

/* Removes `by` from the end of graph->node, where graph_add put it. */
void readers_stand_in(Readers *r, Node *old, Node *by)
{
    Graph *g = r->graph;
    const int at = r->seat[old->seat].at, id = by->id;
    add_node(r, by, at);
    g->node[at] = by;
    g->node[--g->nnode] = NULL;
    by->id = old->id, old->id = id;
}

void readers_add(Readers *r, Node *n)
{
    add_node(r, n, r->graph->nnode - 1);
}

void readers_set_input(Readers *r, Node *n, int i, Node *x)
{
    Node *before = n->in[i];
    bool still = false;
    n->in[i] = x;
    for (int k = 0; k < n->nin; k++)
        still |= n->in[k] == before;
    if (!still)
        drop(r, before, n);
    add(r, x, n);
}

void readers_replace(Readers *r, Node *old, Node *by)
{
    Graph *g = r->graph;
    Seat *s = &r->seat[old->seat];
    for (int i = s->nreader; i-- > 0;) { /* set_input moves the last reader into the gap */
        Node *n = s->reader[i];
        for (int k = 0; n != by && k < n->nin; k++)
            if (n->in[k] == old)
                readers_set_input(r, n, k, by);
    }
    g->output = g->output == old ? by : g->output;
    g->loss = g->loss == old ? by : g->loss;
    for (int i = 0; i < g->nmetric; i++)
        if (g->metric[i].node == old)
            g->metric[i].node = by;
    if (!by->name)
        by->name = old->name;
}

/* Inputs of the program and updates are roots: they stay although nothing reads them. */
static bool is_root(const Graph *g, const Node *n)
{
    return graph_keeps(g, n) || op_stays(n->op);
}

void readers_retire(Readers *r, Node *n)
{
    Node **stack = NULL;
    int depth = 0;
    ARENA_PUSH(r->graph->arena, stack, depth, n);
    while (depth) {
        Node *top = stack[--depth];
        Seat *s = &r->seat[top->seat];
        if (s->retired || s->nreader || is_root(r->graph, top))
            continue;
        s->retired = true;
        for (int i = 0; i < top->nin; i++) {
            drop(r, top->in[i], top);
            ARENA_PUSH(r->graph->arena, stack, depth, top->in[i]);
        }
        top->nin = 0;
    }
}

bool readers_retired(const Readers *r, const Node *n)
{
    return r->seat[n->seat].retired;
}
