/* window.h -- positions of a window that slides over an image, for convolution and pooling.
 *
 *   H' = floor((H + before + after - ((R - 1) dilation + 1)) / stride) + 1, W' likewise
 *   pad p: before = after = p.  "valid": none.  "same": H' = ceil(H / stride), the odd row or
 *   column at the end.
 *
 * Source: Dumoulin & Visin 2016, "A guide to convolution arithmetic"; "same" is TensorFlow's.
 */
#ifndef WINDOW_H
#define WINDOW_H
#include "ops/op.h"

typedef struct Window {
    int64_t kernel[2], stride[2], dilation[2]; /* rows, columns */
    int64_t before[2], after[2];               /* padding */
    int64_t in[2], out[2];                     /* H, W and H', W' */
} Window;

/* Rows or columns from the first tap of a window to the last one. */
static inline int64_t window_span(const Window *v, int i)
{
    return (v->kernel[i] - 1) * v->dilation[i] + 1;
}

/* The window over an image of h x w, from the attributes kernel, stride (the kernel's size if
 * absent), dilation (1) and pad (0).  window_check must have accepted these attributes. */
Window window_of(const Node *n, int64_t h, int64_t w);

/* Reports arguments out of range, an invalid pad, and a kernel that is larger than the padded
 * image. */
bool window_check(const Node *n, int64_t h, int64_t w, Diag *d);

/* Sets attributes for gradients and emitters: pad_before, resolved from pad, and x_shape, the C,
 * H, W of x. */
void window_resolve(Node *n, const Window *v, const int64_t *chw, Diag *d);

/* Adds two fields, such as stride_h and stride_w; adds nothing when both are 0. */
void window_sizes(Sizes *s, const char *a, const char *b, const int64_t v[2]);

#endif
