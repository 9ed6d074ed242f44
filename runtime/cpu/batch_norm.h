/* batch_norm.h -- y = (x - mean) rstd w + b, mean and variance over the samples of a shard, a channel at a time.
 *
 *   x, y (rows, C), a row a sample's position; rows = n * hw     w, b, mean, var (C)
 *   moments (2, C)     mean, and sum of (x - mean)^2 ("m2"), of the rows seen so far
 *   statistics (2, C)  mean, rstd = 1 / sqrt(m2 / count + eps), of the shard
 *
 * Moments are taken in blocks of rows that stay in the first-level cache, each about its own mean,
 * and joined pairwise: as exact as two passes, in one.  In --plain programs x is (n, C, hw).
 *
 * Statistics of the whole batch (sync) are made of what each shard has, a row a shard, which all ranks know.
 *
 * Source: Ioffe & Szegedy 2015, "Batch normalization"; Chan, Golub, LeVeque 1983, "Algorithms for
 * computing the sample variance", for joining.
 */
#ifndef CPU_BATCH_NORM_H
#define CPU_BATCH_NORM_H
#include "cpu/update.h"

typedef struct BatchNorm {
    int n, c, hw; /* samples of the chunk, channels, positions */
    int ldx, ldy; /* fast: from a row of x, of y to the next, in reals; 0: c */
} BatchNorm;

RT_INLINE int norm_row(int ld, BatchNorm s)
{
    return ld ? ld : s.c;
}

enum { NORM_BLOCK_BYTES = 16 * 1024 };

/* Rows of a block: what half the first-level cache holds, at least 4. */
RT_INLINE int norm_block(BatchNorm s)
{
    const int rows = NORM_BLOCK_BYTES / (int)sizeof(real) / s.c;
    return rows < 4 ? 4 : rows > 256 ? 256 : rows;
}

/* Mean and m2 of `have` rows and of `more` rows become those of both. */
RT_INLINE void norm_join(vec *mean, vec *m2, vec mean_b, vec m2_b, real have, real more)
{
    const vec delta = mean_b - *mean;
    *mean = v_fma(delta, v_set(more / (have + more)), *mean);
    *m2 = v_fma(delta * delta, v_set(have * (more / (have + more))), *m2 + m2_b);
}

/* ----------------------------------------------------------------------------------- moments */

/* seen: samples of the slice that are in the moments already */
RT_INLINE void batch_moments_plain(real *moments, const real *x, int seen, BatchNorm s)
{
    const int64_t rows = (int64_t)s.n * s.hw, have = (int64_t)seen * s.hw;
    for (int c = 0; c < s.c; c++) {
        real mean = 0, m2 = 0;
        for (int64_t i = 0; i < rows; i++)
            mean += x[(i / s.hw * s.c + c) * s.hw + i % s.hw];
        mean /= (real)rows;
        for (int64_t i = 0; i < rows; i++) {
            const real d = x[(i / s.hw * s.c + c) * s.hw + i % s.hw] - mean;
            m2 += d * d;
        }
        const real delta = mean - moments[c], share = (real)rows / (real)(have + rows);
        moments[c] += delta * share;
        moments[s.c + c] += m2 + delta * delta * (real)have * share;
    }
}

