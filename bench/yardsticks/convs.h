/* convs.h -- one convolution, and the sides that compute it: the interface between the parts of bench/convs.
 *
 * Tensors that the sides exchange are plain arrays of float: x (N, H, W, C), w (O, R, R, C/groups), b (O),
 * y (N, OH, OW, O); gradients alike.
 */
#ifndef CONVS_H
#define CONVS_H

typedef struct ConvShape {
    int n, c, h, o, r, stride, pad, groups, oh; /* square images and kernels */
} ConvShape;

enum { FORWARD, DATA, WEIGHTS, OPS };

/* A side keeps its own copies, in its own layout.  None allocates in `run`. */
typedef struct ConvSide {
    const char *name;
    void (*setup)(ConvShape s, const float *x, const float *w, const float *b, const float *dy,
                  int threads);
    void (*run)(int op);
    void (*result)(int op, float *to); /* y, dx or dw after `run` */
    const char *(*algorithm)(int op);  /* NULL: this side has no algorithm for it */
} ConvSide;

#ifdef __cplusplus
extern "C" {
#endif
extern const ConvSide conv_tenon, conv_tenon_fast, conv_onednn, conv_onednn_fast;
double conv_fma_peak(int threads); /* GFLOP/s, a few milliseconds */
#ifdef __cplusplus
}
#endif
#endif
