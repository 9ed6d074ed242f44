/* test_sequence.c -- kernels for sequences: norms of rows, softmax along any dimension, small
 * products and attention, against their references, for sizes that do not fill the last vector or
 * tile. */
#pragma GCC diagnostic ignored                                                                     \
    "-Warray-bounds" /* gcc 12 warns wrongly of tiles whose size is not a literal */
#include "kernel_test.h"

#include "cpu/attention.h"
#include "cpu/embedding.h"
#include "cpu/gather.h"
#include "cpu/gemm.h"
#include "cpu/layer_norm.h"
#include "cpu/rotary.h"
#include "cpu/scan.h"
#include "cpu/softmax.h"
#include "cpu/token.h"

static const int widths[] = {1, 2, 7, 16, 17, 33, 64, 100, 384};
enum { WIDTHS = sizeof widths / sizeof *widths };

/* ---------------------------------------------------------------------------------------- norms */
START_TEST(norms)
{
    const int k = widths[_i];
    for (int center = 0; center < 2; center++) {
        const LayerNorm l = {.rows = 5, .k = k, .center = center, .epsilon = 1e-3};
        const int64_t count = (int64_t)l.rows * k;
        real *x = random_buffer(count, 1), *dy = random_buffer(count, 2), *w = random_buffer(k, 3),
             *b = random_buffer(k, 4), *a = buffer(count), *c = buffer(count),
             *dw = random_buffer(k, 5), *dv = copy_buffer(dw, k);
        for (int i = 0; i < k; i++) /* far from 0: the squares are taken from the mean */
            x[i] += 4;
        layer_norm_plain(a, x, w, center ? b : NULL, l);
        layer_norm(c, x, w, center ? b : NULL, l);
        if (k > 1 || !center)
            check_close(c, a, count, "layer_norm");
        layer_norm_dx_plain(a, dy, x, w, l);
        layer_norm_dx(c, dy, x, w, l);
        if (k > 2) /* for one or two numbers the gradient is only rounding errors */
            check_close(c, a, count, "layer_norm_dx");
        layer_norm_dw_plain(dw, dy, x, l);
        layer_norm_dw(dv, dy, x, l);
        check_close(dv, dw, k, "layer_norm_dw");
        release(8, x, dy, w, b, a, c, dw, dv);
    }
}
END_TEST

/* By the definition, in double. */
START_TEST(norm_rule)
{
    const real x[4] = {1, 2, 3, 6}, w[4] = {1, 2, 1, 1}, b[4] = {0, 0, 5, 0};
    real y[4];
    layer_norm(y, x, w, b, (LayerNorm){.rows = 1, .k = 4, .center = true, .epsilon = 0.5});
    const double r = 1 / sqrt(3.5 + 0.5);
    ck_assert_double_eq_tol((double)y[0], -2 * r, 1e-6);
    ck_assert_double_eq_tol((double)y[1], -2 * r, 1e-6);
    ck_assert_double_eq_tol((double)y[2], 5, 1e-6);
    layer_norm(y, x, w, NULL, (LayerNorm){.rows = 1, .k = 4, .center = false, .epsilon = 12.5});
    ck_assert_double_eq_tol((double)y[3], 6 / 5.0, 1e-6);
}
END_TEST

/* -------------------------------------------------------------------------------------- softmax */
START_TEST(softmax_dimensions)
{
    const int outer = 3, k = 6, inner = widths[_i];
    const int64_t count = (int64_t)outer * k * inner;
    real *x = random_buffer(count, 1), *dy = random_buffer(count, 2), *a = buffer(count),
         *b = buffer(count), *y = buffer(count);
    softmax_along_plain(a, x, outer, k, inner);
    softmax_along(y, x, outer, k, inner);
    check_close(y, a, count, "softmax_along");
    softmax_dx_along_plain(a, y, dy, outer, k, inner);
    softmax_dx_along(b, y, dy, outer, k, inner);
    check_close(b, a, count, "softmax_dx_along");
    if (inner == 1) {
        softmax(b, x, outer, k);
        check_close(b, y, count, "softmax = softmax_along of neighbours");
    }
    release(5, x, dy, a, b, y);
}
END_TEST

START_TEST(softmax_squares)
{
    const int k = widths[_i], n = 2 * k;
    const int64_t count = (int64_t)n * k;
    real *x = random_buffer(count, 1), *a = buffer(count), *b = buffer(count);
    softmax_causal_plain(a, x, n, k);
    softmax_causal(b, x, n, k);
    check_close(b, a, count, "softmax_causal");
    for (int64_t i = 0; i < count; i++)
        ck_assert((b[i] == 0) == (i % k > i / k % k));
    release(3, x, a, b);
}
END_TEST

