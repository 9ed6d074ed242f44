/* scale.h -- the scale model: what of a step is left on more ranks, by the buckets that the compiler made.
 *
 * A message takes alpha + bytes * beta (Hockney 1994).  A sum over R ranks is, with a power of two of them, 2 log2(R) messages one
 * after another (halving and doubling: comm/sum.c), else 2 (R - 1); 2 (R - 1) / R of the vector in all either way (Thakur,
 * Rabenseifner, Gropp 2005).  A third of a rank's own step is the forward pass, and k buckets are k equal parts of both passes; the gradients of bucket b are there
 * when (b + 1) / k of the backward pass is over, and where updates may be late (RtBucket.due; ranks that are a power of two) they are needed when the next forward pass comes to it: beside the sums of b
 * and all behind it, which are done first, goes on what the step computes but for (b + 1) / k of it. No step is shorter than, for any b, these sums and that part; nor than its own work.
 * Where updates are not late, the forward pass hides nothing.  The slowest of R ranks is late by
 * s sqrt(2 ln R), s = 1 % of its step.  The network is flat and does not congest.
 *
 * The one place of it: `bench --comm` sets it beside what it has measured, `bench --scale` prints it for up to 1024 ranks.
 */
#ifndef SCALE_H
#define SCALE_H
#include "rt.h"

typedef struct Link { double alpha, beta; } Link;     /* seconds a message, seconds a byte */

/* Seconds of a step; of all sums; of these what nothing hides. */
typedef struct Scaled { double step, sums, bare; } Scaled;

double scale_messages(int ranks);                     /* of one sum, one after another */
double scale_moved(int ranks, double bytes);          /* of its bytes, to and from a rank */
double scale_sum(Link l, int ranks, double bytes);

/* own: seconds of a rank's part of the step, without the others. */
Scaled scale_step(Link l, int ranks, const RtBucket *bucket, int nbucket, double own);

/* On standard output: a rank's step of `own` seconds, each with a batch of its own, on three networks and 1 to 1024 ranks. */
void   scale_print(const RtProgram *p, double own);

#endif
