/* batch_norm.cuh -- batch_norm: statistics over a shard, the layer, its gradients, running
 * averages.
 *
 *   x (N, C, HW), or last: (N, HW, C)   w, b (C), or a Constant
 *   moments (2, C): mean, sum of squared differences   t (2, C): mean, 1 / sqrt(variance + eps)
 *
 * Statistics of the whole batch (sync) are made from a row of moments (2, C) for each shard in
 * `fixed`, which all ranks exchange.
 *
 * Names, arguments and formulas are those of runtime/cpu/batch_norm.h.  A block takes a channel and
 * reads it twice: first for the mean, then for the differences from the mean.  If channels are
 * innermost, sums are column sums (columns.cuh) in two launches, and numbers are read once.
 */
#ifndef CUDA_BATCH_NORM_CUH
#define CUDA_BATCH_NORM_CUH

struct BatchNorm {
    int n, c, hw;
    bool last;
};

/* Offset of row i of channel c; rows are the positions of all images. */
DEVICE int64_t norm_at(BatchNorm s, int c, int i)
{
    return ((int64_t)(i / s.hw) * s.c + c) * s.hw + i % s.hw;
}
/* The channel of element i. */
DEVICE int norm_channel(BatchNorm s, int i)
{
    return s.last ? i % s.c : i / s.hw % s.c;
}

/* Whether a thread takes packs: PACK channels of a row. */
SIZE bool norm_packed(BatchNorm s)
{
    return s.last && s.c % PACK == 0;
}

/* ------------------------------------------------------------------------------- statistics */

struct Moments {
    Parts<real> parts;
    real mean;
};

SIZE int batch_moments_blocks(BatchNorm s)
{
    return s.c;
}
template <class X> DEVICE void batch_moments(real *moments, const X *x, BatchNorm s, bool)
{
    SHARED(Moments, m);
    const int rows = s.n * s.hw;
    FOR_BLOCKS(c, s.c) {
        real sum = 0, m2 = 0;
        const auto load = [=](int i) { return (real)x[norm_at(s, c, i)]; };
        load_shares(rows, load, [&](real one) { sum += one; });
        sum = block_sum(m.parts, sum);
        if (threadIdx.x == 0)
            m.mean = sum / (real)rows;
        block_sync(); /* all threads need the mean */
        const real mean = m.mean;
        load_shares(rows, load, [&](real one) {
            const real d = one - mean;
            m2 = s_fma(d, d, m2);
        });
        m2 = block_sum(m.parts, m2);
        if (threadIdx.x == 0)
            moments[c] = mean, moments[s.c + c] = m2;
    }
}

/* With `last`, first launch: sums of differences from the channel's first number, and of their
 * squares. */
template <class X> DEVICE void batch_moments_parts(real *part, const X *x, BatchNorm s, int parts)
{
    const int64_t rows = (int64_t)s.n * s.hw;
    const auto add = [](real d, real(&sum)[2]) { sum[0] += d, sum[1] = s_fma(d, d, sum[1]); };
    if (norm_packed(s) && pack_aligned(x))
        column_pack_parts<2>(
            part, s.c, rows, parts, [=](int c) { return pack_read(x, c); },
            [=](int64_t row, int c) { return pack_read(x, row * s.c + c); },
            [=](const Pack<X> &first, const Pack<X> &one, int i, real(&sum)[2]) {
                add((real)one.at[i] - (real)first.at[i], sum);
            });
    else
        column_parts<2>(
            part, s.c, rows, parts,
            [=](int64_t row, int c) { return (real)x[row * s.c + c] - (real)x[c]; }, add);
}
/* With `last`, second launch: computes the moments from these sums. */
template <class X>
DEVICE void batch_moments_join(real *moments, const real *part, const X *x, BatchNorm s, int parts)
{
    const real rows = (real)s.n * (real)s.hw;
    column_join<2>(part, s.c, parts, [=](int c, const real(&sum)[2]) {
        const real m2 = sum[1] - sum[0] * (sum[0] / rows);
        moments[c] = (real)x[c] + sum[0] / rows, moments[s.c + c] = m2 > 0 ? m2 : 0;
    });
}

/* Moments from the sums of a shard's numbers and of their squares, which a convolution has computed
 * (cuDNN's genstats, in tf32, bf16 and f16 only).  If the mean is r deviations from 0, the variance
 * loses r^2 2^-24 of its value.  The rounding of the convolution's factors, 2^-11 of a number in
 * tf32, changes the numbers themselves by r 2^-11 deviations, which is more up to r = 2^13. */
