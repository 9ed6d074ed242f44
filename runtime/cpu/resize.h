/* resize.h -- images with another number of rows and columns, and the gradient.
 *
 *   plain: x (N, C, H, W)  y (N, C, OH, OW)
 *   fast:  x (N, H, W, C)  y (N, OH, OW, C), lanes = channels
 *
 *   nearest    output i reads pixel floor(i h / oh)
 *   bilinear   output i reads pixels r and min(r + 1, h - 1) with the weights 1 - v and v;
 *              r + v = max(0, (i + 1/2) h / oh - 1/2)
 *
 * The same along columns.  The fast gradient computes a pixel of dx from all dy that read the
 * pixel, in ascending order of rows and columns.  So no two threads write a number of dx: a part of
 * a team is a range of rows of dx.
 */
#ifndef CPU_RESIZE_H
#define CPU_RESIZE_H
#include "cpu/team.h"

typedef struct Resize {
    int n, c, h, w, oh, ow;
    int ldy; /* fast kernels: reals from one row of channels of y or dy to the next; 0: c */
    bool bilinear;
} Resize;
RT_INLINE int resize_row(Resize p)
{
    return p.ldy ? p.ldy : p.c;
}

/* What an output reads along one axis: pixels at and next, with the weights 1 - far and far. */
typedef struct Taps {
    int at, next;
    real far;
} Taps;

/* The taps of output i, of `out` outputs over `in` pixels. */
RT_INLINE Taps resize_taps(int i, int in, int out, bool bilinear)
{
    if (!bilinear) {
        const int at = (int)((int64_t)i * in / out);
        return (Taps){at, at, 0};
    }
    const int64_t twice = (2 * (int64_t)i + 1) * in - out, place = twice < 0 ? 0 : twice;
    const int at = (int)(place / (2 * (int64_t)out));
    const int64_t rest = place % (2 * (int64_t)out);
    return (Taps){at, at + 1 < in ? at + 1 : at, (real)rest / (real)(2 * (int64_t)out)};
}

/* The weight with which an output reads pixel `at`. */
RT_INLINE real resize_weight(Taps t, int at)
{
    return (t.at == at ? 1 - t.far : 0) + (t.next == at ? t.far : 0);
}

/* The first output with Taps.at >= at, at most `out`. */
RT_INLINE int resize_first(int64_t at, int64_t in, int64_t out, bool bilinear)
{
    const int64_t over = bilinear ? (2 * at + 1) * out - in : at * out;
    const int64_t unit = bilinear ? 2 * in : in;
    const int64_t first = at <= 0 ? 0 : (over + unit - 1) / unit;
    return (int)(first < out ? first : out);
}

/* The outputs first .. end - 1 that read pixel `at`. */
RT_INLINE TeamRange resize_readers(int at, int in, int out, bool bilinear)
{
    return (TeamRange){resize_first(at - (bilinear ? 1 : 0), in, out, bilinear),
                       at + 1 < in ? resize_first(at + 1, in, out, bilinear) : out};
}

/* ------------------------------------------------------------------------------------ reference */
RT_INLINE void resize_plain(real *y, const real *x, Resize p)
{
    for (int i = 0; i < p.n * p.c; i++, x += p.h * p.w)
        for (int oy = 0; oy < p.oh; oy++)
            for (int ox = 0; ox < p.ow; ox++) {
                const Taps r = resize_taps(oy, p.h, p.oh, p.bilinear);
                const Taps s = resize_taps(ox, p.w, p.ow, p.bilinear);
                const real *above = x + r.at * p.w, *below = x + r.next * p.w;
                *y++ = (1 - r.far) * ((1 - s.far) * above[s.at] + s.far * above[s.next]) +
                       r.far * ((1 - s.far) * below[s.at] + s.far * below[s.next]);
            }
}

RT_INLINE void resize_dx_plain(real *dx, const real *dy, Resize p)
{
    memset(dx, 0, sizeof(real) * p.n * p.c * p.h * p.w);
    for (int i = 0; i < p.n * p.c; i++, dx += p.h * p.w)
        for (int oy = 0; oy < p.oh; oy++)
            for (int ox = 0; ox < p.ow; ox++, dy++) {
                const Taps r = resize_taps(oy, p.h, p.oh, p.bilinear);
                const Taps s = resize_taps(ox, p.w, p.ow, p.bilinear);
                dx[r.at * p.w + s.at] += (1 - r.far) * (1 - s.far) * *dy;
                dx[r.at * p.w + s.next] += (1 - r.far) * s.far * *dy;
                dx[r.next * p.w + s.at] += r.far * (1 - s.far) * *dy;
                dx[r.next * p.w + s.next] += r.far * s.far * *dy;
            }
}

/* ----------------------------------------------------------------------------------------- fast */

