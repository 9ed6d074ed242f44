/* batch_norm.h -- y = (x - mean) rstd w + b for each channel, and its gradients.
 *
 *   x, y (rows, C), a row for each position of a sample; rows = n * hw     w, b, mean, var (C)
 *
 * batch_moments.h computes mean and rstd, batch_record.h the running averages.
 *
 * Source: Ioffe & Szegedy 2015, "Batch normalization".
 */
#ifndef CPU_BATCH_NORM_H
#define CPU_BATCH_NORM_H
#include "cpu/batch_moments.h"
#include "cpu/batch_record.h"

/* ----------------------------------------------------------------------------------- forward */
RT_LEAF void batch_norm_plain(real *y, const real *x, const real *w, const real *b, const real *t,
                              BatchNorm s)
{
    for (int64_t i = 0; i < (int64_t)s.n * s.c * s.hw; i++) {
        const int c = (int)(i / s.hw % s.c);
        y[i] = (x[i] - t[c]) * (t[s.c + c] * w[c]) + b[c];
    }
}

/* Runs a body for each block of `rows` rows from `at` on, and each group of `vectors` vectors of
 * channels from c on; the last vector has `lanes` lanes.  If a row has at most `most` vectors, the
 * group is the whole row: consecutive rows are then consecutive cache lines, which the processor
 * prefetches.  With one vector at a time, rows of 32 to 128 channels reached half the bandwidth on
 * Zen 4; wider rows in groups of 2, 4 or 8 vectors were no faster.  All layers of resnet56_cifar10
 * take 11.9 ms instead of 14.4. */
#if defined(RT_AVX512) || defined(RT_WIDE)
enum { NORM_WIDE = 8 }; /* vectors a row: three constants a vector fit the registers */
#else
enum { NORM_WIDE = 4 };
#endif
RT_LEAF TeamRange norm_part(BatchNorm s) /* a team member's blocks of rows */
{
    const int block = norm_block(s);
    return team_range((s.n * s.hw + block - 1) / block);
}
#define NORM_EACH(s, most, ...)                                                                    \
    for (int block = norm_block(s), at = (int)norm_part(s).first * block,                          \
             end_ = (int)norm_part(s).end * block;                                                 \
         at < (s).n * (s).hw && at < end_; at += block)                                            \
        for (int c = 0, vectors = norm_vectors((s).c, most); c < (s).c; c += vectors * V) {        \
            const int lanes = vectors > 1 || (s).c - c > V ? V : (s).c - c;                        \
            const int rows = (s).n * (s).hw - at < block ? (s).n * (s).hw - at : block;            \
            __VA_ARGS__                                                                            \
        }
RT_LEAF int norm_vectors(int channels, int most)
{
    return channels % V == 0 && channels <= most * V ? channels / V : 1;
}

/* Loads a group of vectors, of a row of x or of a constant. */
RT_LEAF void norm_load(vec *r, const real *x, int vectors, int lanes)
{
    RT_UNROLL
    for (int k = 0; k < vectors; k++)
        r[k] = v_load_lanes(x + k * V, lanes);
}

/* y = act((x - mean) scale + shift + r); r (rows, c): a residual, or NULL */
RT_LEAF void norm_rows(NormValue *restrict y, const NormValue *restrict x,
                       const NormValue *restrict r, const vec *mean, const vec *scale,
                       const vec *shift, Act act, BatchNorm s, int at, int c, int rows, int vectors,
                       int lanes)
{
    const int64_t ldx = norm_row(s.ldx, s), ldy = norm_row(s.ldy, s);
    for (int64_t i = at; i < at + rows; i++) {
        RT_UNROLL
        for (int k = 0; k < vectors; k++) {
            const int o = c + k * V;
            const vec z = v_fma(v_load_number(x, NORM_HALF(s, x), i * ldx + o, lanes) - mean[k],
                                scale[k], shift[k]);
            v_store_number(y, NORM_HALF(s, y), i * ldy + o,
                           act(r ? z + v_load_number(r, NORM_HALF(s, r), i * s.c + o, lanes) : z),
                           lanes);
        }
    }
}

/* Computes y. r (n, hw, C): a residual that is added before the activation; or NULL. */
RT_LEAF void batch_norm(NormValue *restrict y, const NormValue *restrict x, const real *restrict w,
                        const real *restrict b, const real *restrict t, const NormValue *restrict r,
                        Act act, BatchNorm s)
{
    NORM_EACH(s, NORM_WIDE, vec mean[NORM_WIDE]; vec scale[NORM_WIDE]; vec shift[NORM_WIDE];
              norm_load(mean, t + c, vectors, lanes); norm_load(shift, b + c, vectors, lanes);
              RT_UNROLL for (int k = 0; k < vectors; k++) scale[k] =
                  v_load_lanes(t + s.c + c + k * V, lanes) * v_load_lanes(w + c + k * V, lanes);
              norm_rows(y, x, r, mean, scale, shift, act, s, at, c, rows, vectors, lanes);)
}

