/* trust.cuh -- the update of the optimizers LARS and LAMB, which needs the trust ratio of each
 * parameter first.
 *
 * First, the sums over shards go to a buffer (clip.cuh).  Then the squares of weights and of steps
 * are added for each piece of a parameter.  Then a block adds those of a parameter and computes its
 * ratio.  Then the update runs.  Formulas and sources: runtime/step/trust.h.  The order of the sums
 * depends on sizes only.
 */
#ifndef CUDA_TRUST_CUH
#define CUDA_TRUST_CUH
#include "cuda/loss_scale.cuh"

/* Sums of squares of the weights, and of the gradient or of LAMB's step. */
struct TrustNorms {
    double weights, step;
};

/* The number that LARS compares with a weight. */
DEVICE real update_lars_step(UpdateValue &, real g, const RtOpt &)
{
    return g;
}

/* The step whose Adam corrections are used. */
DEVICE const Rt *trust_counted(const Rt *r)
{
    return r->scaling ? loss_scale_counted(r) : r;
}

/* The sums of all threads of a block. */
DEVICE TrustNorms trust_sum(Parts<double> &shared, TrustNorms x)
{
    x.weights = block_sum(shared, x.weights);
    x.step = block_sum(shared, x.step);
    return x;
}

/* norms (pieces).  parts: from update_squares, nullptr if no norm is needed; step: of a rule. */
template <class Step>
DEVICE void update_norms(const Rt *r, TrustNorms *norms, const UpdateRow *rows, int n, int pieces,
                         const char *grad, const double *parts, double limit, Step step)
{
    const real factor = parts ? clip_factor(clip_norm(parts), limit) : 1;
    SHARED(Parts<double>, shared);
    FOR_BLOCKS(piece, pieces) {
        const UpdateShare s = update_share(rows, n, piece);
        const RtOpt o = update_options(r, trust_counted(r), s.q);
        TrustNorms sum = {0, 0};
        for (int k = 0; k < 4 && k < s.count; k++) {
            const UpdateNumber x = update_number(r, s.q, s.bytes / (int64_t)sizeof(real) + k);
            UpdateValue v = {*x.w, x.s0 ? *x.s0 : 0, x.s1 ? *x.s1 : 0};
            const real g = ((const real *)(grad + s.q.grad + s.bytes))[k] * factor;
            const double w = v.w, u = step(v, update_limited(g, o), o);
            sum.weights += w * w, sum.step += u * u;
        }
        sum = trust_sum(shared, sum);
        if (threadIdx.x == 0)
            norms[piece] = sum;
    }
}

/* w, step: norms; coefficient: of LARS, 0 for LAMB. */
DEVICE double trust_ratio(double w, double step, double coefficient, double decay)
{
    if (w == 0 || step == 0)
        return 1;
    return coefficient > 0 ? coefficient * w / (step + decay * w) : w / step;
}

/* ratio (n), for the n rows of the table.  trusts (n): whether a row has a ratio; else it is 1. */
DEVICE void update_ratios(const Rt *r, double *ratio, const TrustNorms *norms,
                          const UpdateRow *rows, const char *trusts, int n, int pieces,
                          double coefficient)
{
    SHARED(Parts<double>, shared);
    FOR_BLOCKS(row, n) {
        const int64_t before = rows[0].before, first = rows[row].before - before,
                      end = (int)row + 1 < n ? rows[row + 1].before - before : pieces;
        TrustNorms sum = {0, 0};
        for (int64_t i = first + threadIdx.x; i < end; i += THREADS)
            sum.weights += norms[i].weights, sum.step += norms[i].step;
        sum = trust_sum(shared, sum);
        if (threadIdx.x == 0)
            ratio[row] = trusts[row] ? trust_ratio(sqrt(sum.weights), sqrt(sum.step), coefficient,
                                                   (double)r->opt.decay * (double)rows[row].decay)
                                     : 1;
    }
}

template <class Rule>
DEVICE void update_trusted(const Rt *r, const UpdateRow *rows, int n, int pieces, const char *grad,
                           const double *parts, double limit, const double *ratio, int loss,
                           Rule rule)
{
    const double norm = parts ? clip_norm(parts) : 0;
    if (!update_allowed(r, loss))
        return;
    if (isfinite(norm))
        update_clipped_by(r, trust_counted(r), rows, n, pieces, grad, clip_factor(norm, limit),
                          ratio, rule);
    if (r->scaling && blockIdx.x == 0 && threadIdx.x == 0)
        loss_scale_report(r, isfinite(norm));
}

#endif
