/* test_bf16.c -- products with factors in bf16: each form gives the bits of the definition in
 * bf16.h. */
#include "conv_test.h"

#include "cpu/bf16_attention.h"
#include "cpu/bf16_conv.h"
#include "cpu/bf16_conv_dw.h"
#include "cpu/bf16_gemm.h"

#include "bf16_attention_plain.h"
#include "bf16_conv_plain.h"

/* The mode of a program's threads. */
static inline void flush_denormals(void)
{
#ifdef __SSE__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040u);
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1u << 24));
#endif
}

/* ---------------------------------------------------------------------------------- conversion */
static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Known results: ties, carries into the exponent, overflow, NaN, denormals. */
START_TEST(narrow)
{
    static const struct {
        uint32_t from;
        bf16 to;
    } known[] = {
        {0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82},
        {0x3fffffff, 0x4000}, {0xbf808001, 0xbf81}, {0x7f7fffff, 0x7f80}, {0x7f7f7fff, 0x7f7f},
        {0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0xff80ffff, 0xffc0},
        {0x7fc12345, 0x7fc1}, {0x7fffffff, 0x7fff}, {0x007fffff, 0x0000}, {0x80000001, 0x8000},
        {0x00800000, 0x0080}, {0x80808000, 0x8080}, {0x00000000, 0x0000}, {0x80000000, 0x8000},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const bf16 got = bf16_narrow(from_bits(known[i].from));
        ck_assert_msg(got == known[i].to, "%08x becomes %04x, not %04x", known[i].from, got,
                      known[i].to);
    }
    for (int i = 0; i < 65536; i++) { /* a bf16 stays, but for denormals and signaling NaNs */
        const bool denormal = (i & 0x7f80) == 0, nan = (i & 0x7fff) > 0x7f80;
        const bf16 want = (bf16)(denormal ? i & 0x8000 : nan ? i | 0x40 : i);
        REQUIRE(bf16_narrow(bf16_wide((bf16)i)) == want, "%04x does not stay", i);
    }
}
END_TEST

#ifndef RT_DOUBLE
/* Floats of all kinds: any bits, and numbers close to the middle of two bf16. */
static OPTIMISED float any_float(int64_t i)
{
    uint32_t bits[4];
    rt_philox(bits, 0xbf16, (uint32_t)i, 0, 0, 0);
    return from_bits(bits[1] % 4 ? (bits[0] & 0xffff0000) + 0x7fff + bits[1] % 3 : bits[0]);
}

START_TEST(vectors)
{
    enum { COUNT = 20000 };
    flush_denormals();
    real *x = buffer(COUNT), *back = buffer(COUNT);
    bf16 *y = buffer_bytes(COUNT * sizeof *y);
    for (int i = 0; i < COUNT; i++)
        x[i] = any_float(i);
    for (int n = COUNT - 2 * V; n <= COUNT; n++) {
        const bool all = n == COUNT;
        const int first = all ? 0 : COUNT - 4 * V;
        memset(y, GUARD, COUNT * sizeof *y);
        bf16_from_f32(y + first, x + first, n - first);
        for (int i = first; i < COUNT; i++) {
            const bf16 want = i < n ? bf16_narrow(x[i]) : GUARD << 8 | GUARD;
            REQUIRE(y[i] == want, "number %d: %04x instead of %04x", i, y[i], want);
        }
        memset(back, GUARD, COUNT * sizeof *back);
        bf16_to_f32(back + first, y + first, n - first);
        for (int i = first; i < n; i++) {
            const float want = bf16_wide(y[i]);
            REQUIRE(memcmp(&want, back + i, sizeof want) == 0, "number %d wide", i);
        }
        for (int i = n; i < COUNT; i++)
            REQUIRE(((const unsigned char *)(back + i))[0] == GUARD, "number %d written", i);
    }
    check_guard(y, COUNT * sizeof *y, "bf16_from_f32");
    check_guard(back, COUNT * (int64_t)sizeof(real), "bf16_to_f32");
    release(3, x, back, y);
}
END_TEST

/* ------------------------------------------------------------------------------------- numbers
 * Kinds of factors: usual numbers, of widely different sizes, with NaN and infinities here and
 * there, and so small that products and sums become denormal. */
