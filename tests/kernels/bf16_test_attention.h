/* bf16_test_attention.h -- attention in bf16: the bits of the definition, and the distance to f64. */
#ifndef BF16_TEST_ATTENTION_H
#define BF16_TEST_ATTENTION_H
#include "bf16_attention_plain.h"
#include "bf16_test.h"

/* n, t, heads, d: odd sizes of heads and sequences, one step, one sample, and more steps than a group
 * of the backward pass. */
static const Attention attentions[] = {
    {2, 1, 1, 1, 0, 1},    {1, 5, 3, 7, 0, .3},    {2, 33, 2, 37, 0, .25}, {1, 64, 1, 64, 0, .125},
    {1, 31, 2, 16, 0, .2}, {1, 97, 1, 24, 0, 1.5}, {1, 135, 1, 33, 0, .2}, {3, 40, 5, 8, 0, .4},
};
enum { ATTENTIONS = sizeof attentions / sizeof *attentions };

typedef struct Heads {
    Attention a;
    bf16 *x, *dy, *o, *dx;
    real *wide;
} Heads;
static void run_heads(void *arg)
{
    const Heads *h = arg;
    const Attention a = h->a;
    const int64_t bytes = BF16_ATTENTION_ROOM(a.t, a.d),
                  bytes_dx = BF16_ATTENTION_DX_ROOM(a.t, a.d);
    void *room = buffer_bytes(bytes), *room_dx = buffer_bytes(bytes_dx);
    memset(room, GUARD, (size_t)bytes); /* any old numbers, among them NaN */
    memset(room_dx, 0xff, (size_t)bytes_dx);
    flush_denormals();
    bf16_attention(h->o, h->x, room, a);
    bf16_attention_f32(h->wide, h->x, room, a);
    bf16_attention_dx(h->dx, h->x, h->dy, room_dx, a);
    check_guard(room, bytes, "bf16_attention, in its room,");
    check_guard(room_dx, bytes_dx, "bf16_attention_dx, in its room,");
    release(2, room, room_dx);
}

static Heads heads_of(Attention a, Kind kind)
{
    const int64_t ny = (int64_t)a.n * a.t * a.heads * a.d;
    return (Heads){a,
                   factors(kind, 3 * ny, 1),
                   factors(kind, ny, 2),
                   buffer_bytes(ny * (int64_t)sizeof(bf16)),
                   buffer_bytes(3 * ny * (int64_t)sizeof(bf16)),
                   buffer(ny)};
}

static REFERENCE void heads_plain(real *o, real *dx, const Heads *h)
{
    const int64_t line = BF16_BLOCKS(h->a.t) * BF16_BLOCK;
    real *p = buffer(h->a.t * line), *ds = buffer(h->a.t * line);
    bf16 *two = buffer_bytes(line * (int64_t)sizeof *two);
    bf16_attention_plain(o, h->x, p, h->a);
    bf16_attention_dx_plain(dx, h->x, h->dy, p, ds, two, h->a);
    release(3, p, ds, two);
}

static void check_heads(Attention a, Kind kind, int team)
{
    const int64_t ny = (int64_t)a.n * a.t * a.heads * a.d;
    Heads h = heads_of(a, kind);
    real *o = buffer(ny), *dx = buffer(3 * ny);
    if (team > 1)
        as_team(team, run_heads, &h);
    else
        run_heads(&h);
    flush_denormals();
    heads_plain(o, dx, &h);
    check_narrow(h.o, o, ny, "bf16_attention");
    check_bits(h.wide, o, ny, "bf16_attention_f32");
    check_narrow(h.dx, dx, 3 * ny, "bf16_attention_dx");
    release(7, h.x, h.dy, h.o, h.dx, h.wide, o, dx);
}

START_TEST(attention_heads)
{
    Attention a = attentions[_i / 2];
    a.causal = _i % 2;
    check_heads(a, (_i + _i / KINDS) % KINDS, 1);
}
END_TEST
START_TEST(attention_teams)
{
    Attention a = attentions[_i];
    a.causal = _i % 3;
    check_heads(a, USUAL, _i % 2 ? 3 : 7);
}
END_TEST