/* Computes y with running averages instead of statistics. */
RT_LEAF void batch_norm_test_plain(real *y, const real *x, const real *w, const real *b,
                                   const real *mean, const real *var, real eps, BatchNorm s)
{
    for (int64_t i = 0; i < (int64_t)s.n * s.c * s.hw; i++) {
        const int c = (int)(i / s.hw % s.c);
        y[i] = (x[i] - mean[c]) * (w[c] / s_sqrt(var[c] + eps)) + b[c];
    }
}

RT_LEAF void batch_norm_test(NormValue *restrict y, const NormValue *restrict x,
                             const real *restrict w, const real *restrict b,
                             const real *restrict mean, const real *restrict var, Act act, real eps,
                             BatchNorm s)
{
    NORM_EACH(s, NORM_WIDE, vec avg[NORM_WIDE]; vec scale[NORM_WIDE]; vec shift[NORM_WIDE];
              norm_load(avg, mean + c, vectors, lanes); norm_load(shift, b + c, vectors, lanes);
              RT_UNROLL for (int k = 0; k < vectors; k++) scale[k] =
                  v_load_lanes(w + c + k * V, lanes) /
                  v_sqrt(v_load_fill(var + c + k * V, lanes, 1) + v_set(eps));
              norm_rows(y, x, NULL, avg, scale, shift, act, s, at, c, rows, vectors, lanes);)
}

/* Folds batch_norm of an evaluation into the weights of the convolution before it: w' = w s with s
 * = scale / sqrt(var + eps).  A filter has `each` weights; this unit of `units` computes its share
 * of the outputs. */
RT_LEAF void batch_fold(real *restrict y, const real *restrict w, const real *restrict scale,
                        const real *restrict var, real eps, int outputs, int each, int unit,
                        int units)
{
    for (int o = (int)((int64_t)outputs * unit / units); o < (int64_t)outputs * (unit + 1) / units;
         o++) {
        const real s = scale[o] / s_sqrt(var[o] + eps);
        for (int64_t i = (int64_t)o * each; i < (int64_t)(o + 1) * each; i++)
            y[i] = w[i] * s;
    }
}

/* b' = shift + (bias - mean) s; bias may be NULL */
RT_LEAF void batch_fold_bias(real *restrict y, const real *restrict scale,
                             const real *restrict shift, const real *restrict mean,
                             const real *restrict var, const real *restrict bias, real eps,
                             int outputs)
{
    for (int o = 0; o < outputs; o++)
        y[o] = shift[o] + ((bias ? bias[o] : 0) - mean[o]) * (scale[o] / s_sqrt(var[o] + eps));
}

/* ---------------------------------------------------------------------------------- backward */

/* dw += sum over the rows of dy (x - mean) rstd */
RT_LEAF void batch_norm_dw_plain(real *dw, const real *dy, const real *x, const real *t,
                                 BatchNorm s)
{
    for (int64_t i = 0; i < (int64_t)s.n * s.c * s.hw; i++) {
        const int c = (int)(i / s.hw % s.c);
        dw[c] += dy[i] * (x[i] - t[c]) * t[s.c + c];
    }
}

/* Adds dy (x - mean) over rows to sum[k]. */
RT_LEAF void norm_dw_rows(vec *sum, const NormValue *restrict dy, const NormValue *restrict x,
                          const vec *mean, BatchNorm s, int at, int c, int rows, int vectors,
                          int lanes)
{
    const int64_t ldx = norm_row(s.ldx, s);
    RT_UNROLL
    for (int k = 0; k < vectors; k++)
        sum[k] = v_set(0);
    for (int64_t i = at; i < at + rows; i++) {
        RT_UNROLL
        for (int k = 0; k < vectors; k++) {
            const int o = c + k * V;
            sum[k] = v_fma(v_load_number(dy, NORM_HALF(s, y), i * s.c + o, lanes),
                           v_load_number(x, NORM_HALF(s, x), i * ldx + o, lanes) - mean[k], sum[k]);
        }
    }
}

/* Computes the sums of a team member's columns, a vector at a time, with the same blocks of
 * rows. */
RT_LEAF void norm_dw_columns(real *dw, const NormValue *dy, const NormValue *x, const real *t,
                             BatchNorm s)
{
    const TeamRange part = team_range((s.c + V - 1) / V);
    const int rows = s.n * s.hw, block = norm_block(s);
    for (int c = (int)part.first * V; c < s.c && c < part.end * V; c += V)
        for (int at = 0; at < rows; at += block) {
            const int lanes = s.c - c < V ? s.c - c : V,
                      some = rows - at < block ? rows - at : block;
            const vec mean = v_load_lanes(t + c, lanes);
            vec sum;
            norm_dw_rows(&sum, dy, x, &mean, s, at, c, some, 1, lanes);
            v_store_lanes(dw + c,
                          v_fma(sum, v_load_lanes(t + s.c + c, lanes), v_load_lanes(dw + c, lanes)),
                          lanes);
        }
}

