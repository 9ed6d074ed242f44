/* batch_record.h -- the running averages of batch_norm, which evaluation uses as statistics.
 *
 *   mean = keep mean + (1 - keep) m     m: the average of the shards' means; var likewise
 */
#ifndef CPU_BATCH_RECORD_H
#define CPU_BATCH_RECORD_H
#include "cpu/batch_moments.h"

/* Computes sum[0], sum[1]: the sums over the shards of the mean and of the unbiased variance,
 * channels c .. c + lanes - 1. */
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

/* mean = keep mean + (1 - keep) m, m the average of the shards' means; var likewise.  Updates the
 * channels of this unit.  If r->grad is set, the sums over the shards go there instead, and
 * batch_record_grad uses them after the reduction.  moments: of the first slice of the first shard;
 * count: rows a slice. */
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

/* The same with mean and variance of the whole batch (sync).  known: rows of moments, (2, C) for
 * each shard of `count` rows of x, which all ranks have.  Runs with the fused update, or, if
 * `after`, after a reduction. */
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