/* One token at a time: the bits of the whole text. */
START_TEST(attention_tokens)
{
    Attention a = attentions[_i];
    a.n = 1, a.causal = true;
    const TokenAttention at = {a.t, a.heads, a.d, a.scale};
    const int64_t width = (int64_t)a.heads * a.d, room = a.t * (2 * width + 1), before = 5;
    Heads h = heads_of(a, USUAL);
    run_heads(&h);
    real *cache = buffer(before + room), *wide = buffer(width), *expect = buffer(width);
    bf16 *o = buffer_bytes(width * (int64_t)sizeof *o);
    for (Rt r = {.position = 0}; r.position < a.t; r.position++) {
        r.cache = (char *)cache;
        bf16_token_attention_f32(wide, h.x + r.position * 3 * width, &r, before, at);
        bf16_token_attention(o, h.x + r.position * 3 * width, &r, before, at);
        memcpy(expect, h.wide + r.position * width, (size_t)width * sizeof *expect);
        check_bits(wide, expect, width, "bf16_token_attention_f32");
        check_narrow(o, expect, width, "bf16_token_attention");
    }
    check_guard(cache, (before + room) * (int64_t)sizeof(real), "bf16_token_attention");
    release(9, h.x, h.dy, h.o, h.dx, h.wide, cache, wide, expect, o);
}
END_TEST

/* The distance to attention in f64, of the same two-byte numbers.  F counts the rounding errors of
 * a sum of f32 as in check_bound, in units of 2^-24 of the sum of magnitudes; N = 2^-8 is the
 * rounding of a weight or a result to two bytes.
 *   a score is off by        S = F(d) (|q| . |k|) scale, and the logarithm of p by at most
 *                            L = 2 max S + X, where X = 2^-20 bounds exp, l, 1 / l and products
 *   o by                     sum of p |v| (L + N + F(t))
 *   dv likewise; dp by       D = F(d) (|do| . |v|)
 *   ds by                    E = scale p (D + sum p D + (|dp| + sum p |dp|) (2 L + F(t)))
 *   dq by                    sum of (E + N |ds|) |k| + F(t) sum of |ds k|, and dk likewise
 * A term of second order is at most a tenth of these: the sum is multiplied by 1.1. */
static double units(int count)
{
    return ldexp(16 + 1 + BF16_BLOCKS(count) + 2, -24);
}

typedef struct Exact {
    double *o, *off, *dx, *off_dx; /* results, and how far from them an error may be */
} Exact;

