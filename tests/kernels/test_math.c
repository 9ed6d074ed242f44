/* test_math.c -- elementary functions against the C library in long double; the last lanes of
 * RT_MAP. */
#include "kernel_test.h"
#include <float.h>

typedef long double (*Exact)(long double);
static long double exact_sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}
static long double exact_softplus(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}
static long double exact_silu(long double x)
{
    return x / (1 + expl(-x));
}
static long double exact_gelu(long double x)
{
    return x / 2 * erfcl(-x * 0.70710678118654752440L);
}

/* Distance of got from want in units of the last place of a real; subnormal results count as zero.
 */
static double ulps(real got, long double want)
{
#ifdef RT_DOUBLE
    const int digits = 53, lowest = -1021;
#else
    const int digits = 24, lowest = -125;
#endif
    int e;
    frexpl(want, &e);
    return (double)(fabsl(got - want) / ldexpl(1, (e < lowest ? lowest : e) - digits));
}

typedef struct Case {
    const char *name;
    Act f;
    Exact exact;
    double low, high, allowed; /* the largest error, ulp (float vectors) */
} Case;

/* clang-format off */
#define WRAP(name) static vec call_##name(vec x) { return v_##name(x); }
WRAP(exp) WRAP(log) WRAP(tanh) WRAP(sigmoid) WRAP(softplus)
WRAP(erf) WRAP(silu) WRAP(sqrt) WRAP(sin) WRAP(cos)
    /* clang-format on */
    static const Case cases[] = {
        {"exp", call_exp, expl, -87.3, 88.7, 1.1},
        {"log", call_log, logl, 1e-37, 1e30, 1.1},
        {"log", call_log, logl, 0.3, 3, 1.1},
        {"tanh", call_tanh, tanhl, -12, 12, 2.5},
        {"tanh", call_tanh, tanhl, -1, 1, 2.5},
        {"sigmoid", call_sigmoid, exact_sigmoid, -80, 80, 2.6},
        {"sigmoid", call_sigmoid, exact_sigmoid, -4, 4, 2.6},
        {"softplus", call_softplus, exact_softplus, -80, 30, 3},
        {"erf", call_erf, erfl, -5, 5, 2.5},
        {"silu", call_silu, exact_silu, -30, 80, 3.5},
        {"sqrt", call_sqrt, sqrtl, 0, 1e20, 0.5},
        {"sin", call_sin, sinl, -10, 10, 2},
        {"cos", call_cos, cosl, -10, 10, 2},
        {"sin", call_sin, sinl, -8100, 8100, 2},
        {"cos", call_cos, cosl, -1e6, 1e6, 2},
};
enum { CASES = sizeof cases / sizeof cases[0], POINTS = 1 << 18 };

START_TEST(accurate)
{
    const Case *c = &cases[_i];
    double worst = 0, at = 0;
    for (int64_t i = 0; i < POINTS; i += V) {
        real x[V], y[V];
        for (int j = 0; j < V; j++)
            x[j] = (real)(c->low + (c->high - c->low) * (noise(_i, i + j) + 1) / 2);
        v_store(y, c->f(v_load(x)));
        for (int j = 0; j < V; j++)
            if (ulps(y[j], c->exact(x[j])) > worst)
                worst = ulps(y[j], c->exact(x[j])), at = (double)x[j];
    }
    if (getenv("VERBOSE"))
        printf("%s [%g, %g]: %.2f ulp at %.9g\n", c->name, c->low, c->high, worst, at);
    const double allowed = V == 1 || sizeof(real) == 8 ? 4 : c->allowed; /* the C library's own */
    ck_assert_msg(worst <= allowed, "%s is %.2f ulp off at %.9g", c->name, worst, at);
}
END_TEST

/* gelu loses digits below -1, as its definition does, so its error is relative to |x|. */
START_TEST(gelu)
{
    for (int i = 0; i < POINTS; i++) {
        const double x = (double)(real)(8 * noise(20, i));
        const double apart = (double)fabsl(V_LANE(v_gelu(v_set((real)x)), 0) - exact_gelu(x));
        REQUIRE(apart <= fabs(x) * (sizeof(real) == 8 ? 4e-16 : 2e-7), "gelu(%.9g) is %g off",
                x, apart);
    }
}
END_TEST

