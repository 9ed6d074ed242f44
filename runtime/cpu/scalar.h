/* scalar.h -- elementary functions of one real, from the C library; the elementwise table has their
 * names.
 *
 * Kernels for processors and GPUs use them.  SCALAR is the declaration prefix (RT_INLINE, DEVICE).
 */
#ifndef CPU_SCALAR_H
#define CPU_SCALAR_H
#include "cpu/library.h"

#ifdef RT_DOUBLE
#define R_MATH(name) name /* exp */
#else
#define R_MATH(name) name##f /* expf */
#endif

/* clang-format off */
SCALAR real s_set(real x) { return x; }
SCALAR real s_neg(real x) { return -x; }
SCALAR real s_exp(real x) { return R_MATH(exp)(x); }
SCALAR real s_log(real x) { return R_MATH(log)(x); }
SCALAR real s_sqrt(real x) { return R_MATH(sqrt)(x); }
SCALAR real s_abs(real x) { return R_MATH(fabs)(x); }
SCALAR real s_sin(real x) { return R_MATH(sin)(x); }
SCALAR real s_cos(real x) { return R_MATH(cos)(x); }
SCALAR real s_tanh(real x) { return R_MATH(tanh)(x); }
SCALAR real s_erf(real x) { return R_MATH(erf)(x); }
SCALAR real s_pow(real a, real b) { return R_MATH(pow)(a, b); }
SCALAR real s_select_gt(real a, real b, real x, real y) { return a > b ? x : y; }
SCALAR real s_select_ge(real a, real b, real x, real y) { return a >= b ? x : y; }
SCALAR real s_max(real a, real b) { return a > b ? a : b; }
SCALAR real s_min(real a, real b) { return a < b ? a : b; }
SCALAR real s_identity(real x) { return x; }
SCALAR real s_relu(real x) { return 0 > x ? 0 : x; }
SCALAR real s_relu6(real x) { return s_relu(x) > 6 ? 6 : s_relu(x); }
SCALAR real s_hard_sigmoid(real x) { return s_relu6(x + 3) * (real)0.16666666666666666; }
SCALAR real s_hard_swish(real x) { return x * s_hard_sigmoid(x); }
SCALAR real s_sign(real x) { return (real)((x > 0) - (x < 0)); }
SCALAR real s_step(real x) { return x > 0 ? 1 : 0; }
SCALAR real s_sigmoid(real x) { return 1 / (1 + s_exp(-x)); }
SCALAR real s_softplus(real x) { return s_relu(x) + R_MATH(log1p)(s_exp(-s_abs(x))); }
SCALAR real s_gelu(real x) { return (real)0.5 * x * (1 + s_erf(x * (real)0.70710678118654752440)); }
SCALAR real s_silu(real x) { return x * s_sigmoid(x); }
/* clang-format on */

#endif
