/* attention.cuh -- causal_attention: each position mixes the values of the positions up to its own
 * (formulas: runtime/cpu/attention.h).
 *
 *   x (N, T, 3 C): q, k and v side by side, C = heads D      o, dy (N, T, C)      dx like x
 *
 * A block takes 32 positions of a head and goes over the other positions, 32 at a time; their
 * scores exist only in shared memory.  A warp has four of the block's positions.  A lane has one of
 * the other positions while scores are computed, and one of every 32 features while values are
 * mixed.  The softmax is computed online: a new largest score scales down what was added so far.
 *
 * The backward pass takes three launches.  The first computes for each position the logarithm of
 * the sum of exponentials, and the sum of p dp, and stores both where its dq will be.  The second
 * computes dk and dv, with 32 keys a block, and the third dq.
 * Source: Dao et al. 2022, "FlashAttention"; Milakov & Gimelshein 2018 (online softmax).
 */
#ifndef CUDA_ATTENTION_CUH
#define CUDA_ATTENTION_CUH

struct Attention {
    int n, t, heads, d;
    bool causal;
    double scale;
};

/* Positions of a warp: 8 warps have 32.  Strips of 32 features: 8 at most. */
enum { ATTENTION_EACH = 4, ATTENTION_STRIPS = RT_HEAD_MOST / RT_WARP };

struct AttentionTiles {
    real a[WARP][WARP + 1], b[WARP][WARP + 1], p[WARP][WARP + 1];
};

/* Rows of D numbers: of q, k, v, do or their gradients, for one head of a sample. */
template <class T> struct HeadRows {
    T *at;
    int64_t step;
    int t, d;
};

/* The work of a block. */
struct AttentionBlock {
    int first; /* of its 32 positions */
    int64_t sample;
    int head;
};
DEVICE AttentionBlock attention_block(unsigned block, Attention a)
{
    const int tiles = ceil_div(a.t, WARP), which = block / tiles;
    return AttentionBlock{(int)(block % tiles) * WARP, which / a.heads, which % a.heads};
}

/* The rows of a part of x or dx: 0 q, 1 k, 2 v. */
template <class T> DEVICE HeadRows<T> head_part(T *x, int part, AttentionBlock b, Attention a)
{
    const int64_t width = (int64_t)a.heads * a.d;
    return HeadRows<T>{x + b.sample * a.t * 3 * width + part * width + (int64_t)b.head * a.d,
                       3 * width, a.t, a.d};
}
template <class T> DEVICE HeadRows<T> head_whole(T *o, AttentionBlock b, Attention a)
{
    const int64_t width = (int64_t)a.heads * a.d;
    return HeadRows<T>{o + b.sample * a.t * width + (int64_t)b.head * a.d, width, a.t, a.d};
}

/* Loads 32 features from c on of 32 rows from `first` on; 0 after the last row or feature. */
DEVICE void attention_fetch(real (*tile)[WARP + 1], HeadRows<const real> x, int first, int c)
{
    for (int i = threadIdx.x; i < WARP * WARP; i += THREADS) {
        const int row = first + i / WARP, column = c + i % WARP;
        const bool inside = row < x.t && column < x.d;
        /* no branch: branches cost registers, which then spill */
        const real number = x.at[inside ? row * x.step + column : 0];
        tile[i / WARP][i % WARP] = inside ? number : 0;
    }
}

/* s[i] = row a_first + (this warp's position i) of a . row b_first + lane of b */
DEVICE void attention_scores(real (&s)[ATTENTION_EACH], AttentionTiles &m, HeadRows<const real> a,
                             int a_first, HeadRows<const real> b, int b_first)
{
    const int own = threadIdx.x / WARP * ATTENTION_EACH, lane = threadIdx.x % WARP;
    RT_UNROLL
    for (int i = 0; i < ATTENTION_EACH; i++)
        s[i] = 0;
    for (int c = 0; c < a.d; c += WARP) {
        attention_fetch(m.a, a, a_first, c);
        attention_fetch(m.b, b, b_first, c);
        block_sync(); /* the tiles are complete */
        RT_UNROLL_4
        for (int k = 0; k < WARP; k++) {
            RT_UNROLL
            for (int i = 0; i < ATTENTION_EACH; i++)
                s[i] = s_fma(m.a[own + i][k], m.b[lane][k], s[i]);
        }
        block_sync(); /* all threads have read the tiles */
    }
}

/* y[i][strip]: this warp's position i, feature 32 strip + lane. */
typedef real AttentionSums[ATTENTION_EACH][ATTENTION_STRIPS];

