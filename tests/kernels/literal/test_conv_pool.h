/* test_conv_pool.h -- two convolutions with a max-pool whose sizes the compiler knows, as in generated code. */
#ifndef LITERAL_CONV_POOL_H
#define LITERAL_CONV_POOL_H
#include "rt.h"

#define LITERAL_1                                                                                  \
    {                                                                                              \
        .n = 3, .c = 1, .h = 28, .w = 28, .o = 20, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1,   \
        .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 24, .ow = 24, .pool = 2                         \
    }
#define LITERAL_2                                                                                  \
    {                                                                                              \
        .n = 3, .c = 20, .h = 14, .w = 14, .o = 50, .r = 5, .s = 5, .stride_h = 1, .stride_w = 1,  \
        .pad_h = 2, .pad_w = 2, .dil_h = 1, .dil_w = 1, .groups = 1, .oh = 14, .ow = 14, .pool = 2 \
    }

typedef struct Pooled {
    real *y, *dx, *dw;
    uint8_t *index;
} Pooled;
typedef struct PooledInput {
    real *x, *w, *p, *pd, *bias, *dy;
} PooledInput;

void literal_1(Pooled q, PooledInput in);
void literal_2(Pooled q, PooledInput in);

#endif
