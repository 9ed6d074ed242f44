/* target.c -- the properties of the targets. */
#include "ir/target.h"

enum { LAUNCH_BYTES = 4 << 20 }; /* an H200 writes this many bytes in 1 us, the time of a launch */

static const Target cpu = {.kind = TARGET_CPU,
                           .packs = true,
                           .panels = true,
                           .by_step = true,
                           .remakes = true,
                           .scratch = true,
                           .updates_late = true,
                           .reuse_late = -1,
                           .kernels = "",
                           .products = "",
                           .fuses = true,
                           .fuses_all = true,
                           .skips_zeros = true,
                           .generates = true,
                           .message = 2 * 4 * 10e-6,
                           .byte = 2 * 15.0 / 16 * 8 / 10e9};

/* A message takes two launches of NCCL and one of Tenon, about 40 us.  The network transfers
 * 400 Gbit/s.  Both figures are assumed, not measured. */
static const Target gpu = {.kind = TARGET_GPU,
                           .whole_shards = true,
                           .finds_norm = true,
                           .looks_last = true,
                           .reuse_late = LAUNCH_BYTES,
                           .kernels = "",
                           .products = "",
                           .message = 40e-6,
                           .byte = 2 * 15.0 / 16 * 8 / 400e9,
                           .averages = true};

static Target on_processor(const Options *o)
{
    Target t = cpu;
    if (o->blas)
        t.kind = TARGET_BLAS, t.by_step = false;
    if (o->blas || o->plain) {
        t.panels = t.fuses = t.skips_zeros = false, t.textbook = true;
        t.kernels = "_plain", t.products = o->blas ? "_blas" : "_plain";
    }
    if (o->plain)
        t.remakes = false;
    if (o->half) {
        t.kind = TARGET_HALF;
        t.fuses_all = t.skips_zeros = t.by_step = false;
        t.few_half = true;
    }
    return t;
}

static Target on_gpu(const Options *o)
{
    Target t = gpu;
    if (o->libraries)
        t.kind = options_gpu_last(o) ? TARGET_TENSOR : TARGET_CUDNN;
    if (o->persistent) /* a barrier stands between the stages of one launch */
        t.reuse_late = INT64_MAX;
    t.textbook = o->plain;
    t.scales_loss = t.reads_few_channels = o->half == HALF_F16;
    return t;
}

const char *target_core(const Options *o)
{
    return o->half && !o->cuda ? "x86-64-v4" : o->cpu;
}

Target target_of(const Options *o)
{
    return o->cuda ? on_gpu(o) : on_processor(o);
}
