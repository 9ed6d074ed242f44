/* join.h -- replaces a node and its reader by one node that computes both: for the passes fuse and
 * epilogue. */
#ifndef JOIN_H
#define JOIN_H
#include "ir/readers.h"

/* Replaces `old` by a node of `op` with these inputs and shape, and with the span, name and
 * attributes of `old`.  It takes the id of `old` and its place in the list; readers of `old` stay
 * as they are. */
Node *join_stand_in(Graph *g, Readers *r, Node *old, const Op *op, Node *const *in, int nin,
                    const Shape *s);
/* Adds a node of `op` with the attributes, type and name of `like`. */
Node *join_add(Graph *g, Readers *r, const char *op, Node *const *in, int nin, const Node *like,
               const Shape *s);
/* Replaces `old` by a node with these inputs that also computes `last`, a reader of `old`.  Its
 * shape is that of `last`, and the readers of `last` read it. */
Node *join_reader(Graph *g, Readers *r, Node *old, Node *last, Node *const *in, int nin);
/* In evaluation, batch_norm multiplies by constants and adds constants: the weights and the bias of
 * the product n before it absorb them.  b is the batch_norm_test that reads n.  Returns the new
 * node; NULL, without a change: impossible. */
Node *join_norm(Graph *g, Readers *r, Node *n, Node *b);

#endif
