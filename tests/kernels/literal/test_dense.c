/* test_dense.c -- the layer of test_dense.h, compiled as generated code is. */
#include "kernels/literal/test_dense.h"

#include "cpu/vec.h"
#include "cpu/math.h"
#include "cpu/dense.h"

RT_FLATTEN void literal_layer(real *y, real *dx, const real *x, const real *p, const real *dy)
{
    dense(y, x, p, NULL, v_identity, (Dense)LITERAL_LAYER);
    dense_dx(dx, p, dy, d_tanh, x, (Dense)LITERAL_LAYER);
}
