/* options.h -- what the command line says of the middle and the back: plain data that passes and emitters share. */
#ifndef OPTIONS_H
#define OPTIONS_H
#include "ir/shape.h"

typedef struct Options {
    bool        plain;                                /* leave optional passes out, use reference kernels */
    bool        blas;                                 /* dense and conv through a BLAS library, row-major */
    bool        cuda;                                 /* --target cuda: one chunk a shard, kernels of runtime/cuda; row-major, but options_gpu_last() */
    bool        libraries;                            /* --kernels=cudnn: products, for a GPU, through NVIDIA's libraries */
    bool        persistent;                           /* --kernels=persistent: many steps in one launch */
    bool        tf32;                                 /* --dtype tf32: their factors rounded to it, tensors f32 */
    Half        half;                                 /* --dtype bf16, f16: these and what lies between them stored as it (pass narrow) */
    const char *arch;                                 /* of the GPU: "sm_90" */
    bool        fast;                                 /* allow F(4x4) Winograd; --exact is the default */
    const char *dump;                                 /* pass name whose result goes to stderr, "all", or NULL */
    const char *cpu;                                  /* "native", "x86-64-v3", ... */
    int         vector;                               /* reals in a vector of the target and dtype: 16, 8, 4, 2, 1 */
    bool        verify;                               /* graph_verify after every pass (on in debug builds and tests) */
    int64_t     memory_limit;                         /* planned bytes at most, with so many threads; 0: no limit */
    bool        keep_all;                             /* make nothing again; not with memory_limit */
    int         threads;                              /* of the machine that compiles */
    bool        overlap;                              /* --comm: ranks add gradients while the backward pass goes on */
    int64_t     bucket;                               /* bytes that they add as one; 0: by the model of passes/buckets.c */
    struct Tuner *tuner;                              /* --tune: settles what pass choose leaves open (ir/choice.h); else NULL */
} Options;

/* For a GPU: do images lie channels innermost?  Libraries have the better engines then, but in exact f32. */
static inline bool options_gpu_last(const Options *o)
{
    return o->libraries && (o->tf32 || o->half);
}

#endif
