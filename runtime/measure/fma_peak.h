/* fma_peak.h -- measured rate of multiply-adds of this machine, for comparison with the rate of a
 * step. */
#ifndef FMA_PEAK_H
#define FMA_PEAK_H
#include "base/threads.h"
#include "rt.h"

/* GFLOP/s of all threads of the pool together, with the vectors of the instruction set and the type
 * of the program: the best of a few runs of some ms. */
double fma_peak(const RtProgram *p, Pool *pool);

#endif
