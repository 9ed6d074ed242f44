/* conv.cuh -- two-dimensional convolution and its gradients.
 *
 *   x (N, C, H, W)   w (O, C/groups, R, S)   y (N, O, OH, OW)
 *   last: x (N, H, W, C)   w (O, R, S, C/groups)   y (N, OH, OW, O)
 *
 * Forward and dx are products: columns are positions of all images, and the depth is the taps of a
 * filter.  The matrix with the window of each position is never stored; its addresses are computed
 * (implicit GEMM).  The gradient of the filters is a product too.  Products with few blocks have
 * their sums in parts (parts.cuh).  In groups with few filters, a tile of the filters' product
 * would be nearly empty.  There a block takes one filter and input channel, its threads divide the
 * positions, and their sums are added in the order of threads.cuh.
 */
#ifndef CUDA_CONV_CUH
#define CUDA_CONV_CUH

struct Conv {
    int n, c, h, w, o, r, s, stride_h, stride_w, pad_h, pad_w, dil_h, dil_w, groups, oh, ow;
    bool last;
};

/* Channels that a filter reads; filters of a group. */
SIZE int conv_inputs(Conv c)
{
    return c.c / c.groups;
}
SIZE int conv_outputs(Conv c)
{
    return c.o / c.groups;
}

/* Offset of a number in images x and dx, y and dy, or in filters; place: a pixel or a tap. */
DEVICE int64_t conv_at(Conv c, int n, int channel, int channels, int place, int places)
{
    return c.last ? ((int64_t)n * places + place) * channels + channel
                  : ((int64_t)n * channels + channel) * places + place;
}
DEVICE int64_t conv_x(Conv c, int n, int channel, int place)
{
    return conv_at(c, n, channel, c.c, place, c.h * c.w);
}
DEVICE int64_t conv_y(Conv c, int n, int o, int place)
{
    return conv_at(c, n, o, c.o, place, c.oh * c.ow);
}
DEVICE int64_t conv_w(Conv c, int o, int i, int place)
{
    return conv_at(c, o, i, conv_inputs(c), place, c.r * c.s);
}

/* Whether every tap of every window lies inside of the image: then no bounds are checked. */
SIZE bool conv_inside(Conv c)
{
    return c.pad_h == 0 && c.pad_w == 0 && (c.oh - 1) * c.stride_h + (c.r - 1) * c.dil_h < c.h &&
           (c.ow - 1) * c.stride_w + (c.s - 1) * c.dil_w < c.w;
}

/* A part of the place of a number in images: offset or address, row, column.  A window has one
 * part, and a tap the other; the place is their sum. */
template <class At> struct ConvPlace {
    At at;
    int y, x;
};
template <class X> DEVICE ConvPlace<const X *> conv_from(const X *x, ConvPlace<int64_t> p)
{
    return {kept(x + p.at), p.y, p.x};
}
/* The first pixel of the window at position `at` (n, oy, ox); it can lie outside of the image. */
DEVICE ConvPlace<int64_t> conv_position(Conv c, int at)
{
    const int n = at / (c.oh * c.ow), y = at / c.ow % c.oh * c.stride_h - c.pad_h,
              x = at % c.ow * c.stride_w - c.pad_w;
    return {conv_x(c, n, 0, y * c.w + x), y, x};
}
/* Tap `place` of a window, in an input channel. */
DEVICE ConvPlace<int64_t> conv_tap(Conv c, int channel, int place)
{
    const int y = place / c.s * c.dil_h, x = place % c.s * c.dil_w;
    return {conv_x(c, 0, channel, y * c.w + x), y, x};
}
/* The number of x at the sum of two parts: 0 outside of the image. */
template <class X>
DEVICE Number<X> conv_number(Conv c, ConvPlace<const X *> a, ConvPlace<int64_t> b)
{
    const unsigned y = a.y + b.y, x = a.x + b.x;
    return {a.at + b.at, conv_inside(c) || (y < (unsigned)c.h && x < (unsigned)c.w)};
}

/* ------------------------------------------------------------------------------- forward */

SIZE int conv2d_blocks(Conv c)
{
    return c.groups * product_blocks(conv_outputs(c), c.n * c.oh * c.ow);
}

