/* levels.h -- which phase computes a node: see levels.c. */
#ifndef LEVELS_H
#define LEVELS_H
#include "ir/readers.h"
#include "ir/step.h"

/* What computes a node: prepare, a slice phase as part of a sum or of a sample, what follows one for all ranks, the head of a
 * slice phase from a shard's sums, the update. */
enum { LEAF = -1, PREPARE, SLICE, SUMMED, KNOWN, TOTAL, UPDATE };

bool levels_wide(const Node *n);                      /* it has a phase of its own: all samples at once (pass wide) */
bool levels_in_slice(const Node *n);                  /* a slice phase calls it, or a wide one */
int *levels_find(const Graph *g, const Step *s);      /* by id: how manieth slice phase, of what is prepared: how manieth prepare phase */

/* due[bucket]: before which level its parameters are updated at the latest; by id: and what is prepared from them is made. */
int *levels_due(const Graph *g, const Step *s, const Readers *r, const int *level, int *due);

#endif