typedef enum Kind { USUAL, SPREAD, SPECIAL, TINY, KINDS } Kind;
static OPTIMISED float factor(Kind kind, int seed, int64_t i)
{
    uint32_t bits[4];
    rt_philox(bits, 0xfac, (uint32_t)i, (uint32_t)seed, 0, 0);
    const float x = (float)((bits[0] + 0.5) / 2147483648.0 - 1);
    const int shift = (int)(bits[1] % 24);
    switch (kind) {
    case SPREAD:
        return ldexpf(x, shift - 12);
    case SPECIAL:
        return bits[1] % 257 == 0 ? (bits[2] % 3 ? copysignf(INFINITY, x) : NAN) : x;
    case TINY:
        return ldexpf(x, -54 - shift);
    default:
        return bits[1] % 5 == 0 ? 0 : x;
    }
}
static OPTIMISED bf16 *factors(Kind kind, int64_t count, int seed)
{
    bf16 *p = buffer_bytes(count * (int64_t)sizeof *p);
    for (int64_t i = 0; i < count; i++)
        p[i] = bf16_narrow(factor(kind, seed, i));
    return p;
}
static OPTIMISED real *weights(Kind kind, int64_t count, int seed)
{
    real *p = buffer(count);
    for (int64_t i = 0; i < count; i++)
        p[i] = factor(kind, seed, i);
    return p;
}

/* Equal bits; any NaN equals any NaN. */
static OPTIMISED void check_bits(const real *got, const real *want, int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        const bool same =
            memcmp(got + i, want + i, sizeof *got) == 0 || (got[i] != got[i] && want[i] != want[i]);
        REQUIRE(same, "%s: number %d is %.9g, not %.9g", what, (int)i, (double)got[i],
                (double)want[i]);
    }
    check_guard(got, count * (int64_t)sizeof *got, what);
}
static OPTIMISED void check_narrow(const bf16 *got, const real *want, int64_t count,
                                   const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        const bf16 w = bf16_narrow(want[i]);
        const bool same = got[i] == w || ((got[i] & 0x7fff) > 0x7f80 && want[i] != want[i]);
        REQUIRE(same, "%s: number %d is %04x, not %04x (%.9g)", what, (int)i, got[i], w,
                (double)want[i]);
    }
    check_guard(got, count * (int64_t)sizeof *got, what);
}

/* ---------------------------------------------------------------------------------------- dense */
static const Dense dense_sizes[] = {
    {1, 1, 1},    {1, 31, 16},  {3, 37, 5},    {16, 64, 32},  {7, 33, 31},   {16, 100, 70},
    {33, 65, 37}, {17, 200, 1}, {70, 128, 48}, {128, 30, 66}, {2, 300, 129}, {40, 32, 17},
};
enum { DENSE_SIZES = sizeof dense_sizes / sizeof *dense_sizes };

static REFERENCE void dense_forward(real *y, const bf16 *x, const real *w, const real *bias,
                                    Dense d)
{
    bf16_dense_plain(y, x, w, d);
    for (int64_t i = 0; bias && i < (int64_t)d.n * d.o; i++) {
        y[i] += bias[i % d.o];
        y[i] = 0 > y[i] ? 0 : y[i];
    }
}
static REFERENCE void dense_back(real *dx, const real *w, const bf16 *dy, const bf16 *seen, Dense d)
{
    bf16_dense_dx_plain(dx, w, dy, d);
    for (int64_t i = 0; seen && i < (int64_t)d.n * d.k; i++)
        dx[i] = bf16_wide(seen[i]) > 0 ? dx[i] : 0;
}
static REFERENCE void dense_weights(real *dw, const bf16 *x, const bf16 *dy, Dense d)
{
    bf16_dense_dw_plain(dw, x, dy, d);
}

/* (O, K) in panels, and back. */
static OPTIMISED real *panels(const real *w, Dense d)
{
    real *p = zero_buffer(DENSE_COUNT(d.k, d.o));
    for (int o = 0; o < d.o; o++)
        for (int k = 0; k < d.k; k++)
            p[((int64_t)(o / P) * d.k + k) * P + o % P] = w[(int64_t)o * d.k + k];
    return p;
}
static OPTIMISED real *unpanels(const real *p, Dense d)
{
    real *w = buffer((int64_t)d.o * d.k);
    for (int o = 0; o < d.o; o++)
        for (int k = 0; k < d.k; k++)
            w[(int64_t)o * d.k + k] = p[((int64_t)(o / P) * d.k + k) * P + o % P];
    return w;
}

