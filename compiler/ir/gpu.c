/* gpu.c -- the figures of the nominal GPUs. */
#include "ir/gpu.h"
#include "runtime/constants.h"
#include <stddef.h>
#include <string.h>

/* Figures are for dense products, without sparsity.  Three durations were measured on an H100
 * (bench/GPU.md), and are assumed for all GPUs of the table: those of a kernel in a CUDA graph, of
 * a barrier of all blocks with two blocks on each multiprocessor, and of a barrier of a cluster of
 * 16 blocks.  Machine code for sm_80 also runs on sm_86 and sm_89, whose blocks have 99 KB. */
#define KERNEL_S  0.9e-6
#define BARRIER_S 1.5e-6
#define CLUSTER_S 0.5e-6
static const Gpu gpus[] = {
    {"sm_80", "A100 80 GB", "data sheet", 80000000000, 2.04e12, 19.5e12, 156e12, 312e12, KERNEL_S,
     108, 164 << 10, RT_SHARED_SM_80, false, BARRIER_S, 0, false},
    {"sm_90", "H200", "4.3 TB/s and bf16 790 TFLOP/s measured on one, the rest from its data sheet",
     141000000000, 4.3e12, 67e12, 494e12, 790e12, KERNEL_S, 132, 228 << 10, 227 << 10, true,
     BARRIER_S, CLUSTER_S, true},
    {"sm_100", "B200", "data sheet", 180000000000, 7.7e12, 75e12, 1125e12, 2250e12, KERNEL_S, 148,
     228 << 10, 227 << 10, true, BARRIER_S, CLUSTER_S, true},
};

const Gpu *gpu_of(const char *arch)
{
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (strcmp(gpus[i].arch, arch) == 0)
            return &gpus[i];
    return &gpus[1];
}

GpuType gpu_half(Half h)
{
    return h == HALF_BF16 ? GPU_BF16 : h == HALF_F16 ? GPU_F16 : GPU_F32;
}

GpuType gpu_products(const Options *o)
{
    return o->tf32 ? GPU_TF32 : gpu_half(o->half);
}

const char *gpu_type_name(GpuType t)
{
    return t == GPU_BF16 ? "bf16" : t == GPU_F16 ? "f16" : "f32";
}

double gpu_peak(const Gpu *g, GpuType t)
{
    return t == GPU_F32 ? g->f32 : t == GPU_TF32 ? g->tf32 : g->half;
}
