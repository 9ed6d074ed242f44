/* math.h -- elementary functions on vec (v_exp) and on one real (s_exp).
 *
 * Derivatives of activations are computed from the value: d_tanh(dy, y).
 *
 * float vectors: polynomials after Cephes (S. Moshier, "Methods and Programs for Mathematical
 * Functions", 1989).  Largest errors over the points of tests/kernels/test_math.c, in units of the
 * last place:
 *     exp 1.0   log 0.8   sin 1.5   cos 1.6   tanh 2.4   sigmoid 2.1   softplus 1.8   erf 2.4
 *     silu 2.5
 * These functions flush denormal results to zero, as the processor does in all other operations
 * (the runtime sets this mode).
 * double, and builds without vectors, use the C library, lane by lane.  So do the s_ functions.
 */
#ifndef CPU_MATH_H
#define CPU_MATH_H
#define SCALAR RT_INLINE
#include "cpu/scalar.h"
#undef SCALAR

RT_LEAF real s_fma(real a, real b, real c)
{
    return a * b + c;
}

/* ------------------------------------------------------------------------------------ vectors */
#define V_EACH_LANE(name, f)                                                                       \
    RT_INLINE vec name(vec x)                                                                      \
    {                                                                                              \
        for (int i = 0; i < V; i++)                                                                \
            V_LANE(x, i) = f(V_LANE(x, i));                                                        \
        return x;                                                                                  \
    }

RT_LEAF vec v_identity(vec x)
{
    return x;
}
RT_LEAF vec v_neg(vec x)
{
    return -x;
}
RT_LEAF vec v_relu(vec x)
{
    return v_max(v_set(0), x);
}
RT_LEAF vec v_relu6(vec x)
{
    return v_min(v_set(6), v_relu(x));
}
RT_LEAF vec v_hard_sigmoid(vec x)
{
    return v_relu6(x + v_set(3)) * v_set((real)0.16666666666666666);
}
RT_LEAF vec v_hard_swish(vec x)
{
    return x * v_hard_sigmoid(x);
}
RT_LEAF vec v_step(vec x)
{
    return v_select_gt(x, v_set(0), v_set(1), v_set(0));
}
RT_LEAF vec v_sign(vec x)
{
    return v_step(x) - v_step(-x);
}
RT_LEAF vec v_pow(vec a, vec b)
{
    for (int i = 0; i < V; i++)
        V_LANE(a, i) = s_pow(V_LANE(a, i), V_LANE(b, i));
    return a;
}

#if defined(RT_SCALAR)
RT_LEAF vec v_abs(vec x)
{
    return s_abs(x);
}
#elif defined(RT_DOUBLE)
RT_LEAF vec v_abs(vec x)
{
    return (vec)((vint)x & INT64_MAX);
}
#else
RT_LEAF vec v_abs(vec x)
{
    return (vec)((vint)x & INT32_MAX);
}
#endif
#if defined(RT_AVX512) || defined(RT_AVX2)
RT_LEAF vec v_sqrt(vec x)
{
    return V_OP(sqrt)(x);
}
#else
V_EACH_LANE(v_sqrt, s_sqrt)
#endif

#if defined(RT_SCALAR) || defined(RT_DOUBLE)
RT_LEAF real s_log1p_exp(real x)
{
    return R_MATH(log1p)(s_exp(x));
}
V_EACH_LANE(v_exp, s_exp)
V_EACH_LANE(v_log, s_log)
V_EACH_LANE(v_sin, s_sin)
V_EACH_LANE(v_cos, s_cos)
V_EACH_LANE(v_tanh, s_tanh)
V_EACH_LANE(v_erf, s_erf)
V_EACH_LANE(v_log1p_exp, s_log1p_exp)
#else

/* The bits of floats as unsigned integers: any bits of a NaN are valid, and sums wrap around. */
typedef uint32_t vbits __attribute__((vector_size(RT_VEC_BYTES)));

/* c[0] x^(n-1) + ... + c[n-1], by Horner's rule. */
RT_LEAF vec v_polynomial(vec x, const float *c, int n)
{
    vec y = v_set(c[0]);
    RT_UNROLL
    for (int i = 1; i < n; i++)
        y = v_fma(y, x, v_set(c[i]));
    return y;
}

/* exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2.  Adding 1.5 * 2^23 rounds, and leaves
 * n in the low bits. */
