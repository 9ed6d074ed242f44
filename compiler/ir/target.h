/* target.h -- what a program runs on, as the table of passes, shared passes and prices see it.
 *
 * Shared passes ask for a property.  They do not ask which target has it.
 */
#ifndef TARGET_H
#define TARGET_H
#include "ir/options.h"

typedef enum {
    TARGET_CPU = 1,    /* a processor, by Tenon's own kernels */
    TARGET_BLAS = 2,   /* a processor, products by a BLAS library */
    TARGET_GPU = 4,    /* a GPU, by Tenon's own kernels */
    TARGET_CUDNN = 8,  /* a GPU, products by NVIDIA's libraries in f32 */
    TARGET_TENSOR = 16 /* a GPU, products by NVIDIA's libraries in tf32, bf16 or f16 */
} TargetKind;

typedef struct Target {
    TargetKind kind;   /* its column of the table of passes */
    bool whole_shards; /* a call computes a whole shard: threads of a GPU share the samples */
    bool packs;        /* kernels read packed weights, in panels as wide as their tiles */
    bool panels;       /* kernels can add a gradient over all shards, by panels of weights */
    bool by_step;      /* a product of one step has the bits of a product of all steps */
    bool textbook;     /* kernels take the textbook's FLOPs: reference kernels, or a library's */
    bool remakes;      /* large networks compute cheap values again: priced for processors only */
    bool scratch;      /* kernels get memory for Op.scratch; kernels of a GPU have shared memory */
    bool finds_norm;   /* the device finds the norm of the gradients itself, in its scratch */
    bool updates_late; /* an update can wait for the next step's forward pass */
    bool looks_last;   /* the step ends before it is known whether its loss is finite */
    /* memory of values of at most so many bytes is reused some calls later, so that calls share a
     * launch; -1: of no value */
    int64_t reuse_late;
    double message; /* seconds of a message between ranks, */
    double byte;    /* and of a byte of it, there and back */
} Target;

Target target_of(const Options *o);

#endif
