/* loss_scale.cuh -- training in f16: the gradient of the loss is scaled, and a step whose gradients
 * are not finite is skipped.
 *
 * Gradients of values are small, and the smallest positive number of f16 is 2^-24.  So the first
 * gradient is multiplied by a scale; all later gradients are linear in the first one.  Sums over
 * samples are divided by the scale, in f32, before anything else reads them.  If a sum is not
 * finite, the scale was too large: no parameter changes, and the next step has half the scale.  The
 * scale doubles after `every` good steps in a row.
 *
 * The sum of squares of the norm (clip.cuh) is in double.  It is finite if and only if all
 * gradients are finite, because the square of a float never overflows a double.  All ranks decide
 * alike, because each rank uses the sums over all ranks.
 * Source: Micikevicius et al. 2018, "Mixed precision training", section 3.2; the constants are
 * those of PyTorch's GradScaler.
 */
#ifndef CUDA_LOSS_SCALE_CUH
#define CUDA_LOSS_SCALE_CUH
#include "cuda/clip.cuh"

SIZE int loss_scale_blocks(int n)
{
    return each_blocks(n);
}
template <class X> DEVICE void loss_scale(real *y, X x, const Rt *r, int n)
{
    FOR_EACH(i, n)
        y[i] = x[i] * r->scaling->scale;
}

/* Computes the sums over shards as update_sums does, divided by the scale. */
DEVICE void update_sums_scaled(const Rt *r, const UpdateRow *rows, int n, int pieces, char *grad)
{
    const real scale = r->scaling->scale;
    update_pieces(rows, n, pieces, [=](const UpdateShare &s) {
        Quad sum = update_gradient(r, s);
        RT_UNROLL
        for (int k = 0; k < 4; k++)
            sum.at[k] /= scale;
        quad_put(clip_grad(grad, s), sum, s.count);
    });
}

DEVICE void loss_scale_next(RtScaling *s, bool good)
{
    const bool moves = s->every > 0;
    if (!good) {
        s->skipped++;
        s->good = 0;
        s->scale = moves && s->scale > RT_SCALE_LEAST ? s->scale / 2 : s->scale;
    } else if (moves && ++s->good >= s->every) {
        s->good = 0;
        s->scale = s->scale < RT_SCALE_MOST ? s->scale * 2 : s->scale;
    }
}

/* Updates the scale.  No other thread of this launch reads the scale.  If the number of skipped
 * steps changes, no other thread of this launch reads that number.  The host finds RtScaling after
 * the shards' metrics. */
DEVICE void loss_scale_report(const Rt *r, bool good)
{
    RtScaling *s = r->scaling;
    double *reported = r->metric + r->shards * RT_METRICS;
    loss_scale_next(s, good);
    reported[0] = s->scale, reported[1] = s->good, reported[2] = s->skipped, reported[3] = s->every;
}

/* The step whose corrections of Adam this step must use.  The host has counted all steps of the
 * launch, but skipped steps do not count.  So the step is the n-th step before this one, if n
 * steps of the launch have been skipped. */
DEVICE const Rt *loss_scale_counted(const Rt *r)
{
    const int64_t left_out = (int64_t)(r->scaling->skipped - r->skipped);
    return (const Rt *)((const char *)r - left_out * r->stride);
}

template <class Rule>
DEVICE void update_scaled(const Rt *r, const UpdateRow *rows, int n, int pieces, const char *grad,
                          const double *parts, double limit, int loss, Rule rule)
{
    const double norm = clip_norm(parts);
    if (!update_allowed(r, loss))
        return;
    if (isfinite(norm))
        update_clipped_by(r, loss_scale_counted(r), rows, n, pieces, grad, clip_factor(norm, limit),
                          nullptr, rule);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        loss_scale_report(r, isfinite(norm));
}

#endif
