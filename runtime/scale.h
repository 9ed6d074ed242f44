/* scale.h -- the scale model: what of a step is left on more ranks, by the buckets that the compiler made.
 *
 * A message takes alpha + bytes * beta (Hockney 1994).  A sum over R ranks is, with a power of two of them, 2 log2(R) messages one
 * after another (halving and doubling: comm/sum.c), else 2 (R - 1); 2 (R - 1) / R of the vector in all either way (Thakur,
 * Rabenseifner, Gropp 2005).  A third of a rank's own step is the forward pass; bucket b of k is ready when (b + 1) / k of the rest
 * is over; sums follow one another: end(b) = max(ready(b), end(b - 1)) + sum(b).  The slowest of R ranks is late by
 * s sqrt(2 ln R), s = 1 % of its step.  The network is flat and does not congest; a step ends with its last sum.
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