static OPTIMISED void exact_head(Exact e, const Heads *h, int64_t sample, int64_t head)
{
    const Attention a = h->a;
    const int t = a.t, d = a.d;
    const int64_t width = (int64_t)a.heads * d, row = 3 * width;
    const bf16 *q = h->x + sample * t * row + head * d, *k = q + width, *v = k + width,
               *g = h->dy + sample * t * width + head * d;
    double *o = e.o + sample * t * width + head * d, *off = e.off + (o - e.o),
           *dq = e.dx + (q - h->x), *off_dq = e.off_dx + (q - h->x);
    double *p = calloc((size_t)t, sizeof *p), *dp = calloc((size_t)t, sizeof *p),
           *far = calloc((size_t)t, sizeof *p);
    const double narrow = ldexp(1, -8), f_d = units(d), f_t = units(t);
    for (int i = 0; i < t; i++) {
        const int seen = a.causal ? i + 1 : t;
        double top = -INFINITY, all = 0, worst = 0, dot = 0, dot_size = 0, dot_far = 0;
        for (int j = 0; j < seen; j++) {
            double s = 0, size = 0, size_dp = 0;
            dp[j] = 0;
            for (int c = 0; c < d; c++) {
                const double x = (double)bf16_wide(q[i * row + c]) * bf16_wide(k[j * row + c]),
                             y = (double)bf16_wide(g[i * width + c]) * bf16_wide(v[j * row + c]);
                s += x, size += fabs(x), dp[j] += y, size_dp += fabs(y);
            }
            p[j] = s * a.scale, far[j] = f_d * size_dp;
            top = fmax(top, p[j]), worst = fmax(worst, f_d * size * a.scale);
        }
        const double log_far = 2 * worst + ldexp(1, -20);
        for (int j = 0; j < seen; j++)
            all += p[j] = exp(p[j] - top);
        for (int j = 0; j < seen; j++) {
            p[j] /= all;
            dot += p[j] * dp[j], dot_size += p[j] * fabs(dp[j]), dot_far += p[j] * far[j];
        }
        for (int j = 0; j < seen; j++) {
            const double ds = a.scale * p[j] * (dp[j] - dot),
                         ds_far = a.scale * p[j] *
                                      (far[j] + dot_far +
                                       (fabs(dp[j]) + dot_size) * (2 * log_far + f_t)) +
                                  (narrow + f_t) * fabs(ds);
            for (int c = 0; c < d; c++) {
                const double qc = (double)bf16_wide(q[i * row + c]),
                             kc = (double)bf16_wide(k[j * row + c]),
                             vc = (double)bf16_wide(v[j * row + c]),
                             gc = (double)bf16_wide(g[i * width + c]),
                             of_p = p[j] * (log_far + narrow + f_t);
                o[i * width + c] += p[j] * vc, off[i * width + c] += of_p * fabs(vc);
                dq[i * row + c] += ds * kc, off_dq[i * row + c] += ds_far * fabs(kc);
                dq[j * row + width + c] += ds * qc;
                off_dq[j * row + width + c] += ds_far * fabs(qc);
                dq[j * row + 2 * width + c] += p[j] * gc;
                off_dq[j * row + 2 * width + c] += of_p * fabs(gc);
            }
        }
    }
    free(p), free(dp), free(far);
}

/* got differs from want by at most 1.1 off, and by the rounding of a result to two bytes. */
static OPTIMISED void check_off(const bf16 *got, const double *want, const double *off,
                                int64_t count, const char *what)
{
    int64_t differ = 0;
    double share = 0;
    for (int64_t i = 0; i < count; i++) {
        const double x = (double)bf16_wide(got[i]), most = 1.1 * off[i] + ldexp(fabs(want[i]), -8),
                     d = fabs(x - want[i]);
        REQUIRE(d <= most + 1e-30, "%s: number %d is %.9g, not %.9g: off by %.3g, allowed %.3g",
                what, (int)i, x, want[i], d, most);
        differ += d > 0, share = fmax(share, most > 0 ? d / most : 0);
    }
    ck_assert_msg(count < 100 || (differ > 0 && share > 0.05),
                  "%s: the largest error is %.3g of the bound", what, share);
}

START_TEST(attention_bound)
{
    Attention a = attentions[_i / 2];
    a.causal = _i % 2;
    const int64_t ny = (int64_t)a.n * a.t * a.heads * a.d;
    Heads h = heads_of(a, USUAL);
    for (int64_t i = 0; i < 3 * ny; i++) /* scores that differ: a few weights are much larger */
        h.x[i] = bf16_narrow(2 * bf16_wide(h.x[i]));
    Exact e = {calloc((size_t)ny, 8), calloc((size_t)ny, 8), calloc((size_t)ny, 24),
               calloc((size_t)ny, 24)};
    run_heads(&h);
    for (int64_t s = 0; s < a.n; s++)
        for (int64_t head = 0; head < a.heads; head++)
            exact_head(e, &h, s, head);
    check_off(h.o, e.o, e.off, ny, "bf16_attention");
    check_off(h.dx, e.dx, e.off_dx, 3 * ny, "bf16_attention_dx");
    free(e.o), free(e.off), free(e.dx), free(e.off_dx);
    release(5, h.x, h.dy, h.o, h.dx, h.wide);
}
END_TEST

#endif