/* Pooling before the activation is exact because the activation is monotone. */
START_TEST(monotone)
{
    real before = -2, x = -10;
    for (int i = 0; i < POINTS; i++, x += (real)20 / POINTS) {
        const real y = V_LANE(v_tanh(v_set(x)), 0);
        REQUIRE(y >= before, "tanh falls at %.9g", (double)x);
        before = y;
    }
}
END_TEST

static real at(vec y)
{
    return V_LANE(y, 0);
}
START_TEST(special)
{
    const vec inf = v_set(INFINITY), minus = v_set(-INFINITY), none = v_set(NAN);
    ck_assert(at(v_exp(inf)) == INFINITY && at(v_exp(minus)) == 0 && isnan(at(v_exp(none))));
    ck_assert(at(v_exp(v_set(1000))) == INFINITY && at(v_exp(v_set(-1000))) == 0 &&
              at(v_exp(v_set(0))) == 1);
    ck_assert(at(v_log(inf)) == INFINITY && at(v_log(v_set(0))) == -INFINITY &&
              at(v_log(v_set(1))) == 0);
    ck_assert(isnan(at(v_log(none))) && isnan(at(v_log(v_set(-1)))));
    ck_assert(at(v_tanh(inf)) == 1 && at(v_tanh(minus)) == -1 && isnan(at(v_tanh(none))));
    ck_assert(at(v_erf(inf)) == 1 && at(v_erf(minus)) == -1 && isnan(at(v_erf(none))));
    ck_assert(isnan(at(v_sin(inf))) && isnan(at(v_cos(minus))) && isnan(at(v_sin(none))));
    ck_assert(at(v_sin(v_set(0))) == 0 && at(v_cos(v_set(0))) == 1);
    ck_assert(at(v_sigmoid(inf)) == 1 && at(v_sigmoid(minus)) == 0 && isnan(at(v_sigmoid(none))));
    ck_assert(at(v_softplus(inf)) == INFINITY && at(v_softplus(minus)) == 0 &&
              isnan(at(v_softplus(none))));
    ck_assert(isnan(at(v_relu6(none))) && isnan(at(v_relu(none))) && at(v_relu(v_set(-3))) == 0 &&
              at(v_relu(v_set(3))) == 3);
    ck_assert(at(v_sign(v_set(-2))) == -1 && at(v_sign(v_set(0))) == 0 &&
              at(v_sign(v_set(5))) == 1);
    ck_assert(at(v_step(v_set(0))) == 0 && at(v_step(v_set(1))) == 1 && at(v_abs(v_set(-3))) == 3);
    ck_assert(at(v_pow(v_set(2), v_set(10))) == 1024 && at(v_neg(v_set(2))) == -2);
    ck_assert(at(v_min(v_set(2), v_set(1))) == 1 && at(v_max(v_set(2), v_set(1))) == 2);
    ck_assert(at(v_select_gt(v_set(1), v_set(1), v_set(3), v_set(4))) == 4);
}
END_TEST

/* Every function at the limits of its formula: infinities, the largest numbers, the bounds of exp, numbers around 0, and NaNs
 * with any bits.  Vectors give the result of one real: the same NaNs, infinities or numbers; they treat denormals as 0. */
static const struct {
    const char *name;
    Act vector;
    real (*one)(real);
} everywhere[] = {
    {"exp", v_exp, s_exp},
    {"log", v_log, s_log},
    {"sqrt", v_sqrt, s_sqrt},
    {"abs", v_abs, s_abs},
    {"sin", v_sin, s_sin},
    {"cos", v_cos, s_cos},
    {"tanh", v_tanh, s_tanh},
    {"erf", v_erf, s_erf},
    {"neg", v_neg, s_neg},
    {"identity", v_identity, s_identity},
    {"relu", v_relu, s_relu},
    {"relu6", v_relu6, s_relu6},
    {"hard_sigmoid", v_hard_sigmoid, s_hard_sigmoid},
    {"hard_swish", v_hard_swish, s_hard_swish},
    {"step", v_step, s_step},
    {"sign", v_sign, s_sign},
    {"sigmoid", v_sigmoid, s_sigmoid},
    {"softplus", v_softplus, s_softplus},
    {"gelu", v_gelu, s_gelu},
    {"silu", v_silu, s_silu},
};

#ifdef RT_DOUBLE
typedef uint64_t Bits;
#define TINY DBL_MIN
#define HUGEST DBL_MAX
#else
typedef uint32_t Bits;
#define TINY FLT_MIN
#define HUGEST FLT_MAX
#endif