static bf16 *dense_packed(const real *panel, Dense d, bool back)
{
    const int64_t count = back ? BF16_PACKED(d.o, d.k) : BF16_PACKED(d.k, d.o);
    bf16 *p = buffer_bytes(count * (int64_t)sizeof *p);
    for (int unit = 0; unit < 3; unit++)
        if (back)
            bf16_dense_pack_back(p, panel, d, unit, 3);
        else
            bf16_dense_pack(p, panel, d, unit, 3);
    check_guard(p, count * (int64_t)sizeof *p, "packed weights");
    return p;
}

/* All results of a layer, by one thread or by a team. */
typedef struct Layer {
    Dense d;
    bf16 *x, *dy, *forward, *back, *y, *dx;
    real *bias, *wide, *dw, *wide_dx;
} Layer;
static void run_layer(void *arg)
{
    const Layer *l = arg;
    flush_denormals();
    bf16_dense(l->y, l->x, l->forward, l->bias, v_relu, l->d);
    bf16_dense_f32(l->wide, l->x, l->forward, NULL, v_identity, l->d);
    bf16_dense_dx(l->dx, l->back, l->dy, d_relu, l->x, l->d);
    bf16_dense_dx_f32(l->wide_dx, l->back, l->dy, d_identity, NULL, l->d);
    bf16_dense_dw(l->dw, l->x, l->dy, l->d);
}

static void check_layer(Dense d, Kind kind, int team)
{
    const int64_t nx = (int64_t)d.n * d.k, ny = (int64_t)d.n * d.o, nw = (int64_t)d.k * d.o;
    real *w = weights(kind, nw, 2), *dw = weights(USUAL, nw, 5), *expect = buffer(ny),
         *expect_dx = buffer(nx), *p = panels(w, d);
    Layer l = {d,
               factors(kind, nx, 1),
               factors(kind, ny, 4),
               dense_packed(p, d, false),
               dense_packed(p, d, true),
               buffer_bytes(ny * (int64_t)sizeof(bf16)),
               buffer_bytes(nx * (int64_t)sizeof(bf16)),
               weights(kind, d.o, 3),
               buffer(ny),
               panels(dw, d),
               buffer(nx)};
    if (team > 1)
        as_team(team, run_layer, &l);
    else
        run_layer(&l);
    flush_denormals();
    dense_forward(expect, l.x, w, l.bias, d);
    check_narrow(l.y, expect, ny, "bf16_dense");
    dense_forward(expect, l.x, w, NULL, d);
    check_bits(l.wide, expect, ny, "bf16_dense_f32");
    dense_back(expect_dx, w, l.dy, l.x, d);
    check_narrow(l.dx, expect_dx, nx, "bf16_dense_dx");
    dense_back(expect_dx, w, l.dy, NULL, d);
    check_bits(l.wide_dx, expect_dx, nx, "bf16_dense_dx_f32");
    dense_weights(dw, l.x, l.dy, d);
    real *got = unpanels(l.dw, d);
    check_guard(l.dw, DENSE_COUNT(d.k, d.o) * (int64_t)sizeof(real), "bf16_dense_dw");
    check_bits(got, dw, nw, "bf16_dense_dw");
    for (int64_t i = 0; i < DENSE_COUNT(d.k, d.o); i++)
        if (i / P / d.k * P + i % P >= d.o)
            REQUIRE(l.dw[i] == 0, "padding of a panel is %g", (double)l.dw[i]);
    release(16, w, dw, expect, expect_dx, p, l.x, l.dy, l.forward, l.back, l.y, l.dx, l.bias,
            l.wide, l.dw, l.wide_dx, got);
}

START_TEST(dense_layers)
{
    check_layer(dense_sizes[_i / KINDS], _i % KINDS, 1);
}
END_TEST
START_TEST(dense_teams)
{
    check_layer(dense_sizes[_i], USUAL, _i % 2 ? 3 : 7);
}
END_TEST

/* The distance of sums of `count` factors, y (N, O), to the sums in f64.  Output j, factor k is
 * w[j * output + k * factor].  A factor goes through at most 16 additions of its chain, one of the
 * two chains, and one for each block.  Each addition rounds by at most 2^-24 of its result, which is
 * at most the sum of all magnitudes. */
