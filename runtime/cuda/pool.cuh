/* pool.cuh -- max and average pooling of windows and of whole images, and their gradients: a thread
 * for each number of the result, or for each channel.
 *
 *   x (N, C, H, W)  y (N, C, OH, OW)      last: (N, H, W, C) and (N, OH, OW, C)
 *
 * As in runtime/cpu/pool.h, padding never wins a maximum and does not count in an average unless
 * count_pad; the gradient of a maximum goes to the first of equal values in row-major order.  In
 * the backward pass, a pixel goes through the windows that contain it, top left first, and finds
 * the maximum of each window again from x: no index is stored, and no two threads add to one
 * number.  With `last`, a thread has PACK channels of a pixel (pack.cuh).
 */
#ifndef CUDA_POOL_CUH
#define CUDA_POOL_CUH

struct Pool {
    int n, c, h, w, r, s, stride_h, stride_w, pad_h, pad_w, oh, ow, count_pad;
    bool last;
};

/* The pixel of element `at` of a value whose images have `from` pixels. */
DEVICE int pool_place(Pool p, int at, int from)
{
    return p.last ? at / p.c % from : at % from;
}
/* Offset of the channel of this element in a value whose images have `to` pixels. */
DEVICE int64_t pool_plane(Pool p, int at, int from, int to)
{
    return p.last ? (int64_t)(at / (p.c * from)) * (p.c * to) + at % p.c
                  : (int64_t)(at / from) * to;
}
/* Reals from a pixel of a channel to the next pixel. */
DEVICE int pool_step(Pool p)
{
    return p.last ? p.c : 1;
}

/* The part of the window of output (oy, ox) that lies in the image: rows top .. bottom - 1, columns
 * left .. right - 1. */
struct Window {
    int top, bottom, left, right;
};
DEVICE Window pool_window(Pool p, int oy, int ox)
{
    const int y = oy * p.stride_h - p.pad_h, x = ox * p.stride_w - p.pad_w;
    return Window{y < 0 ? 0 : y, y + p.r > p.h ? p.h : y + p.r, x < 0 ? 0 : x,
                  x + p.s > p.w ? p.w : x + p.s};
}

/* Whether each pixel is in exactly one window, and all windows are complete: then loops over
 * windows and their pixels have literal bounds, and loads do not wait for each other. */
SIZE bool pool_apart(Pool p)
{
    return p.r == p.stride_h && p.s == p.stride_w && p.pad_h == 0 && p.pad_w == 0 &&
           p.oh * p.r == p.h && p.ow * p.s == p.w;
}

/* The first maximum of a window: its pixel, -1 if the window is empty; its number. */
struct PoolTop {
    int at;
    real top;
};
template <class X> DEVICE void pool_compare(PoolTop &best, const X *x, Pool p, int at)
{
    const real number = x[at * pool_step(p)];
    if (best.at < 0 || number > best.top)
        best = {at, number};
}
template <class X> DEVICE PoolTop pool_top(const X *x, Pool p, Window q)
{
    PoolTop best = {-1, 0};
    if (pool_apart(p)) {
        RT_UNROLL
        for (int i = 0; i < p.r; i++) {
            RT_UNROLL
            for (int j = 0; j < p.s; j++)
                pool_compare(best, x, p, (q.top + i) * p.w + q.left + j);
        }
        return best;
    }
    for (int i = q.top; i < q.bottom; i++)
        for (int j = q.left; j < q.right; j++)
            pool_compare(best, x, p, i * p.w + j);
    return best;
}

DEVICE real pool_share(Pool p, Window q)
{
    const int inside =
        q.top < q.bottom && q.left < q.right ? (q.bottom - q.top) * (q.right - q.left) : 0;
    const int count = p.count_pad ? p.r * p.s : inside;
    return count ? (real)1 / (real)count : 0;
}

/* Whether the channels of a pixel are processed in packs. */
SIZE bool pool_packed(Pool p)
{
    return p.last && p.c % PACK == 0;
}
/* The first maximum of a window, for each channel of a pack: pixels, numbers. */
struct PoolBest {
    int at[PACK];
    real top[PACK];
};
template <class X> DEVICE PoolBest pool_best(const X *x, Pool p, Window q)
{
    PoolBest best = {{-1, -1, -1, -1}, {}};
    for (int i = q.top; i < q.bottom; i++)
        for (int j = q.left; j < q.right; j++) {
            const Pack<X> pixel = pack_read(x, (int64_t)(i * p.w + j) * p.c);
            RT_UNROLL
            for (int k = 0; k < PACK; k++)
                if (best.at[k] < 0 || (real)pixel.at[k] > best.top[k])
                    best.at[k] = i * p.w + j, best.top[k] = pixel.at[k];
        }
    return best;
}

