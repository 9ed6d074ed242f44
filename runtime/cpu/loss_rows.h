/* loss_rows.h -- the loops of losses that compare numbers: mse, l1, huber.
 *
 * x, t (N, K) are row-major; a loss has a value for each sample, the mean of a term of d = x - t.
 * The last argument of each macro is the formula; all but that of LOSS_DX_PLAIN read d:
 *
 *   LOSS_MEAN, LOSS_MEAN_PLAIN   statements that add the term to sum
 *   LOSS_DX                      an expression: dx = scale times its value, `scale` of sample i
 *   LOSS_DX_PLAIN                statements that set dx[at], for element `at` of sample i
 */
#ifndef CPU_LOSS_ROWS_H
#define CPU_LOSS_ROWS_H
#include "cpu/math.h"

#define LOSS_MEAN_PLAIN(loss, x, t, n, k, ...)                                                     \
    for (int i = 0; i < (n); i++) {                                                                \
        const real *xi = (x) + (int64_t)i * (k), *ti = (t) + (int64_t)i * (k);                     \
        real sum = 0;                                                                              \
        for (int j = 0; j < (k); j++) {                                                            \
            const real d = xi[j] - ti[j];                                                          \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        (loss)[i] = sum / (real)(k);                                                               \
    }

#define LOSS_DX_PLAIN(n, k, ...)                                                                   \
    for (int i = 0; i < (n); i++)                                                                  \
        for (int64_t at = (int64_t)i * (k); at < ((int64_t)i + 1) * (k); at++) {                   \
            __VA_ARGS__;                                                                           \
        }

#define LOSS_MEAN(loss, x, t, n, k, ...)                                                           \
    TEAM_FOR(i, n) {                                                                               \
        const real *xi = (x) + (int64_t)i * (k), *ti = (t) + (int64_t)i * (k);                     \
        vec sum = v_set(0);                                                                        \
        RT_MAP(k, const vec d = LOAD(xi) - LOAD(ti); __VA_ARGS__);                                 \
        (loss)[i] = v_sum(sum) / (real)(k);                                                        \
    }

#define LOSS_DX(dx, x, t, n, k, scale, ...)                                                        \
    TEAM_FOR(i, n) {                                                                               \
        const real *xi = (x) + (int64_t)i * (k), *ti = (t) + (int64_t)i * (k);                     \
        const vec factor = v_set(scale);                                                           \
        RT_MAP(k, const vec d = LOAD(xi) - LOAD(ti);                                               \
               STORE((dx) + (int64_t)i * (k), factor * (__VA_ARGS__)));                            \
    }

#endif