/* y += p b.  The rows of p belong to one warp each; the barrier makes them visible to its lanes. */
DEVICE void attention_mix(AttentionSums &y, AttentionTiles &m, const real (&p)[ATTENTION_EACH],
                          HeadRows<const real> b, int b_first)
{
    const int own = threadIdx.x / WARP * ATTENTION_EACH, lane = threadIdx.x % WARP;
    RT_UNROLL
    for (int i = 0; i < ATTENTION_EACH; i++)
        m.p[own + i][lane] = p[i];
    RT_UNROLL
    for (int strip = 0; strip < ATTENTION_STRIPS; strip++) {
        if (strip * WARP >= b.d)
            continue;
        attention_fetch(m.b, b, b_first, strip * WARP);
        block_sync(); /* the tile and the rows of p are complete */
        RT_UNROLL_4
        for (int j = 0; j < WARP; j++) {
            RT_UNROLL
            for (int i = 0; i < ATTENTION_EACH; i++)
                y[i][strip] = s_fma(m.p[own + i][j], m.b[j][lane], y[i][strip]);
        }
        block_sync(); /* all threads have read them */
    }
}

/* Stores the sums; by: a factor for each position. */
DEVICE void attention_store(HeadRows<real> y, const AttentionSums &sum, int first,
                            const real (&by)[ATTENTION_EACH])
{
    const int own = first + threadIdx.x / WARP * ATTENTION_EACH, lane = threadIdx.x % WARP;
    RT_UNROLL
    for (int i = 0; i < ATTENTION_EACH; i++) {
        RT_UNROLL
        for (int strip = 0; strip < ATTENTION_STRIPS; strip++)
            if (own + i < y.t && strip * WARP + lane < y.d)
                y.at[(own + i) * y.step + strip * WARP + lane] = sum[i][strip] * by[i];
    }
}

DEVICE bool attention_sees(int i, int j, Attention a)
{
    return j < a.t && (!a.causal || j <= i);
}

/* Number of positions that the last row of a block sees. */
DEVICE int attention_seen(int first, Attention a)
{
    return a.causal && first + WARP < a.t ? first + WARP : a.t;
}

/* Updates the row's largest score (top) and the sum of exponentials relative to it.  Replaces s by
 * its exponential; returns the factor for earlier sums. */
DEVICE real attention_row(real &s, bool sees, bool begins, real &top, real &sum)
{
    const real most = warp_max(sees ? s : -INFINITY), old = top;
    top = begins || most > old ? most : old;
    const real keep = begins ? 0 : s_exp(old - top);
    s = sees ? s_exp(s - top) : 0;
    sum = sum * keep + warp_sum(s);
    return keep;
}

/* ------------------------------------------------------------------------------- forward */

SIZE int attention_blocks(Attention a)
{
    return a.n * a.heads * ceil_div(a.t, WARP);
}
DEVICE void attention_part(real *o, const real *x, Attention a, AttentionBlock b)
{
    SHARED(AttentionTiles, tiles);
    const HeadRows<const real> q = head_part(x, 0, b, a), k = head_part(x, 1, b, a),
                               v = head_part(x, 2, b, a);
    const int own = b.first + threadIdx.x / WARP * ATTENTION_EACH, lane = threadIdx.x % WARP;
    real s[ATTENTION_EACH], top[ATTENTION_EACH] = {}, sum[ATTENTION_EACH] = {};
    AttentionSums y = {};

    for (int first = 0; first < attention_seen(b.first, a); first += WARP) {
        attention_scores(s, tiles, q, b.first, k, first);
        RT_UNROLL
        for (int i = 0; i < ATTENTION_EACH; i++) {
            s[i] *= (real)a.scale;
            const real keep = attention_row(s[i], attention_sees(own + i, first + lane, a),
                                            first == 0, top[i], sum[i]);
            RT_UNROLL
            for (int strip = 0; strip < ATTENTION_STRIPS; strip++)
                y[i][strip] *= keep;
        }
        attention_mix(y, tiles, s, v, first);
    }
    RT_UNROLL
    for (int i = 0; i < ATTENTION_EACH; i++)
        sum[i] = 1 / sum[i];
    attention_store(head_whole(o, b, a), y, b.first, sum);
}
DEVICE void attention(real *o, const real *x, Attention a)
{
    FOR_BLOCKS(block, attention_blocks(a))
        attention_part(o, x, a, attention_block(block, a));
}

/* ------------------------------------------------------------------------------- backward */

/* Two numbers for each position, in its first two elements of dq: log of the sum of exponentials,
 * and the sum of p dp. */
SIZE int attention_dx_sums_blocks(Attention a)
{
    return attention_blocks(a);
}
DEVICE void attention_dx_sums_part(real *dx, const real *x, const real *dy, Attention a,
                                   AttentionBlock b)
{
    SHARED(AttentionTiles, tiles);
    const HeadRows<const real> q = head_part(x, 0, b, a), k = head_part(x, 1, b, a),
                               v = head_part(x, 2, b, a);
    const HeadRows<const real> g = head_whole(dy, b, a);
    const HeadRows<real> dq = head_part(dx, 0, b, a);
    const int own = b.first + threadIdx.x / WARP * ATTENTION_EACH, lane = threadIdx.x % WARP;
    real s[ATTENTION_EACH], dp[ATTENTION_EACH], top[ATTENTION_EACH] = {}, sum[ATTENTION_EACH] = {},
                                                dot[ATTENTION_EACH] = {};

    for (int first = 0; first < attention_seen(b.first, a); first += WARP) {
        attention_scores(s, tiles, q, b.first, k, first);
        attention_scores(dp, tiles, g, b.first, v, first);
        RT_UNROLL
        for (int i = 0; i < ATTENTION_EACH; i++) {
            s[i] *= (real)a.scale;
            const real keep = attention_row(s[i], attention_sees(own + i, first + lane, a),
                                            first == 0, top[i], sum[i]);
            dot[i] = dot[i] * keep + warp_sum(s[i] * dp[i]);
        }
    }
    RT_UNROLL
    for (int i = 0; i < ATTENTION_EACH; i++)
        if (lane == 0 && own + i < a.t) {
            real *at = dq.at + (own + i) * dq.step;
            at[0] = top[i] + s_log(sum[i]), at[1] = dot[i] / sum[i];
        }
}
DEVICE void attention_dx_sums(real *dx, const real *x, const real *dy, Attention a)
{
    FOR_BLOCKS(block, attention_dx_sums_blocks(a))
        attention_dx_sums_part(dx, x, dy, a, attention_block(block, a));
}

