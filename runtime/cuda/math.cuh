/* math.cuh -- elementary functions of one real, by the names that the rows of the elementwise table use (runtime/cpu/math.h). */
#ifndef CUDA_MATH_CUH
#define CUDA_MATH_CUH
#include <math.h>

#ifdef RT_DOUBLE
#define R_MATH(name) name /* exp */
#else
#define R_MATH(name) name##f /* expf */
#endif

/* clang-format off */
DEVICE real s_set(real x) { return x; }
DEVICE real s_neg(real x) { return -x; }
DEVICE real s_exp(real x) { return R_MATH(exp)(x); }
DEVICE real s_log(real x) { return R_MATH(log)(x); }
DEVICE real s_sqrt(real x) { return R_MATH(sqrt)(x); }
DEVICE real s_abs(real x) { return R_MATH(fabs)(x); }
DEVICE real s_sin(real x) { return R_MATH(sin)(x); }
DEVICE real s_cos(real x) { return R_MATH(cos)(x); }
DEVICE real s_tanh(real x) { return R_MATH(tanh)(x); }
DEVICE real s_erf(real x) { return R_MATH(erf)(x); }
DEVICE real s_pow(real a, real b) { return R_MATH(pow)(a, b); }
DEVICE real s_fma(real a, real b, real c) { return R_MATH(fma)(a, b, c); }
DEVICE real s_select_gt(real a, real b, real x, real y) { return a > b ? x : y; }
DEVICE real s_max(real a, real b) { return a > b ? a : b; }
DEVICE real s_min(real a, real b) { return a < b ? a : b; }
DEVICE real s_identity(real x) { return x; }
DEVICE real s_relu(real x) { return 0 > x ? 0 : x; }
DEVICE real s_relu6(real x) { return s_relu(x) > 6 ? 6 : s_relu(x); }
DEVICE real s_hard_sigmoid(real x) { return s_relu6(x + 3) * (real)0.16666666666666666; }
DEVICE real s_hard_swish(real x) { return x * s_hard_sigmoid(x); }
DEVICE real s_sign(real x) { return (real)((x > 0) - (x < 0)); }
DEVICE real s_step(real x) { return x > 0 ? 1 : 0; }
DEVICE real s_sigmoid(real x) { return 1 / (1 + s_exp(-x)); }
DEVICE real s_softplus(real x) { return s_relu(x) + R_MATH(log1p)(s_exp(-s_abs(x))); }
DEVICE real s_gelu(real x) { return (real)0.5 * x * (1 + s_erf(x * (real)0.70710678118654752440)); }
DEVICE real s_silu(real x) { return x * s_sigmoid(x); }
/* clang-format on */

#endif