/* -------------------------------------------------------------------------------------- embedding */
typedef struct Lookup {
    real *y, *dw;
    const real *w, *dy;
    const int32_t *token;
    Embedding e;
} Lookup;

static void lookup(void *arg)
{
    const Lookup *l = arg;
    embedding(l->y, l->token, l->w, l->e);
    embedding_dw(l->dw, l->token, l->dy, l->e);
}

START_TEST(embeddings)
{
    enum { V_TOKENS = 37, ROWS = 50 };
    const int width = widths[_i];
    const int64_t count = (int64_t)ROWS * width, table = (int64_t)V_TOKENS * width,
                  wide = (int64_t)(V_TOKENS + P - 1) / P * P * width;
    real *w = random_buffer(table, 1), *panels = zero_buffer(wide), *dy = random_buffer(count, 2);
    real *y = buffer(count), *z = buffer(count), *dw = zero_buffer(table), *dv = zero_buffer(table),
         *dp = zero_buffer(wide), *dt = zero_buffer(table);
    int32_t token[ROWS];
    for (int i = 0; i < ROWS; i++)
        token[i] = i * 11 % 23; /* some tokens occur twice or three times, some never */
    for (int v = 0; v < V_TOKENS; v++)
        for (int j = 0; j < width; j++)
            panels[((int64_t)(v / P) * width + j) * P + v % P] = w[(int64_t)v * width + j];
    for (int padding = -1; padding < 2; padding++) {
        const Embedding e = {ROWS, width, padding, false}, in_panels = {ROWS, width, padding, true};
        embedding_plain(y, token, w, e);
        embedding(z, token, w, e);
        check_same(z, y, count * (int64_t)sizeof(real), "embedding");
        embedding(z, token, panels, in_panels);
        check_same(z, y, count * (int64_t)sizeof(real), "embedding from panels");
        embedding_dw_plain(dw, token, dy, e);
        embedding_dw(dv, token, dy, e);
        check_same(dv, dw, table * (int64_t)sizeof(real), "embedding_dw");
        embedding_dw(dp, token, dy, in_panels);
        for (int v = 0; v < V_TOKENS; v++)
            for (int j = 0; j < width; j++)
                ck_assert(dp[((int64_t)(v / P) * width + j) * P + v % P] ==
                          dw[(int64_t)v * width + j]);
        for (int members = 2; members < 8; members++) {
            memset(z, 0xff, (size_t)count * sizeof(real));
            memset(dt, 0, (size_t)table * sizeof(real));
            memset(dw, 0, (size_t)table * sizeof(real));
            embedding_dw_plain(dw, token, dy, e);
            as_team(members, lookup, &(Lookup){z, dt, w, dy, token, e});
            check_same(z, y, count * (int64_t)sizeof(real), "embedding of a team");
            check_same(dt, dw, table * (int64_t)sizeof(real), "embedding_dw of a team");
        }
        memcpy(dw, dv, (size_t)table * sizeof(real));
    }
    check_guard(z, count * (int64_t)sizeof(real), "embedding");
    check_guard(dv, table * (int64_t)sizeof(real), "embedding_dw");
    release(9, w, panels, dy, y, z, dw, dv, dp, dt);
}
END_TEST

/* All units of embedding_dw_update by Adam, the last first. */
static void update_rows(const Rt *r, real *v, real *t0, real *t1, const char *token, const char *dy,
                        EmbeddingUpdate q)
{
    const int rows = EMBEDDING_ROWS(q.width);
    for (int unit = (q.vocab + rows - 1) / rows - 1; unit >= 0; unit--)
        embedding_dw_update(r, unit, 0, v, t0, t1, token, dy, (Factors){.lr = 1, .decay = 1}, update_adam, q);
}