enum { BOUND_N = 4, BOUND_O = 40 };
static void check_bound(const real *y, const bf16 *x, const real *w, int output, int factor,
                        int count)
{
    const double units = 16 + 1 + BF16_BLOCKS(count);
    int differ = 0;
    for (int i = 0; i < BOUND_N * BOUND_O; i++) {
        double sum = 0, size = 0;
        for (int k = 0; k < count; k++) {
            const double one =
                (double)bf16_wide(x[i / BOUND_O * count + k]) *
                bf16_wide(bf16_narrow(w[(int64_t)(i % BOUND_O) * output + (int64_t)k * factor]));
            sum += one, size += fabs(one);
        }
        const double off = fabs(sum - (double)y[i]), most = units * ldexp(size, -24);
        REQUIRE(off <= most, "sum %d of %d factors is off by %.3g, allowed %.3g", i, count, off,
                most);
        differ += off > 0;
    }
    ck_assert_msg(count < 100 || differ > 0, "no sum of %d factors is rounded", count);
}

START_TEST(bound)
{
    static const int lengths[] = {1, 16, 31, 32, 33, 100, 784, 2000};
    const int count = lengths[_i / 2];
    const Kind kind = _i % 2 ? SPREAD : USUAL;
    const Dense d = {BOUND_N, count, BOUND_O}, back = {BOUND_N, BOUND_O, count};
    real *w = weights(kind, (int64_t)BOUND_O * count, 2), *p = panels(w, d), *q = panels(w, back),
         *y = buffer(BOUND_N * BOUND_O);
    bf16 *x = factors(kind, (int64_t)BOUND_N * count, 1), *forward = dense_packed(p, d, false),
         *backward = dense_packed(q, back, true);
    flush_denormals();
    bf16_dense_f32(y, x, forward, NULL, v_identity, d);
    check_bound(y, x, w, count, 1, count);
    bf16_dense_dx_f32(y, backward, x, d_identity, NULL, back);
    check_bound(y, x, w, 1, BOUND_O, count);
    release(7, w, p, q, y, x, forward, backward);
}
END_TEST

#ifdef RT_FAST
/* The products of --fast, by their definition: one chain for each sum, the odd factor of a pair
 * first.  Two runs of _i + 1 factors, and 1 to 32 rows. */
START_TEST(chains)
{
    enum { MOST = 48, STEP = 2 * MOST };
    const int length = _i + 1, rows = _i * 5 % BF16_ROWS + 1, panels = _i % 2 + 1;
    const int64_t from[] = {0, MOST}, at[] = {0, BF16_PANEL(MOST)}, panel = 2 * BF16_PANEL(MOST);
    const Bf16Runs runs = {2, length, from, at, 0};
    bf16 *x = factors(USUAL, BF16_ROWS * STEP, 1), *b = factors(USUAL, 2 * panel, 2);
    const bf16 *row[BF16_ROWS];
    const int columns = panels * BF16_LANES;
    float *sum = buffer(BF16_TILE), *got = buffer(rows * columns), *expect = buffer(rows * columns);
    flush_denormals();
    if (length % 2) /* the missing factor of the last pair is +0 */
        for (int i = 0; i < 4 * BF16_LANES; i++)
            b[i / (2 * BF16_LANES) * panel + at[i / BF16_LANES % 2] +
              ((length - 1) / 2 * BF16_LANES + i % BF16_LANES) * 2 + 1] = 0;
    for (int i = 0; i < BF16_ROWS; i++)
        row[i] = x + (i < rows ? i : rows - 1) * STEP;
    for (int i = 0; i < rows * columns; i++) {
        const int r = i / columns, j = i % columns;
        float s = 0;
        for (int t = 0; t < 2; t++)
            for (int k = 0; k < length; k += 2) {
                const bf16 *a = row[r] + from[t] + k,
                           *c = b + j / BF16_LANES * panel + at[t] +
                                (k / 2 * BF16_LANES + j % BF16_LANES) * 2;
                if (k + 1 < length)
                    s = bf16_fma(bf16_wide(a[1]), bf16_wide(c[1]), s);
                s = bf16_fma(bf16_wide(a[0]), bf16_wide(c[0]), s);
            }
        expect[i] = s;
    }
    rt_tiles = RT_TILES_CHAINS;
    const Bf16Rows all = bf16_rows(row, rows, x + BF16_ROWS * STEP, &runs, NULL, 1);
    bf16_product_rows(sum, BF16_ROWS, true, &all, b, panel, panels, &runs);
    rt_tiles = RT_TILES_UNKNOWN;
    for (int i = 0; i < rows * columns; i++)
        got[i] = sum[i / columns * BF16_ROWS + i % columns];
    check_bits(got, expect, rows * columns, "chains");
    release(5, x, b, sum, got, expect);
}
END_TEST
#endif

