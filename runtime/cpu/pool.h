/* pool.h -- max and average pooling of windows and of whole images, and their gradients.
 *
 *   plain: x (N, C, H, W)  y (N, C, OH, OW)
 *   fast:  x (N, H, W, C)  y (N, OH, OW, C), lanes = channels
 *
 * Padding never wins a maximum, and does not count in an average unless count_pad.  The gradient of
 * a maximum goes to the first of equal values in row-major order of the window.  A window that lies
 * completely in the padding gives 0.
 */
#ifndef CPU_POOL_H
#define CPU_POOL_H
#include "cpu/team.h"

typedef struct Pool {
    int n, c, h, w, r, s, stride_h, stride_w, pad_h, pad_w, oh, ow, count_pad;
    int ldy; /* fast kernels: reals from one row of channels of y or dy to the next; 0: c */
} Pool;
RT_INLINE int pool_row(Pool p)
{
    return p.ldy ? p.ldy : p.c;
}

/* The part of the window of output (oy, ox) that lies in the image: rows top .. bottom - 1, columns
 * left .. right - 1. */
typedef struct Window {
    int top, bottom, left, right;
} Window;
RT_INLINE Window pool_window(Pool p, int oy, int ox)
{
    const int y = oy * p.stride_h - p.pad_h, x = ox * p.stride_w - p.pad_w;
    return (Window){y < 0 ? 0 : y, y + p.r > p.h ? p.h : y + p.r, x < 0 ? 0 : x,
                    x + p.s > p.w ? p.w : x + p.s};
}
RT_INLINE bool window_empty(Window q)
{
    return q.top >= q.bottom || q.left >= q.right;
}
RT_INLINE real pool_share(Pool p, Window q)
{
    const int inside = window_empty(q) ? 0 : (q.bottom - q.top) * (q.right - q.left);
    const int count = p.count_pad ? p.r * p.s : inside;
    return count ? (real)1 / (real)count : 0;
}

/* ------------------------------------------------------------------------- forward, both kinds */

/* Maximum of `lanes` channels over a window. */
RT_INLINE vec max_pool_lanes(const real *x, Pool p, Window q, int lanes)
{
    vec best =
        window_empty(q) ? v_set(0) : v_load_lanes(x + ((int64_t)q.top * p.w + q.left) * p.c, lanes);
    for (int i = q.top; i < q.bottom; i++)
        for (int j = q.left; j < q.right; j++)
            best = v_max(v_load_lanes(x + ((int64_t)i * p.w + j) * p.c, lanes), best);
    return best;
}

/* Mean of `lanes` channels over a window. */
RT_INLINE vec avg_pool_lanes(const real *x, Pool p, Window q, int lanes)
{
    vec sum = v_set(0);
    for (int i = q.top; i < q.bottom; i++)
        for (int j = q.left; j < q.right; j++)
            sum += v_load_lanes(x + ((int64_t)i * p.w + j) * p.c, lanes);
    return sum * v_set(pool_share(p, q));
}

/* Computes the rows of y that belong to this member of the team. */
RT_INLINE void pool_outputs(real *restrict y, const real *restrict x, Pool p, bool average)
{
    const TeamRange part = team_range((int64_t)p.n * p.oh);
    for (int64_t i = part.first; i < part.end; i++)
        for (int ox = 0; ox < p.ow; ox++) {
            const real *from = x + i / p.oh * p.h * p.w * p.c;
            real *to = y + (i * p.ow + ox) * pool_row(p);
            const Window q = pool_window(p, (int)(i % p.oh), ox);
            if (average)
                RT_MAP(p.c, STORE(to, avg_pool_lanes(from + AT, p, q, rt_lanes)));
            else
                RT_MAP(p.c, STORE(to, max_pool_lanes(from + AT, p, q, rt_lanes)));
        }
}

/* ------------------------------------------------------------------------------------------ max */

/* Index in the (H, W) image of the window's first maximum, -1 if the window is empty. */
RT_INLINE int pool_argmax(const real *x, Pool p, Window q)
{
    int best = -1;
    for (int i = q.top; i < q.bottom; i++)
        for (int j = q.left; j < q.right; j++)
            if (best < 0 || x[i * p.w + j] > x[best])
                best = i * p.w + j;
    return best;
}

RT_INLINE void max_pool_plain(real *y, const real *x, Pool p)
{
    for (int i = 0; i < p.n * p.c; i++, x += p.h * p.w)
        for (int oy = 0; oy < p.oh; oy++)
            for (int ox = 0; ox < p.ow; ox++) {
                const int at = pool_argmax(x, p, pool_window(p, oy, ox));
                *y++ = at < 0 ? 0 : x[at];
            }
}

