/* bf16_attention.h -- causal_attention with factors in bf16 and sums in f32.
 *
 *   s[i][j] = scale q[i] . k[j]      e[i][j] = exp(s[i][j] - maximum)      l[i] = sum of e[i][.]
 *   o[i] = (sum over j of bf16(e[i][j]) v[j]) / l[i]
 *   p[i][j] = e[i][j] / l[i]         dv[j] = sum over i of bf16(p[i][j]) do[i]
 *   dp[i][j] = do[i] . v[j]          ds = scale p (dp - sum over j of p dp)
 *   dq[i] = sum over j of bf16(ds[i][j]) k[j]      dk[j] = sum over i of bf16(ds[i][j]) q[i]
 *
 *   x (N, T, 3 C) bf16: q, k and v side by side, C = heads D      o (N, T, C) bf16 or f32
 *   dy (N, T, C) bf16   dx (N, T, 3 C) bf16
 *
 * All products add in the order of bf16.h; factors are features, or positions from the first one of
 * the sequence.  Positions that a mask hides have a weight of +0.  With mask causal, the sum of a
 * position i over j ends at the block of 32 positions that contains i, and a sum over i begins at
 * the block that contains j.  Softmax is computed in f32.
 *
 * The kernel takes one head of one sample at a time.  K and V are packed once a head.  Scores are
 * f32 tiles of 32 positions by 32, and exist for 32 positions at a time.  In the backward pass,
 * p and ds stay for BF16_GROUP positions, because there a tile of dk and dv takes the products of
 * all these positions at once.  Tiles of scores above the diagonal are not computed.
 */
#ifndef CPU_BF16_ATTENTION_H
#define CPU_BF16_ATTENTION_H
#include "cpu/attention.h"
#include "cpu/bf16_gemm.h"
#include "cpu/token.h"

#ifndef RT_DOUBLE
/* -------------------------------------------------------------------------------------- memory
 * Parts of `room` in bytes; each begins at a multiple of 64 bytes.  compiler/ops/attention.c has
 * the same sums. */
enum { BF16_GROUP = RT_ATTENTION_GROUP }; /* positions whose p and ds exist in the backward pass */

/* Numbers from one row of p to the next: whole blocks and one more, so no power of two. */
#define BF16_WEIGHTS(t)        ((int64_t)(BF16_BLOCKS(t) + 1) * BF16_BLOCK)
#define BF16_GROUP_ROWS(t)     ((t) < BF16_GROUP ? BF16_BLOCKS(t) * BF16_BLOCK : BF16_GROUP)
#define BF16_SCORES(t)         ((int64_t)BF16_BLOCKS(t) * BF16_TILE)
#define BF16_SUMS(t, d)        (BF16_SCORES(t) * BF16_COUNT(d, BF16_PAIR))
#define BF16_GROUP_PAIRS(t, d) (BF16_PACKED(BF16_GROUP_ROWS(t), d))
#define BF16_ATTENTION_ROOM(t, d)                                                                  \
    (2 * (BF16_PACKED(d, t) + BF16_PACKED(t, d) + BF16_ROWS * BF16_WEIGHTS(t)) + 4 * BF16_SCORES(t))
#define BF16_ATTENTION_DX_ROOM(t, d)                                                               \
    (2 * (2 * BF16_PACKED(d, t) + BF16_PACKED(t, d) + 2 * BF16_GROUP_ROWS(t) * BF16_WEIGHTS(t) +   \
          2 * BF16_GROUP_PAIRS(t, d)) +                                                            \
     8 * (BF16_SCORES(t) + BF16_SUMS(t, d)))

/* Takes the next `bytes` of a room. */
RT_INLINE void *bf16_room(char **room, int64_t bytes)
{
    char *const at = *room;
    *room += bytes;
    return at;
}

/* ------------------------------------------------------------------------------------- operands */

/* Packs `count` features of T rows into panels whose outputs are positions. */
static RT_SEPARATE void bf16_attention_pack_rows(bf16 *to, const bf16 *x, int64_t step, int t,
                                                 int count)
{
    bf16_pairs_of_rows(to, BF16_PANEL(count), x, step, count, t);
}