RT_LEAF vec v_exp(vec x)
{
    static const float c[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                              4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
    const float low = -87.33654f, high = 88.7228394f;
    const vec a = v_clamp(x, low, high), magic = v_set(12582912.0f);
    const vec t = v_fma(a, v_set(1.44269504088896341f), magic), n = t - magic;
    const vec r = v_fma(n, v_set(2.12194440e-4f), v_fma(n, v_set(-0.693359375f), a));
    const vec p = v_fma(v_polynomial(r, c, 6), r * r, r) + v_set(1);
    const vec y = (vec)((vbits)p + ((vbits)t << 23));
    const vec z = v_select_gt(x, v_set(high), v_set(INFINITY), y);
    return v_select_gt(x, v_set(low), z, a * v_set(-0.0f)); /* 0 for x <= low, NaN for NaN */
}

/* log(x) = e ln 2 + log(1 + m), x = 2^e (1 + m), 1 + m in [sqrt(1/2), sqrt(2)). */
RT_LEAF vec v_log(vec x)
{
    static const float c[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                              -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                              2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
    const vec f = (vec)(((vint)x & 0x007fffff) | 0x3f000000); /* [1/2, 1) */
    const vec half = v_set(0.707106781186547524f);
    const vec e = __builtin_convertvector(((vint)x >> 23) - 126, vec) -
                  v_select_gt(half, f, v_set(1), v_set(0));
    const vec m = v_select_gt(half, f, f + f, f) - v_set(1), z = m * m;
    vec y = v_polynomial(m, c, 9) * m * z;
    y = v_fma(e, v_set(-2.12194440e-4f), y);
    y = v_fma(z, v_set(-0.5f), y);
    y = v_fma(e, v_set(0.693359375f), m + y);
    y = v_select_gt(v_set(INFINITY), x, y, x); /* inf for inf, NaN for NaN */
    y = v_select_gt(v_set(1.17549435e-38f), x, v_set(-INFINITY), y);
    return v_select_gt(v_set(0), x, v_set(NAN), y);
}

/* sin(x) = sin(r), cos(r), -sin(r), -cos(r) for n mod 4 = 0, 1, 2, 3; x = n pi / 2 + r, |r| <=
 * pi / 4.  quarter 1: cos(x) = sin(x + pi / 2).  From 8192 on, n pi / 2 would be rounded: the C
 * library computes such lanes. */
RT_LEAF vec v_turned(vec x, int quarter)
{
    static const float c_sin[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
    static const float c_cos[] = {2.443315711809948e-5f, -1.388731625493765e-3f,
                                  4.166664568298827e-2f};
    const vec magic = v_set(12582912.0f), t = v_fma(x, v_set(0.636619772367581343f), magic);
    const vec n = t - magic, r = v_fma(n, v_set(1.7151245100058819e-15f),
                                       v_fma(n, v_set(4.371138828673793e-08f),
                                             v_fma(n, v_set(-1.5707963705062866f), x)));
    const vec z = r * r, s = v_fma(v_polynomial(z, c_sin, 3) * z, r, r);
    const vec c = v_fma(v_polynomial(z, c_cos, 3) * z, z, v_fma(z, v_set(-0.5f), v_set(1)));
    const vint turn = (vint)t + quarter, odd = -(turn & 1), large = v_abs(x) > v_set(8192);
    vec y = (vec)(((odd & (vint)c) | (~odd & (vint)s)) ^ (vint)((vbits)(turn & 2) << 30));
    int any = 0;
    for (int i = 0; i < V; i++)
        any |= (int)large[i];
    for (int i = 0; any && i < V; i++)
        if (large[i])
            V_LANE(y, i) = quarter ? s_cos(V_LANE(x, i)) : s_sin(V_LANE(x, i));
    return y;
}
RT_LEAF vec v_sin(vec x)
{
    return v_turned(x, 0);
}
RT_LEAF vec v_cos(vec x)
{
    return v_turned(x, 1);
}

/* tanh(|x|) = e / (e + 2), e = exp(2 |x|) - 1 = 2^n (p + 1) - 1, n = round(2 |x| / ln 2) and p =
 * exp(2 r) - 1 = 2 r + r^2 c(r), |r| <= ln 2 / 4.  Small x need no second branch, because nothing
 * cancels.  This takes half the time of 1 - 2 / (exp(2 |x|) + 1) with a polynomial below 0.625.
 * From 8.6643 on, e + 2 would be rounded; from 9.01 on, tanh is 1.  c minimises the largest
 * relative error of p, 1.3e-8. */
RT_LEAF vec v_tanh(vec x)
{
    static const float c[] = {8.884810656e-2f, 2.677295208e-1f, 6.666752100e-1f, 1.333323479e+0f,
                              1.999999881e+0f};
    const vec size = v_abs(x), a = v_min(v_set(8.6643f), size), magic = v_set(12582912.0f);
    const vec t = v_fma(a, v_set(2.885390082f), magic), n = t - magic;
    const vec r = v_fma(n, v_set(-0.34657359028f), a);
    const vec p = v_fma(v_polynomial(r, c, 5), r * r, r + r);
    const vec power = (vec)(((vbits)t << 23) + 0x3f800000), e = v_fma(power, p, power - v_set(1));
    const vec y = v_select_gt(size, v_set(9.01f), v_set(1), e / (e + v_set(2)));
    return (vec)((vint)y | ((vint)x & INT32_MIN));
}

/* erf: for |x| < 1, x times a polynomial in x^2; else 1 - exp(-x^2) q(1/x^2) / x, q in two
 * pieces. */
RT_LEAF vec v_erf(vec x)
{
    static const float c[] = {7.853861353153693e-5f, -8.010193625184903e-4f,
                              5.188327685732524e-3f, -2.685381193529856e-2f,
                              1.128358514861418e-1f, -3.761262582423300e-1f,
                              1.128379165726710e+0f};
    static const float below2[] = {2.326819970068386e-2f, -1.387039388740657e-1f,
                                   3.687424674597105e-1f, -5.824733027278666e-1f,
                                   6.210004621745983e-1f, -4.944515323274145e-1f,
                                   3.404879937665872e-1f, -2.741127028184656e-1f,
                                   5.638259427386472e-1f};
    static const float above2[] = {-1.047766399936249e+1f, 1.297719955372516e+1f,
                                   -7.495518717768503e+0f, 2.921019019210786e+0f,
                                   -1.015265279202700e+0f, 4.218463358204948e-1f,
                                   -2.820767439740514e-1f, 5.641895067754075e-1f};
    const vec a = v_abs(x), q = v_set(1) / v_max(v_set(1), a), z = q * q;
    const vec tail =
        v_select_gt(v_set(2), a, v_polynomial(z, below2, 9), v_polynomial(z, above2, 8));
    const vec big = v_set(1) - v_exp(-a * a) * q * tail;
    return v_select_gt(v_set(1), a, v_polynomial(x * x, c, 7) * x,
                       (vec)((vint)big | ((vint)x & INT32_MIN)));
}

/* log(1 + exp(x)), x <= 0.  u = 1 + e is rounded; the second term adds the rounding error back
 * (Kahan). */
RT_LEAF vec v_log1p_exp(vec x)
{
    const vec e = v_exp(x), u = v_set(1) + e;
    return v_log(u) + (e - (u - v_set(1))) / u;
}
#endif

RT_LEAF vec v_sigmoid(vec x)
{
    return v_set(1) / (v_set(1) + v_exp(-x));
}
RT_LEAF vec v_softplus(vec x)
{
    return v_relu(x) + v_log1p_exp(-v_abs(x));
}
RT_LEAF vec v_gelu(vec x)
{
    return v_set((real)0.5) * x * (v_set(1) + v_erf(x * v_set((real)0.70710678118654752440)));
}
RT_LEAF vec v_silu(vec x)
{
    return x * v_sigmoid(x);
}

/* ------------------------------ dy times the activation's derivative, computed from its value y */
typedef vec (*Act)(vec);
typedef vec (*Mask)(vec dy, vec y);

RT_LEAF vec d_identity(vec dy, vec y)
{
    return (void)y, dy;
}
RT_LEAF vec d_tanh(vec dy, vec y)
{
    return dy * (v_set(1) - y * y);
}
RT_LEAF vec d_sigmoid(vec dy, vec y)
{
    return dy * (y * (v_set(1) - y));
}
RT_LEAF vec d_relu(vec dy, vec y)
{
    return v_select_gt(y, v_set(0), dy, v_set(0));
}
RT_LEAF vec d_relu6(vec dy, vec y)
{
    return v_select_gt(v_set(6), y, d_relu(dy, y), v_set(0));
}
RT_LEAF vec d_hard_sigmoid(vec dy, vec y)
{
    return v_select_gt(v_set(1), y, d_relu(dy, y) * v_set((real)0.16666666666666666), v_set(0));
}
RT_LEAF vec d_exp(vec dy, vec y)
{
    return dy * y;
}
RT_LEAF vec d_sqrt(vec dy, vec y)
{
    return v_set((real)0.5) * dy / y;
}
RT_LEAF vec d_softplus(vec dy, vec y)
{
    return dy * (v_set(1) - v_exp(-y));
}

#endif