RT_INLINE void max_pool_dx_plain(real *dx, const real *x, const real *dy, Pool p)
{
    memset(dx, 0, sizeof(real) * p.n * p.c * p.h * p.w);
    for (int i = 0; i < p.n * p.c; i++, x += p.h * p.w, dx += p.h * p.w)
        for (int oy = 0; oy < p.oh; oy++)
            for (int ox = 0; ox < p.ow; ox++, dy++) {
                const int at = pool_argmax(x, p, pool_window(p, oy, ox));
                if (at >= 0)
                    dx[at] += *dy;
            }
}

RT_INLINE void max_pool(real *restrict y, const real *restrict x, Pool p)
{
    pool_outputs(y, x, p, false);
}

/* RT_MAP over the channels of a team member's part. */
#define POOL_COLUMNS(p, part, ...)                                                                 \
    do {                                                                                           \
        const TeamRange vectors_ = team_columns(part, ((p).c + V - 1) / V);                        \
        RT_MAP_PART((p).c, vectors_, __VA_ARGS__);                                                 \
    } while (0)

/* Clears the part's channels of one image. */
RT_INLINE void pool_clear(real *dx, Pool p, RtGrid part)
{
    if (part.columns == 1)
        memset(dx, 0, sizeof(real) * p.h * p.w * p.c);
    else
        for (int i = 0; i < p.h * p.w; i++, dx += p.c)
            POOL_COLUMNS(p, part, STORE(dx, v_set(0)));
}

/* Reads the window again: a lane takes dy at the first element that equals the maximum, and then no
 * more. */
RT_INLINE void max_pool_dx_lanes(real *dx, const real *x, vec dy, Pool p, Window q, int lanes)
{
    const vec best = max_pool_lanes(x, p, q, lanes);
    for (int i = q.top; i < q.bottom; i++)
        for (int j = q.left; j < q.right; j++) {
            const int64_t at = ((int64_t)i * p.w + j) * p.c;
            const vec less = v_load_lanes(x + at, lanes),
                      given = v_select_gt(best, less, v_set(0), dy);
            v_store_lanes(dx + at, v_load_lanes(dx + at, lanes) + given, lanes);
            dy = v_select_gt(best, less, dy, v_set(0));
        }
}

RT_INLINE void max_pool_dx(real *restrict dx, const real *restrict x, const real *restrict dy,
                           Pool p)
{
    const RtGrid part = team_grid(p.n, (p.c + V - 1) / V);
    const TeamRange samples = team_rows(part, p.n);
    for (int64_t n = samples.first; n < samples.end; n++) {
        const int64_t at = n * p.h * p.w * p.c;
        const real *g = dy + n * p.oh * p.ow * pool_row(p);
        pool_clear(dx + at, p, part);
        for (int oy = 0; oy < p.oh; oy++)
            for (int ox = 0; ox < p.ow; ox++, g += pool_row(p)) {
                const Window q = pool_window(p, oy, ox);
                POOL_COLUMNS(p, part,
                             max_pool_dx_lanes(dx + at + AT, x + at + AT, LOAD(g), p, q, rt_lanes));
            }
    }
}

/* -------------------------------------------------------------------------------------- average */
RT_INLINE void avg_pool_plain(real *y, const real *x, Pool p)
{
    for (int i = 0; i < p.n * p.c; i++, x += p.h * p.w)
        for (int oy = 0; oy < p.oh; oy++)
            for (int ox = 0; ox < p.ow; ox++) {
                const Window q = pool_window(p, oy, ox);
                real sum = 0;
                for (int a = q.top; a < q.bottom; a++)
                    for (int b = q.left; b < q.right; b++)
                        sum += x[a * p.w + b];
                *y++ = sum * pool_share(p, q);
            }
}

RT_INLINE void avg_pool_dx_plain(real *dx, const real *dy, Pool p)
{
    memset(dx, 0, sizeof(real) * p.n * p.c * p.h * p.w);
    for (int i = 0; i < p.n * p.c; i++, dx += p.h * p.w)
        for (int oy = 0; oy < p.oh; oy++)
            for (int ox = 0; ox < p.ow; ox++, dy++) {
                const Window q = pool_window(p, oy, ox);
                for (int a = q.top; a < q.bottom; a++)
                    for (int b = q.left; b < q.right; b++)
                        dx[a * p.w + b] += *dy * pool_share(p, q);
            }
}

RT_INLINE void avg_pool(real *restrict y, const real *restrict x, Pool p)
{
    pool_outputs(y, x, p, true);
}

RT_INLINE void avg_pool_dx(real *restrict dx, const real *restrict dy, Pool p)
{
    const RtGrid part = team_grid(p.n, (p.c + V - 1) / V);
    const TeamRange samples = team_rows(part, p.n);
    for (int64_t n = samples.first; n < samples.end; n++) {
        real *const image = dx + n * p.h * p.w * p.c;
        const real *g = dy + n * p.oh * p.ow * pool_row(p);
        pool_clear(image, p, part);
        for (int oy = 0; oy < p.oh; oy++)
            for (int ox = 0; ox < p.ow; ox++, g += pool_row(p)) {
                const Window q = pool_window(p, oy, ox);
                const vec share = v_set(pool_share(p, q));
                for (int i = q.top; i < q.bottom; i++)
                    for (int j = q.left; j < q.right; j++) {
                        real *to = image + ((int64_t)i * p.w + j) * p.c;
                        POOL_COLUMNS(p, part, STORE(to, LOAD(to) + LOAD(g) * share));
                    }
            }
    }
}

