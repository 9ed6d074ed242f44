/* scale.h -- the scale model: predicted time of a step on more ranks, from the compiler's buckets.
 *
 * A message takes alpha + bytes * beta (Hockney 1994).  A sum over R ranks takes 2 log2(R)
 * messages, one after another, if R is a power of two (halving and doubling: comm/sum.c), else
 * 2 (R - 1); both ways move 2 (R - 1) / R of the vector (Thakur, Rabenseifner, Gropp 2005).
 *
 * A third of a rank's own step is the forward pass, and k buckets are k equal parts of both passes.
 * The gradients of bucket b are complete after (b + 1) / k of the backward pass.  If updates can be
 * late (RtBucket.due; R is a power of two), the next forward pass needs bucket b only when it comes
 * to its layers: the sums of bucket b and of later buckets, which go first, overlap with the step
 * except (b + 1) / k of it.  So a step takes at least these sums and that part, for any b, and at
 * least its own work.  If updates are not late, the forward pass hides nothing.  The slowest of R
 * ranks is late by s sqrt(2 ln R), s = 1 % of its step.  The network is flat and does not congest.
 *
 * `bench --comm` prints the model beside its measurements, `bench --scale` for up to 1024 ranks.
 */
#ifndef SCALE_H
#define SCALE_H
#include "rt.h"

typedef struct Link {
    double alpha, beta;
} Link; /* seconds a message, seconds a byte */

/* In seconds: a step, all sums, and the part of the sums that nothing hides. */
typedef struct Scaled {
    double step, sums, bare;
} Scaled;

double scale_messages(int ranks);            /* of one sum, one after another */
double scale_moved(int ranks, double bytes); /* of its bytes, to and from a rank */
double scale_sum(Link l, int ranks, double bytes);

/* own: seconds of a rank's part of the step, alone. */
Scaled scale_step(Link l, int ranks, const RtBucket *bucket, int nbucket, double own);

/* Prints to standard output: for a rank's own step of `own` seconds, with a batch of its own, the
 * steps of three networks on 1 to 1024 ranks. */
void scale_print(const RtProgram *p, double own);

#endif
