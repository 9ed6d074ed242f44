/* test_conv_gradients.c -- the gradients of convolutions against plain ones; the sums of all shards with
 * the update inside. */
#include "conv_test.h"

#include "cpu/conv_dw_update.h"
#include "cpu/conv_dx.h"

ONCE void conv2d_dx_once(real *dx, const real *p, const real *dy, const real *y, Conv c)
{
    conv2d_dx(dx, p, dy, d_tanh, y, c);
}
ONCE void conv2d_dw_once(real *dw, const real *x, const real *dy, Conv c)
{
    conv2d_dw(dw, x, dy, c);
}

START_TEST(backward)
{
    const Conv c = shapes[_i];
    real *x = random_buffer(count_x(c), 1), *w = random_buffer(count_w(c), 2),
         *dy = random_buffer(count_y(c), 4);
    real *dx = buffer(count_x(c)), *dw = random_buffer(count_w(c), 5);
    real *xl = last(x, c.n, c.c, c.h * c.w), *wl = weights_last(w, c),
         *dyl = last(dy, c.n, c.o, c.oh * c.ow);
    real *p = packed(wl, c, ORDER_BACK), *dxl = buffer(count_x(c)), *dwl = weights_last(dw, c);

    plain_dx(dx, w, dy, c);
    for (int64_t i = 0; i < count_x(c); i++)
        dx[i] *= 1 - x[i] * x[i];
    conv2d_dx_once(dxl, p, dyl, xl, c);
    check_guard(dxl, count_x(c) * (int64_t)sizeof(real), "conv2d_dx");
    real *dxr = rows(dxl, c.n, c.c, c.h * c.w);
    check_close(dxr, dx, count_x(c), "conv2d_dx");

    plain_dw(dw, x, dy, c);
    conv2d_dw_once(dwl, xl, dyl, c);
    check_guard(dwl, count_w(c) * (int64_t)sizeof(real), "conv2d_dw");
    real *dwr = weights_rows(dwl, c);
    check_close(dwr, dw, count_w(c), "conv2d_dw");

    Conv write = c; /* writing over NaN equals adding to zeros */
    write.write = true;
    real *zeros = zero_buffer(count_w(c)), *written = buffer(count_w(c));
    conv2d_dw_once(zeros, xl, dyl, c);
    conv2d_dw_once(written, xl, dyl, write);
    check_same(written, zeros, count_w(c) * (int64_t)sizeof(real), "conv2d_dw, written");
    check_guard(written, count_w(c) * (int64_t)sizeof(real), "conv2d_dw, written");
    release(15, zeros, written, x, w, dy, dx, dw, xl, wl, dyl, p, dxl, dwl, dxr, dwr);
}
END_TEST

/* Threads that share each gradient: the bits of one thread. */
typedef struct Shared {
    Conv c;
    real *x, *p, *dy, *dx, *dw, *written;
} Shared;
static void share_gradients(void *arg)
{
    const Shared *s = arg;
    Conv write = s->c;
    write.write = true;
    conv2d_dx_once(s->dx, s->p, s->dy, s->x, s->c);
    conv2d_dw_once(s->dw, s->x, s->dy, s->c);
    conv2d_dw_once(s->written, s->x, s->dy, write);
}

START_TEST(teams)
{
    const Conv c = shapes[_i];
    const int64_t each = sizeof(real);
    real *w = random_buffer(count_w(c), 2);
    Shared s[2];
    for (int i = 0; i < 2; i++)
        s[i] = (Shared){c,
                        random_buffer(count_x(c), 1),
                        packed(w, c, ORDER_BACK),
                        random_buffer(count_y(c), 4),
                        buffer(count_x(c)),
                        random_buffer(count_w(c), 6),
                        buffer(count_w(c))};
    share_gradients(&s[0]);
    as_team(_i % 3 ? 3 : 7, share_gradients, &s[1]);
    check_same(s[1].dx, s[0].dx, count_x(c) * each, "conv2d_dx by a team");
    check_same(s[1].dw, s[0].dw, count_w(c) * each, "conv2d_dw by a team");
    check_same(s[1].written, s[0].written, count_w(c) * each, "conv2d_dw, written, by a team");
    check_guard(s[1].dx, count_x(c) * each, "conv2d_dx by a team");
    check_guard(s[1].dw, count_w(c) * each, "conv2d_dw by a team");
    for (int i = 0; i < 2; i++)
        release(6, s[i].x, s[i].p, s[i].dy, s[i].dx, s[i].dw, s[i].written);
    release(1, w);
}
END_TEST

/* <dy, conv(x, w)> = <dx, x> = <dw, w>, because the convolution is bilinear. */
START_TEST(adjoint)
{
    const Conv c = shapes[_i];
    real *x = random_buffer(count_x(c), 1), *w = random_buffer(count_w(c), 2),
         *dy = random_buffer(count_y(c), 4);
    real *y = buffer(count_y(c)), *dx = buffer(count_x(c)), *dw = zero_buffer(count_w(c));
    double by_y = 0, by_x = 0, by_w = 0, size = 0;
    plain_forward(y, x, w, c);
    plain_dx(dx, w, dy, c);
    plain_dw(dw, x, dy, c);
    for (int64_t i = 0; i < count_y(c); i++)
        by_y += (double)y[i] * dy[i], size += fabs((double)y[i] * dy[i]);
    for (int64_t i = 0; i < count_x(c); i++)
        by_x += (double)dx[i] * x[i];
    for (int64_t i = 0; i < count_w(c); i++)
        by_w += (double)dw[i] * w[i];
    ck_assert_double_eq_tol(by_x, by_y, TOLERANCE * size);
    ck_assert_double_eq_tol(by_w, by_y, TOLERANCE * size);
    release(6, x, w, dy, y, dx, dw);
}
END_TEST