/* The features c .. c + 31 of a head, or fewer. */
#define BF16_FEATURES(c, d) ((d) - (c) < BF16_PAIR ? (d) - (c) : BF16_PAIR)

/* Packs d features into panels whose factors are positions.  Panels are `panel` numbers apart. */
static RT_SEPARATE void bf16_attention_pack(bf16 *to, int64_t panel, const bf16 *x, int64_t step,
                                            int positions, int d)
{
    const bf16 *row[BF16_POSITIONS];
    for (int first = 0; first < positions; first += BF16_POSITIONS) {
        const int count = positions - first < BF16_POSITIONS ? positions - first : BF16_POSITIONS;
        bf16_dense_rows(row, x, step, first, count);
        for (int c = 0; c < d; c += BF16_PAIR)
            bf16_pairs(to + c / BF16_LANES * panel + (int64_t)first * BF16_LANES, panel, row, c,
                       count, BF16_FEATURES(c, d));
    }
}

/* The end of the positions that the positions before `end` see. */
RT_INLINE int bf16_attention_seen(Attention a, int end)
{
    return a.causal ? end : a.t;
}

/* Tiles of s (`rows` positions, all that they see): the products of rows of x and packed rows.
 * end: of x. */
RT_INLINE void bf16_attention_scores(float *s, const bf16 *x, int64_t step, const bf16 *end,
                                     const bf16 *packed, Attention a, int first, int rows)
{
    const int64_t zero = 0, panel = BF16_PANEL(a.d);
    const Bf16Runs run = {1, a.d, &zero, &zero, 0};
    const int panels = BF16_PANELS(bf16_attention_seen(a, first + rows));
    const bf16 *row[BF16_ROWS];
    bf16 kept[BF16_KEPT_COUNT(BF16_BLOCKS(a.d))] __attribute__((aligned(64)));
    bf16_dense_rows(row, x, step, first, rows);
    const Bf16Rows all = bf16_rows(row, rows, end, &run, BF16_KEPT_AT(kept, BF16_BLOCKS(a.d)),
                                   BF16_COUNT(panels, 2));
    for (int j = 0; j < panels; j += 2, s += BF16_TILE)
        bf16_product_rows(s, BF16_ROWS, true, &all, packed + j * panel, panel,
                          panels - j < 2 ? 1 : 2, &run);
}

/* Computes the tile sum (rows, 32) of products of `count` positions, whose weights are p. */
RT_INLINE void bf16_attention_mix(float *sum, const bf16 *p, int rows, const bf16 *packed,
                                  Attention a, int outputs, int count)
{
    const int64_t zero = 0, line = BF16_WEIGHTS(a.t);
    const Bf16Runs run = {1, count, &zero, &zero, 0};
    const bf16 *row[BF16_ROWS];
    bf16_dense_rows(row, p, line, 0, rows);
    const Bf16Rows all = bf16_rows(row, rows, p + BF16_ROWS * line, &run, NULL, 1);
    bf16_product_rows(sum, BF16_ROWS, true, &all, packed, BF16_PANEL(a.t), BF16_PANELS(outputs),
                      &run);
}

/* -------------------------------------------------------------------------------------- softmax
 * The scores of a position are in blocks of 32, `step` numbers apart. */
RT_INLINE float *bf16_score(float *s, int64_t step, int j)
{
    return s + j / BF16_BLOCK * step + j % BF16_BLOCK;
}

/* s = exp(scale s - maximum) of the first `seen` scores, and 0 up to `count`; returns the sum. */
RT_INLINE real bf16_attention_exp(float *s, int64_t step, int seen, int count, real scale)
{
    const int whole = seen / V * V, left = seen - whole;
    vec last = v_set(-INFINITY);
    if (left > 0)
        last = v_load_fill(bf16_score(s, step, whole), left, -INFINITY);
    vec top = last, sum = v_set(0);
    for (int j = 0; j < whole; j += V)
        top = v_max(top, v_load(bf16_score(s, step, j)));
    const vec most = v_set(scale * v_top(top)), by = v_set(scale);
    for (int j = 0; j < whole; j += V) {
        const vec e = v_exp(v_load(bf16_score(s, step, j)) * by - most);
        v_store(bf16_score(s, step, j), e);
        sum += e;
    }
    for (int j = whole; j < count; j += V) {
        const vec e = j == whole && left > 0 ? v_exp(last * by - most) : v_set(0);
        v_store_lanes(bf16_score(s, step, j), e, tile_lanes(count - j, 0));
        sum += e;
    }
    return v_sum(sum);
}

