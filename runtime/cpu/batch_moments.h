/* batch_moments.h -- mean and variance for batch_norm: of a slice, of a shard, of the batch.
 *
 *   moments (2, C)     mean, and sum of (x - mean)^2 ("m2"), of the rows seen so far
 *   statistics (2, C)  mean, rstd = 1 / sqrt(m2 / count + eps), of the shard
 *
 * Moments are computed in blocks of rows that stay in the L1 cache.  Each block has its own mean,
 * and blocks are combined pairwise: one pass over memory, as exact as two.  In --plain programs x
 * is (n, C, hw).
 *
 * Statistics of the whole batch (sync) are made from a row of moments for each shard, which all
 * ranks exchange.
 *
 * Source: Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance".
 */
#ifndef CPU_BATCH_MOMENTS_H
#define CPU_BATCH_MOMENTS_H
#include "cpu/team.h"
#include "cpu/update.h"

/* In a bf16 program, values of samples are real or bf16. */
#ifdef RT_BF16
typedef void NormValue;
#define NORM_HALF(s, value) (s).half_##value
#else
typedef real NormValue;
#define NORM_HALF(s, value) false
#endif

typedef struct BatchNorm {
    int n, c, hw; /* samples of the chunk, channels, positions */
    int ldx, ldy; /* fast kernels: reals from a row of x, of y to the next; 0: c */
#ifdef RT_BF16
    bool half_x, half_y, half_r; /* these are bf16: x; y or dy; the residual or dx */
#endif
} BatchNorm;

RT_INLINE int norm_row(int ld, BatchNorm s)
{
    return ld ? ld : s.c;
}

enum { NORM_BLOCK_BYTES = 16 * 1024 };

/* Rows of a block: they fill half of the L1 cache; from 4 to 256. */
RT_INLINE int norm_block(BatchNorm s)
{
    const int rows = NORM_BLOCK_BYTES / (int)sizeof(real) / s.c;
    return rows < 4 ? 4 : rows > 256 ? 256 : rows;
}

/* Combines mean and m2 of `have` rows with those of `more` rows. */
RT_INLINE void norm_join(vec *mean, vec *m2, vec mean_b, vec m2_b, real have, real more)
{
    const vec delta = mean_b - *mean;
    *mean = v_fma(delta, v_set(more / (have + more)), *mean);
    *m2 = v_fma(delta * delta, v_set(have * (more / (have + more))), *m2 + m2_b);
}

/* ----------------------------------------------------------------------------------- moments */

/* Adds n samples to the moments.  seen: samples of the slice that the moments already contain. */
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

/* The sum over the rows of x - mean, or of its square.  Four independent sums, because one alone
 * waits for the latency of its additions. */
