/* gpu.h -- the nominal GPU for which times are predicted: one for each --arch, never the host's
 * GPU.
 *
 * Prices are rooflines from these figures (cuda/price.c).  They are lower bounds, which ignore
 * caches: small layers take longer than predicted.
 */
#ifndef GPU_H
#define GPU_H
#include "ir/options.h"
#include "ir/shape.h"

/* The type of --dtype on a GPU: exact f32 without tensor cores, f32 through tensor cores (tf32),
 * or tensors of 16 bits.  Parameters are always f32. */
typedef enum { GPU_F32, GPU_TF32, GPU_BF16, GPU_F16 } GpuType;

typedef struct Gpu {
    const char *arch, *name; /* "sm_90", "H200" */
    const char *source;      /* source of the figures */
    int64_t memory;          /* bytes */
    double bandwidth;        /* bytes per second */
    /* operations per second, a multiply-add counts as two; f32: without tensor cores */
    double f32, tf32, half;
    double gap;     /* seconds between kernels of a CUDA graph */
    int processors; /* streaming multiprocessors */
    int shared;     /* bytes for each processor; a block uses 1,024 more than its kernel declares */
    /* bytes that a kernel may declare on each GPU for which the program has machine code */
    int shared_of_block;
    bool clusters;
    /* seconds of a barrier between all blocks of the GPU, or between the blocks of a cluster */
    double barrier_all, barrier_cluster;
    /* cuDNN's engines that also compute sums for batch_norm, or relu's gradient, take longer than
     * the convolution and a pass of Tenon's after it: on an H100 (bench/GPU.md) */
    bool slow_fused;
} Gpu;

const Gpu *gpu_of(const char *arch);      /* arch: a name that --arch accepts */
GpuType gpu_products(const Options *o);   /* type of the factors of products of libraries */
GpuType gpu_half(Half h);                 /* type of tensors that are stored as h; HALF_NONE: f32 */
const char *gpu_type_name(GpuType t);     /* type of tensors in memory: "f32", "bf16", "f16" */
double gpu_peak(const Gpu *g, GpuType t); /* operations per second, for products */

#endif