DEVICE void batch_moments_sums(real *moments, const real *sums, const real *squares, int64_t rows,
                               int channels)
{
    FOR_EACH(c, channels) {
        const real mean = sums[c] / (real)rows, m2 = squares[c] - sums[c] * mean;
        moments[c] = mean, moments[channels + c] = m2 > 0 ? m2 : 0;
    }
}

/* The row of moments that this shard contributes. */
SIZE int batch_known_blocks(int64_t, int channels)
{
    return each_blocks(2 * channels);
}
DEVICE void batch_known(real *y, const real *moments, int64_t, int channels)
{
    FOR_EACH(i, 2 * channels)
        y[i] = moments[i];
}

/* A node of the tree of moments: `count` rows. */
struct NormSum {
    real mean, m2, count;
};

DEVICE NormSum norm_join(NormSum a, NormSum b)
{
    const real delta = b.mean - a.mean, all = a.count + b.count, share = b.count / all;
    return {s_fma(delta, share, a.mean), s_fma(delta * delta, a.count * share, a.m2 + b.m2), all};
}

/* Joins the moments of channel c over all shards, as adjacent pairs.  The moments of two shards are
 * `bytes` apart.  count: rows a shard. */
DEVICE NormSum norm_batch(const real *moments, int64_t bytes, int shards, int64_t count, int c,
                          int channels)
{
    return tree_joined<NormSum>(
        shards,
        [=](int i) {
            const real *m = (const real *)((const char *)moments + i * bytes) + c;
            return NormSum{m[0], m[channels], (real)count};
        },
        norm_join);
}

/* moments: of the shard; with sync, of the batch's first shard, followed by those of all other
 * shards. */
SIZE int batch_statistics_blocks(int64_t, int, int64_t, double, int channels)
{
    return channels;
}
DEVICE void batch_statistics(real *t, const real *moments, int64_t bytes, int shards, int64_t count,
                             double eps, int channels)
{
    FOR_CHANNELS(c, channels) {
        const NormSum all = norm_batch(moments, bytes, shards, count, c, channels);
        t[c] = all.mean;
        t[channels + c] = 1 / s_sqrt(all.m2 / all.count + (real)eps);
    }
    block_sync(); /* batch_norm_dw reads its channels' statistics in this block */
}

/* The sum over the samples of the shard, or with sync over all shards. */
SIZE int batch_total_blocks(int64_t, int, int count)
{
    return each_blocks(count);
}
DEVICE void batch_total(real *t, const real *sum, int64_t bytes, int shards, int count)
{
    FOR_EACH(k, count)
        t[k] = tree_sum(shards, [=](int i) {
            return *(const real *)((const char *)(sum + k) + i * bytes);
        });
}

/* ------------------------------------------------------------------------------- forward */

/* The least number of blocks whose threads take packs of whole rows. */
SIZE int norm_row_blocks(int packs)
{
    const int power = packs & -packs; /* the largest power of 2 that divides packs */
    return packs / (power < THREADS ? power : (int)THREADS);
}
/* The number of blocks.  If threads take packs, each has about 4 packs, or more in a large value.
 * All packs of a thread have the same channels, because the stride is a multiple of a row. */
SIZE int batch_norm_blocks(BatchNorm s)
{
    const int numbers = s.n * s.c * s.hw;
    if (!norm_packed(s))
        return each_blocks(numbers);
    const int unit = norm_row_blocks(s.c / PACK);
    return ceil_div(each_blocks(ceil_div(numbers, 4 * PACK)), unit) * unit;
}
/* Calls write(i, read(i)) for the packs of a thread. */
template <int AHEAD, class Read, class Write>
DEVICE void norm_packs(BatchNorm s, Read read, Write write)
{
    for_packs<AHEAD>(s.n * s.hw * (s.c / PACK), batch_norm_blocks(s) * THREADS, read, write);
}
/* The first channel of the packs of a thread. */
DEVICE int norm_pack_channel(BatchNorm s)
{
    return (blockIdx.x * THREADS + threadIdx.x) % (s.c / PACK) * PACK;
}

/* The operations that pass epilogue has appended: adds r (nullptr: nothing), then relu. */
template <class R> DEVICE real norm_then(real y, const R *r, int i, bool relu)
{
    y += (real)r[i];
    return relu ? s_relu(y) : y;
}
DEVICE real norm_then(real y, decltype(nullptr), int, bool relu)
{
    return relu ? s_relu(y) : y;
}

/* y = (x - mean) scale + shift, then norm_then, for packs. mean, scale, shift: those of the
 * thread's channels. */
