/* clip.cuh -- the update with a limit for the norm of all gradients: three launches instead of one.
 *
 * First, the sums over shards go to a buffer.  Then each block adds the squares of its share in
 * double.  Then the update reads the buffer, and scales it if the norm exceeds the limit.  The
 * order of the sum depends on sizes only.
 */
#ifndef CUDA_CLIP_CUH
#define CUDA_CLIP_CUH
#include "cuda/update.cuh"

enum { CLIP_PARTS = THREADS }; /* parts of the sum of squares, a block each */

struct ClipSum {
    Parts<double> parts;
    double squares;
};

/* Updates run in pieces of UPDATE_EACH numbers, a block each.  Calls f(share) for this thread's
 * share of each piece. */
template <class F> DEVICE void update_pieces(const UpdateRow *rows, int n, int pieces, F f)
{
    FOR_BLOCKS(block, pieces) {
        const UpdateShare s = update_share(rows, n, block);
        if (s.count > 0)
            f(s);
    }
}

/* The address of the gradient of a share. */
DEVICE char *clip_grad(char *grad, const UpdateShare &s)
{
    return grad + s.q.grad + s.bytes;
}

DEVICE void update_sums(const Rt *r, const UpdateRow *rows, int n, int pieces, char *grad)
{
    update_pieces(rows, n, pieces, [=](const UpdateShare &s) {
        quad_put(clip_grad(grad, s), update_gradient(r, s), s.count);
    });
}

/* parts (CLIP_PARTS): part b is the sum over pieces b, b + CLIP_PARTS ... of `pieces`.  A thread
 * adds numbers of a piece that are THREADS apart. */
DEVICE void update_squares(double *parts, const char *grad, const UpdateRow *rows, int n,
                           int pieces)
{
    SHARED(ClipSum, s);
    FOR_BLOCKS(part, CLIP_PARTS) {
        double sum = 0;
        for (int piece = (int)part; piece < pieces; piece += CLIP_PARTS) {
            int64_t first;
            const UpdateRow &q = rows[update_row(rows, n, piece, &first)];
            const real *g = (const real *)(grad + q.grad) + first;
            const int64_t left = q.count - first;
            load_ahead<4>((int)threadIdx.x, left < UPDATE_EACH ? (int)left : UPDATE_EACH,
                          (int)THREADS, [=](int i) { return (double)g[i]; },
                          [&](double x) { sum += x * x; });
        }
        sum = block_sum(s.parts, sum);
        if (threadIdx.x == 0)
            parts[part] = sum;
    }
}

/* The norm; each thread gets it. */
DEVICE double clip_norm(const double *parts)
{
    SHARED(ClipSum, s);
    const double sum = block_sum(s.parts, parts[threadIdx.x]);
    if (threadIdx.x == 0)
        s.squares = sum;
    block_sync(); /* all threads need the result */
    const double squares = s.squares;
    block_sync(); /* all threads have read the result */
    return sqrt(squares);
}

/* limit / norm if the norm is larger than the limit, else 1. */
DEVICE real clip_factor(double norm, double limit)
{
    return norm > limit ? (real)(limit / norm) : 1;
}

/* ratio: the trust ratio of each row (trust.cuh), or nullptr. */
template <class Rule>
DEVICE void update_clipped_by(const Rt *r, const Rt *counted, const UpdateRow *rows, int n,
                              int pieces, const char *grad, real factor, const double *ratio,
                              Rule rule)
{
    update_pieces(rows, n, pieces, [=](const UpdateShare &s) {
        UpdateQuads u = update_load(r, s, true, nullptr);
        Quad g = quad_at(clip_grad((char *)grad, s));
        RT_UNROLL
        for (int k = 0; k < 4; k++)
            g.at[k] *= factor;
        RtOpt o = update_options(r, counted, s.q);
        if (ratio)
            o.trust = (real)ratio[s.row];
        update_quads(u, g, s.count, o, rule);
    });
}

template <class Rule>
DEVICE void update_clipped(const Rt *r, const UpdateRow *rows, int n, int pieces, const char *grad,
                           const double *parts, double limit, int loss, Rule rule)
{
    const real factor = clip_factor(clip_norm(parts), limit);
    if (update_allowed(r, loss))
        update_clipped_by(r, r, rows, n, pieces, grad, factor, nullptr, rule);
}

#endif
