/* conv_variants.h -- variants of the kernels in runtime/cpu/conv.h that a convolution can use, by
 * its sizes. */
#ifndef CONV_VARIANTS_H
#define CONV_VARIANTS_H
#include "ops/call.h"

/* Each returns a text such as "RT_VARIANT_FLAT | RT_VARIANT_LEFT": the bits of RT_VARIANTS in
 * cpu/conv.h that the direct kernel for n can need on any processor, in f32 and f64.  NULL if the
 * algorithm is not direct or a pooling is fused. */
const char *conv_variants(Arena *a, const Node *n);
const char *conv_variants_dx(Arena *a, const Node *n);
const char *conv_variants_dw(Arena *a, const Node *n);

#endif
