/* test_synthetic.c -- synthetic samples: each is a function of its number, and a rank makes only its own. */
#include "data/data.h"
#include "suite.h"
#include <stdlib.h>
#include <string.h>

/* Frees what data_open has made for synthetic samples, except the memory of samples: programs keep it to their end. */
static void forget(Data *d)
{
    free(d->position);
    free(d);
}

/* A rank makes only its part of a batch, with the samples that a single rank makes. */
START_TEST(ranks_make_their_part_of_synthetic_samples)
{
    enum { B = 8, F = 5 };
    const RtProgram p = {.model = "test", .batch = B, .input_rank = 1, .input_dim = {F}, .classes = 3, .labels = 1,
                         .recipe = {.samples = 3 * B, .test_samples = B}};
    Pool *pool = pool_new(1);
    uint32_t sample[3 * B];
    const Order order = {order_by(3 * B, 7, 1, true), sample};
    order_fill(&order.by, order.sample, 3 * B);
    for (int ranks = 1; ranks <= B; ranks *= 2)
        for (int r = 0; r < ranks; r++) {
            Data *whole = data_open(&p, "synthetic", "train", 0), *part = data_open(&p, "synthetic", "train", 0);
            Batch a = {.seed = 7}, b = a;
            data_share(part, r, ranks);
            data_batch(whole, pool, &order, 1, B, &a);
            memset(part->x, 0xaa, B * F), memset(part->label, 0xaa, B * sizeof *part->label);
            data_batch(part, pool, &order, 1, B, &b);
            ck_assert_ptr_eq(b.stored, part->x + r * (B / ranks) * F);
            ck_assert_int_eq(b.stored_bytes, B / ranks * F);
            ck_assert_int_eq(b.label_bytes, B / ranks * (int)sizeof *part->label);
            for (int i = 0; i < B; i++) {
                const uint8_t *x = (const uint8_t *)b.x + (int64_t)b.index[i] * b.x_stride, none[F] = {0xaa, 0xaa, 0xaa, 0xaa, 0xaa};
                const int32_t label = *(const int32_t *)((const char *)b.label + (int64_t)b.index[i] * b.label_stride);
                const bool mine = i * ranks / B == r;
                ck_assert_mem_eq(x, mine ? (const uint8_t *)a.x + (int64_t)a.index[i] * a.x_stride : none, F);
                ck_assert_int_eq(label == (int32_t)0xaaaaaaaa, !mine);
            }
            forget(whole), forget(part);
        }
    pool_free(pool);
}
END_TEST

START_TEST(synthetic_samples_are_functions_of_their_number)
{
    Data d = {.features = 33, .classes = 10, .labels = 1};
    uint8_t a[33], b[33], c[33];
    int classes[10] = {0};
    int32_t label, again, other;
    synthetic_sample(&d, a, &label, 12345);
    synthetic_sample(&d, b, &again, 12345);
    ck_assert_int_eq(again, label);
    ck_assert_mem_eq(a, b, 33);
    synthetic_sample(&d, c, &other, 12346);
    ck_assert_mem_ne(a, c, 33);
    d.features = 1;
    for (int i = 0; i < 5000; i++) {
        synthetic_sample(&d, a, &label, i);
        classes[label]++;
    }
    for (int i = 0; i < 10; i++)
        ck_assert_int_lt(abs(classes[i] - 500), 100);
}
END_TEST

/* With a class for each sample, half of the tokens are those of its class; with a class for each position, equal tokens have equal classes. */
START_TEST(synthetic_tokens_tell_their_class)
{
    const Data whole = {.features = 64, .vocab = 1000, .classes = 3, .labels = 1},
               each = {.features = 64, .vocab = 1000, .classes = 3, .labels = 64};
    int32_t a[64], b[64], class_of[1000], label[64], first, second = -1;
    int same = 0;
    synthetic_sample(&whole, a, &first, 0);
    for (int i = 1; second != first; i++)
        synthetic_sample(&whole, b, &second, i);
    for (int e = 0; e < 64; e++)
        same += a[e] == b[e];
    ck_assert_int_ge(same, 6); /* a quarter of them, both tosses being won */
    memset(class_of, -1, sizeof class_of);
    for (int i = 0; i < 200; i++) {
        synthetic_sample(&each, a, label, i);
        for (int e = 0; e < 64; e++) {
            ck_assert(a[e] >= 0 && a[e] < 1000 && label[e] >= 0 && label[e] < 3);
            ck_assert(class_of[a[e]] < 0 || class_of[a[e]] == label[e]);
            class_of[a[e]] = label[e];
        }
    }
}
END_TEST

/* More or fewer classes than elements, in numbers that do not divide: all elements and classes are made, and nothing behind them. */
START_TEST(synthetic_positions_divide_a_sample)
{
    static const int64_t features[] = {48, 7, 3, 5}, labels[] = {10, 2, 5, 5};
    const int64_t f = features[_i / 2], n = labels[_i / 2];
    const Data d = {.features = f, .vocab = _i % 2 ? 900 : 0, .classes = 3, .labels = n};
    const int64_t bytes = f * (d.vocab ? 4 : 1);
    int32_t x[49], y[49], label[11], again[11];
    bool changes[4 * 49] = {false};
    for (int i = 0; i < 50; i++) {
        memset(x, 0x7f, sizeof x), memset(y, 0x11, sizeof y), memset(label, 0x7f, sizeof label), memset(again, 0x11, sizeof again);
        synthetic_sample(&d, x, label, i);
        synthetic_sample(&d, y, again, i);
        ck_assert_mem_eq(x, y, bytes);
        ck_assert_mem_eq(label, again, n * 4);
        ck_assert_int_eq(((uint8_t *)x)[bytes], 0x7f);
        ck_assert_int_eq(label[n], 0x7f7f7f7f);
        for (int p = 0; p < n; p++)
            ck_assert(label[p] >= 0 && label[p] < 3);
        for (int e = 0; e < f; e++)
            changes[e] |= d.vocab ? x[e] != x[0] : ((uint8_t *)x)[e] != 0;
    }
    for (int e = d.vocab ? 1 : 0; e < f; e++)
        ck_assert_msg(changes[e], "element %d is always the same", e);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("synthetic");
    TCase *t = tcase_create("synthetic");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, ranks_make_their_part_of_synthetic_samples);
    tcase_add_test(t, synthetic_samples_are_functions_of_their_number);
    tcase_add_test(t, synthetic_tokens_tell_their_class);
    tcase_add_loop_test(t, synthetic_positions_divide_a_sample, 0, 8);
    suite_add_tcase(s, t);
    return suite_run(s);
}
