/* price.h -- the calls of a GPU's step, counted and priced by a roofline (ir/gpu.h).
 *
 * Times are predicted, never measured.
 */
#ifndef CUDA_PRICE_H
#define CUDA_PRICE_H
#include "cuda/call.h"
#include "ir/gpu.h"

/* One run of a call: FLOPs by the textbook, bytes of its operands, blocks of threads. */
typedef struct CallPrice {
    double flops, bytes, blocks;
    double peak; /* FLOPs per second of the kernel or the library */
} CallPrice;

CallPrice call_price(const Writer *w, const CudaCall *c);
/* Seconds of a run of p->blocks blocks, of which at most `most` run at a time. */
double price_seconds(const Gpu *g, const CallPrice *p, double most);
/* Adds all runs of a call to its launch or stage; seconds: of one run. */
void price_add(Arena *a, EmitLaunch *r, const CudaCall *c, const CallPrice *p, double seconds);
/* The launches of a training step, from the functions of Writer: returns how many. */
int price_launches(const Writer *w, EmitLaunch **row);

#endif
