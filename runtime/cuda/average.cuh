/* average.cuh -- average = ema(...): the averages of the trained weights, after their update.
 *
 * The formula is that of runtime/step/average.h: a += share (w - a), where Rt.share is 1 in the
 * first step.  A product and a sum are not fused, as on the processor.
 */
#ifndef CUDA_AVERAGE_CUH
#define CUDA_AVERAGE_CUH
#include "cuda/clip.cuh"

/* Updates the averages. at: bytes from the start of `fixed` to the averages, which have the layout
 * of `fixed`.  Nothing is averaged after a loss that is not finite, because no update follows
 * it. */
DEVICE void update_average(const Rt *r, const UpdateRow *rows, int n, int pieces, int64_t at)
{
    const real share = (real)r->share;
    if (*r->halted)
        return;
    update_pieces(rows, n, pieces, [=](const UpdateShare &s) {
        const char *const w = r->fixed + s.q.weights + s.bytes;
        char *const a = r->fixed + at + s.q.weights + s.bytes;
        const Quad weights = quad_at(w);
        Quad average = quad_at(a);
        RT_UNROLL
        for (int k = 0; k < 4; k++)
            average.at[k] = share == 1 ? weights.at[k]
                                       : average.at[k] + share * (weights.at[k] - average.at[k]);
        quad_put(a, average, s.count);
    });
}

#endif
