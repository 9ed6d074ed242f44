/* test_dense.c -- dense kernels, and the fused update to the bit, for any division of the
 * shards. */
#include "kernel_test.h"
#include "literal/test_dense.h"

#include "cpu/dense_input.h"
#include "cpu/dense_sparse.h"
#include "cpu/dense_update.h"
#include "cpu/dense_wide.h"

ONCE void dense_once(real *y, const real *x, const real *p, const real *bias, Act act, Dense d)
{
    dense(y, x, p, bias, act, d);
}
ONCE void dense_sparse_once(real *y, const real *x, const real *p, const real *bias, Act act,
                            Dense d)
{
    dense_sparse(y, x, p, bias, act, d);
}
ONCE void dense_dx_once(real *dx, const real *p, const real *dy, Mask mask, const real *y,
                        Dense d)
{
    dense_dx(dx, p, dy, mask, y, d);
}
ONCE void dense_dx_transposed_once(real *dx, const real *transposed, const real *dy,
                                   const real *y, Dense d)
{
    dense_dx_transposed(dx, transposed, dy, d_relu, y, d);
}
ONCE void dense_dw_once(real *dw, const real *x, const real *dy, Dense d)
{
    dense_dw(dw, x, dy, d);
}

static const Dense shapes[] = {{1, 1, 1},     {3, 17, 5},    {7, 33, 31},   {16, 64, 32},
                               {5, 100, 33},  {8, 784, 128}, {16, 128, 64}, {16, 500, 10},
                               {13, 47, 70},  {2, 3, 200},   {3, 1, 17},    {1, 200, 1},
                               {150, 21, 37}, {300, 40, 70}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

/* (O, K) into panels with zeros, and back. */
static real *panels(const real *w, Dense d)
{
    real *p = zero_buffer(DENSE_COUNT(d.k, d.o));
    for (int o = 0; o < d.o; o++)
        for (int k = 0; k < d.k; k++)
            p[((int64_t)(o / P) * d.k + k) * P + o % P] = w[(int64_t)o * d.k + k];
    return p;
}
static real *unpanels(const real *p, Dense d)
{
    real *w = buffer((int64_t)d.o * d.k);
    for (int o = 0; o < d.o; o++)
        for (int k = 0; k < d.k; k++)
            w[(int64_t)o * d.k + k] = p[((int64_t)(o / P) * d.k + k) * P + o % P];
    for (int64_t i = 0; i < DENSE_COUNT(d.k, d.o); i++)
        if (i / P / d.k * P + i % P >= d.o)
            REQUIRE(p[i] == 0, "padding of a panel is %g", (double)p[i]);
    return w;
}

START_TEST(products)
{
    const Dense d = shapes[_i];
    const int64_t nx = (int64_t)d.n * d.k, ny = (int64_t)d.n * d.o, nw = (int64_t)d.o * d.k;
    real *x = random_buffer(nx, 1), *w = random_buffer(nw, 2), *bias = random_buffer(d.o, 3),
         *dy = random_buffer(ny, 4);
    real *p = panels(w, d), *y = buffer(ny), *expect = buffer(ny), *dx = buffer(nx),
         *expect_dx = buffer(nx);

    dense_plain(expect, x, w, d);
    for (int64_t i = 0; i < ny; i++)
        expect[i] = s_tanh(expect[i] + bias[i % d.o]);
    dense_once(y, x, p, bias, v_tanh, d);
    check_close(y, expect, ny, "dense");

    dense_dx_plain(expect_dx, w, dy, d);
    for (int64_t i = 0; i < nx; i++)
        expect_dx[i] = x[i] > 0 ? expect_dx[i] : 0;
    dense_dx_once(dx, p, dy, d_relu, x, d);
    check_close(dx, expect_dx, nx, "dense_dx");

    real *transposed = buffer(DENSE_TRANSPOSED(d.k, d.o));
    for (int unit = 0; unit < 3; unit++)
        dense_transpose(transposed, p, d, unit, 3);
    check_guard(transposed, DENSE_TRANSPOSED(d.k, d.o) * (int64_t)sizeof(real), "dense_transpose");
    dense_dx_transposed_once(dx, transposed, dy, x, d);
    check_close(dx, expect_dx, nx, "dense_dx_transposed");
    check_guard(dx, nx * (int64_t)sizeof(real), "dense_dx_transposed");

    real *dw = random_buffer(nw, 5), *dp = panels(dw, d);
    dense_dw_plain(dw, x, dy, d);
    dense_dw_once(dp, x, dy, d);
    check_guard(dp, DENSE_COUNT(d.k, d.o) * (int64_t)sizeof(real), "dense_dw");
    real *back = unpanels(dp, d);
    check_close(back, dw, nw, "dense_dw");
    release(13, x, w, bias, dy, p, y, expect, dx, expect_dx, transposed, dw, dp, back);
}
END_TEST

/* Sizes known to the compiler change the code, never the bits. */
START_TEST(literal_sizes)
{
    const Dense d = LITERAL_LAYER;
    real *x = random_buffer(8000, 1), *w = random_buffer(5000, 2), *p = panels(w, d),
         *dy = random_buffer(160, 3);
    real *y[2] = {buffer(160), buffer(160)}, *dx[2] = {buffer(8000), buffer(8000)};
    dense_once(y[0], x, p, NULL, v_identity, d);
    dense_dx_once(dx[0], p, dy, d_tanh, x, d);
    literal_layer(y[1], dx[1], x, p, dy);
    check_same(y[0], y[1], 160 * sizeof(real), "dense");
    check_same(dx[0], dx[1], 8000 * sizeof(real), "dense_dx");
    release(8, x, w, p, dy, y[0], y[1], dx[0], dx[1]);
}
END_TEST

/* Threads that share each product: the bits of one thread. */
typedef struct Shared {
    Dense d;
    real *x, *p, *transposed, *bias, *dy, *y, *sparse, *dx, *dx_transposed, *dw;
} Shared;
static void share_dense(void *arg)
{
    const Shared *s = arg;
    dense_once(s->y, s->x, s->p, s->bias, v_tanh, s->d);
    dense_sparse_once(s->sparse, s->x, s->p, s->bias, v_tanh, s->d);
    dense_dx_once(s->dx, s->p, s->dy, d_relu, s->x, s->d);
    dense_dx_transposed_once(s->dx_transposed, s->transposed, s->dy, s->x, s->d);
    dense_dw_once(s->dw, s->x, s->dy, s->d);
}

START_TEST(teams)
{
    const Dense d = shapes[_i];
    const int64_t nx = (int64_t)d.n * d.k, ny = (int64_t)d.n * d.o, each = sizeof(real);
    real *w = random_buffer((int64_t)d.o * d.k, 2);
    Shared s[2];
    for (int i = 0; i < 2; i++) {
        s[i] = (Shared){d,
                        random_buffer(nx, 1),
                        panels(w, d),
                        zero_buffer(DENSE_TRANSPOSED(d.k, d.o)),
                        random_buffer(d.o, 3),
                        random_buffer(ny, 4),
                        buffer(ny),
                        buffer(ny),
                        buffer(nx),
                        buffer(nx),
                        random_buffer(DENSE_COUNT(d.k, d.o), 5)};
        dense_transpose(s[i].transposed, s[i].p, d, 0, 1);
    }
    share_dense(&s[0]);
    as_team(_i % 2 ? 3 : 7, share_dense, &s[1]);
    check_same(s[1].y, s[0].y, ny * each, "dense by a team");
    check_same(s[1].sparse, s[0].sparse, ny * each, "dense_sparse by a team");
    check_same(s[1].dx, s[0].dx, nx * each, "dense_dx by a team");
    check_same(s[1].dx_transposed, s[0].dx_transposed, nx * each, "dense_dx_transposed by a team");
    check_same(s[1].dw, s[0].dw, DENSE_COUNT(d.k, d.o) * each, "dense_dw by a team");
    for (int i = 0; i < 2; i++)
        release(10, s[i].x, s[i].p, s[i].transposed, s[i].bias, s[i].dy, s[i].y, s[i].sparse,
                s[i].dx, s[i].dx_transposed, s[i].dw);
    release(1, w);
}
END_TEST

/* Zeros in the samples: none, most numbers, all numbers, and many in some rows and columns only. */
enum { ZEROS = 4 };
static bool is_zero(int zeros, int sample, int column)
{
    const bool most = (uint32_t)(sample * 7919 + column * 104729) * 2654435761u >> 24 > 48;
    return zeros == 2 || (zeros == 1 && most) ||
           (zeros == 3 && most && (column < 40 || sample % 64 < 20));
}

/* Samples with zeros give the bits that dense gives. */
START_TEST(sparse)
{
    static const Dense sizes[] = {{16, 784, 128}, {16, 100, 70}, {7, 65, 300},
                                  {3, 63, 97},    {1, 1, 200},   {5, 130, 10}};
    for (int z = 0; z < 6; z++) {
        const Dense d = sizes[z];
        const int64_t nx = (int64_t)d.n * d.k, ny = (int64_t)d.n * d.o;
        real *x = random_buffer(nx, 1), *w = random_buffer((int64_t)d.o * d.k, 2),
             *p = panels(w, d), *bias = random_buffer(d.o, 3), *want = buffer(ny),
             *got = buffer(ny);
        for (int64_t i = 0; i < nx; i++)
            x[i] = is_zero(_i, (int)(i / d.k), (int)(i % d.k)) ? 0 : x[i];
        dense_once(want, x, p, bias, v_relu, d);
        dense_sparse_once(got, x, p, bias, v_relu, d);
        check_same(got, want, ny * (int64_t)sizeof(real), "dense_sparse");
        dense_once(want, x, p, NULL, v_identity, d);
        dense_sparse_once(got, x, p, NULL, v_identity, d);
        check_same(got, want, ny * (int64_t)sizeof(real), "dense_sparse without bias");
        check_guard(got, ny * (int64_t)sizeof(real), "dense_sparse");
        release(6, x, w, p, bias, want, got);
    }
}
END_TEST

/* A layer and its shards: x and dy of shard s are s * shard_bytes after those of shard 0. */
typedef struct Layer {
    Dense d;
    int shards, samples;
    char *memory;
    int64_t shard_bytes, x, dy;
} Layer;

static Layer layer_of(Dense d, int shards)
{
    Layer l = {.d = d, .shards = shards, .samples = d.n, .x = 0};
    l.dy = ((int64_t)d.n * d.k * sizeof(real) + 127) / 64 * 64;
    l.shard_bytes = l.dy + ((int64_t)d.n * d.o * sizeof(real) + 127) / 64 * 64;
    l.memory = buffer_bytes(l.shard_bytes * shards);
    for (int s = 0; s < shards; s++) {
        for (int i = 0; i < d.n * d.k; i++)
            ((real *)(l.memory + s * l.shard_bytes + l.x))[i] = (real)noise(10 + s, i);
        for (int i = 0; i < d.n * d.o; i++)
            ((real *)(l.memory + s * l.shard_bytes + l.dy))[i] = (real)noise(50 + s, i);
    }
    return l;
}

/* The kernels for all shards together give the bits of dense and dense_dx_transposed: n = 20 in tiles of two heights, sizes that
 * fill no panel, one panel and many. */
START_TEST(wide)
{
    static const Dense sizes[] = {{8, 70, 100}, {20, 33, 64},  {1, 5, 3},     {3, 64, 33},
                                  {7, 97, 130}, {16, 130, 17}, {13, 200, 96}, {2, 1, 1}};
    const Dense d = sizes[_i];
    const int64_t nx = (int64_t)d.n * d.k, ny = (int64_t)d.n * d.o;
    Layer l = layer_of(d, 3), out = layer_of(d, 3);
    real *w = random_buffer((int64_t)d.o * d.k, 2), *p = panels(w, d),
         *bias = random_buffer(d.o, 3), *transposed = buffer(DENSE_TRANSPOSED(d.k, d.o)),
         *y = buffer(ny), *dx = buffer(nx), *expect = buffer(nx);
    const Rt r = {.shard = l.memory, .shard_bytes = l.shard_bytes, .shards = l.shards};

    dense_transpose(transposed, p, d, 0, 1);
    for (int unit = 0; unit < DENSE_WIDE_UNITS(d.o); unit++)
        dense_wide((real *)(out.memory + out.dy), (real *)(l.memory + l.x), p, bias, v_relu, d, &r,
                   unit);
    for (int unit = 0; unit < DENSE_WIDE_UNITS_DX(d.k); unit++)
        dense_wide_dx((real *)(out.memory + out.x), p, (real *)(l.memory + l.dy), d_relu,
                      (real *)(l.memory + l.x), d, &r, unit);
    for (int s = 0; s < l.shards; s++) {
        const int64_t at = s * l.shard_bytes;
        const real *x = (real *)(l.memory + at + l.x), *dy = (real *)(l.memory + at + l.dy);
        dense_once(y, x, p, bias, v_relu, d);
        check_same((real *)(out.memory + at + out.dy), y, ny * (int64_t)sizeof(real), "dense_wide");
        dense_dx_transposed_once(dx, transposed, dy, x, d);
        check_same((real *)(out.memory + at + out.x), dx, nx * (int64_t)sizeof(real),
                   "dense_wide_dx");
        dense_dx_plain(expect, w, dy, d);
        for (int64_t i = 0; i < nx; i++)
            expect[i] = x[i] > 0 ? expect[i] : 0;
        check_close(dx, expect, nx, "dense_wide_dx");
    }
    check_guard(out.memory, out.shard_bytes * out.shards, "dense_wide");
    release(9, w, p, bias, transposed, y, dx, expect, l.memory, out.memory);
}
END_TEST

typedef struct State {
    real *w, *s0, *s1;
} State;
static State state_of(Dense d)
{
    real *w = random_buffer((int64_t)d.o * d.k, 2);
    State q = {panels(w, d), zero_buffer(DENSE_COUNT(d.k, d.o)),
               zero_buffer(DENSE_COUNT(d.k, d.o))};
    free(w);
    return q;
}

static const RtOpt opt = {.lr = 0.1f,
                          .decay = 0.01f,
                          .momentum = 0.9f,
                          .rho = 0.9f,
                          .beta1 = 0.9f,
                          .beta2 = 0.99f,
                          .eps = 0,
                          .bias1 = 0.1f,
                          .bias2 = 0.01f,
                          .clip_value = 0.75f,
                          .nesterov = true};

static const Factors same = {.lr = 1, .decay = 1};

static const Update rules[] = {update_sgd, update_rmsprop, update_adam, update_adamw};

ONCE void fused(const Rt *r, int unit, State q, const Layer *l, Update rule)
{
    dense_dw_update(r, unit, 0, q.w, q.s0, q.s1, r->shard + l->x, r->shard + l->dy, l->samples,
                    same, rule, l->d);
}
ONCE void from_grad(const Rt *r, int unit, State q, const Layer *l, Update rule)
{
    grad_update(r, unit, 7, 0, q.w, q.s0, q.s1, DENSE_COUNT(l->d.k, l->d.o), same, rule);
}

/* The gradient of one weight, by the definition: samples in order with FMA inside a shard, shards
 * in the tree. */
static REFERENCE real gradient_by_hand(const Layer *l, int k, int o)
{
    real item[16];
    for (int s = 0; s < l->shards; s++) {
        const real *x = (const real *)(l->memory + s * l->shard_bytes + l->x);
        const real *dy = (const real *)(l->memory + s * l->shard_bytes + l->dy);
        vec sum = v_set(0);
        for (int n = 0; n < l->samples; n++)
            sum = v_fma(v_set(x[n * l->d.k + k]), v_set(dy[n * l->d.o + o]), sum);
        item[s] = V_LANE(sum, 0);
    }
    return tree_by_hand(item, l->shards);
}

static void update_by_hand(const Layer *l, State q, Update u)
{
    for (int k = 0; k < l->d.k; k++)
        for (int o = 0; o < l->d.o; o++) {
            const int64_t at = ((int64_t)(o / P) * l->d.k + k) * P + o % P;
            update_lanes(q.w + at, q.s0 + at, q.s1 + at, v_set(gradient_by_hand(l, k, o)), &opt, u,
                         1);
        }
}

static void check_state(State a, State b, Dense d, const char *what)
{
    const int64_t bytes = DENSE_COUNT(d.k, d.o) * (int64_t)sizeof(real);
    check_same(a.w, b.w, bytes, what);
    check_same(a.s0, b.s0, bytes, what);
    check_same(a.s1, b.s1, bytes, what);
    check_guard(a.w, bytes, what);
    check_guard(a.s0, bytes, what);
}

static void run_fused(const Layer *l, State q, int kind)
{
    const Rt r = {.shard = l->memory,
                  .shard_bytes = l->shard_bytes,
                  .shards = l->shards,
                  .opt = opt};
    for (int unit = DENSE_UNITS(l->d.k, l->d.o); unit-- > 0;)
        fused(&r, unit, q, l, rules[kind]);
}

/* Each group computes its sums; the tree adds the groups; the update uses the result. */
static void run_groups(const Layer *l, State q, int kind, int groups)
{
    const int64_t count = DENSE_COUNT(l->d.k, l->d.o);
    real *grad[8];
    for (int g = 0; g < groups; g++) {
        grad[g] = buffer(count);
        const Rt r = {.shard = l->memory + g * (l->shards / groups) * l->shard_bytes,
                      .shard_bytes = l->shard_bytes,
                      .shards = l->shards / groups,
                      .opt = opt,
                      .grad = (char *)grad[g]};
        for (int unit = 0; unit < DENSE_UNITS(l->d.k, l->d.o); unit++)
            fused(&r, unit, q, l, rules[kind]);
        check_guard(grad[g], count * (int64_t)sizeof(real), "gradient");
    }
    for (int64_t i = 0; i < count; i++) {
        real item[8];
        for (int g = 0; g < groups; g++)
            item[g] = grad[g][i];
        grad[0][i] = tree_by_hand(item, groups);
    }
    const Rt r = {.opt = opt, .grad = (char *)grad[0]};
    for (int unit = 0; unit < 7; unit++)
        from_grad(&r, unit, q, l, rules[kind]);
    for (int g = 0; g < groups; g++)
        free(grad[g]);
}

/* The update after a sum, for each way to divide the sum. */
START_TEST(update)
{
    enum { BLOCK = DENSE_UNIT_TILES * TILE_ROWS, SMALL = 4, ALL = 6 };
    static const Dense sizes[] = {
        {5, 100, 70},
        {3, 17, 10},
        {300, 61, 33},
        {1, 1, 1},
        {50, 15 * BLOCK + 5, 15 * P + V + 1},
        {130, 8 * BLOCK + 1, 14 * P + V - 1}, /* several panels a unit */
    };
    static const int shards[] = {1, 2, 3, 4, 6, 8};
    const int kind = _i % 4;
    for (int z = 0; z < ALL; z++)
        for (int i = 0; i < 6; i++) {
            if (z >= SMALL && shards[i] != 7 - z)
                continue;
            Layer l = layer_of(sizes[z], shards[i]);
            State want = state_of(l.d), got = state_of(l.d);
            update_by_hand(&l, want, rules[kind]);
            run_fused(&l, got, kind);
            check_state(got, want, l.d, "dense_dw_update");
            for (int groups = 2; groups <= 4; groups *= 2)
                if (l.shards % groups == 0 && (l.shards / groups & (l.shards / groups - 1)) == 0) {
                    State split = state_of(l.d);
                    run_groups(&l, split, kind, groups);
                    check_state(split, want, l.d, "dense_dw_update in groups");
                    release(3, split.w, split.s0, split.s1);
                }
            release(7, want.w, want.s0, want.s1, got.w, got.s0, got.s1, l.memory);
        }
}
END_TEST

/* Stores x of the layer's shards as a data set in another order: as bytes, to which x is rounded first, or unchanged. */
static char *data_set(Layer *l, uint32_t *index, bool bytes, int zeros)
{
    const int all = l->shards * l->samples, k = l->d.k;
    const int64_t row = k * (bytes ? 1 : (int64_t)sizeof(real));
    char *data = buffer_bytes(all * row);
    for (int i = 0; i < all; i++) {
        real *x = (real *)(l->memory + i / l->samples * l->shard_bytes + l->x) +
                  (int64_t)(i % l->samples) * k;
        index[i] = (uint32_t)(all - 1 - i);
        char *to = data + index[i] * row;
        for (int j = 0; j < k; j++)
            x[j] = is_zero(zeros, i, j) ? 0 : x[j];
        for (int j = 0; j < k && bytes; j++) {
            ((uint8_t *)to)[j] = x[j] == 0 ? 0 : (uint8_t)(127 + 100 * x[j]);
            x[j] = (real)((uint8_t *)to)[j] * (real)0.25;
        }
        if (!bytes)
            memcpy(to, x, (size_t)row);
    }
    return data;
}

/* From the samples as they are stored: the same bits. */
static void check_stored(Dense d, int shards, bool bytes, int zeros)
{
    uint32_t index[16 * 100];
    Layer l = layer_of(d, shards);
    char *data = data_set(&l, index, bytes, zeros);
    State want = state_of(l.d);
    run_fused(&l, want, 2);
    for (int threads = 1; threads <= 64; threads += 63) {
        State got = state_of(l.d);
        const Rt r = {.shard = l.memory,
                      .shard_bytes = l.shard_bytes,
                      .shards = l.shards,
                      .x = data,
                      .x_type = bytes               ? RT_U8
                                : sizeof(real) == 4 ? RT_F32
                                                    : RT_F64,
                      .x_stride = l.d.k * (bytes ? 1 : (int64_t)sizeof(real)),
                      .x_scale = 0.25,
                      .index = index,
                      .threads = threads,
                      .opt = opt};
        for (int unit = DENSE_INPUT_UNITS(l.samples, l.d.k, l.d.o); unit-- > 0;)
            dense_dw_update_input(&r, unit, 0, got.w, got.s0, got.s1, l.memory + l.dy, l.samples,
                                  same, update_adam, l.d);
        check_state(got, want, l.d, "dense_dw_update_input");
        release(3, got.w, got.s0, got.s1);
    }
    release(5, want.w, want.s0, want.s1, l.memory, data);
}

START_TEST(stored)
{
    static const Dense sizes[] = {{5, 100, 70}, {3, 17, 10},  {100, 61, 33}, {1, 1, 1},
                                  {16, 64, 32}, {8, 50, 300}, {30, 90, 130}};
    static const int shards[] = {1, 3, 7, 8, 16};
    for (int z = 0; z < 7; z++)
        for (int i = 0; i < 5; i++)
            check_stored(sizes[z], shards[i], _i % 2, _i / 2);
    check_stored((Dense){300, 70, 130}, 3, _i % 2, _i / 2); /* shards of several blocks */
    check_stored((Dense){400, 40, 70}, 4, _i % 2, _i / 2);
    check_stored((Dense){260, 20, 128}, 2, _i % 2, _i / 2); /* units of half the outputs */
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("dense");
    tcase_add_loop_test(t, products, 0, SHAPES);
    tcase_add_loop_test(t, teams, 0, SHAPES);
    tcase_add_test(t, literal_sizes);
    tcase_add_loop_test(t, update, 0, 4);
    add_rounds(t, stored, 0, 2 * ZEROS);
    tcase_add_loop_test(t, sparse, 0, ZEROS);
    tcase_add_loop_test(t, wide, 0, 8);
    return run_suite(t, "dense kernels");
}
