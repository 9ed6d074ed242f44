/* scale.h -- the scale model: predicted time of a step on more ranks, from the compiler's buckets.
 *
 * A message takes alpha + bytes * beta (Hockney 1994).  A sum over R ranks takes 2 log2(R)
 * messages, one after another, if R is a power of two (halving and doubling: comm/sum.c), else
 * 2 (R - 1); both ways move 2 (R - 1) / R of the vector (Thakur, Rabenseifner, Gropp 2005).
 *
 * A third of a rank's own step is the forward pass, and k buckets are k equal parts of both passes.
 * The gradients of bucket b are complete after (b + 1) / k of the backward pass.  If updates can be
 * pending (RtBucket.due; R is a power of two), the next forward pass needs bucket b only when it
 * comes to the layers of b.  Later buckets are summed before bucket b.  So the sums of bucket b and
 * of later buckets overlap with the rank's own work, except for (b + 1) / k of this work.  For each
 * b, a step takes at least (b + 1) / k of this work plus these sums; it also takes at least as long
 * as the work itself.  If updates cannot be pending, sums do not overlap with the forward pass.
 * The slowest of R ranks is late by s sqrt(2 ln R), s = 1 % of its step.  The network is flat and
 * does not congest.
 *
 * `bench --comm` prints the model beside its measurements, `bench --scale` for up to 1024 ranks.
 */
#ifndef SCALE_H
#define SCALE_H
#include "rt.h"

typedef struct Link {
    double alpha, beta;
} Link; /* seconds a message, seconds a byte */

/* In seconds: a step, all sums, and the part of the sums that overlaps with no other work. */
typedef struct Scaled {
    double step, sums, bare;
} Scaled;

double scale_messages(int ranks);            /* of one sum, one after another */
double scale_moved(int ranks, double bytes); /* of its bytes, to and from a rank */
double scale_sum(Link l, int ranks, double bytes);

/* own: seconds of a rank's part of the step, without communication. */
Scaled scale_step(Link l, int ranks, const RtBucket *bucket, int nbucket, double own);

/* Prints to standard output the predicted steps of 1 to 1024 ranks over three networks.  Each rank
 * has a batch of its own, and its own step takes `own` seconds. */
void scale_print(const RtProgram *p, double own);

#endif
