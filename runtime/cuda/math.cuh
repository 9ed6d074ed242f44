/* math.cuh -- elementary functions of one real, by the names in the elementwise table
 * (runtime/cpu/math.h). */
#ifndef CUDA_MATH_CUH
#define CUDA_MATH_CUH
#define SCALAR DEVICE
#include "cpu/scalar.h"
#undef SCALAR

/* a b + c with one rounding. The processor rounds twice in code without vectors. */
DEVICE real s_fma(real a, real b, real c)
{
    return R_MATH(fma)(a, b, c);
}

#endif
