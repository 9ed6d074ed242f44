/* join.h -- replaces a node and its reader by one node that computes both: for the passes fuse and
 * epilogue. */
#ifndef JOIN_H
#define JOIN_H
#include "ir/readers.h"

/* Replaces `old` by a node of `op` with these inputs and shape, and with the span, name and
 * attributes of `old`.  The new node takes the id of `old` and its position in the list.  Readers
 * of `old` still read `old`. */
Node *join_stand_in(Graph *g, Readers *r, Node *old, const Op *op, Node *const *in, int nin,
                    const Shape *s);
/* Replaces `old` by a node with these inputs that also computes `last`, a reader of `old`.  The new
 * node has the shape of `last`, and the readers of `last` read the new node. */
Node *join_reader(Graph *g, Readers *r, Node *old, Node *last, Node *const *in, int nin);
/* Folds b, a batch_norm_test that reads the product n, into the weights and the bias of n: in
 * evaluation, batch_norm multiplies by constants and adds constants.  Returns the new node; NULL if
 * this is impossible, and then nothing changes. */
Node *join_norm(Graph *g, Readers *r, Node *n, Node *b);

#endif
