/* rewrite.h -- replacing values: a map from old to new, applied in one sweep. */
#ifndef REWRITE_H
#define REWRITE_H
#include "ir/graph.h"

typedef struct Rewrite {
    Graph *graph;
    int    count;                                     /* ids below it may be replaced */
    Node **by;                                        /* by id: what to use instead, or NULL */
    int    replaced;
} Rewrite;

Rewrite rewrite_begin(Graph *g);
/* `by` takes over the name of old when it has none. */
void    rewrite_replace(Rewrite *r, Node *old, Node *by);
void    rewrite_inputs(const Rewrite *r, Node *n);    /* n's inputs as replaced so far */
/* Every use, output, loss and metrics; drops what was replaced, and sorts. */
void    rewrite_end(Rewrite *r);

#endif
