/* pool.cuh -- max, average and global average pooling, and their gradients: a thread a number of the result.
 *
 *   x (N, C, H, W)  y (N, C, OH, OW)
 *
 * As runtime/cpu/pool.h: padding never wins a maximum and is left out of an average unless count_pad; the gradient of a maximum
 * goes to the first of equals in row-major order.  Going back, a pixel asks the windows that it lies in, top left first, and
 * finds the place of a window's maximum again from x: no index is kept, and no two threads add to one number.
 */
#ifndef CUDA_POOL_CUH
#define CUDA_POOL_CUH

struct Pool {
    int n, c, h, w, r, s, stride_h, stride_w, pad_h, pad_w, oh, ow, count_pad;
};

/* The part of output (oy, ox)'s window that lies in the image: rows top..bottom-1, columns left..right-1. */
struct Window {
    int top, bottom, left, right;
};
DEVICE Window pool_window(Pool p, int oy, int ox)
{
    const int y = oy * p.stride_h - p.pad_h, x = ox * p.stride_w - p.pad_w;
    return Window{y < 0 ? 0 : y, y + p.r > p.h ? p.h : y + p.r, x < 0 ? 0 : x, x + p.s > p.w ? p.w : x + p.s};
}

/* Index in the (H, W) image of the window's first maximum, -1 if the window is empty. */
template <class X> DEVICE int pool_argmax(const X *x, Pool p, Window q)
{
    int best = -1;
    for (int i = q.top; i < q.bottom; i++)
        for (int j = q.left; j < q.right; j++)
            if (best < 0 || x[i * p.w + j] > x[best])
                best = i * p.w + j;
    return best;
}

DEVICE real pool_share(Pool p, Window q)
{
    const int inside = q.top < q.bottom && q.left < q.right ? (q.bottom - q.top) * (q.right - q.left) : 0;
    const int count = p.count_pad ? p.r * p.s : inside;
    return count ? (real)1 / (real)count : 0;
}

SIZE int pool_outputs(Pool p)
{
    return p.n * p.c * p.oh * p.ow;
}
SIZE int pool_inputs(Pool p)
{
    return p.n * p.c * p.h * p.w;
}

/* First and last window, along one axis, that pixel `at` lies in. */
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

/* A pixel's gradient: of(oy, ox) added over the windows that it lies in, top left first. */
template <class Of>
DEVICE real pool_sum(Pool p, int iy, int ix, Of of)
{
    real sum = 0;
    for (int oy = window_first(iy, p.r, p.stride_h, p.pad_h); oy <= window_last(iy, p.stride_h, p.pad_h, p.oh); oy++)
        for (int ox = window_first(ix, p.s, p.stride_w, p.pad_w); ox <= window_last(ix, p.stride_w, p.pad_w, p.ow); ox++)
            sum += of(oy, ox);
    return sum;
}

/* ------------------------------------------------------------------------------- max */

SIZE int max_pool_blocks(Pool p)
{
    return each_blocks(pool_outputs(p));
}
template <class Y, class X> DEVICE void max_pool(Y *y, const X *x, Pool p)
{
    FOR_EACH(at, pool_outputs(p)) {
        const int image = at / (p.oh * p.ow), oy = at / p.ow % p.oh, ox = at % p.ow;
        const X *from = x + (int64_t)image * (p.h * p.w);
        const int best = pool_argmax(from, p, pool_window(p, oy, ox));
        y[at] = best < 0 ? (real)0 : (real)from[best];
    }
}

SIZE int max_pool_dx_blocks(Pool p)
{
    return each_blocks(pool_inputs(p));
}
template <class Y, class X, class D> DEVICE void max_pool_dx(Y *dx, const X *x, const D *dy, Pool p)
{
    FOR_EACH(at, pool_inputs(p)) {
        const int image = at / (p.h * p.w), place = at % (p.h * p.w), iy = place / p.w, ix = place % p.w;
        const X *from = x + (int64_t)image * (p.h * p.w);
        const D *d = dy + (int64_t)image * (p.oh * p.ow);
        dx[at] = pool_sum(p, iy, ix, [=](int oy, int ox) {
            return pool_argmax(from, p, pool_window(p, oy, ox)) == place ? (real)d[oy * p.ow + ox] : (real)0;
        });
    }
}

/* ------------------------------------------------------------------------------- average */

SIZE int avg_pool_blocks(Pool p)
{
    return each_blocks(pool_outputs(p));
}
template <class Y, class X> DEVICE void avg_pool(Y *y, const X *x, Pool p)
{
    FOR_EACH(at, pool_outputs(p)) {
        const int image = at / (p.oh * p.ow), oy = at / p.ow % p.oh, ox = at % p.ow;
        const X *from = x + (int64_t)image * (p.h * p.w);
        const Window q = pool_window(p, oy, ox);
        real sum = 0;
        for (int i = q.top; i < q.bottom; i++)
            for (int j = q.left; j < q.right; j++)
                sum += from[i * p.w + j];
        y[at] = sum * pool_share(p, q);
    }
}

SIZE int avg_pool_dx_blocks(Pool p)
{
    return each_blocks(pool_inputs(p));
}
template <class Y, class D> DEVICE void avg_pool_dx(Y *dx, const D *dy, Pool p)
{
    FOR_EACH(at, pool_inputs(p)) {
        const int image = at / (p.h * p.w), iy = at / p.w % p.h, ix = at % p.w;
        const D *d = dy + (int64_t)image * (p.oh * p.ow);
        dx[at] = pool_sum(p, iy, ix, [=](int oy, int ox) { return d[oy * p.ow + ox] * pool_share(p, pool_window(p, oy, ox)); });
    }
}

/* ------------------------------------------------------------------------------- global average */

/* y (N, C): a block a channel of an image. */
SIZE int global_avg_pool_blocks(int n, int c, int)
{
    return sum_blocks(n * c);
}
template <class Y, class X> DEVICE void global_avg_pool(Y *y, const X *x, int n, int c, int hw)
{
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

#endif
