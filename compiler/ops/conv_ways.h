/* conv_ways.h -- variants of the kernels in runtime/cpu/conv.h that a convolution can use, by
 * its sizes. */
#ifndef CONV_WAYS_H
#define CONV_WAYS_H
#include "ops/call.h"

/* Each returns a text such as "RT_WAY_FLAT | RT_WAY_LEFT": the bits of RT_WAYS in cpu/conv.h
 * that the direct kernel for n can need on any processor, in f32 and f64.  NULL when the
 * algorithm is not direct or a pooling is fused. */
const char *conv_ways(Arena *a, const Node *n);
const char *conv_ways_dx(Arena *a, const Node *n);
const char *conv_ways_dw(Arena *a, const Node *n);

#endif