RT_INLINE vec norm_sum(const NormValue *x, bool half, int64_t at, vec mean, bool square, int rows,
                       int ldx, int lanes)
{
    vec sum[4] = {v_set(0), v_set(0), v_set(0), v_set(0)};
    int i = 0;
    for (; i + 4 <= rows; i += 4)
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++) {
            const vec d = v_load_number(x, half, at + (int64_t)(i + k) * ldx, lanes) - mean;
            sum[k] = square ? v_fma(d, d, sum[k]) : sum[k] + d;
        }
    for (; i < rows; i++) {
        const vec d = v_load_number(x, half, at + (int64_t)i * ldx, lanes) - mean;
        sum[0] = square ? v_fma(d, d, sum[0]) : sum[0] + d;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Adds a block with the moments (mean, m2) to moments of `have` rows. */
RT_INLINE void norm_add_moments(real *moments, vec mean, vec m2, int rows, real have, int c,
                                int lanes)
{
    vec all = v_load_lanes(moments, lanes), all2 = v_load_lanes(moments + c, lanes);
    norm_join(&all, &all2, mean, m2, have, (real)rows);
    v_store_lanes(moments, all, lanes);
    v_store_lanes(moments + c, all2, lanes);
}

RT_INLINE vec norm_mean(const NormValue *x, bool half, int64_t at, int rows, int ldx, int lanes)
{
    return norm_sum(x, half, at, v_set(0), false, rows, ldx, lanes) * v_set((real)1 / (real)rows);
}

RT_INLINE void norm_block_moments(real *moments, const NormValue *x, bool half, int64_t at,
                                  int rows, real have, int c, int ldx, int lanes)
{
    const vec mean = norm_mean(x, half, at, rows, ldx, lanes);
    norm_add_moments(moments, mean, norm_sum(x, half, at, mean, true, rows, ldx, lanes), rows, have,
                     c, lanes);
}

/* Few channels leave members of a team without work.  Then members share blocks of rows: each
 * computes the values of its blocks into a room of the first member; after a barrier, each adds the
 * values of its channels, block by block, in the same order as one thread does.  The room has two
 * halves in turn, so that one barrier for each group of blocks is enough. */
enum { NORM_ROOM = 64 * 1024 / sizeof(real) };

RT_INLINE bool norm_together(BatchNorm s)
{
    return __builtin_expect(rt_team.of > 1, 0) && (s.c + V - 1) / V < 2 * rt_team.of &&
           (s.c + V - 1) / V % rt_team.of != 0;
}

/* A group of blocks, first .. first + count - 1, with at most `values` x C reals for each block;
 * and the member's part of the table of these blocks by vectors of channels. */
typedef struct NormGroup {
    int first, count;
    real *room; /* (count, values, C) */
    TeamRange blocks, vectors;
} NormGroup;

RT_INLINE NormGroup norm_group(real *room, int first, int blocks, int values, BatchNorm s)
{
    const int most = NORM_ROOM / (values * s.c) > 1 ? NORM_ROOM / (values * s.c) : 1,
              count = blocks - first < most ? blocks - first : most;
    const RtGrid g = team_grid(count, (s.c + V - 1) / V);
    return (NormGroup){first, count, room + first / most % 2 * NORM_ROOM, team_rows(g, count),
                       team_columns(g, (s.c + V - 1) / V)};
}

/* Statements for each block `b` of the member's part of a group and each vector of channels from
 * `c` on. */
#define NORM_GROUP_EACH(g_, s_, ...)                                                               \
    for (int b = (int)(g_).blocks.first; b < (g_).blocks.end; b++)                                 \
        for (int c = (int)(g_).vectors.first * V; c < (s_).c && c < (g_).vectors.end * V;          \
             c += V) {                                                                             \
            const int lanes = (s_).c - c < V ? (s_).c - c : V;                                     \
            __VA_ARGS__;                                                                           \
        }
/* Statements for each vector of the member's channels, and in it for each block of the group. */
#define NORM_GROUP_ADD(g_, s_, ...)                                                                \
    TEAM_FOR(v, ((s_).c + V - 1) / V)                                                              \
        for (int b = 0; b < (g_).count; b++) {                                                     \
            const int c = v * V, lanes = (s_).c - c < V ? (s_).c - c : V;                          \
            __VA_ARGS__;                                                                           \
        }

RT_INLINE void batch_moments_together(real *moments, const NormValue *x, int64_t have, BatchNorm s)
{
    real own[2 * NORM_ROOM] __attribute__((aligned(64)));
    real *const room = team_scratch(own, true);
    const int rows = s.n * s.hw, block = norm_block(s), ldx = norm_row(s.ldx, s),
              blocks = (rows + block - 1) / block;
    for (int first = 0, count; first < blocks; first += count) {
        const NormGroup g = norm_group(room, first, blocks, 2, s);
        count = g.count;
        NORM_GROUP_EACH(g, s, const int at = (first + b) * block;
                        const int some = rows - at < block ? rows - at : block;
                        const vec mean =
                            norm_mean(x, NORM_HALF(s, x), (int64_t)at * ldx + c, some, ldx, lanes);
                        real *const to = g.room + 2 * b * s.c + c; v_store_lanes(to, mean, lanes);
                        v_store_lanes(to + s.c,
                                      norm_sum(x, NORM_HALF(s, x), (int64_t)at * ldx + c, mean,
                                               true, some, ldx, lanes),
                                      lanes))
        TEAM_BARRIER;
        NORM_GROUP_ADD(g, s, const int at = (first + b) * block;
                       const real *const from = g.room + 2 * b * s.c + c;
                       norm_add_moments(moments + c, v_load_lanes(from, lanes),
                                        v_load_lanes(from + s.c, lanes),
                                        rows - at < block ? rows - at : block, (real)(have + at),
                                        s.c, lanes))
    }
    TEAM_BARRIER;
}

RT_INLINE void batch_moments(real *restrict moments, const NormValue *restrict x, int seen,
                             BatchNorm s)
{
    const int rows = s.n * s.hw, block = norm_block(s), ldx = norm_row(s.ldx, s);
    const int64_t have = (int64_t)seen * s.hw;
    if (norm_together(s)) {
        batch_moments_together(moments, x, have, s);
        return;
    }
    const TeamRange part = team_range((s.c + V - 1) / V);
    for (int at = 0; at < rows; at += block) {
        const int count = rows - at < block ? rows - at : block;
        for (int c = (int)part.first * V; c < s.c && c < part.end * V; c += V)
            norm_block_moments(moments + c, x, NORM_HALF(s, x), (int64_t)at * ldx + c, count,
                               (real)(have + at), s.c, ldx, s.c - c < V ? s.c - c : V);
    }
}

/* -------------------------------------------------------------------------------- statistics */

/* A node of the tree of moments: `count` rows, V channels. */
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

/* Moments of a shard, channels c .. c + lanes - 1: its slices as adjacent pairs.  count: rows a
 * slice. */
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

/* Computes the row of moments, (2, C), that this shard contributes: the combined moments of its
 * slices. */
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

/* Moments of all shards, channels c .. c + lanes - 1: shards as adjacent pairs.  count: rows a
 * slice. */
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

/* Statistics t (2, C).  moments: of the shard's first slice; with sync, the row of moments of the
 * batch's first shard, which those of the other shards follow. */
RT_INLINE void batch_statistics(real *restrict t, const char *restrict moments, int64_t slice_bytes,
                                int slices, int64_t shard_bytes, int shards, int64_t count,
                                real eps, int channels)
{
    const TeamRange part = team_range((channels + V - 1) / V);
    for (int c = (int)part.first * V; c < channels && c < part.end * V; c += V) {
        const int lanes = channels - c < V ? channels - c : V;
        const NormSum all = norm_batch(moments, slice_bytes, slices, shard_bytes, shards,
                                       (real)count, c, channels, lanes);
        v_store_lanes(t + c, all.mean, lanes);
        v_store_lanes(t + channels + c, v_set(1) / v_sqrt(all.m2 / v_set(all.count) + v_set(eps)),
                      lanes);
    }
}

/* Adds the sums that the slices of a shard, or with sync all shards, have stored. */
RT_INLINE void batch_total(real *restrict t, const char *restrict sums, int64_t slice_bytes,
                           int slices, int64_t shard_bytes, int shards, int count)
{
    const TeamRange part = team_range((count + V - 1) / V);
    for (int i = (int)part.first * V; i < count && i < part.end * V; i += V) {
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

#endif