/* Sum and update of a large table in one kernel: the bits of the sums of slices and reduce_update. */
START_TEST(embedding_updates)
{
    enum { VOCAB = 700, SLICES = 3, ROWS = 20, SHARDS = 5 };
    const int width = widths[_i];
    const int64_t table = (int64_t)VOCAB * width, values = (int64_t)SLICES * ROWS * width;
    const int64_t sums = (table * (int64_t)sizeof(real) + 63) / 64 * 64,
                  shard = sums * SLICES + (values + 16) * (int64_t)sizeof(real) +
                          (int64_t)sizeof(int32_t) * SLICES * ROWS + 64;
    const Embedding e = {ROWS, width, 4, false};
    const EmbeddingUpdate q = {VOCAB, width, 4, ROWS, SLICES, false};
    const Factors f = {.lr = 1, .decay = 1};
    const int64_t step = (shard + 63) / 64 * 64;
    char *memory = buffer_bytes(step * SHARDS);
    const char *tokens = memory + sums * SLICES + (values + 16) * (int64_t)sizeof(real);
    real *w = random_buffer(table, 1), *v = copy_buffer(w, table), *s0 = zero_buffer(table),
         *s1 = zero_buffer(table), *t0 = zero_buffer(table), *t1 = zero_buffer(table);
    Rt r = {.shard = memory, .shard_bytes = step, .shards = SHARDS};
    r.opt = (RtOpt){.lr = 0.1f,
                    .momentum = 0.9f,
                    .beta1 = 0.9f,
                    .beta2 = 0.99f,
                    .bias1 = 0.1f,
                    .bias2 = 0.1f,
                    .eps = 1e-6f,
                    .decay = 0.01f};
    for (int s = 0; s < SHARDS; s++) {
        char *at = memory + s * step;
        real *dy = (real *)(at + sums * SLICES);
        int32_t *token = (int32_t *)(dy + values + 16);
        memset(at, 0, (size_t)(sums * SLICES));
        for (int i = 0; i < SLICES * ROWS; i++)
            token[i] = (i * 37 + s * 5) % 61 * 11 % VOCAB;
        for (int64_t i = 0; i < values; i++)
            dy[i] = (real)noise(s, i);
        for (int k = 0; k < SLICES; k++)
            embedding_dw((real *)(at + k * sums), token + k * ROWS, dy + (int64_t)k * ROWS * width,
                         e);
    }
    reduce_update(&r, 0, 1, 0, w, s0, s1, memory, sums, SLICES, table, f, update_adam);
    update_rows(&r, v, t0, t1, tokens, memory + sums * SLICES, q);
    check_same(v, w, table * (int64_t)sizeof(real), "embedding_dw_update");
    check_same(t0, s0, table * (int64_t)sizeof(real), "embedding_dw_update's state");
    check_same(t1, s1, table * (int64_t)sizeof(real), "embedding_dw_update's state");
    check_guard(v, table * (int64_t)sizeof(real), "embedding_dw_update");

    /* lazy: the second step does not change rows with a gradient of 0 and states that are not 0 */
    EmbeddingUpdate z = q;
    z.lazy = true;
    real *before = copy_buffer(w, table);
    embedding_reduce_update(&r, 0, 2, 0, w, s0, s1, memory, sums, SLICES, table, width, f,
                            update_adam);
    embedding_reduce_update(&r, 1, 2, 0, w, s0, s1, memory, sums, SLICES, table, width, f,
                            update_adam);
    update_rows(&r, v, t0, t1, tokens, memory + sums * SLICES, z);
    check_same(v, w, table * (int64_t)sizeof(real), "a lazy embedding_dw_update");
    check_same(t1, s1, table * (int64_t)sizeof(real), "a lazy embedding_dw_update's state");
    for (int row = 0; row < VOCAB; row++) /* only multiples of 11 occur */
        for (int j = 0; j < width; j++) {
            const int64_t at = (int64_t)row * width + j;
            ck_assert((w[at] == before[at]) == (row % 11 > 0 || row > 660));
        }
    release(8, memory, w, v, s0, s1, t0, t1, before);
}
END_TEST

/* -------------------------------------------------------------------------------------------- gather */

/* Indices that occur twice, and indices out of range; for both types of index. */
START_TEST(places)
{
    for (int turn = 0; turn < 4; turn++) {
        const Gather g = {.n = 3,
                          .outer = 1 + turn % 2,
                          .k = 5,
                          .inner = widths[_i],
                          .places = 7,
                          .numbers = turn / 2};
        const int64_t rows = (int64_t)g.n * g.outer, from = rows * g.k * g.inner,
                      to = rows * g.places * g.inner;
        int32_t token[21];
        real number[21], *x = random_buffer(from, 1), *dy = random_buffer(to, 2), *y = buffer(to),
                         *z = buffer(to), *dx = random_buffer(from, 3),
                         *dz = random_buffer(from, 4);
        const void *index = g.numbers ? (const void *)number : token;
        for (int i = 0; i < 21; i++) {
            token[i] = i * 5 % 8 - 1;
            number[i] = (real)token[i] + (real)(i % 3 - 1) * (real)0.4;
        }
        number[6] = (real)NAN, number[9] = (real)INFINITY, number[20] = (real)-1e30;
        gather_plain(y, x, index, g);
        gather(z, x, index, g);
        check_same(z, y, to * (int64_t)sizeof(real), "gather");
        gather_dx_plain(dx, index, dy, g);
        gather_dx(dz, index, dy, g);
        check_same(dz, dx, from * (int64_t)sizeof(real), "gather_dx");
        double there = 0, back = 0; /* one is the other's transpose */
        for (int64_t i = 0; i < to; i++)
            there += (double)y[i] * (double)dy[i];
        for (int64_t i = 0; i < from; i++)
            back += (double)x[i] * (double)dx[i];
        ck_assert_double_eq_tol(there, back, 1e-4);
        release(6, x, dy, y, z, dx, dz);
    }
}
END_TEST