/* p = bf16(share e) of `count` numbers, whole blocks.  e = share e if `keep`. */
RT_INLINE void bf16_attention_round(bf16 *restrict p, float *restrict e, int64_t step, int count,
                                    real share, bool keep)
{
    const vec by = v_set(share);
    for (int j = 0; j < count; j += V) {
        float *const at = bf16_score(e, step, j);
        const vec x = keep ? v_load(at) * by : v_load(at);
        if (keep)
            v_store(at, x);
        v_store_bf16(p + j, x);
    }
}

/* ds = bf16(scale p (dp - sum of p dp)) of the first `seen` positions, and 0 up to `count`. */
RT_INLINE void bf16_attention_ds(bf16 *restrict ds, float *p, float *dp, int64_t step, int seen,
                                 int count, real scale)
{
    vec dot = v_set(0);
    for (int j = 0; j < seen; j += V) {
        const int lanes = seen - j < V ? seen - j : V;
        float *const at = bf16_score(dp, step, j);
        dot = v_fma(v_load(bf16_score(p, step, j)), v_load_lanes(at, lanes), dot);
    }
    const vec all = v_set(v_sum(dot)), by = v_set(scale);
    for (int j = 0; j < count; j += V) {
        const int lanes = seen - j < 0 ? 0 : seen - j < V ? seen - j : V;
        vec d = v_set(0);
        if (lanes > 0)
            d = by * v_load(bf16_score(p, step, j)) *
                (v_load_lanes(bf16_score(dp, step, j), lanes) - all);
        v_store_bf16(ds + j, d); /* p is 0 after the last position */
    }
}

/* -------------------------------------------------------------------------------------- results */

/* y (rows, `outputs`) = share[i] sum; share NULL: 1.  to: numbers from one row of y to the next. */
RT_INLINE void bf16_attention_store(void *y, bool wide, int64_t to, const float *sum,
                                    const real *share, int rows, int outputs)
{
    for (int i = 0; i < rows; i++, sum += BF16_ROWS) {
        const vec by = v_set(share ? share[i] : 1);
        for (int j = 0; j < outputs; j += V) {
            const vec x = share ? v_load(sum + j) * by : v_load(sum + j);
            bf16_put(y, wide, i * to + j, x, tile_lanes(outputs - j, 0));
        }
    }
}

/* -------------------------------------------------------------------------------------- forward */
typedef struct Bf16Attention {
    const bf16 *kt, *vp; /* K by rows, V */
    float *s;
    bf16 *p;
} Bf16Attention;

/* Computes o of `rows` positions from `first` on.  o: at the columns of the head; x: at its q; end:
 * of x. */
static RT_SEPARATE void bf16_attention_rows(void *o, bool wide, const bf16 *x, const bf16 *end,
                                            Bf16Attention m, Attention a, int first, int rows)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d;
    const int count = BF16_BLOCKS(bf16_attention_seen(a, first + rows)) * BF16_BLOCK;
    real share[BF16_ROWS];
    float sum[BF16_TILE] __attribute__((aligned(64)));
    bf16_attention_scores(m.s, x, row, end, m.kt, a, first, rows);
    for (int i = 0; i < rows; i++) {
        float *const s = m.s + i * BF16_ROWS;
        share[i] = 1 / bf16_attention_exp(s, BF16_TILE, bf16_attention_seen(a, first + i + 1),
                                          count, (real)a.scale);
        bf16_attention_round(m.p + i * BF16_WEIGHTS(a.t), s, BF16_TILE, count, 1, false);
    }
    for (int c = 0; c < a.d; c += BF16_PAIR) {
        const int64_t at = first * width + c;
        bf16_attention_mix(sum, m.p, rows, m.vp + c / BF16_LANES * BF16_PANEL(a.t), a,
                           BF16_FEATURES(c, a.d), count);
        bf16_attention_store(bf16_result(o, wide, at), wide, width, sum, share, rows,
                             BF16_FEATURES(c, a.d));
    }
}

