/* conv_ways.h -- which ways through the kernels of runtime/cpu/conv.h a convolution's sizes leave open. */
#ifndef CONV_WAYS_H
#define CONV_WAYS_H
#include "ops/call.h"

/* Each gives "RT_WAY_FLAT | RT_WAY_LEFT": the bits of RT_WAYS in cpu/conv.h that the direct kernel for n may need, on
 * any processor and in f32 and f64; NULL where it is not direct or has a pooling behind it. */
const char *conv_ways(Arena *a, const Node *n);
const char *conv_ways_dx(Arena *a, const Node *n);
const char *conv_ways_dw(Arena *a, const Node *n);

#endif
