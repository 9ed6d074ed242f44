/* options.h -- options of the command line for passes and emitters, as plain data. */
#ifndef OPTIONS_H
#define OPTIONS_H
#include "ir/shape.h"
#include <string.h>

typedef struct Options {
    bool plain; /* no optional passes, and reference kernels */
    bool blas;  /* dense and conv through a BLAS library, row-major */
    /* --target cuda: one chunk per shard, kernels of runtime/cuda; row-major unless
     * options_gpu_last() */
    bool cuda;
    bool libraries;  /* --kernels=cudnn: products on a GPU through NVIDIA's libraries */
    bool persistent; /* --kernels=persistent: many steps in one launch */
    bool tf32;       /* --dtype tf32: factors of products are rounded to tf32; tensors are f32 */
    /* --dtype bf16, f16: products and the values between them are stored in this type (pass
     * narrow) */
    Half half;
    const char *arch; /* architecture of the GPU: "sm_90" */
    bool fast;        /* allow F(4x4) Winograd, and VDPBF16PS; --exact is the default */
    const char *dump; /* pass name whose result goes to stderr, "all", or NULL */
    const char *cpu;  /* "native", "x86-64-v3", ... */
    int vector;       /* reals in a vector of the target and dtype: 16, 8, 4, 2, 1 */
    bool verify;      /* graph_verify after every pass (on in debug builds and tests) */
    /* largest number of planned bytes, for `threads` threads; 0: no limit */
    int64_t memory_limit;
    bool keep_all;  /* recompute nothing; not with memory_limit */
    int threads;    /* number of threads for memory_limit: that of the machine that compiles */
    bool overlap;   /* --comm: ranks add gradients while the backward pass goes on */
    int64_t bucket; /* bytes of a bucket; 0: chosen by the model of passes/buckets.c */
    /* --tune: makes the choices that pass choose leaves open (ir/choice.h); else NULL */
    struct Tuner *tuner;
} Options;

/* Whether images on a GPU are stored with channels innermost.  The engines of the libraries are
 * faster in this layout, except in exact f32. */
static inline bool options_gpu_last(const Options *o)
{
    return o->libraries && (o->tf32 || o->half);
}

/* Whether products in bf16 can use VDPBF16PS, whose bits differ from those of other instructions:
 * with --fast, on a processor with AVX-512. */
static inline bool options_half_chains(const Options *o)
{
    return o->fast && o->half && !o->cuda && o->cpu && strcmp(o->cpu, "x86-64-v4") == 0;
}

#endif
