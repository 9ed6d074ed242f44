/* readers.h -- the readers of each value: an index over a graph, so that passes need no search.
 *
 * readers_new builds the index in one walk over the graph.  Edits through readers_* keep the index
 * valid; after any other edit a new index is needed.  Node.seat is the position of a node's entry
 * in the index, so only the latest index of a graph is valid.
 */
#ifndef READERS_H
#define READERS_H
#include "ir/graph.h"

typedef struct Readers Readers;

Readers *readers_new(Graph *g);
int readers_count(const Readers *r, const Node *n);       /* nodes that read n, each counted once */
Node *readers_at(const Readers *r, const Node *n, int i); /* the order has no meaning */
/* The only node that reads n; NULL when there are none or several, or when graph_keeps(n). */
Node *readers_only(const Readers *r, const Node *n);
/* Number of inputs that refer to n, plus 1 if n is output, loss or a metric. */
int readers_uses(const Readers *r, const Node *n);
bool graph_keeps(const Graph *g, const Node *n); /* n is output, loss or a metric */

/* Gives the position and the id of `old` to `by`, the last node of the list.  `old` leaves the
 * list.  The readers of `old` still read it, until the caller calls readers_replace. */
void readers_stand_in(Readers *r, Node *old, Node *by);
/* Adds n to the index; graph_add has just appended n to the list. */
void readers_add(Readers *r, Node *n);
void readers_set_input(Readers *r, Node *n, int i, Node *x);
/* Replaces each use of old by a use of `by`, except in `by` itself. */
void readers_replace(Readers *r, Node *old, Node *by);
/* Removes the inputs of n if nothing reads n, and then those of each input that has lost its last
 * reader.  A node that must stay without readers keeps its inputs. */
void readers_retire(Readers *r, Node *n);
bool readers_retired(const Readers *r, const Node *n);

#endif
