/* test_init.c -- random numbers, initial weights, and the places of weights in memory. */
#include "base/random.h"
#include "files/params.h"
#include "suite.h"
#include "train/init.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

START_TEST(philox_knows_its_examples)
{
    uint32_t w[4];
    rt_philox(w, 0, 0, 0, 0, 0);                      /* kat_vectors of Random123 */
    ck_assert_uint_eq(w[0], 0x6627e8d5u);
    ck_assert_uint_eq(w[1], 0xe169c58du);
    ck_assert_uint_eq(w[2], 0xbc57ac4cu);
    ck_assert_uint_eq(w[3], 0x9b00dbd8u);
    rt_philox(w, ~0ull, ~0u, ~0u, ~0u, ~0u);
    ck_assert_uint_eq(w[0], 0x408f276du);
    ck_assert_uint_eq(w[1], 0x41c83b0eu);
    ck_assert_uint_eq(w[2], 0xa20bc7c6u);
    ck_assert_uint_eq(w[3], 0x6d5451fdu);
}
END_TEST

START_TEST(numbers_below_n_are_even)
{
    int count[5] = {0};
    Random r = random_from(1, RT_PURPOSE_SHUFFLE, 0, 0);
    for (int i = 0; i < 50000; i++)
        count[random_below(&r, 5)]++;
    for (int i = 0; i < 5; i++)
        ck_assert_int_lt(abs(count[i] - 10000), 400);         /* 4.5 sigma */
}
END_TEST

enum { ROWS = 40, COLUMNS = 60 };

/* One weight of the kind, file order = memory order, filled with seed 1 by `threads` threads. */
static void fill(RtInit init, int threads, double *w)
{
    const RtParam p = {.name = "w", .rank = 2, .dim = {ROWS, COLUMNS}, .naxis = 1,
                       .axis = {{ROWS * COLUMNS, 1, 1, 0}}, .count_memory = ROWS * COLUMNS,
                       .fan_in = COLUMNS, .fan_out = ROWS, .init = init};
    const RtProgram program = {.real_bytes = 8, .param = &p, .nparam = 1};
    Pool *pool = pool_new(threads);
    init_params(&program, (char *)w, 1, pool);
    pool_free(pool);
}

/* Mean, standard deviation and largest absolute value. */
static void moments(const double *w, double m[3])
{
    const int n = ROWS * COLUMNS;
    m[0] = m[1] = m[2] = 0;
    for (int i = 0; i < n; i++) {
        m[0] += w[i] / n;
        m[2] = fmax(m[2], fabs(w[i]));
    }
    for (int i = 0; i < n; i++)
        m[1] += (w[i] - m[0]) * (w[i] - m[0]) / n;
    m[1] = sqrt(m[1]);
}

START_TEST(initial_weights_have_their_spread)
{
    static const struct { RtInit init; double mean, sigma, bound; } law[] = {
        {{RT_XAVIER, true, RT_FAN_IN, 2, 0}, 0, 0.182574, 0},          /* sqrt(2 / 60) */
        {{RT_XAVIER, false, RT_FAN_AVG, 3, 0}, 0, 0.141421, 0.244949}, /* bound sqrt(3 / 50) */
        {{RT_XAVIER, false, RT_FAN_OUT, 3, 0}, 0, 0.158114, 0.273861},
        {{RT_GLOROT, true, 0, 0, 0}, 0, 0.141421, 0},
        {{RT_GLOROT, false, 0, 0, 0}, 0, 0.141421, 0.244949},
        {{RT_HE, true, RT_FAN_IN, 0, 0}, 0, 0.182574, 0},
        {{RT_HE, false, RT_FAN_IN, 0, 0}, 0, 0.182574, 0.316228},
        {{RT_LECUN, true, 0, 0, 0}, 0, 0.129099, 0},
        {{RT_LECUN, false, 0, 0, 0}, 0, 0.129099, 0.223607},
        {{RT_UNIFORM, false, 0, 1, 3}, 2, 0.577350, 3},
        {{RT_NORMAL, false, 0, -1, 0.5}, -1, 0.5, 0},
        {{RT_CONSTANT, false, 0, 0.25, 0}, 0.25, 0, 0.25}};
    for (size_t i = 0; i < sizeof law / sizeof *law; i++) {
        static double w[ROWS * COLUMNS];
        double m[3];
        fill(law[i].init, 1, w);
        moments(w, m);
        ck_assert_double_eq_tol(m[0], law[i].mean, 5 * law[i].sigma / sqrt(ROWS * COLUMNS) + 1e-12);
        ck_assert_double_eq_tol(m[1], law[i].sigma, 0.06 * law[i].sigma + 1e-12);
        if (law[i].bound > 0)
            ck_assert(m[2] <= law[i].bound + 1e-12 && m[2] > 0.98 * law[i].bound);
    }
}
END_TEST

