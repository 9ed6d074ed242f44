/* resize.cuh -- images with another number of rows and columns, and the gradient: a thread for each
 * number of the result.
 *
 *   x (N, C, H, W)  y (N, C, OH, OW)      last: (N, H, W, C) and (N, OH, OW, C)
 *
 * Positions and weights are those of runtime/cpu/resize.h.  The gradient of a pixel is a sum of all
 * dy that read the pixel, in ascending order of rows and columns, so no two threads add to one
 * number.
 */
#ifndef CUDA_RESIZE_CUH
#define CUDA_RESIZE_CUH

struct Resize {
    int n, c, h, w, oh, ow;
    bool bilinear, last;
};

/* What an output reads along one axis: pixels at and next, with the weights 1 - far and far. */
struct Taps {
    int at, next;
    real far;
};
/* The taps of output i, of `out` outputs over `in` pixels. */
DEVICE Taps resize_taps(int i, int in, int out, bool bilinear)
{
    if (!bilinear) {
        const int at = (int)((int64_t)i * in / out);
        return Taps{at, at, 0};
    }
    const int64_t twice = (2 * (int64_t)i + 1) * in - out, place = twice < 0 ? 0 : twice;
    const int at = (int)(place / (2 * (int64_t)out));
    const int64_t rest = place % (2 * (int64_t)out);
    return Taps{at, at + 1 < in ? at + 1 : at, (real)rest / (real)(2 * (int64_t)out)};
}
/* The weight with which an output reads pixel `at`. */
DEVICE real resize_weight(Taps t, int at)
{
    return (t.at == at ? 1 - t.far : (real)0) + (t.next == at ? t.far : (real)0);
}
/* The first output with Taps.at >= at, at most `out`. */
DEVICE int resize_first(int64_t at, int64_t in, int64_t out, bool bilinear)
{
    const int64_t over = bilinear ? (2 * at + 1) * out - in : at * out;
    const int64_t unit = bilinear ? 2 * in : in;
    const int64_t first = at <= 0 ? 0 : (over + unit - 1) / unit;
    return (int)(first < out ? first : out);
}
/* The outputs first .. end - 1 that read pixel `at`. */
struct Readers {
    int first, end;
};
DEVICE Readers resize_readers(int at, int in, int out, bool bilinear)
{
    return Readers{resize_first(at - (bilinear ? 1 : 0), in, out, bilinear),
                   at + 1 < in ? resize_first(at + 1, in, out, bilinear) : out};
}

/* Where element `at` of a value with images of rows x columns lies: its row and column, and the
 * offset `plane` of the image of its channel in the other value, whose images have `to` pixels. */
struct Spot {
    int row, column;
    int64_t plane;
};
DEVICE Spot resize_spot(Resize p, unsigned at, int rows, int columns, int to)
{
    const unsigned from = rows * columns, place = p.last ? at / p.c % from : at % from;
    const int64_t plane =
        p.last ? (int64_t)(at / (p.c * from)) * p.c * to + at % p.c : (int64_t)(at / from) * to;
    return Spot{(int)(place / columns), (int)(place % columns), plane};
}
/* Reals from a pixel of a channel to the next pixel. */
DEVICE int resize_step(Resize p)
{
    return p.last ? p.c : 1;
}

SIZE int resize_blocks(Resize p)
{
    return each_blocks(p.n * p.c * p.oh * p.ow);
}
template <class Y, class X> DEVICE void resize(Y *y, const X *x, Resize p)
{
    FOR_EACH(at, p.n * p.c * p.oh * p.ow) {
        const Spot spot = resize_spot(p, at, p.oh, p.ow, p.h * p.w);
        const Taps r = resize_taps(spot.row, p.h, p.oh, p.bilinear);
        const Taps s = resize_taps(spot.column, p.w, p.ow, p.bilinear);
        const X *above = x + spot.plane + (int64_t)r.at * p.w * resize_step(p);
        const X *below = x + spot.plane + (int64_t)r.next * p.w * resize_step(p);
        const int left = s.at * resize_step(p), right = s.next * resize_step(p);
        y[at] = !p.bilinear
                    ? (real)above[left]
                    : (1 - r.far) * ((1 - s.far) * (real)above[left] + s.far * (real)above[right]) +
                          r.far * ((1 - s.far) * (real)below[left] + s.far * (real)below[right]);
    }
}

SIZE int resize_dx_blocks(Resize p)
{
    return each_blocks(p.n * p.c * p.h * p.w);
}
template <class Y, class D> DEVICE void resize_dx(Y *dx, const D *dy, Resize p)
{
    FOR_EACH(at, p.n * p.c * p.h * p.w) {
        const Spot spot = resize_spot(p, at, p.h, p.w, p.oh * p.ow);
        const Readers rows = resize_readers(spot.row, p.h, p.oh, p.bilinear);
        const Readers columns = resize_readers(spot.column, p.w, p.ow, p.bilinear);
        real sum = 0;
        for (int i = rows.first; i < rows.end; i++) {
            const D *from = dy + spot.plane + (int64_t)i * p.ow * resize_step(p);
            real row = 0;
            for (int j = columns.first; j < columns.end; j++)
                row += resize_weight(resize_taps(j, p.w, p.ow, p.bilinear), spot.column) *
                       (real)from[(int64_t)j * resize_step(p)];
            sum += resize_weight(resize_taps(i, p.h, p.oh, p.bilinear), spot.row) * row;
        }
        dx[at] = sum;
    }
}

#endif
