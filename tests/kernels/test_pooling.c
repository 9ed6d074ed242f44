/* test_pooling.c -- pooling and resizing. */
#include "kernel_test.h"

#include "cpu/input.h"
#include "cpu/pool.h"
#include "cpu/resize.h"

/* -------------------------------------------------------------------------------------- pooling */
static const Pool pools[] = {
    /* n  c  h  w  r  s  stride pad  oh ow count_pad ldy */
    {2, 3, 6, 6, 2, 2, 2, 2, 0, 0, 3, 3, 0, 0},  {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0},
    {2, 17, 7, 9, 3, 3, 2, 2, 1, 1, 4, 5, 0, 0}, {1, 33, 5, 4, 3, 2, 1, 1, 1, 0, 5, 3, 1, 0},
    {3, 20, 8, 8, 3, 3, 1, 2, 0, 1, 6, 4, 1, 0}, {1, 5, 3, 3, 2, 2, 1, 1, 3, 3, 8, 8, 0, 0},
    {1, 40, 4, 4, 2, 2, 3, 3, 0, 0, 1, 1, 0, 0},
};
enum { POOLS = sizeof pools / sizeof pools[0] };

START_TEST(pooling)
{
    const Pool p = pools[_i];
    const int64_t nx = (int64_t)p.n * p.c * p.h * p.w, ny = (int64_t)p.n * p.c * p.oh * p.ow;
    const int hw = p.h * p.w, cells = p.oh * p.ow;
    real *x = random_buffer(nx, 1), *dy = random_buffer(ny, 2), *xl = buffer(nx), *dyl = buffer(ny);
    for (int64_t i = 0; i < nx; i += 3)
        x[i] = 0.5f; /* many equals */
    hwc_from_chw(xl, x, p.n, p.c, hw);
    hwc_from_chw(dyl, dy, p.n, p.c, cells);
    for (int kind = 0; kind < 2; kind++) {
        real *y = buffer(ny), *yl = buffer(ny), *yr = buffer(ny), *dx = buffer(nx),
             *dxl = buffer(nx), *dxr = buffer(nx);
        if (kind == 0) {
            max_pool_plain(y, x, p);
            max_pool(yl, xl, p);
            max_pool_dx_plain(dx, x, dy, p);
            max_pool_dx(dxl, xl, dyl, p);
        } else {
            avg_pool_plain(y, x, p);
            avg_pool(yl, xl, p);
            avg_pool_dx_plain(dx, dy, p);
            avg_pool_dx(dxl, dyl, p);
        }
        check_guard(yl, ny * (int64_t)sizeof(real), "pool");
        check_guard(dxl, nx * (int64_t)sizeof(real), "pool_dx");
        chw_from_hwc(yr, yl, p.n, p.c, cells);
        chw_from_hwc(dxr, dxl, p.n, p.c, hw);
        check_close(yr, y, ny, kind ? "avg_pool" : "max_pool");
        check_close(dxr, dx, nx, kind ? "avg_pool_dx" : "max_pool_dx");
        double by_y = 0, by_x = 0; /* linear in the values that count */
        for (int64_t i = 0; i < ny; i++)
            by_y += (double)y[i] * dy[i];
        for (int64_t i = 0; i < nx; i++)
            by_x += (double)x[i] * dx[i];
        const double allowed = TOLERANCE * (double)ny;
        ck_assert_double_eq_tol(by_x, by_y, allowed);
        release(6, y, yl, yr, dx, dxl, dxr);
    }
    release(4, x, dy, xl, dyl);
}
END_TEST

/* y and dy as parts of wider rows: the same bits, and nothing is written between the rows. */
START_TEST(pooling_apart)
{
    const Pool p = pools[_i];
    Pool wide = p;
    wide.ldy = p.c + 21;
    const int64_t nx = (int64_t)p.n * p.c * p.h * p.w, rows = (int64_t)p.n * p.oh * p.ow;
    real *x = random_buffer(nx, 1), *dy = random_buffer(rows * p.c, 2), *y = buffer(rows * p.c),
         *dx[2] = {buffer(nx), buffer(nx)}, *yw = spread(NULL, rows, p.c, wide.ldy),
         *dyw = spread(dy, rows, p.c, wide.ldy);
    for (int kind = 0; kind < 2; kind++) {
        if (kind == 0) {
            max_pool(y, x, p), max_pool(yw, x, wide);
            max_pool_dx(dx[0], x, dy, p), max_pool_dx(dx[1], x, dyw, wide);
        } else {
            avg_pool(y, x, p), avg_pool(yw, x, wide);
            avg_pool_dx(dx[0], dy, p), avg_pool_dx(dx[1], dyw, wide);
        }
        check_spread(yw, y, rows, p.c, wide.ldy, kind ? "avg_pool" : "max_pool");
        check_same(dx[1], dx[0], nx * (int64_t)sizeof(real), kind ? "avg_pool_dx" : "max_pool_dx");
    }
    check_guard(yw, rows * wide.ldy * (int64_t)sizeof(real), "pool");
    release(7, x, dy, y, dx[0], dx[1], yw, dyw);
}
END_TEST

