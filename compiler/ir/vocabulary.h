/* vocabulary.h -- the six questions that ir asks about operations; ops/table.c answers.
 *
 * The graph knows operations only as names that fill a node: it never looks into ops/op.h, which
 * lies uphill.
 */
#ifndef VOCABULARY_H
#define VOCABULARY_H
#include "ir/graph.h"

const Op   *op_find(const char *name);                /* NULL if there is none */
const char *op_name(const Op *op);
bool        op_leaves(const Op *op);                  /* its readers are outside of the loop that computes it */
bool        node_updates(const Node *n);              /* it changes parameters: a root of the graph */
bool        op_infer(Node *n, Diag *d);               /* its shape rule; true without one */
/* Wrong number of inputs, or an attribute that is missing or of the wrong kind: what, else NULL. */
const char *op_complaint(const Node *n, Arena *a);

#endif