/* Both chains of a last block are flushed to -0.  A sum that is -0, too, becomes +0, because the
 * block has missing factors. */
START_TEST(flushed)
{
    const Dense d = {1, 68, 1};
    const float up = ldexpf(1, -63), down = -ldexpf(1 + 1 / 128.0f, -63);
    bf16 *x = buffer_bytes(d.k * (int64_t)sizeof *x), *packed;
    real *w = zero_buffer(d.k), *y = buffer(1), *expect = buffer(1), *p;
    memset(x, 0, (size_t)d.k * sizeof *x);
    static const struct {
        int at;
        bool up;
    } set[] = {{0, true}, {32, false}, {64, true}, {65, true}, {66, false}, {67, false}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        x[set[i].at] = bf16_narrow(set[i].up ? up : down), w[set[i].at] = up;
    flush_denormals();
    p = panels(w, d);
    packed = dense_packed(p, d, false);
    bf16_dense_f32(y, x, packed, NULL, v_identity, d);
    dense_forward(expect, x, w, NULL, d);
    check_bits(y, expect, 1, "flushed chains");
    ck_assert_msg(y[0] == 0 && !signbit(y[0]), "the sum is %g, not +0", (double)y[0]);
    bf16_dense_f32(y, x, packed, NULL, v_identity, (Dense){1, 64, 1});
    ck_assert_msg(y[0] == 0 && signbit(y[0]), "the sum of two blocks is %g, not -0", (double)y[0]);
    release(6, x, packed, w, y, expect, p);
}
END_TEST

/* ------------------------------------------------------------------------------------- matrices */
static const Gemm gemm_sizes[] = {
    {1, 1, 1, 1, 0, 0},    {3, 5, 9, 8, 0, 0},     {2, 33, 31, 37, 0, 0},
    {2, 64, 32, 64, 0, 0}, {1, 40, 70, 256, 0, 0}, {2, 35, 17, 300, 0, 0},
};
enum { GEMM_SIZES = sizeof gemm_sizes / sizeof *gemm_sizes };

typedef struct Matrices {
    Gemm g;
    bf16 *a, *b, *c;
    real *wide;
} Matrices;
static void run_matrices(void *arg)
{
    const Matrices *m = arg;
    flush_denormals();
    bf16_matmul(m->c, m->a, m->b, m->g);
    bf16_matmul_f32(m->wide, m->a, m->b, m->g);
}

static void check_matrices(Gemm g, Kind kind, int team)
{
    const int64_t count = (int64_t)g.count * g.m * g.n;
    Matrices m = {g, factors(kind, (int64_t)g.count * g.m * g.k, 1),
                  factors(kind, (int64_t)g.count * g.k * g.n, 2),
                  buffer_bytes(count * (int64_t)sizeof(bf16)), buffer(count)};
    real *expect = buffer(count);
    if (team > 1)
        as_team(team, run_matrices, &m);
    else
        run_matrices(&m);
    flush_denormals();
    bf16_matmul_plain(expect, m.a, m.b, g);
    check_narrow(m.c, expect, count, "bf16_matmul");
    check_bits(m.wide, expect, count, "bf16_matmul_f32");
    release(5, m.a, m.b, m.c, m.wide, expect);
}

START_TEST(gemm)
{
    Gemm g = gemm_sizes[_i / KINDS];
    for (int turned = 0; turned < 4; turned++) {
        g.transpose_a = turned & 1, g.transpose_b = turned & 2;
        check_matrices(g, _i % KINDS, 1);
    }
}
END_TEST
START_TEST(gemm_teams)
{
    Gemm g = gemm_sizes[_i / 2];
    g.transpose_a = _i & 1, g.transpose_b = _i & 2;
    check_matrices(g, USUAL, _i % 2 ? 3 : 7);
}
END_TEST

/* The distance to f64, as of dense layers: both forms of an operand have the same sums. */
START_TEST(gemm_bound)
{
    static const int lengths[] = {1, 33, 256, 257, 1000};
    const int count = lengths[_i];
    const Gemm g = {1, BOUND_N, BOUND_O, count, false, true};
    bf16 *x = factors(SPREAD, (int64_t)BOUND_N * count, 1),
         *w = factors(SPREAD, (int64_t)BOUND_O * count, 2);
    real *y = buffer(BOUND_N * BOUND_O), *wide = buffer((int64_t)BOUND_O * count);
    flush_denormals();
    for (int64_t i = 0; i < (int64_t)BOUND_O * count; i++)
        wide[i] = bf16_wide(w[i]);
    bf16_matmul_f32(y, x, w, g);
    check_bound(y, x, wide, count, 1, count);
    release(4, x, w, y, wide);
}
END_TEST

/* ------------------------------------------------------------------------------------ attention
 * n, t, heads, d: odd sizes of heads and sequences, one step, one sample, and more steps than a group
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

/* --------------------------------------------------------------------------------- convolutions */
static const Conv conv_sizes[] = {
    /* n  c   h   w   o  r  s  stride  pad   dil  g  oh  ow pool */
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0},
    {2, 3, 1, 1, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}, /* 8 of 9 taps outside */
    {3, 20, 12, 12, 50, 5, 5, 1, 1, 0, 0, 1, 1, 1, 8, 8, 0},
    {3, 37, 9, 7, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1, 9, 7, 0},
    {2, 5, 8, 9, 7, 3, 3, 2, 2, 0, 0, 1, 1, 1, 4, 5, 0}, /* same: odd one at the end */
    {1, 4, 11, 10, 6, 3, 2, 2, 3, 1, 0, 1, 1, 1, 6, 3, 0},
    {2, 6, 10, 10, 8, 3, 3, 1, 1, 2, 2, 2, 2, 1, 10, 10, 0}, /* dilated */
    {1, 4, 9, 9, 4, 2, 3, 2, 1, 1, 3, 3, 2, 1, 4, 11, 0},
    {2, 3, 9, 8, 4, 1, 1, 3, 2, 0, 0, 1, 1, 1, 3, 4, 0},  /* pixels in no window */
    {2, 8, 7, 7, 12, 3, 3, 1, 1, 1, 1, 1, 1, 4, 7, 7, 0}, /* groups */
    {1, 34, 5, 5, 66, 3, 3, 1, 1, 1, 1, 1, 1, 2, 5, 5, 0},
    {2, 6, 6, 6, 6, 3, 3, 1, 1, 1, 1, 1, 1, 6, 6, 6, 0},   /* depthwise */
    {1, 2, 3, 3, 3, 2, 2, 1, 1, 4, 5, 1, 1, 1, 10, 12, 0}, /* pad larger than the kernel */
    {1, 64, 6, 6, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 6, 6, 0},
    {2, 32, 5, 4, 96, 1, 1, 1, 1, 0, 0, 1, 1, 1, 5, 4, 0}, /* 1x1 kernel */
    {1, 3, 23, 19, 16, 7, 7, 2, 2, 3, 3, 1, 1, 1, 12, 10, 0},
    {3, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 8, 8, 0},
    {2, 16, 8, 8, 32, 3, 3, 2, 2, 1, 1, 1, 1, 1, 4, 4, 0},
    {2, 70, 5, 6, 34, 1, 1, 2, 2, 0, 0, 1, 1, 1, 3, 3, 0},
    {2, 24, 9, 9, 40, 3, 3, 3, 3, 1, 1, 2, 2, 1, 3, 3, 0}, /* phases of a dilated kernel */
    {2, 16, 8, 8, 20, 3, 3, 2, 2, 2, 2, 2, 2, 1, 4, 4, 0}, /* rows in no window */
    {1, 9, 1, 1, 10, 1, 1, 2, 2, 0, 0, 1, 1, 1, 1, 1, 0},  /* less than a step of one image */
    {3, 9, 2, 1, 10, 1, 1, 3, 3, 0, 0, 1, 1, 1, 1, 1, 0},
};
enum { CONV_SIZES = sizeof conv_sizes / sizeof *conv_sizes };