/* The definition: the first of equal maxima gets the gradient; padding never wins and does not count. */
START_TEST(pool_rules)
{
    const Pool p = {1, 1, 2, 2, 2, 2, 2, 2, 1, 1, 2, 2, 0, 0};
    const real x[4] = {-1, -2, -3, -4}, one[4] = {1, 1, 1, 1}, equal[4] = {5, 5, 5, 5};
    const Pool whole = {1, 1, 2, 2, 2, 2, 2, 2, 0, 0, 1, 1, 0, 0};
    real y[4], dx[4];
    max_pool_plain(y, x, p);
    for (int i = 0; i < 4; i++)
        ck_assert(y[i] == x[i]);
    avg_pool_plain(y, x, p);
    for (int i = 0; i < 4; i++)
        ck_assert(y[i] == x[i]);
    max_pool_dx_plain(dx, equal, one, whole);
    ck_assert(dx[0] == 1 && dx[1] == 0 && dx[2] == 0 && dx[3] == 0);
    max_pool_dx(dx, equal, one, whole);
    ck_assert(dx[0] == 1 && dx[1] == 0 && dx[2] == 0 && dx[3] == 0);
}
END_TEST

typedef struct Largest {
    int n, c, hw;
    real *x, *dy, *y, *dx;
} Largest;
static void share_largest(void *arg)
{
    const Largest *q = arg;
    global_max_pool(q->y, q->x, q->n, q->c, q->hw);
    global_max_pool_dx(q->dx, q->x, q->dy, q->n, q->c, q->hw);
}

START_TEST(global_maximum)
{
    const int n = 3, hw = _i % 4 ? 35 : 1, c = _i;
    const int64_t nx = (int64_t)n * c * hw, ny = (int64_t)n * c, size = (int64_t)sizeof(real);
    real *x = random_buffer(nx, 1), *y = buffer(ny), *dy = random_buffer(ny, 2), *dx = buffer(nx);
    for (int64_t i = 0; i < nx; i += 2)
        x[i] = (real)(i % 3 ? 2 : -2); /* many equals, often the largest */
    Largest q = {n, c, hw, swap_last(x, n, c, hw), dy, buffer(ny), buffer(nx)};
    global_max_pool_plain(y, x, n, c, hw);
    global_max_pool_dx_plain(dx, x, dy, n, c, hw);
    share_largest(&q);
    real *dxr = swap_last(q.dx, n, hw, c);
    check_same(q.y, y, ny * size, "global_max_pool");
    check_same(dxr, dx, nx * size, "global_max_pool_dx");
    check_guard(q.y, ny * size, "global_max_pool");
    check_guard(q.dx, nx * size, "global_max_pool_dx");
    Largest team = {n, c, hw, q.x, dy, buffer(ny), buffer(nx)};
    as_team(2, share_largest, &team);
    check_same(team.y, q.y, ny * size, "global_max_pool in a team");
    check_same(team.dx, q.dx, nx * size, "global_max_pool_dx in a team");
    release(10, x, y, dy, dx, q.x, q.y, q.dx, dxr, team.y, team.dx);
}
END_TEST

START_TEST(global_average)
{
    const int n = 3, hw = 35, c = _i;
    const int64_t nx = (int64_t)n * c * hw, ny = (int64_t)n * c;
    real *x = random_buffer(nx, 1), *xl = buffer(nx), *y = buffer(ny), *yl = buffer(ny),
         *dy = random_buffer(ny, 2);
    real *dx = buffer(nx), *dxl = buffer(nx), *dxr = buffer(nx);
    hwc_from_chw(xl, x, n, c, hw);
    global_avg_pool_plain(y, x, n, c, hw);
    global_avg_pool(yl, xl, n, c, hw);
    check_close(yl, y, ny, "global_avg_pool");
    global_avg_pool_dx_plain(dx, dy, n, c, hw);
    global_avg_pool_dx(dxl, dy, n, c, hw);
    chw_from_hwc(dxr, dxl, n, c, hw);
    check_close(dxr, dx, nx, "global_avg_pool_dx");
    release(8, x, xl, y, yl, dy, dx, dxl, dxr);
}
END_TEST

