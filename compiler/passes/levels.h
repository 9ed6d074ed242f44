/* levels.h -- decides which phase computes each node: levels.c. */
#ifndef LEVELS_H
#define LEVELS_H
#include "ir/readers.h"
#include "ir/step.h"

/* What computes a node (Node.mark):
 *   LEAF      nothing: a parameter or constant
 *   PREPARE   a prepare phase, once for all samples
 *   SLICE     a slice phase, for each sample
 *   SUMMED    a slice phase, as a sum over samples
 *   KNOWN     the end of a slice phase, from the sums of all shards
 *   TOTAL     the beginning of a slice phase, from the sums of a shard
 *   UPDATE    the update */
enum { LEAF = -1, PREPARE, SLICE, SUMMED, KNOWN, TOTAL, UPDATE };

bool levels_wide(const Node *n);     /* it has a phase of its own, with all samples (pass wide) */
bool levels_in_slice(const Node *n); /* a slice phase or a wide phase calls it */
/* By id: the slice phase of a node, or the prepare phase of a prepared one, counted from 0. */
int *levels_find(const Graph *g, const Step *s);

/* Sets due[bucket]: the level before which the parameters of the bucket are updated.  Returns by
 * id: the level before which a node that is prepared from parameters is made. */
int *levels_due(const Graph *g, const Step *s, const Readers *r, const int *level, int *due);

#endif