/* Frames in bands, of which the last is smaller; more positions than a block; many outputs. */
static const Conv large_sizes[] = {
    {1, 160, 30, 30, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 30, 30, 0},
    {1, 3, 30, 30, 160, 3, 3, 1, 1, 1, 1, 1, 1, 1, 30, 30, 0},
    {1, 3000, 3, 13, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 3, 13, 0}, /* one row is more than a frame */
    {1, 3, 3, 13, 3000, 3, 3, 1, 1, 1, 1, 1, 1, 1, 3, 13, 0},
    {2, 70, 50, 40, 5, 3, 3, 2, 1, 1, 1, 1, 1, 1, 25, 40, 0},
    {2, 5, 25, 40, 140, 2, 3, 2, 2, 0, 1, 1, 1, 1, 12, 20, 0},
    {2, 9, 77, 80, 40, 3, 3, 2, 2, 1, 1, 1, 1, 1, 39, 40, 0},
    {9, 20, 8, 8, 70, 3, 3, 1, 1, 1, 1, 1, 1, 1, 8, 8, 0},
    {40, 12, 2, 2, 36, 3, 3, 1, 1, 1, 1, 1, 1, 1, 2, 2, 0},
};
enum { LARGE_SIZES = sizeof large_sizes / sizeof *large_sizes };

