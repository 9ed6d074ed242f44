/* rewrite.h -- what passes that replace values share: a map from old to new, applied in one sweep. */
#ifndef REWRITE_H
#define REWRITE_H
#include "ir/graph.h"

typedef struct Rewrite {
    Graph *graph;
    int    count;                                     /* ids below count may be replaced: those there at the start */
    Node **by;                                        /* by id: the value to use instead, NULL = itself */
    int    replaced;
} Rewrite;

Rewrite rewrite_begin(Graph *g);
void    rewrite_replace(Rewrite *r, Node *old, Node *by);    /* `by` takes over the name when it has none */
void    rewrite_inputs(const Rewrite *r, Node *n);           /* n's inputs as replaced so far */
void    rewrite_end(Rewrite *r);                             /* every use, output, loss and metrics; drops what was replaced; sorts */

#endif
