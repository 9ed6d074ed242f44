/* rewrite.h -- replaces values: collects a map from old to new values, and applies it once.
 *
 *   Rewrite r = rewrite_begin(g);
 *   const int count = g->nnode;            new nodes follow; they are not replaced
 *   for (int i = 0; i < count; i++) {
 *       Node *n = g->node[i];
 *       rewrite_inputs(&r, n);
 *       if (node_is(n, "neg") && node_is(n->in[0], "neg"))
 *           rewrite_replace(&r, n, n->in[0]->in[0]);
 *   }
 *   rewrite_end(&r);
 */
#ifndef REWRITE_H
#define REWRITE_H
#include "ir/graph.h"

typedef struct Rewrite {
    Graph *graph;
    int ids;   /* nodes with smaller ids can be replaced; more than Graph.nnode */
    Node **by; /* by id: the new value; NULL: not replaced */
    int replaced;
} Rewrite;

Rewrite rewrite_begin(Graph *g);
/* Records that `by` replaces old. `by` gets the name of old if `by` has none. */
void rewrite_replace(Rewrite *r, Node *old, Node *by);
/* Replaces the inputs of n by the replacements so far. */
void rewrite_inputs(const Rewrite *r, Node *n);
/* Replaces all uses of the old values, also as output, loss and metric; drops replaced nodes, and
 * sorts the graph. */
void rewrite_end(Rewrite *r);

#endif