struct NormTerms {
    Pack<real> mean, scale, shift;
};
template <class Y, class X, class R>
DEVICE void norm_then_packs(Y *y, const X *x, R r, const NormTerms &t, BatchNorm s, bool relu)
{
    struct Read {
        Pack<X> x;
        decltype(pack_read(r, 0)) and_r;
    };
    norm_packs<sizeof(X) == 2 ? 4 : 2>(
        s,
        [=](int i) {
            return Read{pack_read(x, i), pack_read(r, i)};
        },
        [=](int i, const Read &from) {
            Pack<Y> to;
            RT_UNROLL
            for (int k = 0; k < PACK; k++)
                to.at[k] =
                    norm_then(s_fma(from.x.at[k] - t.mean.at[k], t.scale.at[k], t.shift.at[k]),
                              from.and_r.at, k, relu);
            pack_write(y, i, to);
        });
}

SIZE int batch_norm_then_blocks(BatchNorm s, bool)
{
    return batch_norm_blocks(s);
}
template <class Y, class X, class W, class B, class R>
DEVICE void batch_norm_then(Y *y, const X *x, W w, B b, const real *t, R r, BatchNorm s, bool relu)
{
    if (norm_packed(s) && packs_aligned(y, x, w, b, t, r)) {
        const int c = norm_pack_channel(s);
        NormTerms terms = {pack_read(t, c), pack_read(t, s.c + c), pack_read(b, c)};
        const Pack<real> scale = pack_read(w, c);
        RT_UNROLL
        for (int k = 0; k < PACK; k++)
            terms.scale.at[k] *= scale.at[k];
        norm_then_packs(y, x, r, terms, s, relu);
        return;
    }
    FOR_EACH(i, s.n * s.c * s.hw) {
        const int c = norm_channel(s, i);
        y[i] = norm_then(s_fma(x[i] - t[c], t[s.c + c] * w[c], b[c]), r, i, relu);
    }
}
template <class Y, class X, class W, class B>
DEVICE void batch_norm(Y *y, const X *x, W w, B b, const real *t, BatchNorm s)
{
    batch_norm_then(y, x, w, b, t, nullptr, s, false);
}

/* The layer with running averages instead of statistics. */
SIZE int batch_norm_test_then_blocks(double, BatchNorm s, bool)
{
    return batch_norm_blocks(s);
}
template <class Y, class X, class W, class B, class R>
DEVICE void batch_norm_test_then(Y *y, const X *x, W w, B b, const real *mean, const real *var, R r,
                                 double eps, BatchNorm s, bool relu)
{
    if (norm_packed(s) && packs_aligned(y, x, w, b, mean, var, r)) {
        const int c = norm_pack_channel(s);
        NormTerms terms = {pack_read(mean, c), pack_read(w, c), pack_read(b, c)};
        const Pack<real> variance = pack_read(var, c);
        RT_UNROLL
        for (int k = 0; k < PACK; k++)
            terms.scale.at[k] = terms.scale.at[k] / s_sqrt(variance.at[k] + (real)eps);
        norm_then_packs(y, x, r, terms, s, relu);
        return;
    }
    FOR_EACH(i, s.n * s.c * s.hw) {
        const int c = norm_channel(s, i);
        y[i] =
            norm_then(s_fma(x[i] - mean[c], w[c] / s_sqrt(var[c] + (real)eps), b[c]), r, i, relu);
    }
}

SIZE int batch_norm_test_blocks(double, BatchNorm s)
{
    return batch_norm_blocks(s);
}
template <class Y, class X, class W, class B>
DEVICE void batch_norm_test(Y *y, const X *x, W w, B b, const real *mean, const real *var,
                            double eps, BatchNorm s)
{
    batch_norm_test_then(y, x, w, b, mean, var, nullptr, eps, s, false);
}

/* Folds batch_norm of an evaluation into the weights of the convolution before it: w' = w s with
 * s = scale / sqrt(var + eps).  A filter has `each` weights. */
SIZE int batch_fold_blocks(double, int outputs, int each)
{
    return each_blocks(outputs * each);
}
template <class Y, class S>
DEVICE void batch_fold(Y *y, const real *w, S scale, const real *var, double eps, int outputs,
                       int each)
{
    FOR_EACH(i, outputs * each) {
        const int o = i / each;
        y[i] = w[i] * (scale[o] / s_sqrt(var[o] + (real)eps));
    }
}

DEVICE real fold_bias(const real *bias, int o)
{
    return bias[o];
}
DEVICE real fold_bias(decltype(nullptr), int)
{
    return 0;
}
/* batch_fold with zeros after the c channels of each tap: a filter's `each` numbers are taps of
 * `lanes` numbers. */