RT_INLINE void bf16_attention_any(void *o, bool wide, const bf16 *x, real *room, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d;
    const bf16 *const end = x + a.n * a.t * row;
    char *left = (char *)room;
    bf16 *kt = bf16_room(&left, 2 * BF16_PACKED(a.d, a.t)),
         *vp = bf16_room(&left, 2 * BF16_PACKED(a.t, a.d));
    float *s = bf16_room(&left, 4 * BF16_SCORES(a.t));
    const Bf16Attention m = {kt, vp, s, (bf16 *)left};
    const RtGrid part = team_grid(a.n, a.heads);
    const TeamRange samples = team_rows(part, a.n), heads = team_columns(part, a.heads);
    for (int64_t n = samples.first; n < samples.end; n++)
        for (int64_t head = heads.first; head < heads.end; head++) {
            const bf16 *q = x + n * a.t * row + head * a.d;
            const int64_t at = n * a.t * width + head * a.d;
            bf16_attention_pack_rows(kt, q + width, row, a.t, a.d);
            bf16_attention_pack(vp, BF16_PANEL(a.t), q + 2 * width, row, a.t, a.d);
            for (int i = 0; i < a.t; i += BF16_ROWS)
                bf16_attention_rows(bf16_result(o, wide, at), wide, q, end, m, a, i,
                                    a.t - i < BF16_ROWS ? a.t - i : BF16_ROWS);
        }
}

RT_INLINE void bf16_attention(bf16 *restrict o, const bf16 *restrict x, real *restrict room,
                              Attention a)
{
    bf16_attention_any(o, false, x, room, a);
}

/* The same with o in f32. */
RT_INLINE void bf16_attention_f32(real *restrict o, const bf16 *restrict x, real *restrict room,
                                  Attention a)
{
    bf16_attention_any(o, true, x, room, a);
}

/* ------------------------------------------------------------------------------------- gradient */
typedef struct Bf16AttentionDx {
    const bf16 *kt, *vt, *kp; /* K and V by rows, K */
    float *s, *dp;            /* tiles of 32 positions */
    bf16 *p, *ds;             /* rows of a group */
    bf16 *q, *g;              /* packed positions of the group: q, and the gradient of o */
    float *dk, *dv;           /* tiles [T / 32][D / 32] of sums */
} Bf16AttentionDx;

/* Computes p, ds and dq of `rows` positions from `first` on, which are in the group at `group`.  x,
 * dx: at the head's q; dy: at its columns; end, end_y: of x and dy. */
static RT_SEPARATE void bf16_attention_dx_rows(bf16 *dx, const bf16 *x, const bf16 *end,
                                               const bf16 *dy, const bf16 *end_y, Bf16AttentionDx m,
                                               Attention a, int group, int first, int rows)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d,
                  line = BF16_WEIGHTS(a.t), at = (first - group) * line;
    const int count = BF16_BLOCKS(bf16_attention_seen(a, first + rows)) * BF16_BLOCK;
    float sum[BF16_TILE] __attribute__((aligned(64)));
    bf16_attention_scores(m.s, x, row, end, m.kt, a, first, rows);
    bf16_attention_scores(m.dp, dy, width, end_y, m.vt, a, first, rows);
    for (int i = 0; i < rows; i++) {
        float *const s = m.s + i * BF16_ROWS, *const dp = m.dp + i * BF16_ROWS;
        const int seen = bf16_attention_seen(a, first + i + 1);
        const real share = 1 / bf16_attention_exp(s, BF16_TILE, seen, count, (real)a.scale);
        bf16_attention_round(m.p + at + i * line, s, BF16_TILE, count, share, true);
        bf16_attention_ds(m.ds + at + i * line, s, dp, BF16_TILE, seen, count, (real)a.scale);
    }
    for (int c = 0; c < a.d; c += BF16_PAIR) {
        bf16_attention_mix(sum, m.ds + at, rows, m.kp + c / BF16_LANES * BF16_PANEL(a.t), a,
                           BF16_FEATURES(c, a.d), count);
        bf16_attention_store(dx + first * row + c, false, row, sum, NULL, rows,
                             BF16_FEATURES(c, a.d));
    }
}