/* The sum over the rows of x - mean, or of its square.  Four chains: one alone waits for its additions. */
RT_INLINE vec norm_sum(const real *x, vec mean, bool square, int rows, int ldx, int lanes)
{
    vec sum[4] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    int i = 0;
    for (; i + 4 <= rows; i += 4)
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const vec d = v_load_lanes(x + (int64_t)(i + k) * ldx, lanes) - mean;
            sum[k] = square ? v_fma(d, d, sum[k]) : sum[k] + d;
        }
    for (; i < rows; i++) {
        const vec d = v_load_lanes(x + (int64_t)i * ldx, lanes) - mean;
        sum[0] = square ? v_fma(d, d, sum[0]) : sum[0] + d;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

RT_INLINE void norm_block_moments(real *moments, const real *x, int rows, real have, int c, int ldx,
                                  int lanes)
{
    const vec mean = norm_sum(x, v_set(0), false, rows, ldx, lanes) * v_set((real)1 / (real)rows);
    const vec m2 = norm_sum(x, mean, true, rows, ldx, lanes);
    vec all = v_load_lanes(moments, lanes), all2 = v_load_lanes(moments + c, lanes);
    norm_join(&all, &all2, mean, m2, have, (real)rows);
    v_store_lanes(moments, all, lanes);
    v_store_lanes(moments + c, all2, lanes);
}

RT_INLINE void batch_moments(real *restrict moments, const real *restrict x, int seen, BatchNorm s)
{
    const int rows = s.n * s.hw, block = norm_block(s), ldx = norm_row(s.ldx, s);
    const int64_t have = (int64_t)seen * s.hw;
    for (int at = 0; at < rows; at += block, x += (int64_t)block * ldx) {
        const int count = rows - at < block ? rows - at : block;
        for (int c = 0; c < s.c; c += V)
            norm_block_moments(moments + c, x + c, count, (real)(have + at), s.c, ldx,
                               s.c - c < V ? s.c - c : V);
    }
}

/* -------------------------------------------------------------------------------- statistics */

/* Moments on their way up the tree: of `count` rows. */
typedef struct NormSum {
    vec mean, m2;
    real count;
} NormSum;

RT_INLINE void norm_push(NormSum *stack, int *depth, int i, NormSum x)
{
    for (; i & 1; i >>= 1) {
        NormSum a = stack[--*depth];
        norm_join(&a.mean, &a.m2, x.mean, x.m2, a.count, x.count);
        a.count += x.count;
        x = a;
    }
    stack[(*depth)++] = x;
}

RT_INLINE NormSum norm_finish(const NormSum *stack, int depth)
{
    NormSum x = stack[--depth];
    while (depth > 0) {
        NormSum a = stack[--depth];
        norm_join(&a.mean, &a.m2, x.mean, x.m2, a.count, x.count);
        a.count += x.count;
        x = a;
    }
    return x;
}

/* A shard's moments, channels c .. c + lanes: its slices as adjacent pairs.  count: rows a slice. */
RT_INLINE NormSum norm_shard(const char *moments, int64_t slice_bytes, int slices, real count,
                             int c, int channels, int lanes)
{
    NormSum stack[TREE_DEPTH];
    int depth = 0;
    for (int i = 0; i < slices; i++) {
        const real *m = (const real *)(moments + i * slice_bytes) + c;
        norm_push(stack, &depth, i,
                  (NormSum){v_load_lanes(m, lanes), v_load_lanes(m + channels, lanes), count});
    }
    return norm_finish(stack, depth);
}

/* What a shard has, for all ranks: its slices' moments joined, (2, C). */
RT_INLINE void batch_known(real *restrict y, const char *restrict moments, int64_t slice_bytes,
                           int slices, int64_t count, int channels)
{
    for (int c = 0; c < channels; c += V) {
        const int lanes = channels - c < V ? channels - c : V;
        const NormSum m = norm_shard(moments, slice_bytes, slices, (real)count, c, channels, lanes);
        v_store_lanes(y + c, m.mean, lanes);
        v_store_lanes(y + channels + c, m.m2, lanes);
    }
}

/* All shards' moments, channels c .. c + lanes: shards as adjacent pairs.  count: rows a slice. */
RT_INLINE NormSum norm_batch(const char *moments, int64_t slice_bytes, int slices,
                             int64_t shard_bytes, int shards, real count, int c, int channels,
                             int lanes)
{
    NormSum stack[TREE_DEPTH];
    int depth = 0;
    for (int s = 0; s < shards; s++)
        norm_push(stack, &depth, s,
                  norm_shard(moments + s * shard_bytes, slice_bytes, slices, count, c, channels,
                             lanes));
    return norm_finish(stack, depth);
}

/* moments: of the shard's first slice; or (sync) of the batch's first shard, its slices joined, and of all other shards. */
RT_INLINE void batch_statistics(real *restrict t, const char *restrict moments, int64_t slice_bytes,
                                int slices, int64_t shard_bytes, int shards, int64_t count,
                                real eps, int channels)
{
    for (int c = 0; c < channels; c += V) {
        const int lanes = channels - c < V ? channels - c : V;
        const NormSum all = norm_batch(moments, slice_bytes, slices, shard_bytes, shards,
                                       (real)count, c, channels, lanes);
        v_store_lanes(t + c, all.mean, lanes);
        v_store_lanes(t + channels + c, v_set(1) / v_sqrt(all.m2 / v_set(all.count) + v_set(eps)),
                      lanes);
    }
}

/* The sum of what a shard's slices, or (sync) all shards, left behind. */
RT_INLINE void batch_total(real *restrict t, const char *restrict sums, int64_t slice_bytes,
                           int slices, int64_t shard_bytes, int shards, int count)
{
    for (int i = 0; i < count; i += V) {
        const int lanes = count - i < V ? count - i : V;
        vec stack[TREE_DEPTH];
        int depth = 0;
        for (int s = 0; s < shards; s++)
            tree_push(stack, &depth, s,
                      tree_sum(sums + s * shard_bytes + i * (int64_t)sizeof(real), slice_bytes,
                               slices, lanes));
        v_store_lanes(t + i, tree_finish(stack, depth), lanes);
    }
}

/* ----------------------------------------------------------------------------------- forward */
RT_INLINE void batch_norm_plain(real *y, const real *x, const real *w, const real *b, const real *t,
                                BatchNorm s)
{
    for (int64_t i = 0; i < (int64_t)s.n * s.c * s.hw; i++) {
        const int c = (int)(i / s.hw % s.c);
        y[i] = (x[i] - t[c]) * (t[s.c + c] * w[c]) + b[c];
    }
}

/* Does something for every block of `rows` rows from `at` on and every group of `vectors` of channels from c on, of which
 * there are `lanes` in the last.  A row of at most `most` vectors is taken whole: its neighbours lie in neighbouring lines,
 * which the processor fetches ahead.  A vector at a time, rows of 32 to 128 channels went to and from memory half as fast,
 * on Zen 4; wider rows in groups of 2, 4 or 8 were no faster.  All layers of resnet56_cifar10 11.9 ms instead of 14.4. */
#ifdef RT_AVX512
enum { NORM_WIDE = 8 }; /* what leaves registers free: three constants a vector */
#else
enum { NORM_WIDE = 4 };
#endif
#define NORM_EACH(s, most, ...)                                                                    \
    for (int at = 0, block = norm_block(s); at < (s).n * (s).hw; at += block)                      \
        for (int c = 0, vectors = norm_vectors((s).c, most); c < (s).c; c += vectors * V) {        \
            const int lanes = vectors > 1 || (s).c - c > V ? V : (s).c - c;                        \
            const int rows = (s).n * (s).hw - at < block ? (s).n * (s).hw - at : block;            \
            const int64_t from = (int64_t)at * (s).c + c;                                          \
            const int64_t from_x = (int64_t)at * norm_row((s).ldx, s) + c;                         \
            (void)from, (void)from_x;                                                              \
            __VA_ARGS__                                                                            \
        }
RT_INLINE int norm_vectors(int channels, int most)
{
    return channels % V == 0 && channels <= most * V ? channels / V : 1;
}

/* A group's numbers of a row, or of a channel's own. */
RT_INLINE void norm_load(vec *r, const real *x, int vectors, int lanes)
{
    RT_UNROLL
    for (int k = 0; k < vectors; k++)
        r[k] = v_load_lanes(x + k * V, lanes);
}

/* y = act((x - mean) scale + shift + r); r (rows, c): a residual, or NULL */
RT_INLINE void norm_rows(real *restrict y, const real *restrict x, const real *restrict r,
                         const vec *mean, const vec *scale, const vec *shift, Act act, int rows,
                         int c, int ldx, int ldy, int vectors, int lanes)
{
    for (int64_t i = 0; i < rows; i++) {
        RT_UNROLL
        for (int k = 0; k < vectors; k++) {
            const vec z =
                v_fma(v_load_lanes(x + i * ldx + k * V, lanes) - mean[k], scale[k], shift[k]);
            v_store_lanes(y + i * ldy + k * V,
                          act(r ? z + v_load_lanes(r + i * c + k * V, lanes) : z), lanes);
        }
    }
}

/* r (n, hw, C): what is added behind the layer, before the activation; or NULL */
RT_INLINE void batch_norm(real *restrict y, const real *restrict x, const real *restrict w,
                          const real *restrict b, const real *restrict t, const real *restrict r,
                          Act act, BatchNorm s)
{
    NORM_EACH(s, NORM_WIDE, vec mean[NORM_WIDE]; vec scale[NORM_WIDE]; vec shift[NORM_WIDE];
              norm_load(mean, t + c, vectors, lanes); norm_load(shift, b + c, vectors, lanes);
              RT_UNROLL for (int k = 0; k < vectors; k++) scale[k] =
                  v_load_lanes(t + s.c + c + k * V, lanes) * v_load_lanes(w + c + k * V, lanes);
              norm_rows(y + (int64_t)at * norm_row(s.ldy, s) + c, x + from_x, r ? r + from : NULL,
                        mean, scale, shift, act, rows, s.c, norm_row(s.ldx, s), norm_row(s.ldy, s),
                        vectors, lanes);)
}

/* With the running averages instead of statistics. */
RT_INLINE void batch_norm_test_plain(real *y, const real *x, const real *w, const real *b,
                                     const real *mean, const real *var, real eps, BatchNorm s)
{
    for (int64_t i = 0; i < (int64_t)s.n * s.c * s.hw; i++) {
        const int c = (int)(i / s.hw % s.c);
        y[i] = (x[i] - mean[c]) * (w[c] / s_sqrt(var[c] + eps)) + b[c];
    }
}

RT_INLINE void batch_norm_test(real *restrict y, const real *restrict x, const real *restrict w,
                               const real *restrict b, const real *restrict mean,
                               const real *restrict var, Act act, real eps, BatchNorm s)
{
    NORM_EACH(s, NORM_WIDE, vec avg[NORM_WIDE]; vec scale[NORM_WIDE]; vec shift[NORM_WIDE];
              norm_load(avg, mean + c, vectors, lanes); norm_load(shift, b + c, vectors, lanes);
              RT_UNROLL for (int k = 0; k < vectors; k++) scale[k] =
                  v_load_lanes(w + c + k * V, lanes) /
                  v_sqrt(v_load_fill(var + c + k * V, lanes, 1) + v_set(eps));
              norm_rows(y + (int64_t)at * norm_row(s.ldy, s) + c, x + from_x, NULL, avg, scale,
                        shift, act, rows, s.c, norm_row(s.ldx, s), norm_row(s.ldy, s), vectors,
                        lanes);)
}

/* Evaluation's batch_norm inside the convolution before it: w' = w s, s = scale / sqrt(var + eps), a filter of `each`
 * numbers an output; unit of `units` makes its share of them. */
RT_INLINE void batch_fold(real *restrict y, const real *restrict w, const real *restrict scale,
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
RT_INLINE void batch_fold_bias(real *restrict y, const real *restrict scale,
                               const real *restrict shift, const real *restrict mean,
                               const real *restrict var, const real *restrict bias, real eps,
                               int outputs)
{
    for (int o = 0; o < outputs; o++)
        y[o] = shift[o] + ((bias ? bias[o] : 0) - mean[o]) * (scale[o] / s_sqrt(var[o] + eps));
}

/* ---------------------------------------------------------------------------------- backward */

/* dw += sum over the rows of dy (x - mean) rstd */
RT_INLINE void batch_norm_dw_plain(real *dw, const real *dy, const real *x, const real *t,
                                   BatchNorm s)
{
    for (int64_t i = 0; i < (int64_t)s.n * s.c * s.hw; i++) {
        const int c = (int)(i / s.hw % s.c);
        dw[c] += dy[i] * (x[i] - t[c]) * t[s.c + c];
    }
}

/* sum[k] of dy (x - mean) over rows */
RT_INLINE void norm_dw_rows(vec *sum, const real *restrict dy, const real *restrict x,
                            const vec *mean, int rows, int c, int ldx, int vectors, int lanes)
{
    RT_UNROLL
    for (int k = 0; k < vectors; k++)
        sum[k] = v_set(0);
    for (int i = 0; i < rows; i++, dy += c, x += ldx) {
        RT_UNROLL
        for (int k = 0; k < vectors; k++)
            sum[k] = v_fma(v_load_lanes(dy + k * V, lanes),
                           v_load_lanes(x + k * V, lanes) - mean[k], sum[k]);
    }
}

RT_INLINE void batch_norm_dw(real *restrict dw, const real *restrict dy, const real *restrict x,
                             const real *restrict t, BatchNorm s)
{
    NORM_EACH(s, NORM_WIDE, vec mean[NORM_WIDE]; vec sum[NORM_WIDE];
              norm_load(mean, t + c, vectors, lanes);
              norm_dw_rows(sum, dy + from, x + from_x, mean, rows, s.c, norm_row(s.ldx, s), vectors,
                           lanes);
              RT_UNROLL for (int k = 0; k < vectors; k++)
                  v_store_lanes(dw + c + k * V,
                                v_fma(sum[k], v_load_lanes(t + s.c + c + k * V, lanes),
                                      v_load_lanes(dw + c + k * V, lanes)),
                                lanes);)
}

/* dx = w rstd (dy - db / count - (x - mean) rstd dw / count), with dw, db of everything that the
 * statistics were taken over: count rows. */
RT_INLINE void batch_norm_dx_plain(real *dx, const real *dy, const real *x, const real *w,
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
RT_INLINE void norm_dx_rows(real *restrict dx, const real *restrict dy, const real *restrict x,
                            const vec *mean, const vec *scale, const vec *slope, const vec *shift,
                            int rows, int c, int ldx, int vectors, int lanes)
{
    for (int i = 0; i < rows; i++, dx += c, dy += c, x += ldx) {
        RT_UNROLL
        for (int k = 0; k < vectors; k++)
            v_store_lanes(dx + k * V,
                          v_fma(scale[k], v_load_lanes(dy + k * V, lanes),
                                v_fma(slope[k], mean[k] - v_load_lanes(x + k * V, lanes),
                                      -shift[k])),
                          lanes);
    }
}

RT_INLINE void batch_norm_dx(real *restrict dx, const real *restrict dy, const real *restrict x,
                             const real *restrict w, const real *restrict t,
                             const real *restrict dw, const real *restrict db, int64_t count,
                             BatchNorm s)
{
    const vec share = v_set((real)1 / (real)count); /* four constants a vector: half as wide */
    NORM_EACH(
        s, NORM_WIDE / 2, vec mean[NORM_WIDE]; vec scale[NORM_WIDE]; vec slope[NORM_WIDE];
        vec shift[NORM_WIDE]; norm_load(mean, t + c, vectors, lanes);
        RT_UNROLL for (int k = 0; k < vectors; k++) {
            const int o = c + k * V;
            const vec rstd = v_load_lanes(t + s.c + o, lanes);
            scale[k] = v_load_lanes(w + o, lanes) * rstd;
            slope[k] = scale[k] * rstd * (v_load_lanes(dw + o, lanes) * share);
            shift[k] = scale[k] * (v_load_lanes(db + o, lanes) * share);
        } norm_dx_rows(dx + from, dy + from, x + from_x, mean, scale, slope, shift, rows, s.c,
                       norm_row(s.ldx, s), vectors, lanes);)
}

/* -------------------------------------------------------------------------- running averages */

/* What running averages take from a batch of `shards` shards: sums over the shards of the mean and
 * of the unbiased variance. */
RT_INLINE void norm_averages(vec sum[2], const Rt *r, const char *moments, int64_t slice_bytes,
                             int slices, int64_t count, int c, int channels, int lanes)
{
    vec stack[2][TREE_DEPTH];
    int depth[2] = {0, 0};
    for (int s = 0; s < r->shards; s++) {
        const NormSum m = norm_shard(moments + s * r->shard_bytes, slice_bytes, slices, (real)count,
                                     c, channels, lanes);
        const real less = m.count > 1 ? m.count - 1 : 1;
        tree_push(stack[0], &depth[0], s, m.mean);
        tree_push(stack[1], &depth[1], s, m.m2 / v_set(less));
    }
    sum[0] = tree_finish(stack[0], depth[0]);
    sum[1] = tree_finish(stack[1], depth[1]);
}

RT_INLINE void norm_keep(real *to, vec sum, real shards, real keep, int lanes)
{
    v_store_lanes(to, v_fma(v_set(keep), v_load_lanes(to, lanes), v_set((1 - keep) / shards) * sum),
                  lanes);
}

/* mean = keep mean + (1 - keep) m, m the average of the shards' means; var likewise.  Channels of
 * this unit; with r->grad the shards' sums go there instead, for batch_record_grad to use after the
 * reduction.  moments: of the first slice of the first shard; count: rows a slice. */
RT_INLINE void batch_record(const Rt *r, int unit, int units, int64_t grad, real *mean, real *var,
                            const char *moments, int64_t slice_bytes, int slices, int64_t count,
                            int all_shards, real keep, int channels)
{
    int64_t c;
    const int64_t end = update_range(channels, unit, units, &c);
    for (; c < end; c += V) {
        const int lanes = end - c < V ? (int)(end - c) : V;
        vec sum[2];
        norm_averages(sum, r, moments, slice_bytes, slices, count, (int)c, channels, lanes);
        if (r->grad) {
            v_store_lanes((real *)(r->grad + grad) + c, sum[0], lanes);
            v_store_lanes((real *)(r->grad + grad) + channels + c, sum[1], lanes);
        } else {
            norm_keep(mean + c, sum[0], (real)all_shards, keep, lanes);
            norm_keep(var + c, sum[1], (real)all_shards, keep, lanes);
        }
    }
}

RT_INLINE void batch_record_grad(const Rt *r, int unit, int units, int64_t grad, real *mean,
                                 real *var, int all_shards, real keep, int channels)
{
    const real *sum = (const real *)(r->grad + grad);
    int64_t c;
    const int64_t end = update_range(channels, unit, units, &c);
    for (; c < end; c += V) {
        const int lanes = end - c < V ? (int)(end - c) : V;
        norm_keep(mean + c, v_load_lanes(sum + c, lanes), (real)all_shards, keep, lanes);
        norm_keep(var + c, v_load_lanes(sum + channels + c, lanes), (real)all_shards, keep, lanes);
    }
}

/* The same of the whole batch's one mean and variance (sync), from what all ranks know: a row of (2, C) a shard, of `count`
 * rows of x each.  With the fused update, or (after) when a reduction stands between. */
RT_INLINE void batch_record_known(const Rt *r, int unit, int units, bool after, real *mean,
                                  real *var, const char *known, int shards, int64_t count,
                                  real keep, int channels)
{
    int64_t c;
    const int64_t end = update_range(channels, unit, units, &c);
    if ((r->grad != NULL) != after)
        return;
    for (; c < end; c += V) {
        const int lanes = end - c < V ? (int)(end - c) : V;
        const NormSum m = norm_batch(known, 0, 1, 2 * channels * (int64_t)sizeof(real), shards,
                                     (real)count, (int)c, channels, lanes);
        norm_keep(mean + c, m.mean, 1, keep, lanes);
        norm_keep(var + c, m.m2 / v_set(m.count - 1), 1, keep, lanes);
    }
}

#endif