/* ---- sums over all shards in squares, with the update inside */

static const RtOpt momentum = {.lr = 0.1f, .decay = 0.01f, .momentum = 0.9f, .clip_value = 0.75f};

/* x and dy of all shards, in the layout of the fast kernels; dw: the sum by the plain kernel, adjacent pairs first. */
typedef struct Shards {
    char *memory;
    int64_t bytes, dy; /* of a shard; from its x to its dy */
    real *dw;
} Shards;

static Shards shards_of(Conv c, int shards)
{
    Shards q = {.dy = (count_x(c) + 15) / 16 * 16 * (int64_t)sizeof(real)};
    real *part[8];
    q.bytes = q.dy + (count_y(c) + 31) / 16 * 16 * (int64_t)sizeof(real);
    q.memory = buffer_bytes(shards * q.bytes);
    for (int s = 0; s < shards; s++) {
        real *x = random_buffer(count_x(c), 10 + s), *dy = random_buffer(count_y(c), 20 + s),
             *xl = last(x, c.n, c.c, c.h * c.w), *dyl = last(dy, c.n, c.o, c.oh * c.ow);
        part[s] = zero_buffer(count_w(c));
        plain_dw(part[s], x, dy, c);
        memcpy(q.memory + s * q.bytes, xl, sizeof(real) * (size_t)count_x(c));
        memcpy(q.memory + s * q.bytes + q.dy, dyl, sizeof(real) * (size_t)count_y(c));
        release(4, x, dy, xl, dyl);
    }
    for (int step = 1; step < shards; step *= 2)
        for (int s = 0; s + step < shards; s += 2 * step)
            for (int64_t i = 0; i < count_w(c); i++)
                part[s][i] += part[s + step][i];
    q.dw = part[0];
    for (int s = 1; s < shards; s++)
        release(1, part[s]);
    return q;
}

/* Runs all units for shards first .. first + count - 1; with grad only the sums. */
static void run_squares(const Shards *q, Conv c, int first, int count, real *grad, real *w,
                        real *s0)
{
    const Rt r = {.shard = q->memory + first * q->bytes,
                  .shard_bytes = q->bytes,
                  .shards = count,
                  .opt = momentum,
                  .grad = (char *)grad};
    for (int unit = CONV_DW_UNITS(c.o, c.c, c.r * c.s); unit-- > 0;)
        conv2d_dw_update(&r, unit, 0, w, s0, NULL, r.shard, r.shard + q->dy, (Factors){.lr = 1, .decay = 1},
                         update_sgd, c);
}

START_TEST(squares)
{
    static const int counts[] = {1, 2, 3, 8};
    const Conv c = shapes[_i];
    const int64_t bytes = count_w(c) * (int64_t)sizeof(real);
    if (c.groups > 1 || c.n * c.oh * c.ow > TAPS_POSITIONS)
        return;
    for (int i = 0; i < 4; i++) {
        Shards q = shards_of(c, counts[i]);
        real *sum = buffer(count_w(c)), *w = random_buffer(count_w(c), 6),
             *s0 = random_buffer(count_w(c), 7), *w_hand = copy_buffer(w, count_w(c)),
             *s0_hand = copy_buffer(s0, count_w(c));
        run_squares(&q, c, 0, counts[i], sum, NULL, NULL);
        check_guard(sum, bytes, "sums in squares");
        real *rows_of_sum = weights_rows(sum, c);
        check_close(rows_of_sum, q.dw, count_w(c), "sums in squares");
        run_squares(&q, c, 0, counts[i], NULL, w, s0);
        for (int64_t k = 0; k < count_w(c); k++)
            update_lanes(w_hand + k, s0_hand + k, NULL, v_set(sum[k]), &momentum, update_sgd, 1);
        check_same(w, w_hand, bytes, "conv2d_dw_update");
        check_same(s0, s0_hand, bytes, "conv2d_dw_update's state");
        check_guard(w, bytes, "conv2d_dw_update");
        check_guard(s0, bytes, "conv2d_dw_update's state");
        if (counts[i] % 2 == 0) { /* two ranks */
            real *a = buffer(count_w(c)), *b = buffer(count_w(c));
            run_squares(&q, c, 0, counts[i] / 2, a, NULL, NULL);
            run_squares(&q, c, counts[i] / 2, counts[i] / 2, b, NULL, NULL);
            for (int64_t k = 0; k < count_w(c); k++)
                a[k] += b[k];
            check_same(a, sum, bytes, "sums in squares of two ranks");
            release(2, a, b);
        }
        release(8, q.memory, q.dw, sum, w, s0, w_hand, s0_hand, rows_of_sum);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("conv_gradients");
    add_rounds(t, backward, 0, SHAPES);
    add_rounds(t, teams, 0, SHAPES);
    add_rounds(t, squares, 0, SHAPES);
    add_rounds(t, adjoint, 0, SHAPES);
    return run_suite(t, "gradients of convolutions");
}