SIZE int batch_fold_padded_blocks(double, int outputs, int each, int, int)
{
    return each_blocks(outputs * each);
}
template <class Y, class S>
DEVICE void batch_fold_padded(Y *y, const real *w, S scale, const real *var, double eps,
                              int outputs, int each, int c, int lanes)
{
    FOR_EACH(i, outputs * each) {
        const int o = i / each, k = i % lanes;
        y[i] = k < c ? w[i / lanes * c + k] * (scale[o] / s_sqrt(var[o] + (real)eps)) : 0;
    }
}
/* b' = shift + (bias - mean) s; bias may be nullptr */
SIZE int batch_fold_bias_blocks(double, int outputs)
{
    return each_blocks(outputs);
}
template <class Y, class S, class B, class C>
DEVICE void batch_fold_bias(Y *y, S scale, B shift, const real *mean, const real *var, C bias,
                            double eps, int outputs)
{
    FOR_EACH(o, outputs)
        y[o] = shift[o] + (fold_bias(bias, o) - mean[o]) * (scale[o] / s_sqrt(var[o] + (real)eps));
}

/* ------------------------------------------------------------------------------- backward */

/* dw = sum over the rows of dy (x - mean) rstd; added to dw unless `write`. */
SIZE int batch_norm_dw_blocks(BatchNorm s)
{
    return sum_blocks(s.c);
}
template <class D, class X>
DEVICE void batch_norm_dw(real *dw, const D *dy, const X *x, const real *t, BatchNorm s, bool write)
{
    block_sums(
        s.c, s.n * s.hw,
        [=](int c, int i) { return dy[norm_at(s, c, i)] * (x[norm_at(s, c, i)] - t[c]); },
        [=](int c, real sum) { dw[c] = (write ? 0 : dw[c]) + sum * t[s.c + c]; });
}

/* With `last`: dw, and db = sum over the rows of dy if db is not nullptr. */
struct NormRow {
    real d, x; /* x: difference from the mean */
};
template <class D, class X> struct NormPacks {
    Pack<D> d;
    Pack<X> x;
};
template <class D, class X>
DEVICE void batch_norm_dw_parts(real *part, const D *dy, const X *x, const real *t, BatchNorm s,
                                int parts)
{
    const int64_t rows = (int64_t)s.n * s.hw;
    const auto add = [](NormRow a, real(&sum)[2]) {
        sum[0] = s_fma(a.d, a.x, sum[0]), sum[1] += a.d;
    };
    if (norm_packed(s) && packs_aligned(dy, x, t))
        column_pack_parts<2>(
            part, s.c, rows, parts, [=](int c) { return pack_read(t, c); },
            [=](int64_t row, int c) {
                const int64_t at = row * s.c + c;
                return NormPacks<D, X>{pack_read(dy, at), pack_read(x, at)};
            },
            [=](const Pack<real> &mean, const NormPacks<D, X> &a, int i, real(&sum)[2]) {
                add(NormRow{(real)a.d.at[i], (real)a.x.at[i] - mean.at[i]}, sum);
            });
    else
        column_parts<2>(
            part, s.c, rows, parts,
            [=](int64_t row, int c) {
                return NormRow{(real)dy[row * s.c + c], (real)x[row * s.c + c] - t[c]};
            },
            add);
}
DEVICE void batch_norm_dw_join(real *dw, real *db, const real *part, const real *t, BatchNorm s,
                               int parts, bool write)
{
    column_join<2>(part, s.c, parts, [=](int c, const real(&sum)[2]) {
        dw[c] = (write ? 0 : dw[c]) + sum[0] * t[s.c + c];
        if (db)
            db[c] = sum[1];
    });
}