static REFERENCE void conv_forward_plain(real *y, const bf16 *x, const real *w, const real *bias,
                                         Conv c)
{
    bf16_conv2d_plain(y, x, w, c);
    for (int64_t i = 0; i < count_y(c); i++) {
        y[i] += bias[i % c.o];
        y[i] = 0 > y[i] ? 0 : y[i];
    }
}
static REFERENCE void conv_back_plain(real *dx, const real *w, const bf16 *dy, const bf16 *seen,
                                      Conv c)
{
    bf16_conv2d_dx_plain(dx, w, dy, c);
    for (int64_t i = 0; i < count_x(c); i++)
        dx[i] = bf16_wide(seen[i]) > 0 ? dx[i] : 0;
}
static REFERENCE void conv_weights_plain(real *dw, const bf16 *x, const bf16 *dy, Conv c)
{
    bf16_conv2d_dw_plain(dw, x, dy, c);
}

static bf16 *conv_packed(const real *w, Conv c, bool back)
{
    const int64_t count = back ? BF16_CONV_PACKED_BACK(c) : BF16_CONV_PACKED(c);
    bf16 *p = buffer_bytes(count * (int64_t)sizeof *p);
    for (int unit = 0; unit < 3; unit++)
        if (back)
            bf16_conv_pack_back(p, w, c, unit, 3);
        else
            bf16_conv_pack(p, w, c, unit, 3);
    check_guard(p, count * (int64_t)sizeof *p, "packed weights");
    return p;
}

typedef struct Filter {
    Conv c;
    bf16 *x, *dy, *forward, *back, *y, *dx;
    real *bias, *dw;
} Filter;
static void run_filter(void *arg)
{
    const Filter *f = arg;
    flush_denormals();
    bf16_conv2d(f->y, f->x, f->forward, f->bias, v_relu, f->c);
    bf16_conv2d_dx(f->dx, f->back, f->dy, d_relu, f->x, f->c);
    bf16_conv2d_dw(f->dw, f->x, f->dy, f->c);
}

static void check_filter(Conv c, Kind kind, int team)
{
    const int64_t nx = count_x(c), ny = count_y(c), nw = count_w(c);
    real *w = weights(kind, nw, 2), *dw = weights(USUAL, nw, 5), *expect = buffer(ny),
         *expect_dx = buffer(nx);
    c.write = kind == SPREAD;
    Filter f = {c,
                factors(kind, nx, 1),
                factors(kind, ny, 4),
                conv_packed(w, c, false),
                conv_packed(w, c, true),
                buffer_bytes(ny * (int64_t)sizeof(bf16)),
                buffer_bytes(nx * (int64_t)sizeof(bf16)),
                weights(kind, c.o, 3),
                copy_buffer(dw, nw)};
    if (team > 1)
        as_team(team, run_filter, &f);
    else
        run_filter(&f);
    flush_denormals();
    conv_forward_plain(expect, f.x, w, f.bias, c);
    check_narrow(f.y, expect, ny, "bf16_conv2d");
    conv_back_plain(expect_dx, w, f.dy, f.x, c);
    check_narrow(f.dx, expect_dx, nx, "bf16_conv2d_dx");
    conv_weights_plain(dw, f.x, f.dy, c);
    check_bits(f.dw, dw, nw, "bf16_conv2d_dw");
    release(12, w, dw, expect, expect_dx, f.x, f.dy, f.forward, f.back, f.y, f.dx, f.bias, f.dw);
}

