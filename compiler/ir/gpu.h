/* gpu.h -- the GPU that predictions are made for: a nominal one for each --arch, never the host's.
 *
 * A launch takes   gap + max(operations / peak, bytes / bandwidth)   seconds: a roofline, and so a floor.  It knows neither caches nor how
 * full the machine is, so small layers take longer than it says.
 */
#ifndef GPU_H
#define GPU_H
#include "ir/shape.h"

/* What --dtype asks of a GPU: exact f32 without tensor cores, f32 through them, or tensors of half the size; parameters stay f32. */
typedef enum { GPU_F32, GPU_TF32, GPU_BF16, GPU_F16 } GpuType;

typedef struct Gpu {
    const char *arch, *name; /* "sm_90", "H200" */
    const char *source;      /* of the figures */
    int64_t memory;          /* bytes */
    double bandwidth;        /* bytes a second */
    double f32, tf32,
        half;   /* operations a second, two a multiply-add: without tensor cores, with */
    double gap; /* seconds between kernels of a CUDA graph */
    int processors;
    int shared;        /* bytes of shared memory of each, of which a block takes 1,024 besides its own */
    bool clusters;
    double meet_all, meet_cluster; /* seconds that all blocks of a GPU, or of a cluster, take to meet: assumed */
} Gpu;

const Gpu *gpu_of(const char *arch);      /* of a name that --arch takes */
GpuType gpu_type(const char *dtype);      /* "f32", "tf32", "bf16", "f16" */
GpuType gpu_half(Half h);                 /* of what lies so in memory; HALF_NONE: f32 */
const char *gpu_type_name(GpuType t);     /* of tensors in memory: "f32", "bf16", "f16" */
int gpu_bytes(GpuType t);                 /* a number of a tensor: 4 or 2 */
double gpu_peak(const Gpu *g, GpuType t); /* of products */
double gpu_seconds(const Gpu *g, GpuType t, bool product, double operations, double bytes);

#endif