static real of_bits(Bits bits)
{
    real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static bool agrees(real got, real want, real x)
{
    const real size = s_abs(want);
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (s_abs(x) < TINY) /* the result for 0 is right, too */
        return true;
    if (isinf(want) || isinf(got)) /* overflow by rounding */
        return got == want || (s_abs(got) >= HUGEST && size >= HUGEST / 2 && (got > 0) == (want > 0));
    return s_abs(got - want) <= 2 * TINY || s_abs(got - want) <= size * (sizeof(real) == 8 ? (real)1e-13 : (real)1e-5);
}

/* In all lanes, so that no lane uses numbers of another. */
static void compare_at(int f, real x)
{
    real y[V];
    v_store(y, everywhere[f].vector(v_set(x)));
    const real want = everywhere[f].one(x);
    for (int i = 0; i < V; i++)
        ck_assert_msg(agrees(y[i], want, x), "%s(%.9g) is %.9g, not %.9g", everywhere[f].name, (double)x,
                      (double)y[i], (double)want);
}

START_TEST(ends)
{
    static const double numbers[] = {0, 1, 2, 3, 6, 8.66, 9.02, 50, 87.33654, 87.34, 88.02, 88.7228, 88.73, 103, 104,
                                     708.3, 709.7, 709.8, 745, 746, 1e3, 8.4e6, 1e9, 1e18, 1e19, 1e20, 3e38, 1e-3, 1e-20, 1e-30};
    const Bits sign = (Bits)1 << (8 * sizeof(Bits) - 1), none = sizeof(real) == 8 ? (Bits)0x7ff8 << (8 * sizeof(Bits) - 16) : 0x7fc00000;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        for (int minus = -1; minus < 2; minus += 2)
            compare_at(_i, (real)(minus * numbers[i]));
    for (int minus = -1; minus < 2; minus += 2) {
        compare_at(_i, (real)minus * (real)INFINITY);
        compare_at(_i, (real)minus * HUGEST);
        compare_at(_i, (real)minus * TINY);
        compare_at(_i, (real)minus * TINY / 4);
        for (Bits bits = 0; bits < 1024; bits++) { /* the low bits, from which functions make exponents */
            compare_at(_i, of_bits(none | bits | (minus < 0 ? sign : 0)));
            compare_at(_i, of_bits(none | bits << 12 | (minus < 0 ? sign : 0)));
        }
    }
}
END_TEST

/* The masks against central differences of their activations, through the value. */
START_TEST(masks)
{
    static const struct {
        Act f;
        Mask d;
        Exact exact;
        double low, high;
    } pairs[] = {
        {v_tanh, d_tanh, tanhl, -3, 3},
        {v_sigmoid, d_sigmoid, exact_sigmoid, -5, 5},
        {v_exp, d_exp, expl, -3, 3},
        {v_sqrt, d_sqrt, sqrtl, 0.1, 9},
        {v_softplus, d_softplus, exact_softplus, -3, 3},
    };
    const double allowed = sizeof(real) == 8 ? 1e-6 : 1e-4;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        for (int k = 0; k < 1000; k++) {
            const double x = pairs[i].low + (pairs[i].high - pairs[i].low) * (noise(30, k) + 1) / 2,
                         h = 1e-4;
            const double want =
                (double)(3 * (pairs[i].exact(x + h) - pairs[i].exact(x - h)) / (2 * h));
            const real got = at(pairs[i].d(v_set(3), pairs[i].f(v_set((real)x))));
            ck_assert_double_eq_tol((double)got, want, allowed);
        }
    ck_assert(at(v_relu6(v_set(7))) == 6 && at(v_relu6(v_set(-1))) == 0 &&
              at(v_relu6(v_set(5))) == 5);
    ck_assert(at(d_relu6(v_set(3), v_set(0))) == 0 && at(d_relu6(v_set(3), v_set(6))) == 0 &&
              at(d_relu6(v_set(3), v_set(5))) == 3);
    ck_assert(at(v_hard_sigmoid(v_set(-4))) == 0 && at(v_hard_sigmoid(v_set(4))) == 1 &&
              at(v_hard_sigmoid(v_set(0))) == (real)0.5);
    ck_assert(at(d_hard_sigmoid(v_set(6), v_set(0))) == 0 &&
              at(d_hard_sigmoid(v_set(6), v_set(1))) == 0 &&
              at(d_hard_sigmoid(v_set(6), v_set((real)0.5))) == 1);
    ck_assert(at(v_hard_swish(v_set(-4))) == 0 && at(v_hard_swish(v_set(4))) == 4);
    ck_assert(at(d_relu(v_set(3), v_set(0))) == 0 && at(d_relu(v_set(3), v_set(1))) == 3);
    ck_assert(at(d_identity(v_set(3), v_set(7))) == 3);
}
END_TEST

/* Scalar forms give the same results as vectors. */
START_TEST(scalars)
{
    for (int k = 0; k < 1000; k++) {
        const real x = (real)(4 * noise(31, k)), tol = sizeof(real) == 8 ? (real)1e-14 : (real)2e-6;
        const vec v = v_set(x);
        ck_assert(fabs((double)(s_exp(x) - at(v_exp(v)))) <= 60 * (double)tol);
        ck_assert(fabs((double)(s_tanh(x) - at(v_tanh(v)))) <= (double)tol);
        ck_assert(fabs((double)(s_sigmoid(x) - at(v_sigmoid(v)))) <= (double)tol);
        ck_assert(fabs((double)(s_softplus(x) - at(v_softplus(v)))) <= 4 * (double)tol);
        ck_assert(fabs((double)(s_gelu(x) - at(v_gelu(v)))) <= 4 * (double)tol);
        ck_assert(fabs((double)(s_silu(x) - at(v_silu(v)))) <= 4 * (double)tol);
        ck_assert(fabs((double)(s_erf(x) - at(v_erf(v)))) <= (double)tol);
        ck_assert(s_relu6(x) == at(v_relu6(v)) && s_hard_sigmoid(x) == at(v_hard_sigmoid(v)) &&
                  s_hard_swish(x) == at(v_hard_swish(v)));
        ck_assert(s_relu(x) == at(v_relu(v)) && s_sign(x) == at(v_sign(v)) &&
                  s_step(x) == at(v_step(v)));
        ck_assert(s_abs(x) == at(v_abs(v)) && s_neg(x) == at(v_neg(v)));
    }
}
END_TEST

/* Every count up to three vectors: all elements are written, and nothing after them. */
START_TEST(map)
{
    for (int count = 0; count <= 3 * V; count++) {
        real *a = random_buffer(count, 40), *b = random_buffer(count, 41), *c = buffer(count);
        RT_MAP(count, vec y = LOAD(a); vec dy = LOAD(b); STORE(c, dy * (1 - y * y)));
        for (int i = 0; i < count; i++)
            ck_assert(c[i] == b[i] * (1 - a[i] * a[i]));
        check_guard(c, count * (int64_t)sizeof(real), "RT_MAP");
        release(3, a, b, c);
    }
}
END_TEST

START_TEST(lanes)
{
    real *x = random_buffer(V, 42), sum = 0, top = -2;
    for (int k = 0; k <= V; k++) {
        real *y = copy_buffer(x, V), z[V];
        v_store_n(y, v_set(7), k);
        v_store(z, v_load_fill(x, k, -9));
        for (int i = 0; i < V; i++) {
            ck_assert(y[i] == (i < k ? 7 : x[i]));
            ck_assert(z[i] == (i < k ? x[i] : -9));
        }
        uint8_t *bytes = buffer_bytes(V);
        v_store_bytes(bytes, v_set(3), k);
        for (int i = 0; i < V; i++)
            ck_assert_int_eq(bytes[i], i < k ? 3 : 255);
        check_guard(bytes, V, "v_store_bytes");
        release(2, y, bytes);
    }
    for (int i = 0; i < V; i++)
        sum += x[i], top = x[i] > top ? x[i] : top;
    ck_assert_double_eq_tol((double)v_sum(v_load(x)), (double)sum, 1e-5);
    ck_assert(v_top(v_load(x)) == top);
    free(x);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("math");
    tcase_add_loop_test(t, accurate, 0, CASES);
    tcase_add_test(t, gelu);
    tcase_add_test(t, monotone);
    tcase_add_test(t, special);
    tcase_add_loop_test(t, ends, 0, sizeof everywhere / sizeof everywhere[0]);
    tcase_add_test(t, masks);
    tcase_add_test(t, scalars);
    tcase_add_test(t, map);
    tcase_add_test(t, lanes);
    return run_suite(t, "vector mathematics");
}