/* to += weights^T packed: the positions that the `rows` positions of a group see. */
static RT_SEPARATE void bf16_attention_add(float *to, const bf16 *weights, const bf16 *packed,
                                           Attention a, int group, int rows)
{
    const int seen = bf16_attention_seen(a, group + rows);
    const int64_t panel = BF16_PANEL(BF16_GROUP_ROWS(a.t));
    const bf16 *row[BF16_GROUP];
    bf16 turned[BF16_ROWS * BF16_POSITIONS] __attribute__((aligned(64)));
    bf16_dense_rows(row, weights, BF16_WEIGHTS(a.t), 0, rows);
    for (int j = 0; j < seen; j += BF16_ROWS) {
        const int skip = a.causal && j > group ? j - group : 0; /* positions before j */
        const bool begin = a.causal ? j >= group : group == 0;
        bf16_turn(turned, row + skip, j, rows - skip, BF16_ROWS);
        for (int c = 0; c < a.d; c += BF16_PAIR, to += BF16_TILE)
            bf16_product_turned_apart(to, BF16_ROWS, begin, turned, BF16_ROWS,
                                      packed + c / BF16_LANES * panel + skip * BF16_LANES, panel,
                                      BF16_FEATURES(c, a.d), rows - skip);
    }
}

/* Writes the sums of all positions. */
static RT_SEPARATE void bf16_attention_sums(bf16 *dx, const float *sum, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d;
    for (int j = 0; j < a.t; j += BF16_ROWS)
        for (int c = 0; c < a.d; c += BF16_PAIR, sum += BF16_TILE)
            bf16_attention_store(dx + j * row + c, false, row, sum, NULL,
                                 a.t - j < BF16_ROWS ? a.t - j : BF16_ROWS, BF16_FEATURES(c, a.d));
}

RT_INLINE void bf16_attention_dx(bf16 *restrict dx, const bf16 *restrict x, const bf16 *restrict dy,
                                 real *restrict room, Attention a)
{
    const int64_t row = 3 * (int64_t)a.heads * a.d, width = (int64_t)a.heads * a.d,
                  weights = 2 * BF16_GROUP_ROWS(a.t) * BF16_WEIGHTS(a.t);
    const int64_t by_rows = 2 * BF16_PACKED(a.d, a.t), pairs = 2 * BF16_GROUP_PAIRS(a.t, a.d),
                  panel = BF16_PANEL(BF16_GROUP_ROWS(a.t));
    const bf16 *const end = x + a.n * a.t * row, *const end_y = dy + a.n * a.t * width;
    char *left = (char *)room;
    bf16 *kt = bf16_room(&left, by_rows), *vt = bf16_room(&left, by_rows),
         *kp = bf16_room(&left, 2 * BF16_PACKED(a.t, a.d));
    float *s = bf16_room(&left, 4 * BF16_SCORES(a.t)), *dp = bf16_room(&left, 4 * BF16_SCORES(a.t));
    bf16 *p = bf16_room(&left, weights), *ds = bf16_room(&left, weights),
         *q = bf16_room(&left, pairs), *g = bf16_room(&left, pairs);
    float *dk = bf16_room(&left, 4 * BF16_SUMS(a.t, a.d)), *dv = (float *)left;
    const Bf16AttentionDx m = {kt, vt, kp, s, dp, p, ds, q, g, dk, dv};
    const RtGrid part = team_grid(a.n, a.heads);
    const TeamRange samples = team_rows(part, a.n), heads = team_columns(part, a.heads);
    for (int64_t n = samples.first; n < samples.end; n++)
        for (int64_t head = heads.first; head < heads.end; head++) {
            const bf16 *x_head = x + n * a.t * row + head * a.d,
                       *dy_head = dy + n * a.t * width + head * a.d;
            bf16 *dx_head = dx + n * a.t * row + head * a.d;
            bf16_attention_pack_rows(kt, x_head + width, row, a.t, a.d);
            bf16_attention_pack_rows(vt, x_head + 2 * width, row, a.t, a.d);
            bf16_attention_pack(kp, BF16_PANEL(a.t), x_head + width, row, a.t, a.d);
            for (int group = 0; group < a.t; group += BF16_GROUP) {
                const int rows = a.t - group < BF16_GROUP ? a.t - group : BF16_GROUP;
                for (int i = 0; i < rows; i += BF16_ROWS)
                    bf16_attention_dx_rows(dx_head, x_head, end, dy_head, end_y, m, a, group,
                                           group + i, rows - i < BF16_ROWS ? rows - i : BF16_ROWS);
                bf16_attention_pack(q, panel, x_head + group * row, row, rows, a.d);
                bf16_attention_pack(g, panel, dy_head + group * width, width, rows, a.d);
                bf16_attention_add(dk, ds, q, a, group, rows);
                bf16_attention_add(dv, p, g, a, group, rows);
            }
            bf16_attention_sums(dx_head + width, dk, a);
            bf16_attention_sums(dx_head + 2 * width, dv, a);
        }
}