/* Rows: a group's filters.  Columns: positions (n, oy, ox).  Depth: taps (i, r, s), in w's
 * order. */
DEVICE auto conv2d_filters(const real *w, Conv c, int group)
{
    const int o0 = group * conv_outputs(c);
    return operand<ALONG_K>([=](int o) { return kept(w + conv_w(c, o0 + o, 0, 0)); },
                            [=](int tap) {
                                return c.last ? conv_w(c, 0, tap / (c.r * c.s), tap % (c.r * c.s))
                                              : (int64_t)tap;
                            },
                            [](const real *filter, int64_t tap) {
                                return Number<real>{filter + tap, true};
                            });
}
DEVICE auto conv2d_windows(const real *x, Conv c, int group)
{
    const int i0 = group * conv_inputs(c);
    return operand<ALONG_RESULT>([=](int at) { return conv_from(x, conv_position(c, at)); },
                                 [=](int tap) {
                                     return conv_tap(c, i0 + tap / (c.r * c.s), tap % (c.r * c.s));
                                 },
                                 [=](ConvPlace<const real *> at, ConvPlace<int64_t> tap) {
                                     return conv_number(c, at, tap);
                                 });
}
/* The index in y of a filter and a position. */
DEVICE int64_t conv2d_index(Conv c, int group, int o, int at)
{
    return conv_y(c, at / (c.oh * c.ow), group * conv_outputs(c) + o, at % (c.oh * c.ow));
}
DEVICE void conv2d_block(unsigned block, real *y, const real *x, const real *w, Conv c)
{
    const int blocks = product_blocks(conv_outputs(c), c.n * c.oh * c.ow), group = block / blocks;
    product(block % blocks, conv_outputs(c), c.n * c.oh * c.ow, conv_inputs(c) * c.r * c.s,
            conv2d_filters(w, c, group), conv2d_windows(x, c, group),
            [=](int o, int at, real sum, int) { y[conv2d_index(c, group, o, at)] = sum; });
}
DEVICE void conv2d(real *y, const real *x, const real *w, Conv c)
{
    FOR_BLOCKS(block, conv2d_blocks(c))
        conv2d_block(block, y, x, w, c);
}

/* Computes the operations after a convolution, in place: y = y + the channel's b + a (nullptr:
 * nothing), then relu.  A channel has `run` adjacent numbers. */
template <class Y, class B, class A>
DEVICE void conv2d_rest(Y *y, const B *b, const A *a, int count, int channels, int run, bool relu)
{
    FOR_EACH(i, count) {
        real sum = y[i];
        if (b)
            sum += (real)b[i / run % channels];
        if (a)
            sum += (real)a[i];
        y[i] = relu ? s_relu(sum) : sum;
    }
}

/* ------------------------------------------------------------------------------- dx */

SIZE int conv2d_dx_blocks(Conv c)
{
    return c.groups * product_blocks(conv_inputs(c), c.n * c.h * c.w, RT_TILE_DX);
}

/* Rows of taps: their first row, and how many. */
struct ConvTapRows {
    int first, count;
};

/* The rows of taps that pixels of rows y_first to y_last meet: at least one. */
SIZE ConvTapRows conv2d_dx_rows(Conv c, int y_first, int y_last)
{
    const int above = y_first + c.pad_h - (c.oh - 1) * c.stride_h,
              first = above > 0 ? ceil_div(above, c.dil_h) : 0,
              last = (y_last + c.pad_h) / c.dil_h < c.r ? (y_last + c.pad_h) / c.dil_h : c.r - 1;
    return first < c.r && first <= last ? ConvTapRows{first, last - first + 1} : ConvTapRows{0, 1};
}

/* Near the edges of an image, a pixel meets few rows of taps.  If that saves a fifth of the
 * products, the columns of a tile are pixels of one row of several images, so that a block skips
 * the other taps, whose products are 0.  Returns the number of these images, whose columns stand
 * together: (n / images, iy, n % images, ix); 1: columns are (n, iy, ix). */
