/* target.h -- what a program runs on, as passes see it. */
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
    TargetKind kind; /* its column of the table of passes */
} Target;

const Target *target_of(const Options *o);

#endif
