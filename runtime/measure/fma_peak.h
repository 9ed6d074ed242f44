/* fma_peak.h -- how fast this machine multiplies and adds, measured: what a step's speed is
 * compared with. */
#ifndef FMA_PEAK_H
#define FMA_PEAK_H
#include "base/threads.h"
#include "rt.h"

/* GFLOP/s of all threads of the pool together, with the vectors of the program's instruction set
 * and type: the best of a few runs of some ms. */
double fma_peak(const RtProgram *p, Pool *pool);

#endif