/* -------------------------------------------------------------------------------------- a token
 * token_attention of token.h, with the order of sums of a whole text, and so with its bits. */

/* sum += `count` <= 32 products: a[k] in all lanes, and b[k * step ..] in `lanes` lanes. */
RT_INLINE vec bf16_token_block(vec sum, const real *a, const real *b, int64_t step, int count,
                               int lanes)
{
    vec even = v_set(0), odd = v_set(0);
    for (int k = 0; k < count; k += 2, b += 2 * step) {
        even = v_fma(v_set(a[k]), v_load_lanes(b, lanes), even);
        if (k + 1 < count)
            odd = v_fma(v_set(a[k + 1]), v_load_lanes(b + step, lanes), odd);
    }
    if (count < BF16_BLOCK)
        odd += v_set(0);
    if (count < BF16_BLOCK - 1)
        even += v_set(0);
    return sum + (even + odd);
}

/* The sum of all `count` products of x or, if x is NULL, of a. */
RT_INLINE vec bf16_token_sum(const bf16 *x, const real *a, const real *b, int64_t step, int count,
                             int lanes)
{
    vec sum = v_set(0);
    for (int k = 0; k < count; k += BF16_BLOCK) {
        const int most = count - k < BF16_BLOCK ? count - k : BF16_BLOCK;
        real wide[BF16_BLOCK];
        if (x)
            bf16_to_f32(wide, x + k, most);
        sum = bf16_token_block(sum, x ? wide : a + k, b + k * step, step, most, lanes);
    }
    return sum;
}

RT_INLINE void bf16_token_attention_any(void *o, bool wide, const bf16 *x, const Rt *r, int64_t at,
                                        TokenAttention a)
{
    const int seen = (int)r->position + 1, width = a.heads * a.d;
    const int64_t all = (int64_t)a.t * width;
    real *keys = (real *)r->cache + at, *values = keys + all, *p = values + all;
    for (int c = 0; c < width; c++)
        keys[(int64_t)c * a.t + seen - 1] = bf16_wide(x[width + c]);
    bf16_to_f32(values + (int64_t)(seen - 1) * width, x + 2 * width, width);
    for (int c0 = 0; c0 < width; c0 += a.d, keys += (int64_t)a.d * a.t) {
        RT_MAP(seen, STORE(p, bf16_token_sum(x + c0, NULL, keys + AT, a.t, a.d, rt_lanes)));
        const vec share = v_set(1 / bf16_attention_exp(p, BF16_BLOCK, seen, seen, (real)a.scale));
        for (int j = 0; j < seen; j++)
            p[j] = bf16_wide(bf16_narrow(p[j]));
        RT_MAP(a.d, const vec y =
                        bf16_token_sum(NULL, p, values + c0 + AT, width, seen, rt_lanes) * share;
               bf16_put(o, wide, c0 + AT, y, rt_lanes));
    }
}

RT_INLINE void bf16_token_attention(bf16 *restrict o, const bf16 *restrict x, const Rt *r,
                                    int64_t at, TokenAttention a)
{
    bf16_token_attention_any(o, false, x, r, at, a);
}

/* The same with o in f32. */
RT_INLINE void bf16_token_attention_f32(real *restrict o, const bf16 *restrict x, const Rt *r,
                                        int64_t at, TokenAttention a)
{
    bf16_token_attention_any(o, true, x, r, at, a);
}
#endif

#endif
