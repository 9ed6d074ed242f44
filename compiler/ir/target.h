/* target.h -- the properties of targets, for the table of passes, shared passes and prices.
 *
 * Shared passes test a property, and never the kind of the target.
 */
#ifndef TARGET_H
#define TARGET_H
#include "ir/options.h"

typedef enum {
    TARGET_CPU = 1,     /* a processor, by Tenon's own kernels */
    TARGET_BLAS = 2,    /* a processor, products by a BLAS library */
    TARGET_GPU = 4,     /* a GPU, by Tenon's own kernels */
    TARGET_CUDNN = 8,   /* a GPU, products by NVIDIA's libraries in f32 */
    TARGET_TENSOR = 16, /* a GPU, products by NVIDIA's libraries in tf32, bf16 or f16 */
    TARGET_HALF = 32    /* a processor, by Tenon's own kernels, products in bf16 */
} TargetKind;

typedef struct Target {
    TargetKind kind;   /* its bit in Pass.targets */
    bool whole_shards; /* a call computes a whole shard: threads of a GPU share the samples */
    bool packs;        /* kernels read packed weights, in panels as wide as their tiles */
    bool panels;       /* kernels can add a gradient over all shards, by panels of weights */
    bool by_step;      /* the product of one time step has the bits of the product of all steps */
    bool textbook;     /* prices use the textbook count of FLOPs: reference kernels, or a library */
    bool remakes;    /* in large networks, pass recompute drops values with a low processor price */
    bool scratch;    /* kernels get memory for Op.scratch; GPU kernels use shared memory */
    bool finds_norm; /* the device computes the norm of the gradients, in its own scratch */
    bool updates_late; /* an update can wait for the next step's forward pass */
    bool looks_last;   /* the loss is tested only after the last phase */
    /* pass plan reuses the memory of a value of at most this many bytes only some calls later, so
     * that calls can share a launch; -1: pass plan reuses all memory immediately */
    int64_t reuse_late;
    /* Versions of kernels: what the names of the target's kernels end with, such as "_plain".
     * products: those of dense, conv2d and matmul; kernels: all others. */
    const char *kernels, *products;
    /* kernels of products apply each epilogue of Op.takes, not only bias, act and mask */
    bool fuses_all;
    /* only the kernels of Op.half_cpu read and write two-byte numbers; others read and write f32,
     * and pass narrow adds converts.  Products pack their weights in two bytes (pass layout). */
    bool few_half;
    bool fuses; /* kernels take arguments for what pass fuse merges: bias, act, mask, residual */
    bool skips_zeros; /* a dense layer has a kernel that skips zeros of its input: dense_sparse */
    bool generates;   /* programs process one token at a time, too (passes/token.c) */
    /* the loss is multiplied by a factor, because the type of the gradients has too few small
     * numbers: f16 */
    bool scales_loss;
    bool averages; /* the device averages weights after each step (ema); averages lie in `fixed` */
    /* engines of the library read few channels without padding, unless the windows are large */
    bool reads_few_channels;
    double message; /* seconds of a message between ranks, without its bytes */
    double byte;    /* seconds of a byte in an all-reduce, both directions */
} Target;

Target target_of(const Options *o);
/* The processor whose prices and vectors decide: --cpu, but one fixed processor for bf16 programs,
 * whose bits are the same on each processor. */
const char *target_core(const Options *o);

#endif