START_TEST(place_rule)
{
    const real x[3] = {5, 6, 7}, at[6] = {2, (real)0.6, (real)-0.4, (real)2.6, -1, (real)NAN};
    const int32_t token[4] = {2, 0, 3, -1};
    real y[6], dx[3];
    Gather g = {.n = 1, .outer = 1, .k = 3, .inner = 1, .places = 6, .numbers = true};
    gather(y, x, at, g);
    ck_assert(y[0] == 7 && y[1] == 6 && y[2] == 5 && y[3] == 0 && y[4] == 0 && y[5] == 0);
    g = (Gather){.n = 1, .outer = 1, .k = 3, .inner = 1, .places = 4};
    gather(y, x, token, g);
    ck_assert(y[0] == 7 && y[1] == 5 && y[2] == 0 && y[3] == 0);
    gather_dx(dx, token, x, (Gather){.n = 1, .outer = 1, .k = 3, .inner = 1, .places = 3});
    ck_assert(dx[0] == 6 && dx[1] == 0 && dx[2] == 5);
}
END_TEST

/* -------------------------------------------------------------------------------------- positions */
START_TEST(angles)
{
    const int heads = 1 + _i % 3, d = 2 * widths[_i];
    Rotary r = {.n = 2, .t = 40, .heads = heads, .d = d, .base = 100};
    const int64_t count = (int64_t)r.n * r.t * heads * d;
    real *x = random_buffer(count, 1), *a = buffer(count), *b = buffer(count);
    rotary_plain(a, x, r);
    rotary(b, x, r);
    check_close(b, a, count, "rotary");
    r.back = true;
    rotary(a, b, r);
    check_close(a, x, count, "rotary there and back");
    const Rotary w = {.n = 2, .t = 40, .heads = 1, .d = widths[_i], .base = 100};
    const int64_t few = (int64_t)w.n * w.t * w.d;
    real *y = buffer(few), *z = buffer(few);
    sinusoidal_plain(y, x, w);
    sinusoidal(z, x, w);
    check_close(z, y, few, "sinusoidal");
    release(5, x, a, b, y, z);
}
END_TEST

/* --------------------------------------------------------------------------------------- products */
static const Gemm gemms[] = {{3, 1, 1, 1, 0, 0},    {2, 5, 7, 3, 0, 0},     {1, 16, 32, 16, 0, 0},
                             {2, 33, 17, 65, 0, 0}, {1, 64, 64, 300, 0, 0}, {2, 13, 40, 128, 0, 0},
                             {1, 9, 129, 130, 0, 0}};
enum { GEMMS = sizeof gemms / sizeof *gemms };

START_TEST(products)
{
    for (int turn = 0; turn < 4; turn++) {
        Gemm g = gemms[_i];
        g.transpose_a = turn & 1, g.transpose_b = turn & 2;
        const int64_t na = (int64_t)g.count * g.m * g.k, nb = (int64_t)g.count * g.k * g.n,
                      nc = (int64_t)g.count * g.m * g.n;
        real *a = random_buffer(na, 1), *b = random_buffer(nb, 2), *c = buffer(nc), *d = buffer(nc);
        matmul_plain(c, a, b, g);
        matmul(d, a, b, g);
        check_close(d, c, nc, "matmul");
        release(4, a, b, c, d);
    }
}
END_TEST

/* -------------------------------------------------------------------------------------- attention */
static const Attention attentions[] = {{2, 1, 1, 1, 0, 1},     {1, 5, 3, 7, 0, .3},
                                       {2, 33, 2, 16, 0, .25}, {1, 64, 1, 64, 0, .125},
                                       {1, 70, 2, 33, 0, .2},  {1, 31, 2, 32, 0, .2},
                                       {1, 100, 1, 20, 0, .3}};
