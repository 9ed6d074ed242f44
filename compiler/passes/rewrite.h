/* rewrite.h -- replaces values: collects a map from old to new values, and applies it once. */
#ifndef REWRITE_H
#define REWRITE_H
#include "ir/graph.h"

typedef struct Rewrite {
    Graph *graph;
    int count; /* nodes with smaller ids can be replaced */
    Node **by; /* by id: the new value; NULL: not replaced */
    int replaced;
} Rewrite;

Rewrite rewrite_begin(Graph *g);
/* `by` gets the name of old if `by` has none. */
void rewrite_replace(Rewrite *r, Node *old, Node *by);
/* Replaces the inputs of n by the replacements so far. */
void rewrite_inputs(const Rewrite *r, Node *n);
/* Replaces all uses of the old values, also as output, loss and metric; drops replaced nodes, and
 * sorts the graph. */
void rewrite_end(Rewrite *r);

#endif
