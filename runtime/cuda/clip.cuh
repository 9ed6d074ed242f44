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

/* Updates run in pieces of UPDATE_EACH numbers.  Calls f(parameter, index in the parameter) for
 * each number of piece `block`. */
template <class F> DEVICE void update_piece(const UpdateRow *rows, int n, int64_t block, F f)
{
    int64_t first;
    const UpdateRow &q = rows[update_row(rows, n, block, &first)];
    const int64_t end = first + UPDATE_EACH < q.count ? first + UPDATE_EACH : q.count;
    for (int64_t i = first + threadIdx.x; i < end; i += THREADS)
        f(q, i);
}

/* All pieces, a block each. */
template <class F> DEVICE void update_pieces(const UpdateRow *rows, int n, int pieces, F f)
{
    FOR_BLOCKS(block, pieces)
        update_piece(rows, n, block, f);
}

DEVICE void update_sums(const Rt *r, const UpdateRow *rows, int n, int pieces, char *grad)
{
    update_pieces(rows, n, pieces, [=](const UpdateRow &q, int64_t i) {
        const char *sum = r->shard + q.sum + i * (int64_t)sizeof(real);
        ((real *)(grad + q.grad))[i] = update_tree(sum, r->shard_bytes, r->shards);
    });
}

/* parts (CLIP_PARTS): part b is the sum over pieces b, b + CLIP_PARTS ... of `pieces`. */
DEVICE void update_squares(double *parts, const char *grad, const UpdateRow *rows, int n,
                           int pieces)
{
    SHARED(ClipSum, s);
    FOR_BLOCKS(part, CLIP_PARTS) {
        double sum = 0;
        for (int piece = (int)part; piece < pieces; piece += CLIP_PARTS)
            update_piece(rows, n, piece, [&](const UpdateRow &q, int64_t i) {
                const double g = (double)((const real *)(grad + q.grad))[i];
                sum += g * g;
            });
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
    return sqrt(s.squares);
}

/* limit / norm if the norm is larger than the limit, else 1. */
DEVICE real clip_factor(double norm, double limit)
{
    return norm > limit ? (real)(limit / norm) : 1;
}

template <class Rule>
DEVICE void update_clipped_by(const Rt *r, const Rt *counted, const UpdateRow *rows, int n,
                              int pieces, const char *grad, real factor, Rule rule)
{
    update_pieces(rows, n, pieces, [=](const UpdateRow &q, int64_t i) {
        update_one(r, counted, q, i, ((const real *)(grad + q.grad))[i] * factor, rule);
    });
}

template <class Rule>
DEVICE void update_clipped(const Rt *r, const UpdateRow *rows, int n, int pieces, const char *grad,
                           const double *parts, double limit, int loss, Rule rule)
{
    const real factor = clip_factor(clip_norm(parts), limit);
    if (update_allowed(r, loss))
        update_clipped_by(r, r, rows, n, pieces, grad, factor, rule);
}

#endif
