/* vocabulary.h -- the six functions about operations that ir needs.  ops/check.c defines
 * op_complaint, and ops/table.c defines the others.
 *
 * For ir, an operation is only a name and a pointer: ir does not include ops/op.h, because ops
 * includes ir.
 */
#ifndef VOCABULARY_H
#define VOCABULARY_H
#include "ir/graph.h"

const Op *op_find(const char *name); /* NULL if there is none */
const char *op_name(const Op *op);
bool op_leaves(const Op *op);    /* readers of the result are outside of the loop of the node */
bool op_stays(const Op *op);     /* a node stays in the graph even if nothing reads it */
bool op_infer(Node *n, Diag *d); /* runs the shape rule; true without a rule */
/* Describes a wrong number of inputs or a missing or wrong attribute; NULL when there is no
 * fault. */
const char *op_complaint(const Node *n, Arena *a);

#endif
