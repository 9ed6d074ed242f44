/* test_conv_pool.c -- the convolutions of test_conv_pool.h, compiled as generated code is. */
#include "kernels/literal/test_conv_pool.h"

#include "cpu/vec.h"
#include "cpu/math.h"
#include "cpu/conv_pool_dw.h"
#include "cpu/conv_pool_dx.h"
#include "cpu/conv_pool_forward.h"

#define LITERAL(name, sizes)                                                                       \
    RT_FLATTEN void name(Pooled q, PooledInput in)                                                 \
    {                                                                                              \
        conv2d_pool(q.y, q.index, in.x, in.p, in.bias, v_tanh, (Conv)sizes);                       \
        conv2d_pool_dx(q.dx, in.pd, in.dy, q.index, d_relu, in.x, (Conv)sizes);                    \
        conv2d_pool_dw(q.dw, in.x, in.dy, q.index, (Conv)sizes);                                   \
    }
LITERAL(literal_1, LITERAL_1)
LITERAL(literal_2, LITERAL_2)