START_TEST(orthogonal_rows_are_orthonormal)
{
    static double w[ROWS * COLUMNS];
    fill((RtInit){RT_ORTHOGONAL, false, 0, 2, 0}, 1, w);
    for (int a = 0; a < ROWS; a++)
        for (int b = 0; b <= a; b++) {
            double dot = 0;
            for (int k = 0; k < COLUMNS; k++)
                dot += w[a * COLUMNS + k] * w[b * COLUMNS + k];
            ck_assert_double_eq_tol(dot, a == b ? 4 : 0, 1e-12);
        }
}
END_TEST

START_TEST(initial_weights_do_not_depend_on_threads)
{
    static double a[ROWS * COLUMNS], b[ROWS * COLUMNS];
    fill((RtInit){RT_HE, true, RT_FAN_IN, 0, 0}, 1, a);
    fill((RtInit){RT_HE, true, RT_FAN_IN, 0, 0}, 3, b);
    ck_assert_mem_eq(a, b, sizeof a);
}
END_TEST

/* (5, 3, 2, 2) in files, (O, R, S, I) in memory; and (5, 6) in panels of 4: every element has one place of its own. */
START_TEST(places_follow_the_axes)
{
    const RtParam conv = {.rank = 4, .dim = {5, 3, 2, 2}, .naxis = 4,
                          .axis = {{5, 1, 12, 0}, {3, 1, 1, 0}, {2, 1, 6, 0}, {2, 1, 3, 0}}};
    const RtParam dense = {.rank = 2, .dim = {5, 6}, .naxis = 2, .axis = {{5, 4, 24, 1}, {6, 1, 4, 0}}};
    int64_t place[60];
    ck_assert_int_eq(params_count(&conv), 60);
    params_places(&conv, 0, 60, place);
    for (int o = 0, e = 0; o < 5; o++)
        for (int i = 0; i < 3; i++)
            for (int r = 0; r < 2; r++)
                for (int s = 0; s < 2; s++, e++)
                    ck_assert_int_eq(place[e], ((o * 2 + r) * 2 + s) * 3 + i);
    for (int first = 0; first < 30; first++) {
        params_places(&dense, first, 1, place);
        ck_assert_int_eq(place[0], first / 6 / 4 * 24 + first / 6 % 4 + first % 6 * 4);
    }
}
END_TEST

START_TEST(values_come_back_from_memory_order)
{
    const RtParam p = {.rank = 2, .dim = {5, 6}, .naxis = 2, .axis = {{5, 4, 24, 1}, {6, 1, 4, 0}}};
    double in[30];
    float memory[48] = {0}, out[30];
    for (int i = 0; i < 30; i++)
        in[i] = i + 1;
    params_put(&p, (char *)memory, 4, 0, 30, in);
    params_get(&p, (char *)memory, 4, 0, 30, out);
    for (int i = 0; i < 30; i++)
        ck_assert_float_eq(out[i], (float)in[i]);
    float sum = 0;
    for (int i = 0; i < 48; i++)
        sum += memory[i];
    ck_assert_float_eq(sum, 465);
}
END_TEST

TEST_MAIN("init", philox_knows_its_examples, numbers_below_n_are_even,
          initial_weights_have_their_spread, orthogonal_rows_are_orthonormal,
          initial_weights_do_not_depend_on_threads, places_follow_the_axes,
          values_come_back_from_memory_order)