SIZE int conv2d_dx_images(Conv c)
{
    constexpr int largest = RT_TILE_DX, columns = RT_TILE_COLUMNS(largest);
    int images = columns, met = 0;
    while (images > 1 && images / 2 * c.w % columns == 0)
        images /= 2;
    for (int y = 0; y < c.h; y++)
        met += conv2d_dx_rows(c, y, y).count;
    return !c.last && c.s > 1 && c.n % images == 0 && 5 * met <= 4 * c.h * c.r ? images : 1;
}
struct ConvPixel {
    int n, y, x;
};
DEVICE ConvPixel conv2d_dx_pixel(Conv c, int at)
{
    const int images = conv2d_dx_images(c), all = images * c.h * c.w, n = at / all * images,
              here = at % all;
    return {n + here / c.w % images, here / (images * c.w), here % c.w};
}
/* The rows of taps of the columns first to last of a product. */
DEVICE ConvTapRows conv2d_dx_tap_rows(Conv c, int first, int last)
{
    const int images = conv2d_dx_images(c), all = images * c.h * c.w;
    if (images == 1 || first / all != last / all)
        return {0, c.r};
    return conv2d_dx_rows(c, first % all / (images * c.w), last % all / (images * c.w));
}

/* A step of the sum: filter and tap. */
struct ConvStep {
    int o, tap, r, s;
};
DEVICE ConvStep conv2d_dx_step(Conv c, ConvTapRows rows, int step)
{
    if (conv2d_dx_images(c) == 1)
        return {step / (c.r * c.s), step % (c.r * c.s), step / c.s % c.r, step % c.s};
    /* the quotient is exact, because step * taps < 2^32 */
    const unsigned taps = rows.count * c.s, o = (uint64_t)step * (0xffffffffu / taps + 1) >> 32;
    const int tap = rows.first * c.s + step - (int)(o * taps);
    return {(int)o, tap, tap / c.s, tap % c.s};
}

/* Rows: a group's input channels.  Columns: pixels.  Depth: (o, r, s) for the rows of taps; pixel
 * iy uses tap r at output (iy + pad - r dil) / stride if that is whole. */
DEVICE auto conv2d_dx_filters(const real *w, Conv c, int group, ConvTapRows rows)
{
    const int o0 = group * conv_outputs(c);
    return operand<ALONG_K>([=](int i) { return kept(w + conv_w(c, o0, i, 0)); },
                            [=](int step) {
                                const ConvStep t = conv2d_dx_step(c, rows, step);
                                return conv_w(c, t.o, 0, t.tap);
                            },
                            [](const real *channel, int64_t tap) {
                                return Number<real>{channel + tap, true};
                            });
}
DEVICE auto conv2d_dx_outputs(const real *dy, Conv c, int group, ConvTapRows rows)
{
    const int o0 = group * conv_outputs(c);
    return operand<ALONG_RESULT>(
        [=](int at) {
            const ConvPixel p = conv2d_dx_pixel(c, at);
            return ConvPlace<const real *>{kept(dy + conv_y(c, p.n, o0, 0)), p.y + c.pad_h,
                                           p.x + c.pad_w};
        },
        [=](int step) {
            const ConvStep t = conv2d_dx_step(c, rows, step);
            return ConvPlace<int64_t>{conv_y(c, 0, t.o, 0), -t.r * c.dil_h, -t.s * c.dil_w};
        },
        [=](ConvPlace<const real *> pixel, ConvPlace<int64_t> tap) {
            const int up = pixel.y + tap.y, left = pixel.x + tap.x, oy = up / c.stride_h,
                      ox = left / c.stride_w;
            const bool meets = up >= 0 && left >= 0 && up % c.stride_h == 0 &&
                               left % c.stride_w == 0 && oy < c.oh && ox < c.ow;
            return Number<real>{pixel.at + tap.at + conv_y(c, 0, 0, oy * c.ow + ox), meets};
        });
}
/* The index in dx of an input channel and a pixel. */
DEVICE int64_t conv2d_dx_index(Conv c, int group, int i, int at)
{
    const ConvPixel p = conv2d_dx_pixel(c, at);
    return conv_x(c, p.n, group * conv_inputs(c) + i, p.y * c.w + p.x);
}
DEVICE void conv2d_dx_block(unsigned block, real *dx, const real *w, const real *dy, Conv c)
{
    const int pixels = c.n * c.h * c.w, blocks = product_blocks(conv_inputs(c), pixels, RT_TILE_DX),
              group = block / blocks,
              columns = RT_TILE_COLUMNS(product_tile(conv_inputs(c), pixels, RT_TILE_DX)),
              first = block % blocks % ceil_div(pixels, columns) * columns;
    const ConvTapRows rows =
        conv2d_dx_tap_rows(c, first, (first + columns < pixels ? first + columns : pixels) - 1);
    product(
        block % blocks, conv_inputs(c), pixels, conv_outputs(c) * rows.count * c.s,
        conv2d_dx_filters(w, c, group, rows), conv2d_dx_outputs(dy, c, group, rows),
        [=](int i, int at, real sum, int) { dx[conv2d_dx_index(c, group, i, at)] = sum; },
        RT_TILE_DX);
}
DEVICE void conv2d_dx(real *dx, const real *w, const real *dy, Conv c)
{
    FOR_BLOCKS(block, conv2d_dx_blocks(c))
        conv2d_dx_block(block, dx, w, dy, c);
}

