/* test_update.c -- sums of gradients, the rules of the optimizers, the norm of gradients. */
#include "kernel_test.h"

#include "cpu/update.h"

/* Slices are added inside shards, shards in the tree; any number of units; nothing is written after the last element. */
START_TEST(reduce)
{
    enum { SHARDS = 6, SLICES = 3, COUNT = 101 };
    const int64_t slice_bytes = 512 * sizeof(real), shard_bytes = 2048 * sizeof(real);
    char *memory = buffer_bytes(SHARDS * shard_bytes);
    for (int i = 0; i < SHARDS * 2048; i++)
        ((real *)memory)[i] = (real)noise(1, i);
    const RtOpt o = {.lr = 0.1f, .decay = 0.5f, .momentum = 0.9f};
    const Rt r = {.shards = SHARDS, .shard_bytes = shard_bytes, .opt = o};
    static const Factors factors[] = {{1, 0, 0}, {1, 1, 0}, {0.5f, 3, 0}};
    for (int k = 0; k < 3; k++)
        for (int units = 1; units <= 9; units += 4) {
            real *w = random_buffer(COUNT, 2), *v = random_buffer(COUNT, 3),
                 *w0 = copy_buffer(w, COUNT);
            real *v0 = copy_buffer(v, COUNT), *g = buffer(COUNT), *w1 = copy_buffer(w, COUNT),
                 *v1 = copy_buffer(v, COUNT);
            const Factors f = factors[k];
            Rt apart = r;
            apart.grad = (char *)g;
            for (int u = 0; u < units; u++)
                reduce_update(&r, u, units, 0, w, v, NULL, memory, slice_bytes, SLICES, COUNT, f,
                              update_sgd);
            for (int u = 0; u < units; u++)
                reduce_update(&apart, u, units, 0, NULL, NULL, NULL, memory, slice_bytes, SLICES,
                              COUNT, f, update_sgd);
            for (int u = 0; u < units; u++)
                grad_update(&apart, u, units, 0, w1, v1, NULL, COUNT, f, update_sgd);
            for (int i = 0; i < COUNT; i++) {
                real shard[SHARDS];
                for (int s = 0; s < SHARDS; s++) {
                    real slice[SLICES];
                    for (int j = 0; j < SLICES; j++)
                        slice[j] = ((const real *)(memory + s * shard_bytes + j * slice_bytes))[i];
                    shard[s] = tree_by_hand(slice, SLICES);
                }
                const real sum = tree_by_hand(shard, SHARDS);
                ck_assert(g[i] == sum);
                const double d = (double)sum + 0.5 * (double)f.decay * (double)w0[i],
                             m = 0.9 * (double)v0[i] + d;
                ck_assert_double_eq_tol((double)v[i], m, 2e-6);
                ck_assert_double_eq_tol((double)w[i], (double)w0[i] - 0.1 * (double)f.lr * m, 2e-6);
            }
            check_same(w, w1, COUNT * sizeof(real), "grad_update");
            check_same(v, v1, COUNT * sizeof(real), "grad_update's state");
            check_guard(w, COUNT * (int64_t)sizeof(real), "reduce_update");
            check_guard(v, COUNT * (int64_t)sizeof(real), "reduce_update's state");
            check_guard(g, COUNT * (int64_t)sizeof(real), "reduce_update's sum");
            release(7, w, v, w0, v0, g, w1, v1);
        }
    free(memory);
}
END_TEST

/* Three steps of each rule against the formulas in double. */
START_TEST(formulas)
{
    const RtOpt o = {.lr = 0.1f,
                     .decay = 0.01f,
                     .momentum = 0.9f,
                     .rho = 0.8f,
                     .beta1 = 0.7f,
                     .beta2 = 0.9f,
                     .eps = 0.25f,
                     .bias1 = 0.5f,
                     .bias2 = 0.125f,
                     .trust = 0.5f,
                     .nesterov = _i == 1};
    const double allowed = sizeof(real) == 8 ? 1e-14 : 1e-6;
    real w[V], s0[V] = {0}, s1[V] = {0};
    double x = 0.75, a = 0, b = 0;
    const double lr = (double)o.lr, decay = (double)o.decay, m = (double)o.momentum,
                 rho = (double)o.rho;
    const double b1 = (double)o.beta1, b2 = (double)o.beta2, eps = (double)o.eps;
    v_store(w, v_set((real)x));
    for (int step = 0; step < 3; step++) {
        double g = 0.5 - 0.4 * step;
        const vec gv = v_set((real)g);
        if (_i < 2) {
            update_sgd(w, s0, NULL, gv, &o);
            g += decay * x, a = m * a + g, x -= lr * (_i ? g + m * a : a);
        } else if (_i == 2) {
            update_rmsprop(w, s0, s1, gv, &o);
            g += decay * x, a = rho * a + (1 - rho) * g * g, b = m * b + g / (sqrt(a) + eps),
                            x -= lr * b;
        } else if (_i == 5) {
            update_adagrad(w, s0, NULL, gv, &o);
            g += decay * x, a += g * g, x -= lr * g / (sqrt(a) + eps);
        } else if (_i == 7) {
            update_lars(w, s0, NULL, gv, &o);
            g = 0.5 * (g + decay * x), a = m * a + g, x -= lr * a;
        } else if (_i == 8) {
            update_lamb(w, s0, s1, gv, &o);
            a = b1 * a + (1 - b1) * g, b = b2 * b + (1 - b2) * g * g;
            x -= lr * 0.5 * ((a / 0.5) / (sqrt(b / 0.125) + eps) + decay * x);
        } else if (_i == 6) {
            const double c = b1 * a + (1 - b1) * g;
            update_lion(w, s0, NULL, gv, &o);
            x -= lr * decay * x, x -= lr * (c > 0 ? 1 : c < 0 ? -1 : 0);
            a = b2 * a + (1 - b2) * g;
        } else {
            if (_i == 3)
                update_adam(w, s0, s1, gv, &o), g += decay * x;
            else
                update_adamw(w, s0, s1, gv, &o), x -= lr * decay * x;
            a = b1 * a + (1 - b1) * g, b = b2 * b + (1 - b2) * g * g;
            x -= lr * (a / 0.5) / (sqrt(b / 0.125) + eps);
        }
        for (int i = 0; i < V; i++)
            ck_assert_double_eq_tol((double)w[i], x, allowed);
    }
}
END_TEST

START_TEST(norm)
{
    real g[4] = {3, 0, 4, 12};
    const Rt r = {.grad = (char *)g};
    ck_assert_double_eq(grad_norm(&r, sizeof g), 13);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("update");
    tcase_add_test(t, reduce);
    tcase_add_loop_test(t, formulas, 0, 9);
    tcase_add_test(t, norm);
    return run_suite(t, "update kernels");
}