/* Replaces a score s by p, and its dp by ds; kept: the two numbers of position i. */
DEVICE void attention_ds(real &s, real &dp, bool sees, const real *kept, Attention a)
{
    s = sees ? s_exp(s * (real)a.scale - kept[0]) : 0;
    dp = sees ? (real)a.scale * s * (dp - kept[1]) : 0;
}

/* dk and dv: the block's positions are keys; lanes have the positions that see them. */
SIZE int attention_dx_keys_blocks(Attention a)
{
    return attention_blocks(a);
}
DEVICE void attention_dx_keys_part(real *dx, const real *x, const real *dy, Attention a,
                                   AttentionBlock b)
{
    SHARED(AttentionTiles, tiles);
    const HeadRows<const real> q = head_part(x, 0, b, a), k = head_part(x, 1, b, a),
                               v = head_part(x, 2, b, a);
    const HeadRows<const real> g = head_whole(dy, b, a);
    const HeadRows<real> dq = head_part(dx, 0, b, a);
    const int own = b.first + threadIdx.x / WARP * ATTENTION_EACH, lane = threadIdx.x % WARP;
    const real one[ATTENTION_EACH] = {1, 1, 1, 1};
    real s[ATTENTION_EACH], dp[ATTENTION_EACH];
    AttentionSums dk = {}, dv = {};

    for (int first = a.causal ? b.first : 0; first < a.t; first += WARP) {
        attention_scores(s, tiles, k, b.first, q, first);
        attention_scores(dp, tiles, v, b.first, g, first);
        const int step = first + lane < a.t ? first + lane : a.t - 1;
        RT_UNROLL
        for (int i = 0; i < ATTENTION_EACH; i++)
            attention_ds(s[i], dp[i], first + lane < a.t && attention_sees(step, own + i, a),
                         dq.at + step * dq.step, a);
        attention_mix(dv, tiles, s, g, first);
        attention_mix(dk, tiles, dp, q, first);
    }
    attention_store(head_part(dx, 1, b, a), dk, b.first, one);
    attention_store(head_part(dx, 2, b, a), dv, b.first, one);
}
DEVICE void attention_dx_keys(real *dx, const real *x, const real *dy, Attention a)
{
    FOR_BLOCKS(block, attention_dx_keys_blocks(a))
        attention_dx_keys_part(dx, x, dy, a, attention_block(block, a));
}

/* dq; overwrites the two numbers. */
SIZE int attention_dx_queries_blocks(Attention a)
{
    return attention_blocks(a);
}
DEVICE void attention_dx_queries_part(real *dx, const real *x, const real *dy, Attention a,
                                      AttentionBlock b)
{
    SHARED(AttentionTiles, tiles);
    const HeadRows<const real> q = head_part(x, 0, b, a), k = head_part(x, 1, b, a),
                               v = head_part(x, 2, b, a);
    const HeadRows<const real> g = head_whole(dy, b, a);
    const HeadRows<real> dq = head_part(dx, 0, b, a);
    const int own = b.first + threadIdx.x / WARP * ATTENTION_EACH, lane = threadIdx.x % WARP;
    const real one[ATTENTION_EACH] = {1, 1, 1, 1};
    real s[ATTENTION_EACH], dp[ATTENTION_EACH];
    AttentionSums y = {};

    for (int first = 0; first < attention_seen(b.first, a); first += WARP) {
        attention_scores(s, tiles, q, b.first, k, first);
        attention_scores(dp, tiles, g, b.first, v, first);
        RT_UNROLL
        for (int i = 0; i < ATTENTION_EACH; i++) {
            const int step = own + i < a.t ? own + i : a.t - 1;
            attention_ds(s[i], dp[i], own + i < a.t && attention_sees(step, first + lane, a),
                         dq.at + step * dq.step, a);
        }
        attention_mix(y, tiles, dp, k, first);
    }
    attention_store(dq, y, b.first, one);
}
DEVICE void attention_dx_queries(real *dx, const real *x, const real *dy, Attention a)
{
    FOR_BLOCKS(block, attention_dx_queries_blocks(a))
        attention_dx_queries_part(dx, x, dy, a, attention_block(block, a));
}

#endif