SIZE int pool_outputs(Pool p)
{
    return p.n * p.c * p.oh * p.ow;
}
SIZE int pool_inputs(Pool p)
{
    return p.n * p.c * p.h * p.w;
}

/* First and last window, along one axis, that contain pixel `at`. */
DEVICE int window_first(int at, int size, int stride, int pad)
{
    const int up = at + pad - size + 1;
    return up <= 0 ? 0 : (up + stride - 1) / stride;
}
DEVICE int window_last(int at, int stride, int pad, int out)
{
    const int last = (at + pad) / stride;
    return last < out ? last : out - 1;
}

/* Calls each(oy, ox) for the windows that contain a pixel, top left first. */
template <class Each> DEVICE void pool_windows(Pool p, int iy, int ix, Each each)
{
    if (pool_apart(p)) {
        each(iy / p.r, ix / p.s);
        return;
    }
    for (int oy = window_first(iy, p.r, p.stride_h, p.pad_h);
         oy <= window_last(iy, p.stride_h, p.pad_h, p.oh); oy++)
        for (int ox = window_first(ix, p.s, p.stride_w, p.pad_w);
             ox <= window_last(ix, p.stride_w, p.pad_w, p.ow); ox++)
            each(oy, ox);
}
/* The gradient of a pixel: of(oy, ox) added over these windows. */
template <class Of> DEVICE real pool_sum(Pool p, int iy, int ix, Of of)
{
    real sum = 0;
    pool_windows(p, iy, ix, [&](int oy, int ox) { sum += of(oy, ox); });
    return sum;
}

/* ------------------------------------------------------------------------------- max */

SIZE int max_pool_blocks(Pool p)
{
    return each_blocks(pool_outputs(p) / (pool_packed(p) ? PACK : 1));
}
template <class Y, class X> DEVICE void max_pool_packed(Y *y, const X *x, Pool p)
{
    FOR_EACH(pack, pool_outputs(p) / PACK) {
        const int at = pack * PACK, place = pool_place(p, at, p.oh * p.ow);
        const X *from = x + pool_plane(p, at, p.oh * p.ow, p.h * p.w);
        const PoolBest best = pool_best(from, p, pool_window(p, place / p.ow, place % p.ow));
        Pack<Y> to;
        RT_UNROLL
        for (int k = 0; k < PACK; k++)
            to.at[k] = best.top[k];
        pack_write(y, at, to);
    }
}
template <class Y, class X> DEVICE void max_pool(Y *y, const X *x, Pool p)
{
    if (pool_packed(p) && pack_aligned(x) && pack_aligned(y))
        return max_pool_packed(y, x, p);
    FOR_EACH(at, pool_outputs(p)) {
        const int place = pool_place(p, at, p.oh * p.ow);
        const X *from = x + pool_plane(p, at, p.oh * p.ow, p.h * p.w);
        y[at] = pool_top(from, p, pool_window(p, place / p.ow, place % p.ow)).top;
    }
}

SIZE int max_pool_dx_blocks(Pool p)
{
    return each_blocks(pool_inputs(p) / (pool_packed(p) ? PACK : 1));
}
template <class Y, class X, class D>
DEVICE void max_pool_dx_packed(Y *dx, const X *x, const D *dy, Pool p)
{
    FOR_EACH(pack, pool_inputs(p) / PACK) {
        const int at = pack * PACK, place = pool_place(p, at, p.h * p.w), y = place / p.w,
                  column = place % p.w;
        const X *from = x + pool_plane(p, at, p.h * p.w, p.h * p.w);
        const D *d = dy + pool_plane(p, at, p.h * p.w, p.oh * p.ow);
        real sum[PACK] = {};
        pool_windows(p, y, column, [&](int oy, int ox) {
            const PoolBest best = pool_best(from, p, pool_window(p, oy, ox));
            const Pack<D> one = pack_read(d, (int64_t)(oy * p.ow + ox) * p.c);
            RT_UNROLL
            for (int k = 0; k < PACK; k++)
                sum[k] += best.at[k] == place ? (real)one.at[k] : (real)0;
        });
        Pack<Y> to;
        RT_UNROLL
        for (int k = 0; k < PACK; k++)
            to.at[k] = sum[k];
        pack_write(dx, at, to);
    }
}
template <class Y, class X, class D>
DEVICE void max_pool_dx_at(int at, Y *dx, const X *x, const D *dy, Pool p)
{
    const int place = pool_place(p, at, p.h * p.w);
    const X *from = x + pool_plane(p, at, p.h * p.w, p.h * p.w);
    const D *d = dy + pool_plane(p, at, p.h * p.w, p.oh * p.ow);
    dx[at] = pool_sum(p, place / p.w, place % p.w, [=](int oy, int ox) {
        return pool_top(from, p, pool_window(p, oy, ox)).at == place
                   ? (real)d[(oy * p.ow + ox) * pool_step(p)]
                   : (real)0;
    });
}
template <class Y, class X, class D> DEVICE void max_pool_dx(Y *dx, const X *x, const D *dy, Pool p)
{
    if (pool_packed(p) && pack_aligned(dx) && pack_aligned(x) && pack_aligned(dy))
        return max_pool_dx_packed(dx, x, dy, p);
    FOR_EACH(at, pool_inputs(p))
        max_pool_dx_at(at, dx, x, dy, p);
}

