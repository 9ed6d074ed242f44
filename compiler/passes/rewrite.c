/* rewrite.c -- replaces values, in linear time for any number of replacements. */
#include "passes/rewrite.h"

Rewrite rewrite_begin(Graph *g)
{
    return (Rewrite){.graph = g,
                     .ids = g->next_id,
                     .by = arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof(Node *))};
}

static Node *resolve(const Rewrite *r, Node *n)
{
    while (n && n->id < r->ids && r->by[n->id])
        n = r->by[n->id];
    return n;
}

void rewrite_replace(Rewrite *r, Node *old, Node *by)
{
    r->by[old->id] = by;
    r->replaced++;
    if (!by->name)
        by->name = old->name;
    if (by->id >= r->ids) /* a new node */
        by->looped = old->looped;
}

void rewrite_inputs(const Rewrite *r, Node *n)
{
    for (int i = 0; i < n->nin; i++)
        n->in[i] = resolve(r, n->in[i]);
}

void rewrite_end(Rewrite *r)
{
    Graph *g = r->graph;
    int kept = 0;
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        rewrite_inputs(r, n);
        if (n->id >= r->ids || !r->by[n->id])
            g->node[kept++] = n;
    }
    while (g->nnode > kept)
        g->node[--g->nnode] = NULL;
    g->output = resolve(r, g->output);
    g->loss = resolve(r, g->loss);
    for (int i = 0; i < g->nmetric; i++)
        g->metric[i].node = resolve(r, g->metric[i].node);
    graph_sort(g);
}
