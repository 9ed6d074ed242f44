/* trust.h -- the trust ratios of the optimizers LARS and LAMB, one for each parameter with at least
 * two dimensions.
 *
 *   lars   q = trust |w| / (|g| + decay |w|)       You, Gitman, Ginsburg 2017
 *   lamb   q = |w| / |u|, u: the step of Adam with decay (cpu/update.h)       You et al. 2020
 *
 * |.| is the Euclidean norm over the parameter.  q = 1 if |w| or the other norm is 0.  The norms
 * are computed in double, in pieces of constant size, so no ratio depends on the threads.
 */
#ifndef TRUST_H
#define TRUST_H
#include "base/threads.h"
#include "rt.h"

typedef struct Trust Trust;

/* NULL: the recipe's optimizer has no trust ratios. */
Trust *trust_new(const RtProgram *p);

/* Computes r->trust from the weights, the states and the sums in r->grad. */
void trust_compute(Trust *t, Pool *pool, const Rt *r);
/* The ratios: [nsum]; those of sums without a ratio are 0. */
const double *trust_ratios(const Trust *t);

#endif