/* ------------------------------------------------------------------------------- average */

SIZE int avg_pool_blocks(Pool p)
{
    return each_blocks(pool_outputs(p));
}
template <class Y, class X> DEVICE void avg_pool(Y *y, const X *x, Pool p)
{
    FOR_EACH(at, pool_outputs(p)) {
        const int place = pool_place(p, at, p.oh * p.ow);
        const X *from = x + pool_plane(p, at, p.oh * p.ow, p.h * p.w);
        const Window q = pool_window(p, place / p.ow, place % p.ow);
        real sum = 0;
        for (int i = q.top; i < q.bottom; i++)
            for (int j = q.left; j < q.right; j++)
                sum += from[(i * p.w + j) * pool_step(p)];
        y[at] = sum * pool_share(p, q);
    }
}

SIZE int avg_pool_dx_blocks(Pool p)
{
    return each_blocks(pool_inputs(p));
}
template <class Y, class D> DEVICE void avg_pool_dx_at(int at, Y *dx, const D *dy, Pool p)
{
    const int place = pool_place(p, at, p.h * p.w);
    const D *d = dy + pool_plane(p, at, p.h * p.w, p.oh * p.ow);
    dx[at] = pool_sum(p, place / p.w, place % p.w, [=](int oy, int ox) {
        return d[(oy * p.ow + ox) * pool_step(p)] * pool_share(p, pool_window(p, oy, ox));
    });
}
template <class Y, class D> DEVICE void avg_pool_dx(Y *dx, const D *dy, Pool p)
{
    FOR_EACH(at, pool_inputs(p))
        avg_pool_dx_at(at, dx, dy, p);
}

/* ------------------------------------------------------------------------------- global average */

/* y (N, C): a warp for each channel of an image, or a block if it has many pixels. */
SIZE bool global_avg_pool_warps(int hw)
{
    return hw <= 32 * WARP;
}
SIZE int global_avg_pool_blocks(int n, int c, int hw)
{
    return global_avg_pool_warps(hw) ? ceil_div(n * c, WARPS) : sum_blocks(n * c);
}
template <class Y, class X> DEVICE void global_avg_pool(Y *y, const X *x, int n, int c, int hw)
{
    if (global_avg_pool_warps(hw)) {
        FOR_ROWS(at, n * c) {
            real sum = 0;
            for (int of = threadIdx.x % WARP; of < hw; of += WARP)
                sum += (real)x[at * hw + of];
            sum = warp_sum(sum);
            if (threadIdx.x % WARP == 0)
                y[at] = sum / (real)hw;
        }
        return;
    }
    block_sums(
        n * c, hw, [=](int at, int of) { return (real)x[(int64_t)at * hw + of]; },
        [=](int at, real sum) { y[at] = sum / (real)hw; });
}

SIZE int global_avg_pool_dx_blocks(int n, int c, int hw)
{
    return each_blocks(n * c * hw);
}
template <class Y, class D> DEVICE void global_avg_pool_dx(Y *dx, const D *dy, int n, int c, int hw)
{
    FOR_EACH(at, n * c * hw)
        dx[at] = dy[at / hw] / (real)hw;
}

/* The same for channels that are innermost: y (N, C), x (N, HW, C), 32 channels of an image a
 * block. */
