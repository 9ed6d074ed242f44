/* bf16_test_conv.h -- convolutions in bf16: the bits of the definition. */
#ifndef BF16_TEST_CONV_H
#define BF16_TEST_CONV_H
#include "bf16_conv_plain.h"
#include "bf16_test.h"

#include "cpu/bf16_conv.h"
#include "cpu/bf16_conv_dw.h"
#include "cpu/bf16_conv_update.h"

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
    {1, 5, 4, 64, 7, 3, 3, 2, 2, 1, 1, 1, 1, 1, 2, 32,
     0}, /* frames of kernel rows: stride, dilation */
    {2, 4, 8, 8, 6, 3, 3, 1, 1, 2, 1, 2, 1, 1, 8, 8, 0},
    {2, 64, 9, 9, 64, 3, 3, 1, 1, 1, 1, 1, 1, 2, 9, 9, 0}, /* groups of whole blocks */
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
    {2, 160, 5, 5, 400, 3, 3, 1, 1, 1, 1, 1, 1, 1, 5, 5, 0}, /* weights of more than 1 MB */
    {1, 20, 3, 2000, 16, 3, 5, 1, 1, 1, 2, 1, 1, 1, 3, 2000,
     0}, /* one row of whole blocks is too long */
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

/* ---------------------------------------------------------- gradients and updates in one sweep */

/* x[0] = the tree of n gradients of `count` numbers. */
static REFERENCE void tree_of(real *x, int64_t count, int n)
{
    int left = 1;
    while (left * 2 < n)
        left *= 2;
    if (n == 1)
        return;
    tree_of(x, count, left);
    tree_of(x + left * count, count, n - left);
    for (int64_t i = 0; i < count; i++)
        x[i] += x[left * count + i];
}

typedef struct FilterUpdate {
    Conv c;
    Bf16Cut cut;
    int shards;
} FilterUpdate;
static const FilterUpdate filter_updates[] = {
    /* n  c   h  w  o   r  s  stride  pad   dil  g  oh ow pool   slice chunk shards */
    {{4, 20, 4, 4, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1, 4, 4, 0}, {4, 2}, 3},
    {{8, 9, 3, 3, 70, 2, 3, 1, 2, 0, 1, 1, 1, 1, 2, 2, 0}, {2, 2}, 1},
    {{4, 530, 1, 1, 33, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 0}, {4, 4}, 8},
    {{6, 33, 2, 2, 34, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 0}, {2, 1}, 2},
};
enum { FILTER_UPDATES = sizeof filter_updates / sizeof *filter_updates };

/* The gradient, by its definition: chunks of a slice, slices of a shard, shards. */
static REFERENCE void filters_plain(real *dw, const bf16 *x, const bf16 *dy, FilterUpdate f)
{
    const int64_t nx = count_x(f.c) / f.c.n, ny = count_y(f.c) / f.c.n, nw = count_w(f.c);
    const int slices = f.c.n / f.cut.slice;
    Conv chunk = f.c;
    chunk.n = f.cut.chunk, chunk.write = false;
    real *shard = buffer(f.shards * nw), *slice = buffer(slices * nw);
    for (int s = 0; s < f.shards; s++) {
        memset(slice, 0, sizeof(real) * (size_t)(slices * nw));
        for (int i = 0; i < f.c.n; i += f.cut.chunk, x += f.cut.chunk * nx, dy += f.cut.chunk * ny)
            bf16_conv2d_dw_plain(slice + i / f.cut.slice * nw, x, dy, chunk);
        tree_of(slice, nw, slices);
        memcpy(shard + s * nw, slice, sizeof(real) * (size_t)nw);
    }
    tree_of(shard, nw, f.shards);
    memcpy(dw, shard, sizeof(real) * (size_t)nw);
    release(2, shard, slice);
}

START_TEST(conv_updates)
{
    const FilterUpdate f = filter_updates[_i / KINDS];
    const Kind kind = (Kind)(_i % KINDS);
    const int64_t nx = f.shards * count_x(f.c), ny = f.shards * count_y(f.c), nw = count_w(f.c);
    bf16 *x = factors(kind, nx, 1), *dy = factors(kind, ny, 2);
    char *memory = (char *)buffer_bytes((nx + ny) * (int64_t)sizeof *x);
    const int64_t shard = (nx + ny) / f.shards * (int64_t)sizeof *x;
    for (int s = 0; s < f.shards; s++) {
        memcpy(memory + s * shard, x + s * count_x(f.c), sizeof *x * (size_t)count_x(f.c));
        memcpy(memory + s * shard + count_x(f.c) * (int64_t)sizeof *x, dy + s * count_y(f.c),
               sizeof *x * (size_t)count_y(f.c));
    }
    real *grad = buffer(nw), *want = buffer(nw), *w = weights(USUAL, nw, 3),
         *s0 = weights(USUAL, nw, 4), *want_w = copy_buffer(w, nw), *want_s0 = copy_buffer(s0, nw);
    Rt r = {.shard_bytes = shard,
            .shards = f.shards,
            .opt = {.lr = 0.1f, .momentum = 0.9f},
            .grad = (char *)grad};
    flush_denormals();
    filters_plain(want, x, dy, f);
    for (int pass = 0; pass < 2; pass++, r.grad = NULL)
        for (int unit = BF16_FILTER_UNITS(f.c.o, f.c.c, f.c.r * f.c.s); unit-- > 0;)
            bf16_conv2d_dw_update(&r, unit, 0, w, s0, NULL, memory,
                                  memory + count_x(f.c) * (int64_t)sizeof *x, (Factors){.lr = 1, .decay = 1},
                                  update_sgd, f.c, f.cut);
    check_bits(grad, want, nw, "bf16_conv2d_dw_update");
    check_guard(grad, nw * (int64_t)sizeof(real), "gradient of filters");
    for (int64_t i = 0; i < nw; i++)
        update_lanes(want_w + i, want_s0 + i, NULL, v_set(want[i]), &r.opt, update_sgd, 1);
    check_bits(w, want_w, nw, "updated filters");
    check_bits(s0, want_s0, nw, "updated states");
    release(9, x, dy, memory, grad, want, w, s0, want_w, want_s0);
}
END_TEST

#endif