/* The same if members share blocks of rows (batch_moments.h). */
RT_LEAF void batch_norm_dw_together(real *dw, const NormValue *dy, const NormValue *x,
                                    const real *t, BatchNorm s)
{
    real own[2 * NORM_ROOM] __attribute__((aligned(64)));
    real *const room = team_scratch(own, true);
    const int rows = s.n * s.hw, block = norm_block(s), blocks = (rows + block - 1) / block;
    for (int first = 0, count; first < blocks; first += count) {
        const NormGroup g = norm_group(room, first, blocks, 1, s);
        count = g.count;
        NORM_GROUP_EACH(g, s, const int at = (first + b) * block;
                        const vec mean = v_load_lanes(t + c, lanes); vec sum;
                        norm_dw_rows(&sum, dy, x, &mean, s, at, c,
                                     rows - at < block ? rows - at : block, 1, lanes);
                        v_store_lanes(g.room + b * s.c + c, sum, lanes))
        TEAM_BARRIER;
        NORM_GROUP_ADD(g, s,
                       v_store_lanes(dw + c,
                                     v_fma(v_load_lanes(g.room + b * s.c + c, lanes),
                                           v_load_lanes(t + s.c + c, lanes),
                                           v_load_lanes(dw + c, lanes)),
                                     lanes))
    }
    TEAM_BARRIER;
}

RT_LEAF void batch_norm_dw(real *restrict dw, const NormValue *restrict dy,
                           const NormValue *restrict x, const real *restrict t, BatchNorm s)
{
    if (norm_together(s)) {
        batch_norm_dw_together(dw, dy, x, t, s);
        return;
    }
    if (rt_team.of > 1) {
        norm_dw_columns(dw, dy, x, t, s);
        return;
    }
    NORM_EACH(s, NORM_WIDE, vec mean[NORM_WIDE]; vec sum[NORM_WIDE];
              norm_load(mean, t + c, vectors, lanes);
              norm_dw_rows(sum, dy, x, mean, s, at, c, rows, vectors, lanes);
              RT_UNROLL for (int k = 0; k < vectors; k++)
                  v_store_lanes(dw + c + k * V,
                                v_fma(sum[k], v_load_lanes(t + s.c + c + k * V, lanes),
                                      v_load_lanes(dw + c + k * V, lanes)),
                                lanes);)
}

/* dx = w rstd (dy - db / count - (x - mean) rstd dw / count).  dw and db are sums over the `count`
 * rows from which the statistics were computed. */
RT_LEAF void batch_norm_dx_plain(real *dx, const real *dy, const real *x, const real *w,
                                 const real *t, const real *dw, const real *db, int64_t count,
                                 BatchNorm s)
{
    for (int64_t i = 0; i < (int64_t)s.n * s.c * s.hw; i++) {
        const int c = (int)(i / s.hw % s.c);
        const real share = (real)1 / (real)count, rstd = t[s.c + c];
        dx[i] = w[c] * rstd * (dy[i] - db[c] * share - (x[i] - t[c]) * rstd * (dw[c] * share));
    }
}

/* dx = scale dy + slope (mean - x) - shift */
RT_LEAF void norm_dx_rows(NormValue *restrict dx, const NormValue *restrict dy,
                          const NormValue *restrict x, const vec *mean, const vec *scale,
                          const vec *slope, const vec *shift, BatchNorm s, int at, int c, int rows,
                          int vectors, int lanes)
{
    const int64_t ldx = norm_row(s.ldx, s);
    for (int64_t i = at; i < at + rows; i++) {
        RT_UNROLL
        for (int k = 0; k < vectors; k++) {
            const int o = c + k * V;
            const vec far = mean[k] - v_load_number(x, NORM_HALF(s, x), i * ldx + o, lanes);
            v_store_number(dx, NORM_HALF(s, r), i * s.c + o,
                           v_fma(scale[k], v_load_number(dy, NORM_HALF(s, y), i * s.c + o, lanes),
                                 v_fma(slope[k], far, -shift[k])),
                           lanes);
        }
    }
}

RT_LEAF void batch_norm_dx(NormValue *restrict dx, const NormValue *restrict dy,
                           const NormValue *restrict x, const real *restrict w,
                           const real *restrict t, const real *restrict dw, const real *restrict db,
                           int64_t count, BatchNorm s)
{
    const vec share = v_set((real)1 / (real)count); /* four constants a vector: half of NORM_WIDE */
    NORM_EACH(
        s, NORM_WIDE / 2, vec mean[NORM_WIDE]; vec scale[NORM_WIDE]; vec slope[NORM_WIDE];
        vec shift[NORM_WIDE]; norm_load(mean, t + c, vectors, lanes);
        RT_UNROLL for (int k = 0; k < vectors; k++) {
            const int o = c + k * V;
            const vec rstd = v_load_lanes(t + s.c + o, lanes);
            scale[k] = v_load_lanes(w + o, lanes) * rstd;
            slope[k] = scale[k] * rstd * (v_load_lanes(dw + o, lanes) * share);
            shift[k] = scale[k] * (v_load_lanes(db + o, lanes) * share);
        } norm_dx_rows(dx, dy, x, mean, scale, slope, shift, s, at, c, rows, vectors, lanes);)
}

#endif