SIZE int global_avg_pool_last_blocks(int n, int c, int)
{
    return n * column_tiles(c);
}
template <class Y, class X> DEVICE void global_avg_pool_last(Y *y, const X *x, int n, int c, int hw)
{
    ONE_PART_A_BLOCK(X);
    SHARED(TileSums<1>, sums);
    const int image = blockIdx.x / column_tiles(c);
    const X *from = x + (int64_t)image * c * hw;
    if (image >= n)
        return;
    column_sums(
        sums, blockIdx.x % column_tiles(c), c, 0, hw,
        [=](int64_t row, int column) { return (real)from[row * c + column]; },
        [](real x, real(&sum)[1]) { sum[0] += x; },
        [=](int column, const real(&sum)[1]) {
            y[(int64_t)image * c + column] = sum[0] / (real)hw;
        });
}

SIZE int global_avg_pool_dx_last_blocks(int n, int c, int hw)
{
    return each_blocks(n * c * hw);
}
template <class Y, class D>
DEVICE void global_avg_pool_dx_last(Y *dx, const D *dy, int n, int c, int hw)
{
    FOR_EACH(at, n * c * hw)
        dx[at] = dy[at / (c * hw) * c + at % c] / (real)hw;
}

/* ------------------------------------------------------------------------------- global maximum */

/* y (N, C): a warp for each channel of an image.  The first of equal maxima gets the gradient: each
 * thread keeps its first one, and the smallest index among threads with the maximum counts. */
SIZE int global_max_pool_blocks(int n, int c, int)
{
    return ceil_div(n * c, WARPS);
}
template <class X> DEVICE PoolTop global_max_of(const X *x, int hw)
{
    PoolTop best = {(int)(threadIdx.x % WARP), 0};
    best.top = x[best.at < hw ? best.at : hw - 1];
    for (int j = threadIdx.x % WARP + WARP; j < hw; j += WARP)
        if ((real)x[j] > best.top)
            best = {j, (real)x[j]};
    const real top = warp_max(best.top);
    const real first = warp_max(best.top == top && best.at < hw ? (real)-best.at : (real)-hw);
    return {(int)-first, top};
}
template <class Y, class X> DEVICE void global_max_pool(Y *y, const X *x, int n, int c, int hw)
{
    FOR_ROWS(at, n * c) {
        const PoolTop best = global_max_of(x + at * hw, hw);
        if (threadIdx.x % WARP == 0)
            y[at] = best.top;
    }
}

SIZE int global_max_pool_dx_blocks(int n, int c, int hw)
{
    return global_max_pool_blocks(n, c, hw);
}
template <class Y, class X, class D>
DEVICE void global_max_pool_dx(Y *dx, const X *x, const D *dy, int n, int c, int hw)
{
    FOR_ROWS(at, n * c) {
        const PoolTop best = global_max_of(x + at * hw, hw);
        for (int j = threadIdx.x % WARP; j < hw; j += WARP)
            dx[at * hw + j] = j == best.at ? (real)dy[at] : (real)0;
    }
}

/* The same for channels that are innermost: a thread for each channel of an image, so neighbouring
 * threads read neighbouring numbers. */
template <class X> DEVICE PoolTop global_max_of_last(const X *x, int c, int hw)
{
    PoolTop best = {0, (real)x[0]};
    for (int j = 1; j < hw; j++)
        if ((real)x[(int64_t)j * c] > best.top)
            best = {j, (real)x[(int64_t)j * c]};
    return best;
}
SIZE int global_max_pool_last_blocks(int n, int c, int)
{
    return each_blocks(n * c);
}
template <class Y, class X> DEVICE void global_max_pool_last(Y *y, const X *x, int n, int c, int hw)
{
    FOR_EACH(at, n * c)
        y[at] = global_max_of_last(x + (int64_t)(at / c) * c * hw + at % c, c, hw).top;
}

SIZE int global_max_pool_dx_last_blocks(int n, int c, int hw)
{
    return global_max_pool_last_blocks(n, c, hw);
}
template <class Y, class X, class D>
DEVICE void global_max_pool_dx_last(Y *dx, const X *x, const D *dy, int n, int c, int hw)
{
    FOR_EACH(at, n * c) {
        const int64_t first = (int64_t)(at / c) * c * hw + at % c;
        const PoolTop best = global_max_of_last(x + first, c, hw);
        for (int j = 0; j < hw; j++)
            dx[first + (int64_t)j * c] = j == best.at ? (real)dy[at] : (real)0;
    }
}

#endif
