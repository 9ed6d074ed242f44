/* buckets.h -- pieces of the gradient that ranks add while the backward pass goes on: see buckets.c. */
#ifndef BUCKETS_H
#define BUCKETS_H
#include "ir/options.h"
#include "ir/step.h"

void buckets_cut(Graph *g, Step *s, const Options *o);            /* s->bucket, from the sums */
int *buckets_claim(const Graph *g, const Step *s);                /* by id: the first bucket that needs a node, or their number */
bool *buckets_read(const Graph *g, const Step *s, int bucket);    /* by id: reads its parameters, or what is made of parameters alone */
int  buckets_level(const Graph *g, const Step *s, int bucket, const int *level);  /* of the last of its sums; of the first bucket's: and of metrics */

#endif