enum { ATTENTIONS = sizeof attentions / sizeof *attentions };

START_TEST(attentions_close)
{
    for (int causal = 0; causal < 2; causal++) {
        Attention a = attentions[_i];
        a.causal = causal;
        const int64_t ny = (int64_t)a.n * a.t * a.heads * a.d, nx = 3 * ny;
        real *x = random_buffer(nx, 1), *dy = random_buffer(ny, 2), *o = buffer(ny),
             *y = buffer(ny), *dx = buffer(nx), *dz = buffer(nx),
             *p = buffer(2 * (int64_t)a.t), *room = buffer(ATTENTION_ROOM(a.t, a.d)),
             *room_dx = buffer(ATTENTION_DX_ROOM(a.t, a.d));
        for (int64_t i = 0; i < nx; i++)
            x[i] *= 2;
        attention_plain(o, x, p, a);
        attention(y, x, room, a);
        check_guard(room, ATTENTION_ROOM(a.t, a.d) * (int64_t)sizeof(real), "attention, in its room,");
        check_close(y, o, ny, "attention");
        attention_dx_plain(dx, x, dy, p, a);
        attention_dx(dz, x, dy, room_dx, a);
        check_guard(room_dx, ATTENTION_DX_ROOM(a.t, a.d) * (int64_t)sizeof(real), "attention_dx, in its room,");
        check_close(dz, dx, nx, "attention_dx");
        release(9, x, dy, o, y, dx, dz, p, room, room_dx);
    }
}
END_TEST

/* A single step sees only itself; the first of two steps does not depend on the second. */
START_TEST(attention_rule)
{
    const Attention a = {1, 2, 1, 2, true, 1};
    const real x[12] = {1, 0, 9, 9, 3, 4, 0, 1, 0, 0, 5, 6};
    real o[4], *room = buffer(ATTENTION_ROOM(2, 2));
    attention(o, x, room, a);
    release(1, room);
    ck_assert(o[0] == 3 && o[1] == 4);
    const double p = 1 / (1 + exp(-9));
    ck_assert_double_eq_tol((double)o[2], 3 * p + 5 * (1 - p), 1e-5);
    ck_assert_double_eq_tol((double)o[3], 4 * p + 6 * (1 - p), 1e-5);
}
END_TEST

/* One token at a time: the results of the reference, and those of the whole text. */
START_TEST(token_attentions)
{
    Attention a = attentions[_i];
    a.n = 1, a.causal = true;
    const TokenAttention at = {a.t, a.heads, a.d, a.scale};
    const int64_t width = (int64_t)a.heads * a.d, room = a.t * (2 * width + 1), before = 5;
    real *x = random_buffer(3 * a.t * width, 1), *whole = buffer(a.t * width), *o = buffer(width),
         *y = buffer(width), *cache = buffer(before + room), *other = buffer(before + room),
         *p = buffer(a.t);
    attention_plain(whole, x, p, a);
    for (Rt r = {.position = 0}; r.position < a.t; r.position++) {
        r.cache = (char *)other;
        token_attention_plain(o, x + r.position * 3 * width, &r, before, at);
        r.cache = (char *)cache;
        token_attention(y, x + r.position * 3 * width, &r, before, at);
        check_close(y, o, width, "token_attention");
        check_close(y, whole + r.position * width, width, "token_attention of a text");
    }
    check_guard(cache, (before + room) * (int64_t)sizeof(real), "token_attention");
    check_same(cache + before, other + before, 2 * a.t * width * (int64_t)sizeof(real),
               "token_attention's cache");
    release(7, x, whole, o, y, cache, other, p);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sequences");
    tcase_add_loop_test(t, norms, 0, WIDTHS);
    tcase_add_test(t, norm_rule);
    tcase_add_loop_test(t, softmax_dimensions, 0, WIDTHS);
    tcase_add_loop_test(t, softmax_squares, 0, WIDTHS);
    tcase_add_loop_test(t, embeddings, 0, WIDTHS);
    tcase_add_loop_test(t, embedding_updates, 0, WIDTHS);
    tcase_add_loop_test(t, places, 0, WIDTHS);
    tcase_add_test(t, place_rule);
    tcase_add_loop_test(t, angles, 0, WIDTHS);
    tcase_add_loop_test(t, products, 0, GEMMS);
    tcase_add_loop_test(t, attentions_close, 0, ATTENTIONS);
    tcase_add_test(t, attention_rule);
    tcase_add_loop_test(t, token_attentions, 0, ATTENTIONS);
    return run_suite(t, "sequence kernels");
}
