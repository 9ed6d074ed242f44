/* show_gpu.h -- what `tenon show --target cuda` prints: the calls of a step, and its memory. */
#ifndef SHOW_GPU_H
#define SHOW_GPU_H
#include "cuda/cuda.h"
#include "tool/command.h"

/* Prints the program that `build` makes with the same options: a row for each launch, or for each
 * stage of the launch of a persistent program; the predicted time; the memory.  Returns false after
 * an error: there are no predictions for f64. */
bool show_gpu(Arena *a, const EmitInput *in, Diag *d);

#endif
