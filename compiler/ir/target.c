/* target.c -- the targets, and which of them the options name. */
#include "ir/target.h"

static const Target cpu = {.kind = TARGET_CPU}, blas = {.kind = TARGET_BLAS},
                    gpu = {.kind = TARGET_GPU}, cudnn = {.kind = TARGET_CUDNN},
                    tensor = {.kind = TARGET_TENSOR};

const Target *target_of(const Options *o)
{
    if (!o->cuda)
        return o->blas ? &blas : &cpu;
    return options_gpu_last(o) ? &tensor : o->libraries ? &cudnn : &gpu;
}
