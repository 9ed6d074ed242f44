/* conv_pool_take.h -- for conv_pool_dw.h: lists of the parts of the image that the outputs of a
 * convolution read, where a 2x2 max-pool is fused with it.
 *
 * The output of a window comes from one of four corners.  Lists hold, for each output, offsets into
 * the frame and gradients, so that a sweep over a list is a loop of multiply-adds only.
 */
#ifndef CPU_CONV_POOL_TAKE_H
#define CPU_CONV_POOL_TAKE_H
#include "cpu/conv_pool_run.h"

/* Some windows of a band.  window: offset in dy; from: offset of its first corner in the frame;
 * middle: a bit for each of V windows that begin in the middle of a line. */
enum { TAKEN_OUTPUTS = V > 8 ? V : 8, TAKEN_WINDOWS = 128 };
typedef struct PoolWindow {
    int count, window[TAKEN_WINDOWS];
    RtInt from[TAKEN_WINDOWS];
    unsigned middle[TAKEN_WINDOWS / V];
} PoolWindow;

/* The lists of some outputs over these windows: offsets in the frame, and gradients as factors.
 * Runs that begin in the middle of a line have lists of their own, [1].  Zeros, which a relu
 * produces, are in no list. */
typedef struct PoolTaken {
    int count[2][TAKEN_OUTPUTS];
    RtInt at[2][TAKEN_OUTPUTS][TAKEN_WINDOWS + V];
    real g[2][TAKEN_OUTPUTS][TAKEN_WINDOWS + V];
} PoolTaken;

/* Whether windows of odd columns begin in the middle of a line. */
RT_INLINE bool pool_middle(Conv c)
{
    const RunSplit s = run_split(c);
    return V / VH == 2 && 2 * c.stride_w * c.c % V == VH && s.parts == 1 && s.lanes <= VH;
}

RT_INLINE void pool_windows(PoolWindow *w, PoolFrame f, Conv c, int first, int count)
{
    const int across = c.ow / 2;
    memset(w->middle, 0, sizeof w->middle);
    w->count = count;
    for (int i = 0; i < count; i++) {
        const int py = (first + i) / across, px = (first + i) % across;
        w->window[i] = (first + i) * c.o;
        w->from[i] = 2 * py * c.stride_h * (int)f.row + 2 * px * c.stride_w * c.c;
        w->middle[i / V] |= (unsigned)(pool_middle(c) && px % 2) << i % V;
    }
}

#ifdef RT_AVX512
/* Appends the windows in `some`, a bit each, of V windows, for output o. */
RT_INLINE void pool_append(PoolTaken *k, int half, int o, vec at, vec g, unsigned some)
{
    const int n = k->count[half][o];
    v_store(k->g[half][o] + n, v_together(g, (int)some));
    v_store((real *)(k->at[half][o] + n), v_together(at, (int)some));
    k->count[half][o] = n + __builtin_popcount(some);
}

/* Lists V windows from `first` on, or the rest.  dy and index are transposed, so that lists go
 * output by output; without the transposition, LeNet's conv2d_pool_dw takes a tenth longer. */
RT_INLINE void pool_take_vector(PoolTaken *k, const PoolWindow *w, int first, PoolFrame f,
                                const real *dy, const uint8_t *index, Conv c, int outputs)
{
    const real right = pool_corner(f, c, 1), down = pool_corner(f, c, 2);
    vec g[V], at[V];
    RT_UNROLL
    for (int i = 0; i < V; i++) {
        const bool there = first + i < w->count;
        const int window = there ? first + i : first;
        const uint8_t *number = index + w->window[window];
        uint8_t few[V] = {0};
        if (outputs < V)
            number = memcpy(few, number, outputs);
        const vec n = v_load_bytes(number), low = v_select_gt(n, v_set(1.5), v_set(1), v_set(0));
        g[i] = there ? v_load_lanes(dy + w->window[window], outputs) : v_set(0);
        at[i] = (vec)(__builtin_convertvector(low * down + (n - low * 2) * right, vint) +
                      w->from[window]);
    }
    v_transpose(g);
    v_transpose(at);
    RT_UNROLL
    for (int o = 0; o < V; o++)
        if (o < outputs) {
            const unsigned full = v_nonzero(g[o]), middle = w->middle[first / V];
            pool_append(k, 0, o, at[o], g[o], full & ~middle);
            if (pool_middle(c))
                pool_append(k, 1, o, at[o], g[o], full & middle);
        }
}
RT_INLINE void pool_take(PoolTaken *k, const PoolWindow *w, PoolFrame f, const real *dy,
                         const uint8_t *index, Conv c, int outputs)
{
    memset(k->count, 0, sizeof k->count);
    for (int i = 0; i < w->count; i += V)
        if (outputs == V)
            pool_take_vector(k, w, i, f, dy, index, c, V);
        else
            pool_take_vector(k, w, i, f, dy, index, c, outputs);
}
#else
RT_INLINE void pool_take(PoolTaken *k, const PoolWindow *w, PoolFrame f, const real *dy,
                         const uint8_t *index, Conv c, int outputs)
{
    const RtInt corner[4] = {0, (RtInt)pool_corner(f, c, 1), (RtInt)pool_corner(f, c, 2),
                             (RtInt)pool_corner(f, c, 3)};
    memset(k->count, 0, sizeof k->count);
    for (int i = 0; i < w->count; i++)
        for (int o = 0; o < outputs; o++) {
            const int n = k->count[0][o], at = w->window[i] + o;
            k->at[0][o][n] = w->from[i] + corner[index[at] & 3];
            k->g[0][o][n] = dy[at];
            k->count[0][o] = n + (dy[at] != 0);
        }
}
#endif

#endif
