/* test_dense.h -- a dense layer and its gradient whose sizes the compiler knows, as in generated code. */
#ifndef LITERAL_DENSE_H
#define LITERAL_DENSE_H
#include "rt.h"

#define LITERAL_LAYER                                                                              \
    {                                                                                              \
        16, 500, 10                                                                                \
    }

void literal_layer(real *y, real *dx, const real *x, const real *p, const real *dy);

#endif