START_TEST(conv_layers)
{
    check_filter(conv_sizes[_i / KINDS], _i % KINDS, 1);
}
END_TEST
START_TEST(conv_bands)
{
    check_filter(large_sizes[_i], USUAL, 1);
}
END_TEST
START_TEST(conv_teams)
{
    check_filter(conv_sizes[_i], USUAL, _i % 2 ? 3 : 7);
}
END_TEST

#if defined(RT_AMX) && !defined(TILES_H)
/* A program for AVX-512, with tiles.c, uses tiles if this processor has them and the system gives
 * permission.  A system that refuses is noted once. */
static int notes;
void rt_note(const char *fmt, ...)
{
    notes++;
    ck_assert_ptr_nonnull(strstr(fmt, "AMX"));
}

_Noreturn void rt_die(const char *fmt, ...)
{
    ck_abort_msg("%s", fmt);
    abort();
}

static void *ask_for_tiles(void *ready)
{
    *(bool *)ready = bf16_has_tiles() && bf16_has_tiles();
    return NULL;
}
START_TEST(permission)
{
    bool other = false;
    pthread_t thread;
    FILE *f = fopen("/proc/cpuinfo", "r");
    char line[8192];
    bool has = false;
    while (f && fgets(line, sizeof line, f))
        has = has || strstr(line, " amx_bf16");
    if (f)
        fclose(f);
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_for_tiles, &other), 0);
    pthread_join(thread, NULL);
    ck_assert_msg(bf16_has_tiles() == has && other == has, "tiles: %d, of another thread: %d",
                  bf16_has_tiles(), other);
    ck_assert_int_le(notes, has ? 0 : 1);
    rt_tiles = RT_TILES_REFUSED; /* vectors give the same bits where there are tiles */
    for (int i = 0; i < DENSE_SIZES; i++)
        check_layer(dense_sizes[i], USUAL, 1);
    check_filter(conv_sizes[3], USUAL, 1);
}
END_TEST
#elif defined(RT_AMX)
/* A thread without permission for tiles computes the same bits and uses no tile. */
START_TEST(refused)
{
    check_layer(dense_sizes[4], USUAL, 1);
    ck_assert_msg(tile_products > 0, "no product by tiles");
    rt_tiles = RT_TILES_UNKNOWN, tiles_refused = true, tile_products = 0;
    check_layer(dense_sizes[4], USUAL, 1);
    check_filter(conv_sizes[3], USUAL, 1);
    ck_assert_msg(tile_products == 0, "%ld products by tiles without permission", tile_products);
}
END_TEST
#endif
#endif

int main(void)
{
    TCase *c = tcase_create("bf16");
    tcase_add_test(c, narrow);
#ifndef RT_DOUBLE
    tcase_add_test(c, vectors);
    add_rounds(c, dense_layers, 0, DENSE_SIZES * KINDS);
    tcase_add_test(c, flushed);
#ifdef RT_FAST
    add_rounds(c, chains, 0, 48);
#endif
    add_rounds(c, bound, 0, 16);
    add_rounds(c, dense_teams, 0, DENSE_SIZES);
    add_rounds(c, gemm, 0, GEMM_SIZES * KINDS);
    add_rounds(c, gemm_teams, 0, GEMM_SIZES * 2);
    add_rounds(c, gemm_bound, 0, 5);
    add_rounds(c, attention_heads, 0, ATTENTIONS * 2);
    add_rounds(c, attention_teams, 0, ATTENTIONS);
    add_rounds(c, attention_tokens, 0, ATTENTIONS);
    add_rounds(c, attention_bound, 0, ATTENTIONS * 2);
    add_rounds(c, conv_layers, 0, CONV_SIZES * KINDS);
    add_rounds(c, conv_bands, 0, LARGE_SIZES);
    add_rounds(c, conv_teams, 0, CONV_SIZES);
#if defined(RT_AMX) && !defined(TILES_H)
    tcase_add_test(c, permission);
#elif defined(RT_AMX)
    tcase_add_test(c, refused);
#endif
#endif
    return run_suite(c, "bf16");
}
