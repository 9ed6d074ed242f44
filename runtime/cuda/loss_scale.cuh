/* loss_scale.cuh -- training in f16: the loss's gradient is scaled, and a step whose gradients are not finite is left out.
 *
 * Gradients of values are small, and f16 ends at 2^-24: so the first of them is multiplied by a scale, all behind it are linear in it,
 * and sums over samples are divided by it, in f32, before anything looks at them.  Where one of them is not finite the scale was too
 * large: no parameter changes, and the next step has half of it.  After `every` good steps in a row it doubles.
 *
 * The sum of squares of the norm (clip.cuh), in double, is finite if and only if all gradients are: a float's square is far from a
 * double's end.  Ranks decide alike, for each looks at the sums over all of them.
 * Source: Micikevicius et al. 2018, "Mixed precision training", section 3.2; the numbers are those of PyTorch's GradScaler.
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

/* The gradients, as update_sums has them where nothing is scaled. */
DEVICE void update_sums_scaled(const Rt *r, const UpdateRow *rows, int n, int pieces, char *grad)
{
    const real scale = r->scaling->scale;
    update_pieces(rows, n, pieces, [=](const UpdateRow &q, int64_t i) {
        const char *sum = r->shard + q.sum + i * (int64_t)sizeof(real);
        ((real *)(grad + q.grad))[i] = update_tree(sum, r->shard_bytes, r->shards) / scale;
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

/* Nobody else in this launch reads the scale, nor, where it changes, how many steps have been left out.  The host finds it behind the shards' metrics. */
DEVICE void loss_scale_tell(const Rt *r, bool good)
{
    RtScaling *s = r->scaling;
    double *told = r->metric + r->shards * RT_METRICS;
    loss_scale_next(s, good);
    told[0] = s->scale, told[1] = s->good, told[2] = s->skipped, told[3] = s->every;
}

/* The host has reckoned as if no step of the launch were left out, and Adam's corrections go by the steps that were not: they are those of
 * the step that lies as many before this one as have been left out. */
DEVICE const Rt *loss_scale_counted(const Rt *r)
{
    const int64_t left_out = (int64_t)(r->scaling->skipped - r->skipped);
    return (const Rt *)((const char *)r - left_out * r->stride);
}

template <class Rule>
DEVICE void update_scaled(const Rt *r, const UpdateRow *rows, int n, int pieces, const char *grad, const double *parts,
                          double limit, int loss, Rule rule)
{
    const double norm = clip_norm(parts);
    if (!update_allowed(r, loss))
        return;
    if (isfinite(norm))
        update_clipped_by(r, loss_scale_counted(r), rows, n, pieces, grad, clip_factor(norm, limit), rule);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        loss_scale_tell(r, isfinite(norm));
}

#endif
