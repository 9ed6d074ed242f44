/* bf16_test_products.h -- dense layers and products of matrices in bf16: the bits of the definition,
 * and the distance to f64. */
#ifndef BF16_TEST_PRODUCTS_H
#define BF16_TEST_PRODUCTS_H
#include "bf16_test.h"

#include "cpu/bf16_gemm.h"
#include "cpu/bf16_update.h"

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

/* ------------------------------------------------- gradients of dense weights, with their update */

typedef struct WeightUpdate {
    Dense d; /* n: samples of a shard */
    int shards;
} WeightUpdate;
static const WeightUpdate dense_update_sizes[] = {
    {{16, 70, 33}, 8}, {{32, 40, 200}, 3}, {{33, 100, 10}, 2}, {{5, 65, 64}, 1}, {{600, 37, 40}, 5},
};
enum { DENSE_UPDATES = sizeof dense_update_sizes / sizeof *dense_update_sizes };

START_TEST(dense_updates)
{
    const WeightUpdate f = dense_update_sizes[_i / KINDS];
    const Kind kind = (Kind)(_i % KINDS);
    const int64_t nx = (int64_t)f.d.n * f.d.k, ny = (int64_t)f.d.n * f.d.o,
                  nw = (int64_t)f.d.k * f.d.o, count = DENSE_COUNT(f.d.k, f.d.o);
    bf16 *memory = factors(kind, f.shards * (nx + ny), 1);
    real *want = buffer(f.shards * nw), *got = buffer(nw), *grad = buffer(count);
    const Rt r = {.shard_bytes = (nx + ny) * (int64_t)sizeof *memory,
                  .shards = f.shards,
                  .grad = (char *)grad};
    flush_denormals();
    memset(want, 0, sizeof(real) * (size_t)(f.shards * nw));
    for (int s = 0; s < f.shards; s++)
        bf16_dense_dw_plain(want + s * nw, memory + s * (nx + ny), memory + s * (nx + ny) + nx,
                            f.d);
    tree_of(want, nw, f.shards);
    for (int unit = BF16_DENSE_UNITS(f.d.k, f.d.o); unit-- > 0;)
        bf16_dense_dw_update(&r, unit, 0, NULL, NULL, NULL, (const char *)memory,
                             (const char *)(memory + nx), f.d.n, (Factors){.lr = 1, .decay = 1}, update_sgd, f.d);
    for (int o = 0; o < f.d.o; o++)
        for (int k = 0; k < f.d.k; k++)
            got[o * f.d.k + k] = grad[((int64_t)(o / P) * f.d.k + k) * P + o % P];
    check_bits(got, want, nw, "bf16_dense_dw_update");
    check_guard(grad, count * (int64_t)sizeof(real), "gradient of dense weights");
    release(4, memory, want, got, grad);
}
END_TEST

#endif
