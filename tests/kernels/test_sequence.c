/* test_sequence.c -- what sequences are made of: norms of rows and softmax along any dimension, against their
 * references, over sizes that leave lanes and rows over. */
#include "kernel_test.h"

static const int widths[] = {1, 2, 7, 16, 17, 33, 64, 100, 384};
enum { WIDTHS = sizeof widths / sizeof *widths };

/* ---------------------------------------------------------------------------------------- norms */
START_TEST(norms)
{
    const int k = widths[_i];
    for (int center = 0; center < 2; center++) {
        const LayerNorm l = {.rows = 5, .k = k, .center = center, .epsilon = 1e-3};
        const int64_t count = (int64_t)l.rows * k;
        real *x = random_buffer(count, 1), *dy = random_buffer(count, 2), *w = random_buffer(k, 3),
             *b = random_buffer(k, 4), *a = buffer(count), *c = buffer(count),
             *dw = random_buffer(k, 5), *dv = copy_buffer(dw, k);
        for (int i = 0; i < k; i++) /* far from 0: the squares are taken from the mean */
            x[i] += 4;
        layer_norm_plain(a, x, w, center ? b : NULL, l);
        layer_norm(c, x, w, center ? b : NULL, l);
        if (k > 1 || !center)
            check_close(c, a, count, "layer_norm");
        layer_norm_dx_plain(a, dy, x, w, l);
        layer_norm_dx(c, dy, x, w, l);
        if (k > 2) /* of one or two numbers it is what roundings leave */
            check_close(c, a, count, "layer_norm_dx");
        layer_norm_dw_plain(dw, dy, x, l);
        layer_norm_dw(dv, dy, x, l);
        check_close(dv, dw, k, "layer_norm_dw");
        release(8, x, dy, w, b, a, c, dw, dv);
    }
}
END_TEST

/* By the definition, in double. */
START_TEST(norm_rule)
{
    const real x[4] = {1, 2, 3, 6}, w[4] = {1, 2, 1, 1}, b[4] = {0, 0, 5, 0};
    real y[4];
    layer_norm(y, x, w, b, (LayerNorm){.rows = 1, .k = 4, .center = true, .epsilon = 0.5});
    const double r = 1 / sqrt(3.5 + 0.5);
    ck_assert_double_eq_tol((double)y[0], -2 * r, 1e-6);
    ck_assert_double_eq_tol((double)y[1], -2 * r, 1e-6);
    ck_assert_double_eq_tol((double)y[2], 5, 1e-6);
    layer_norm(y, x, w, NULL, (LayerNorm){.rows = 1, .k = 4, .center = false, .epsilon = 12.5});
    ck_assert_double_eq_tol((double)y[3], 6 / 5.0, 1e-6);
}
END_TEST

/* -------------------------------------------------------------------------------------- softmax */
START_TEST(softmax_dimensions)
{
    const int outer = 3, k = 6, inner = widths[_i];
    const int64_t count = (int64_t)outer * k * inner;
    real *x = random_buffer(count, 1), *dy = random_buffer(count, 2), *a = buffer(count),
         *b = buffer(count), *y = buffer(count);
    softmax_along_plain(a, x, outer, k, inner);
    softmax_along(y, x, outer, k, inner);
    check_close(y, a, count, "softmax_along");
    softmax_dx_along_plain(a, y, dy, outer, k, inner);
    softmax_dx_along(b, y, dy, outer, k, inner);
    check_close(b, a, count, "softmax_dx_along");
    if (inner == 1) {
        softmax(b, x, outer, k);
        check_close(b, y, count, "softmax = softmax_along of neighbours");
    }
    release(5, x, dy, a, b, y);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sequences");
    tcase_add_loop_test(t, norms, 0, WIDTHS);
    tcase_add_test(t, norm_rule);
    tcase_add_loop_test(t, softmax_dimensions, 0, WIDTHS);
    return run_suite(t, "sequence kernels");
}
