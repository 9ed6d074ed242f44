/* buckets.h -- parts of the gradient buffer that ranks add during the backward pass: buckets.c. */
#ifndef BUCKETS_H
#define BUCKETS_H
#include "ir/options.h"
#include "ir/step.h"

/* Makes s->bucket from the sums of s. */
void buckets_cut(Graph *g, Step *s, const Options *o);
/* By id of a node: the first bucket that needs the node; s->nbucket if no bucket needs it. */
int *buckets_claim(const Graph *g, const Step *s);
/* By id of a node: whether it reads parameters of the bucket, directly or through values that
 * depend on parameters only. */
bool *buckets_read(const Graph *g, const Step *s, int bucket);
/* The level of the last sum of the bucket; bucket 0 also waits for metrics. */
int buckets_level(const Graph *g, const Step *s, int bucket, const int *level);

#endif