/* dx = w rstd (dy - db / count - (x - mean) rstd dw / count) */
SIZE int batch_norm_dx_blocks(int64_t, BatchNorm s)
{
    return batch_norm_blocks(s);
}
template <class Y, class D, class X, class W>
DEVICE void batch_norm_dx_packs(Y *dx, const D *dy, const X *x, W w, const real *t, const real *dw,
                                const real *db, real share, BatchNorm s)
{
    const int c = norm_pack_channel(s);
    const Pack<real> mean = pack_read(t, c), rstd = pack_read(t, s.c + c);
    Pack<real> scale = pack_read(w, c), dx_mean = pack_read(db, c), slope = pack_read(dw, c);
    RT_UNROLL
    for (int k = 0; k < PACK; k++)
        scale.at[k] *= rstd.at[k], dx_mean.at[k] *= share, slope.at[k] *= share;
    norm_packs<sizeof(X) == 2 ? 4 : 2>(
        s,
        [=](int i) {
            return NormPacks<D, X>{pack_read(dy, i), pack_read(x, i)};
        },
        [=](int i, const NormPacks<D, X> &from) {
            Pack<Y> to;
            RT_UNROLL
            for (int k = 0; k < PACK; k++)
                to.at[k] = scale.at[k] * (from.d.at[k] - dx_mean.at[k] -
                                          (from.x.at[k] - mean.at[k]) * rstd.at[k] * slope.at[k]);
            pack_write(dx, i, to);
        });
}
template <class Y, class D, class X, class W>
DEVICE void batch_norm_dx(Y *dx, const D *dy, const X *x, W w, const real *t, const real *dw,
                          const real *db, int64_t count, BatchNorm s)
{
    const real share = (real)1 / (real)count;
    if (norm_packed(s) && packs_aligned(dx, dy, x, w, t, dw, db)) {
        batch_norm_dx_packs(dx, dy, x, w, t, dw, db, share, s);
        return;
    }
    FOR_EACH(i, s.n * s.c * s.hw) {
        const int c = norm_channel(s, i);
        const real rstd = t[s.c + c];
        dx[i] = w[c] * rstd * (dy[i] - db[c] * share - (x[i] - t[c]) * rstd * (dw[c] * share));
    }
}

/* ----------------------------------------------------------------------------- running averages */

/* average = keep average + (1 - keep) m; m: the mean over the shards, whose sum is `sum`. */
DEVICE void batch_keep(real *average, real sum, int shards, double keep)
{
    *average = s_fma((real)keep, *average, (1 - (real)keep) / (real)shards * sum);
}

/* Updates the running averages of the shards' means and unbiased variances.  The averages stay as
 * they are if the loss is not finite.  If r->grad is set, the sums go there, at offset `grad`, and
 * batch_record_grad uses them after the reduction over ranks.
 *
 * A launch has the updates of many layers.  The place of the moments of a layer chooses the block
 * at which the layer begins.  Otherwise a few blocks would do the work of all layers, one after
 * another.  A block without channels of a layer reads nothing for it: on an H100, a launch for 32
 * layers took 90 us when all blocks looked at the loss. */
DEVICE void batch_record(const Rt *r, real *mean, real *var, int64_t moments, int64_t grad,
                         int loss, int64_t count, int shards, double keep, int channels)
{
    const unsigned block = (blockIdx.x + (unsigned)(moments / 256)) % gridDim.x,
                   first = block * THREADS + threadIdx.x;
    if (first >= (unsigned)channels || !update_allowed(r, loss))
        return;
    for (unsigned c = first; c < (unsigned)channels; c += gridDim.x * THREADS) {
        const char *at = r->shard + moments + c * sizeof(real);
        const real less = count > 1 ? (real)(count - 1) : 1;
        const real m = update_tree(at, r->shard_bytes, r->shards);
        const real v = tree_sum(r->shards, [=](int i) {
            return *(const real *)(at + i * r->shard_bytes + channels * sizeof(real)) / less;
        });
        if (r->grad) {
            real *sum = (real *)(r->grad + grad);
            sum[c] = m, sum[channels + c] = v;
        } else {
            batch_keep(mean + c, m, shards, keep);
            batch_keep(var + c, v, shards, keep);
        }
    }
}

DEVICE void batch_record_grad(const Rt *r, real *mean, real *var, int64_t grad, int shards,
                              double keep, int channels)
{
    const real *sum = (const real *)(r->grad + grad);
    if (*r->halted)
        return;
    FOR_EACH(c, channels) {
        batch_keep(mean + c, sum[c], shards, keep);
        batch_keep(var + c, sum[channels + c], shards, keep);
    }
}

/* The same with mean and variance of the whole batch (sync); known: the rows of moments that all
 * ranks have; count: rows a shard. */
DEVICE void batch_record_known(const Rt *r, real *mean, real *var, const real *known, int loss,
                               int64_t count, int shards, double keep, int channels)
{
    if (!update_allowed(r, loss))
        return;
    FOR_EACH(c, channels) {
        const NormSum all =
            norm_batch(known, 2 * channels * (int64_t)sizeof(real), shards, count, c, channels);
        batch_keep(mean + c, all.mean, 1, keep);
        batch_keep(var + c, all.m2 / (all.count - 1), 1, keep);
    }
}

#endif
