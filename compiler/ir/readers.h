/* readers.h -- who reads a value: an index over a graph, so that passes need not search it.
 *
 * Built by one visit of the graph.  Edits made through readers_* keep it true; after any other edit it is stale and a new
 * one is needed.  A node belongs to one index at a time (Node.seat).
 */
#ifndef READERS_H
#define READERS_H
#include "ir/graph.h"

typedef struct Readers Readers;

Readers *readers_new(Graph *g);
int   readers_count(const Readers *r, const Node *n);           /* nodes that read n, each counted once */
Node *readers_at(const Readers *r, const Node *n, int i);       /* in no order that means anything */
Node *readers_only(const Readers *r, const Node *n);            /* the one node that reads n; NULL: none, several, or the graph itself does */
int   readers_uses(const Readers *r, const Node *n);            /* inputs that refer to n, plus 1 if it is output, loss or a metric */
bool  graph_keeps(const Graph *g, const Node *n);               /* n is output, loss or a metric */

/* `by` takes the place of `old` in the list, and its number; old, which is about to lose its readers, leaves the list. */
void  readers_stand_in(Readers *r, Node *old, Node *by);
void  readers_add(Readers *r, Node *n);                         /* n, which graph_add has just put at the end of the list, joins the index */
void  readers_set_input(Readers *r, Node *n, int i, Node *x);
void  readers_replace(Readers *r, Node *old, Node *by);         /* every use of old becomes one of by, which keeps its own */
void  readers_retire(Readers *r, Node *n);                      /* n has no reader left: it reads nothing any more, and so on upwards */
bool  readers_retired(const Readers *r, const Node *n);

#endif