/* ------------------------------------------------------------------------------- dw */

struct ConvSums {
    real of_warp[WARPS][WARP];
};

/* dw[o][i][r][s] = sum over (n, oy, ox) of dy[n][o][oy][ox] x[n][i][iy][ix].  A block has an (o, i)
 * and 32 taps at a time.  A thread has a sum for each tap; lane t of a warp gets the warp's sum of
 * tap t, and thread t adds those of the warps in order. */
SIZE int conv2d_dw_blocks(Conv c)
{
    return c.o * conv_inputs(c);
}
template <class X, class D>
DEVICE void conv2d_dw_block(unsigned block, real *dw, const X *x, const D *dy, Conv c, bool write)
{
    SHARED(ConvSums, sums);
    const int o = block / conv_inputs(c), i = block % conv_inputs(c);
    const int channel = o / conv_outputs(c) * conv_inputs(c) + i, places = c.oh * c.ow,
              taps = c.r * c.s;

    /* each tap is a constant: else 32 rows and columns would stay in registers */
    RT_UNROLL
    for (int tap0 = 0; tap0 < taps; tap0 += WARP) {
        real sum[WARP] = {};
        for (int at = threadIdx.x; at < c.n * places; at += THREADS) {
            const int n = at / places, oy = at / c.ow % c.oh, ox = at % c.ow;
            const real d = dy[conv_y(c, n, o, at % places)];
            const X *image = x + conv_x(c, n, channel, 0);
            RT_UNROLL
            for (int t = 0; t < WARP; t++) {
                const int r = (tap0 + t) / c.s, s = (tap0 + t) % c.s;
                const int iy = oy * c.stride_h - c.pad_h + r * c.dil_h,
                          ix = ox * c.stride_w - c.pad_w + s * c.dil_w;
                if (r < c.r && iy >= 0 && iy < c.h && ix >= 0 && ix < c.w)
                    sum[t] = s_fma(d, image[(iy * c.w + ix) * (c.last ? c.c : 1)], sum[t]);
            }
        }
        warp_sums(sum);
        sums.of_warp[threadIdx.x / WARP][threadIdx.x % WARP] = sum[0];
        block_sync(); /* the sums of all warps are complete */
        const int tap = tap0 + threadIdx.x;
        if (threadIdx.x < WARP && tap < taps) {
            real all = 0;
            for (int k = 0; k < WARPS; k++)
                all += sums.of_warp[k][threadIdx.x];
            real *to = dw + conv_w(c, o, i, tap);
            *to = write ? all : *to + all;
        }
        block_sync(); /* all threads have read them */
    }
}
template <class X, class D>
DEVICE void conv2d_dw(real *dw, const X *x, const D *dy, Conv c, bool write)
{
    FOR_BLOCKS(block, conv2d_dw_blocks(c))
        conv2d_dw_block(block, dw, x, dy, c, write);
}

#endif
