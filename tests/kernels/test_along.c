/* test_along.c -- cumsum and argmax: kernels along one dimension. */
#include "kernel_test.h"

#include "cpu/along.h"

static const struct {
    int outer, k, inner;
} along_shapes[] = {{1, 1, 1},  {7, 5, 1}, {4, 300, 1}, {3, 6, 37},
                    {2, 1, 16}, {5, 9, 3}, {1, 40, 64}};

typedef struct AlongCall {
    int i; /* of along_shapes */
    bool back;
    real *x, *sums, *best;
} AlongCall;

static void share_along(void *arg)
{
    const AlongCall *q = arg;
    const int outer = along_shapes[q->i].outer, k = along_shapes[q->i].k,
              inner = along_shapes[q->i].inner;
    cumsum(q->sums, q->x, outer, k, inner, q->back);
    argmax(q->best, q->x, outer, k, inner);
}

START_TEST(running_sums)
{
    const int outer = along_shapes[_i].outer, k = along_shapes[_i].k,
              inner = along_shapes[_i].inner;
    const int64_t count = (int64_t)outer * k * inner, bytes = count * (int64_t)sizeof(real);
    real *x = random_buffer(count, 3), *a = buffer(count), *b = buffer(count);
    for (int back = 0; back < 2; back++) {
        cumsum_plain(a, x, outer, k, inner, back);
        cumsum(b, x, outer, k, inner, back);
        check_same(a, b, bytes, "cumsum");
        check_guard(b, bytes, "cumsum");
        const real sum = x[0] + (k > 1 ? x[inner] : 0);
        ck_assert(back || k < 2 || a[inner] == sum);
        AlongCall q = {_i, back, x, buffer(count), buffer(count)};
        as_team(3, share_along, &q);
        check_same(b, q.sums, bytes, "cumsum of a team");
        argmax(b, x, outer, k, inner);
        check_same(b, q.best, bytes / k, "argmax of a team");
        release(2, q.sums, q.best);
    }
    release(3, x, a, b);
}
END_TEST

START_TEST(indices_of_maxima)
{
    const int outer = along_shapes[_i].outer, k = along_shapes[_i].k,
              inner = along_shapes[_i].inner;
    const int64_t places = (int64_t)outer * inner, bytes = places * (int64_t)sizeof(real);
    real *x = random_buffer(places * k, 4), *a = buffer(places), *b = buffer(places);
    for (int64_t i = 0; i < places * k; i++)
        x[i] = (real)(int)(4 * x[i]); /* equal numbers: the first of them counts */
    argmax_plain(a, x, outer, k, inner);
    argmax(b, x, outer, k, inner);
    check_same(a, b, bytes, "argmax");
    check_guard(b, bytes, "argmax");
    for (int64_t j = 0; j < k; j++) {
        const int64_t best = (int64_t)a[0];
        ck_assert(j < best ? x[j * inner] < x[best * inner] : x[j * inner] <= x[best * inner]);
    }
    release(3, x, a, b);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("along");
    tcase_add_loop_test(t, running_sums, 0, 7);
    tcase_add_loop_test(t, indices_of_maxima, 0, 7);
    return run_suite(t, "along kernels");
}
