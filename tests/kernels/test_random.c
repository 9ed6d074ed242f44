/* test_random.c -- dropout and normal_like: kernels with random numbers. */
#include "kernel_test.h"

#include "cpu/dropout.h"
#include "cpu/normal.h"

/* -------------------------------------------------------------------------------------- dropout */
START_TEST(dropout_mask)
{
    static const int widths[] = {1, 3, 4, 31, 64, 130, 512};
    const int n = 3, k = widths[_i];
    const uint32_t index[6] = {9, 8, 70000, 3, 11, 2};
    const Rt r = {.seed = 0x123456789abcdefull, .epoch = 3, .index = index};
    real *x = random_buffer((int64_t)n * k, 1), *a = buffer((int64_t)n * k),
         *b = buffer((int64_t)n * k);
    dropout_plain(a, x, &r, 2, 1, 0.25f, n, k);
    dropout(b, x, &r, 2, 1, 0.25f, n, k);
    check_same(a, b, (int64_t)n * k * (int64_t)sizeof(real), "dropout");
    check_guard(b, (int64_t)n * k * (int64_t)sizeof(real), "dropout");
    dropout_dx(b, x, &r, 2, 1, 0.25f, n, k);
    check_same(a, b, (int64_t)n * k * (int64_t)sizeof(real), "dropout_dx");

    /* sample 2 alone, as in another division of the batch */
    dropout(b, x + 2 * k, &r, 2, 3, 0.25f, 1, k);
    check_same(a + 2 * k, b, k * (int64_t)sizeof(real), "dropout of another chunk");
    release(3, x, a, b);
}
END_TEST

START_TEST(dropout_rate)
{
    enum { K = 20000 };
    const uint32_t index[1] = {5};
    const Rt r = {.seed = 1, .index = index};
    real *x = buffer(K), *y = buffer(K), *z = buffer(K);
    int kept = 0, same = 0;
    for (int i = 0; i < K; i++)
        x[i] = 1;
    dropout(y, x, &r, 0, 0, 0.2f, 1, K);
    dropout(z, x, &r, 1, 0, 0.2f, 1, K);
    for (int i = 0; i < K; i++) {
        ck_assert(y[i] == 0 || fabs((double)y[i] - 1.25) < 1e-6);
        kept += y[i] != 0;
        same += (y[i] != 0) == (z[i] != 0);
    }
    ck_assert_int_gt(kept, 15800); /* 16000 +- 3.5 sigma */
    ck_assert_int_lt(kept, 16200);
    ck_assert_int_lt(same, K * 0.70); /* independent masks agree on 0.68 */
    dropout(y, x, &r, 0, 0, 0, 1, K);
    check_same(y, x, K * sizeof(real), "dropout of rate 0");
    release(3, x, y, z);
}
END_TEST

/* --------------------------------------------------------------------------------- normal_like */
START_TEST(normal_numbers)
{
    static const int widths[] = {1, 3, 4, 31, 64, 130, 512};
    const int n = 3, k = widths[_i];
    const uint32_t index[6] = {9, 8, 70000, 3, 11, 2};
    const Rt r = {.seed = 0x123456789abcdefull, .epoch = 3, .index = index},
             other = {.seed = 5, .epoch = 4, .index = index};
    real *a = buffer((int64_t)n * k), *b = buffer((int64_t)n * k), *c = buffer((int64_t)n * k);
    normal_like_plain(a, &r, 2, 1, true, n, k);
    normal_like(b, &r, 2, 1, true, n, k);
    check_close(a, b, (int64_t)n * k, "normal_like");
    check_guard(b, (int64_t)n * k * (int64_t)sizeof(real), "normal_like");

    /* sample 2 alone, as in another division of the batch */
    normal_like(c, &r, 2, 3, true, 1, k);
    check_same(b + 2 * k, c, k * (int64_t)sizeof(real), "normal_like of another chunk");

    normal_like(c, &other, 2, 1, true, n, k);
    ck_assert(memcmp(b, c, sizeof(real)) != 0);
    normal_like(b, &r, 2, 1, false, n, k);
    normal_like(c, &other, 2, 1, false, n, k);
    check_same(b, c, (int64_t)n * k * (int64_t)sizeof(real), "an evaluation with another seed");
    release(3, a, b, c);
}
END_TEST

/* Moments and tails of 200,000 numbers, within five standard deviations of such an estimate. */
START_TEST(normal_moments)
{
    enum { K = 200000 };
    const uint32_t index[1] = {5};
    const Rt r = {.seed = 1, .index = index};
    real *y = buffer(K);
    double sum[5] = {0}, tail = 0, pairs = 0;
    normal_like(y, &r, 0, 0, true, 1, K);
    for (int i = 0; i < K; i++) {
        const double v = (double)y[i];
        for (int m = 1; m < 5; m++)
            sum[m] += pow(v, m) / K;
        tail += (fabs(v) > 3) / (double)K;
        pairs += i > 0 ? v * (double)y[i - 1] / K : 0;
    }
    const double five = 5 / sqrt(K);
    ck_assert_double_lt(fabs(sum[1]), five);
    ck_assert_double_lt(fabs(sum[2] - 1), five * sqrt(2));
    ck_assert_double_lt(fabs(sum[3]), five * sqrt(15));
    ck_assert_double_lt(fabs(sum[4] - 3), five * sqrt(96));
    ck_assert_double_lt(fabs(tail - 0.0026998), five * sqrt(0.0027));
    ck_assert_double_lt(fabs(pairs), five);
    release(1, y);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("random");
    tcase_add_loop_test(t, dropout_mask, 0, 7);
    tcase_add_test(t, dropout_rate);
    tcase_add_loop_test(t, normal_numbers, 0, 7);
    tcase_add_test(t, normal_moments);
    return run_suite(t, "random kernels");
}