/* ------------------------------------------------------------------------------------- resizing */
static const Resize resizes[] = {
    /* n  c  h  w  oh ow: by 2, by odd numbers, smaller, from and to one pixel, more readers than RT_RESIZE_TAPS */
    {2, 17, 4, 5, 8, 10, 0, false}, {1, 3, 5, 7, 11, 9, 0, false}, {2, 33, 7, 6, 3, 2, 0, false},
    {1, 1, 1, 1, 5, 3, 0, false},   {3, 5, 4, 3, 1, 1, 0, false},  {1, 20, 2, 3, 41, 13, 0, false},
    {1, 16, 9, 5, 9, 5, 0, false},
};
enum { RESIZES = sizeof resizes / sizeof resizes[0] };

typedef struct Resized {
    Resize p;
    real *x, *dy, *y, *dx;
} Resized;
static void share_resize(void *arg)
{
    const Resized *q = arg;
    resize(q->y, q->x, q->p);
    resize_dx(q->dx, q->dy, q->p);
}

START_TEST(resizing)
{
    Resize p = resizes[_i / 2];
    p.bilinear = _i % 2;
    const int hw = p.h * p.w, cells = p.oh * p.ow;
    const int64_t nx = (int64_t)p.n * p.c * hw, rows = (int64_t)p.n * cells, ny = rows * p.c;
    real *x = random_buffer(nx, 1), *dy = random_buffer(ny, 2), *y = buffer(ny), *dx = buffer(nx);
    Resized q = {p, swap_last(x, p.n, p.c, hw), swap_last(dy, p.n, p.c, cells), buffer(ny),
                 buffer(nx)};
    resize_plain(y, x, p);
    resize_dx_plain(dx, dy, p);
    share_resize(&q);
    real *yr = swap_last(q.y, p.n, cells, p.c), *dxr = swap_last(q.dx, p.n, hw, p.c);
    check_guard(q.y, ny * (int64_t)sizeof(real), "resize");
    check_guard(q.dx, nx * (int64_t)sizeof(real), "resize_dx");
    check_close(yr, y, ny, "resize");
    check_close(dxr, dx, nx, "resize_dx");

    Resized team = {p, q.x, q.dy, buffer(ny), buffer(nx)}; /* the same bits, in parts */
    as_team(_i % 3 ? 3 : 7, share_resize, &team);
    check_same(team.y, q.y, ny * (int64_t)sizeof(real), "resize in a team");
    check_same(team.dx, q.dx, nx * (int64_t)sizeof(real), "resize_dx in a team");

    Resized wide = {p, q.x, NULL, NULL,
                    buffer(nx)}; /* the same bits, with y and dy in wider rows */
    wide.p.ldy = p.c + 21;
    wide.y = spread(NULL, rows, p.c, wide.p.ldy), wide.dy = spread(q.dy, rows, p.c, wide.p.ldy);
    share_resize(&wide);
    check_spread(wide.y, q.y, rows, p.c, wide.p.ldy, "resize");
    check_same(wide.dx, q.dx, nx * (int64_t)sizeof(real), "resize_dx with rows apart");
    release(8, x, dy, y, dx, q.x, q.dy, q.y, q.dx);
    release(7, yr, dxr, team.y, team.dx, wide.y, wide.dy, wide.dx);
}
END_TEST

/* By the definition: corners keep their numbers, the pixels between them are at quarters. */
START_TEST(resize_rules)
{
    const real x[2] = {4, 8}, by[4] = {4, 5, 7, 8}, nearest[4] = {4, 4, 8, 8},
               one[4] = {1, 2, 4, 8};
    Resize p = {1, 1, 1, 2, 1, 4, 0, true};
    real y[4], dx[2];
    resize_plain(y, x, p);
    for (int i = 0; i < 4; i++)
        ck_assert(y[i] == by[i]);
    resize_dx_plain(dx, one, p);
    ck_assert(dx[0] == (real)3.5 && dx[1] == (real)11.5);
    p.bilinear = false;
    resize_plain(y, x, p);
    for (int i = 0; i < 4; i++)
        ck_assert(y[i] == nearest[i]);
    resize_dx_plain(dx, one, p);
    ck_assert(dx[0] == 3 && dx[1] == 12);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pooling");
    tcase_add_loop_test(t, pooling, 0, POOLS);
    tcase_add_loop_test(t, pooling_apart, 0, POOLS);
    tcase_add_test(t, pool_rules);
    tcase_add_loop_test(t, global_average, 1, 40);
    tcase_add_loop_test(t, global_maximum, 1, 40);
    tcase_add_loop_test(t, resizing, 0, 2 * RESIZES);
    tcase_add_test(t, resize_rules);
    return run_suite(t, "pooling kernels");
}
