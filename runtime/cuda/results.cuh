/* results.cuh -- which numbers of a call's result a thread computes, in its order.  The call is a
 * member of a launch, or a stage (persistent.cuh).
 *
 * These functions call f(at, slot) for each number that this thread has written as y[at].  slot
 * counts the positions of the thread's results, including those after the last number: slot `slot`
 * of a thread is the same number in each step.  In a call that follows this order, a thread reads
 * only numbers that it has written, so no barrier stands between both calls.  Nothing here uses
 * shared memory.
 */
#ifndef CUDA_RESULTS_CUH
#define CUDA_RESULTS_CUH

/* ------------------------------------------------------------------------------- products */

/* The tile of one block: f(row, column, slot). */
template <class F>
DEVICE void tile_results(unsigned block, int m, int n, int &slot, F f, int largest = 0)
{
    const int first = slot;
    for_tile(product_tile(m, n, largest), [=]<int tile>() {
        using T = Tile<tile>;
        const int across = ceil_div(n, T::columns), m0 = block / across * T::rows,
                  n0 = block % across * T::columns;
        for (int i = 0; i < T::down; i++)
            for (int j = 0; j < T::across; j++) {
                const int row = m0 + product_row<tile>(i), column = n0 + product_column<tile>(j);
                if (row < m && column < n)
                    f(row, column, first + i * T::across + j);
            }
    });
    slot += product_each(m, n, largest);
}

/* y (rows, columns) */
template <class F> DEVICE void matrix_results(int rows, int columns, F f)
{
    int slot = 0;
    FOR_BLOCKS(block, product_blocks(rows, columns))
        tile_results(block, rows, columns, slot,
                     [=](int row, int column, int s) { f((unsigned)(row * columns + column), s); });
}
template <class F> DEVICE void dense_results(Dense d, F f)
{
    matrix_results(d.n, d.o, f);
}
template <class F> DEVICE void dense_dx_results(Dense d, F f)
{
    matrix_results(d.n, d.k, f);
}
template <class F> DEVICE void dense_dw_results(Dense d, F f)
{
    matrix_results(d.o, d.k, f);
}

template <class F> DEVICE void conv2d_results(Conv c, F f)
{
    const int places = c.oh * c.ow, blocks = product_blocks(conv_outputs(c), c.n * places);
    int slot = 0;
    FOR_BLOCKS(block, conv2d_blocks(c)) {
        const int o0 = block / blocks * conv_outputs(c);
        tile_results(block % blocks, conv_outputs(c), c.n * places, slot,
                     [=](int o, int at, int s) {
                         f((unsigned)conv_y(c, at / places, o0 + o, at % places), s);
                     });
    }
}
template <class F> DEVICE void conv2d_dx_results(Conv c, F f)
{
    const int pixels = c.n * c.h * c.w, blocks = product_blocks(conv_inputs(c), pixels, RT_TILE_DX);
    int slot = 0;
    FOR_BLOCKS(block, conv2d_dx_blocks(c)) {
        const int group = block / blocks;
        tile_results(
            block % blocks, conv_inputs(c), pixels, slot,
            [=](int i, int at, int s) { f((unsigned)conv2d_dx_index(c, group, i, at), s); },
            RT_TILE_DX);
    }
}

/* ------------------------------------------------------------------------------- pooling */

/* The pixels of the windows whose dy this thread has computed; walk(f) goes through the windows.
 * Each pixel lies in exactly one window, and windows are complete. */
template <class Walk, class F> DEVICE void pool_results(Pool p, Walk walk, F f)
{
    walk([=](unsigned at, int slot) {
        const int plane = at / (p.oh * p.ow), place = at % (p.oh * p.ow), y = place / p.ow * p.r,
                  x = place % p.ow * p.s;
        for (int i = 0; i < p.r; i++)
            for (int j = 0; j < p.s; j++)
                f((unsigned)((plane * p.h + y + i) * p.w + x + j), (slot * p.r + i) * p.s + j);
    });
}
template <class Walk>
DEVICE void max_pool_dx_in_order(real *dx, const real *x, const real *dy, Pool p, Walk walk)
{
    pool_results(p, walk, [=](unsigned at, int) { max_pool_dx_at(at, dx, x, dy, p); });
}
template <class Walk> DEVICE void avg_pool_dx_in_order(real *dx, const real *dy, Pool p, Walk walk)
{
    pool_results(p, walk, [=](unsigned at, int) { avg_pool_dx_at(at, dx, dy, p); });
}

/* ------------------------------------------------------------------------------- sums */

/* A block for each sum; its first thread writes the sum. */
template <class F> DEVICE void sum_results(int count, F f)
{
    int slot = 0;
    for (int at = blockIdx.x; at < count; at += gridDim.x, slot++)
        if (threadIdx.x == 0)
            f((unsigned)at, slot);
}

template <class F> DEVICE void each_results(int count, F f)
{
    int slot = 0;
    for (unsigned i = blockIdx.x * THREADS + threadIdx.x; i < (unsigned)count;
         i += gridDim.x * THREADS, slot++)
        f(i, slot);
}

/* A block for each filter and input channel; each thread of its first warp has a tap. */
template <class F> DEVICE void conv2d_dw_results(Conv c, F f)
{
    const int taps = c.r * c.s;
    int slot = 0;
    FOR_BLOCKS(block, conv2d_dw_blocks(c))
        for (int tap0 = 0; tap0 < taps; tap0 += WARP, slot++) {
            const int tap = tap0 + threadIdx.x;
            if (threadIdx.x < WARP && tap < taps)
                f((unsigned)conv_w(c, block / conv_inputs(c), block % conv_inputs(c), tap), slot);
        }
}

#endif