/* ------------------------------------------------------------------------------- global average */
RT_INLINE void global_avg_pool_plain(real *y, const real *x, int n, int c, int hw)
{
    for (int i = 0; i < n * c; i++) {
        real sum = 0;
        for (int j = 0; j < hw; j++)
            sum += x[(int64_t)i * hw + j];
        y[i] = sum / (real)hw;
    }
}

RT_INLINE void global_avg_pool_dx_plain(real *dx, const real *dy, int n, int c, int hw)
{
    for (int i = 0; i < n * c; i++)
        for (int j = 0; j < hw; j++)
            dx[(int64_t)i * hw + j] = dy[i] / (real)hw;
}

RT_INLINE vec global_avg_pool_lanes(const real *x, int c, int hw, int lanes)
{
    vec sum = v_set(0);
    for (int j = 0; j < hw; j++)
        sum += v_load_lanes(x + (int64_t)j * c, lanes);
    return sum / v_set((real)hw);
}

RT_INLINE void global_avg_pool(real *restrict y, const real *restrict x, int n, int c, int hw)
{
    const TeamRange part = team_range(n);
    y += part.first * c, x += part.first * c * hw;
    for (int64_t i = part.first; i < part.end; i++, y += c, x += (int64_t)c * hw)
        RT_MAP(c, STORE(y, global_avg_pool_lanes(x + AT, c, hw, rt_lanes)));
}

RT_INLINE void global_avg_pool_dx(real *restrict dx, const real *restrict dy, int n, int c, int hw)
{
    const TeamRange part = team_range(n);
    dy += part.first * c, dx += part.first * c * hw;
    for (int64_t i = part.first; i < part.end; i++, dy += c)
        for (int j = 0; j < hw; j++, dx += c)
            RT_MAP(c, STORE(dx, LOAD(dy) / v_set((real)hw)));
}

/* ------------------------------------------------------------------------------- global maximum */
RT_INLINE void global_max_pool_plain(real *y, const real *x, int n, int c, int hw)
{
    for (int i = 0; i < n * c; i++, x += hw) {
        y[i] = x[0];
        for (int j = 1; j < hw; j++)
            y[i] = x[j] > y[i] ? x[j] : y[i];
    }
}

RT_INLINE void global_max_pool_dx_plain(real *dx, const real *x, const real *dy, int n, int c,
                                        int hw)
{
    for (int i = 0; i < n * c; i++, x += hw, dx += hw) {
        int best = 0;
        for (int j = 1; j < hw; j++)
            best = x[j] > x[best] ? j : best;
        for (int j = 0; j < hw; j++)
            dx[j] = j == best ? dy[i] : 0;
    }
}

RT_INLINE vec global_max_pool_lanes(const real *x, int c, int hw, int lanes)
{
    vec best = v_load_lanes(x, lanes);
    for (int j = 1; j < hw; j++)
        best = v_max(v_load_lanes(x + (int64_t)j * c, lanes), best);
    return best;
}

RT_INLINE void global_max_pool(real *restrict y, const real *restrict x, int n, int c, int hw)
{
    const TeamRange part = team_range(n);
    y += part.first * c, x += part.first * c * hw;
    for (int64_t i = part.first; i < part.end; i++, y += c, x += (int64_t)c * hw)
        RT_MAP(c, STORE(y, global_max_pool_lanes(x + AT, c, hw, rt_lanes)));
}

/* Each lane gives dy to the first pixel that has the maximum, and 0 to the others. */
RT_INLINE void global_max_pool_dx_lanes(real *dx, const real *x, vec dy, int c, int hw, int lanes)
{
    const vec best = global_max_pool_lanes(x, c, hw, lanes);
    for (int64_t at = 0; at < (int64_t)hw * c; at += c) {
        const vec less = v_load_lanes(x + at, lanes);
        v_store_lanes(dx + at, v_select_gt(best, less, v_set(0), dy), lanes);
        dy = v_select_gt(best, less, dy, v_set(0));
    }
}

RT_INLINE void global_max_pool_dx(real *restrict dx, const real *restrict x,
                                  const real *restrict dy, int n, int c, int hw)
{
    const TeamRange part = team_range(n);
    for (int64_t i = part.first; i < part.end; i++) {
        const int64_t at = i * c * hw;
        RT_MAP(c, global_max_pool_dx_lanes(dx + at + AT, x + at + AT, LOAD(dy + i * c), c, hw,
                                           rt_lanes));
    }
}

#endif
