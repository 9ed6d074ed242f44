/* price.h -- counts and prices the calls of a step on a GPU, by a roofline (ir/gpu.h).
 *
 * Times are predicted, never measured.
 */
#ifndef CUDA_PRICE_H
#define CUDA_PRICE_H
#include "cuda/call.h"
#include "ir/gpu.h"

/* One run of a call: textbook count of FLOPs, bytes of its operands, blocks of threads. */
typedef struct CallPrice {
    double flops, bytes, blocks;
    double peak; /* FLOPs per second of the kernel or the library */
} CallPrice;

CallPrice call_price(const Writer *w, const CudaCall *c);
/* Seconds of a run with p->blocks blocks, of which at most `most` run at the same time. */
double price_seconds(const Gpu *g, const CallPrice *p, double most);
/* Adds all runs of a call to its launch or stage; `seconds` is the time of one run. */
void price_add(Arena *a, EmitLaunch *r, const CudaCall *c, const CallPrice *p, double seconds);
/* Adds the launches of a training step, which are in the functions of Writer, and their sums to
 * e. */
void price_launches(const Writer *w, EmitStep *e);

#endif