/* Interpolates between four pixels of one image. */
RT_INLINE void resize_pixel(real *restrict y, const real *restrict x, Resize p, Taps r, Taps s)
{
    const real *a = x + ((int64_t)r.at * p.w + s.at) * p.c,
               *b = x + ((int64_t)r.at * p.w + s.next) * p.c,
               *c = x + ((int64_t)r.next * p.w + s.at) * p.c,
               *d = x + ((int64_t)r.next * p.w + s.next) * p.c;
    const vec wa = v_set((1 - r.far) * (1 - s.far)), wb = v_set((1 - r.far) * s.far),
              wc = v_set(r.far * (1 - s.far)), wd = v_set(r.far * s.far);
    RT_MAP(p.c, STORE(y, v_fma(wd, LOAD(d), v_fma(wc, LOAD(c), v_fma(wb, LOAD(b), wa * LOAD(a))))));
}

RT_INLINE void resize(real *restrict y, const real *restrict x, Resize p)
{
    const TeamRange part = team_range((int64_t)p.n * p.oh);
    for (int64_t i = part.first; i < part.end; i++) {
        const real *image = x + i / p.oh * p.h * p.w * p.c;
        const Taps r = resize_taps((int)(i % p.oh), p.h, p.oh, p.bilinear);
        real *to = y + i * p.ow * resize_row(p);
        for (int ox = 0; ox < p.ow; ox++, to += resize_row(p)) {
            const Taps s = resize_taps(ox, p.w, p.ow, p.bilinear);
            const real *from = image + ((int64_t)r.at * p.w + s.at) * p.c;
            if (p.bilinear)
                resize_pixel(to, image, p, r, s);
            else
                RT_MAP(p.c, STORE(to, LOAD(from)));
        }
    }
}

/* Weights of up to RT_RESIZE_TAPS readers along one axis: a scale of 3 has 6. */
enum { RT_RESIZE_TAPS = 6 };
typedef struct Weights {
    int first, n;
    real of[RT_RESIZE_TAPS];
} Weights;

RT_INLINE Weights resize_weights(int at, int64_t first, int64_t end, int in, int out, bool bilinear)
{
    Weights k = {(int)first,
                 (int)(end - first < RT_RESIZE_TAPS ? end - first : RT_RESIZE_TAPS),
                 {0}};
    for (int i = 0; i < k.n; i++)
        k.of[i] = resize_weight(resize_taps(k.first + i, in, out, bilinear), at);
    return k;
}

/* The weighted sum of a rectangle of dy, in `lanes` channels. */
RT_INLINE vec resize_sum(const real *dy, Resize p, const Weights *r, const Weights *s, int lanes)
{
    vec sum = v_set(0);
    for (int i = 0; i < r->n; i++) {
        const real *from = dy + ((int64_t)(r->first + i) * p.ow + s->first) * resize_row(p);
        vec row = v_set(0);
        for (int j = 0; j < s->n; j++, from += resize_row(p))
            row = v_fma(v_set(s->of[j]), v_load_lanes(from, lanes), row);
        sum = v_fma(v_set(r->of[i]), row, sum);
    }
    return sum;
}

/* Computes a row of dx from up to RT_RESIZE_TAPS rows of dy, the gradient of one image.
 * more_rows: adds these rows of dy to those that dx has already. */
RT_INLINE void resize_dx_row(real *restrict dx, const real *restrict dy, Resize p, const Weights *r,
                             bool more_rows)
{
    for (int ix = 0; ix < p.w; ix++, dx += p.c) {
        const TeamRange columns = resize_readers(ix, p.w, p.ow, p.bilinear);
        bool more = more_rows;
        int64_t ox = columns.first;
        do { /* also for a pixel without readers, which gets 0 */
            const Weights s = resize_weights(ix, ox, columns.end, p.w, p.ow, p.bilinear);
            RT_MAP(p.c, const vec sum = resize_sum(dy + AT, p, r, &s, rt_lanes);
                   STORE(dx, more ? LOAD(dx) + sum : sum));
            more = true, ox += RT_RESIZE_TAPS;
        } while (ox < columns.end);
    }
}

RT_INLINE void resize_dx(real *restrict dx, const real *restrict dy, Resize p)
{
    const TeamRange part = team_range((int64_t)p.n * p.h);
    for (int64_t i = part.first; i < part.end; i++) {
        const int iy = (int)(i % p.h);
        const TeamRange rows = resize_readers(iy, p.h, p.oh, p.bilinear);
        int64_t oy = rows.first;
        do {
            const Weights r = resize_weights(iy, oy, rows.end, p.h, p.oh, p.bilinear);
            resize_dx_row(dx + i * p.w * p.c, dy + i / p.h * p.oh * p.ow * resize_row(p), p, &r,
                          oy > rows.first);
            oy += RT_RESIZE_TAPS;
        } while (oy < rows.end);
    }
}

#endif
