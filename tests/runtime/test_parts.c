/* test_parts.c -- single parts of the runtime: sums of gradients, threads, JSON, memory. */
#include "base/json.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/threads.h"
#include "step/grad.h"
#include "suite.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* --- gradient buffers --- */

START_TEST(groups_are_added_neighbours_first)
{
    enum { N = 5000 };
    static float g[7][N];
    const RtSum sum = {.count = N, .param = -1};
    const RtProgram p = {.real_bytes = 4, .sum = &sum, .nsum = 1};
    Random r = random_from(3, RT_PURPOSE_DATA, 0, 0);
    Pool *pool = pool_new(2);
    for (int groups = 1; groups <= 7; groups++) {
        static float want[N];
        for (int k = 0; k < groups; k++)
            for (int i = 0; i < N; i++)
                g[k][i] = (float)random_next(&r) * 0x1p-20f;
        for (int i = 0; i < N; i++) {                 /* a stack of finished powers of two, merged at the end */
            float stack[8];
            int n = 0;
            for (int k = 0; k < groups; k++) {
                stack[n++] = g[k][i];
                for (int count = k + 1; count % 2 == 0; count /= 2, n--)
                    stack[n - 2] += stack[n - 1];
            }
            for (; n > 1; n--)
                stack[n - 2] += stack[n - 1];
            want[i] = stack[0];
        }
        Node leaf[7];
        for (int k = 0; k < groups; k++)
            leaf[k] = (Node){k, 1, 0};
        grad_tree(&p, pool, (char *)g, sizeof *g, leaf, groups);
        ck_assert_mem_eq(g[0], want, sizeof want);
    }
    pool_free(pool);
}
END_TEST

/* A sum whose value depends on the order: two different trees over the same leaves give different values. */
static void combine(void *arg, int to, int from)
{
    uint64_t *x = arg;
    x[to] = (x[to] * 31 + x[from] * 17) ^ (x[to] << 7);
}

START_TEST(every_split_of_the_shards_is_the_same_tree)
{
    enum { MOST = 48 };
    for (int shards = 1; shards <= MOST; shards++) {
        Node leaf[MOST];
        uint64_t want[MOST];
        for (int s = 0; s < shards; s++)
            leaf[s] = (Node){s, 1, 0}, want[s] = 1000003u * (unsigned)s + 7;
        tree_add(leaf, shards, combine, want);
        for (int ranks = 1; ranks <= shards; ranks++) {
            if (shards % ranks)
                continue;
            Node node[MOST + TREE_NODES];
            uint64_t sum[MOST];
            const int each = shards / ranks;
            int n = 0, covered = 0;
            for (int r = 0; r < ranks; r++)
                n += tree_nodes(r * each, each, shards, node + n);
            for (int i = 0; i < n; i++) {             /* a node's own sum, as one sweep makes it */
                uint64_t x[MOST];
                ck_assert_int_eq(node[i].first, covered);
                for (int k = 0; k < node[i].count; k++)
                    x[k] = 1000003u * (unsigned)(node[i].first + k) + 7;
                Node of[MOST];
                for (int k = 0; k < node[i].count; k++)
                    of[k] = (Node){k, 1, 0};
                tree_add(of, node[i].count, combine, x);
                sum[i] = x[0];
                covered += node[i].count;
            }
            ck_assert_int_eq(covered, shards);
            tree_add(node, n, combine, sum);
            ck_assert_msg(sum[0] == want[0], "%d shards, %d ranks", shards, ranks);
        }
    }
}
END_TEST

START_TEST(clipping_scales_to_the_norm)
{
    enum { N = 9000 };
    static double g[N], partial[8], before[N];
    const RtSum sum[] = {{.count = 4000}, {.offset = 4000 * 8, .count = 5000, .param = 1}};
    const RtProgram p = {.real_bytes = 8, .sum = sum, .nsum = 2, .ngradient = 2};
    ck_assert_int_eq(grad_blocks(&p), 3);
    double norm = 0;
    for (int i = 0; i < N; i++) {
        before[i] = g[i] = i % 17 - 8;
        norm += g[i] * g[i];
    }
    norm = sqrt(norm);
    Pool *pool = pool_new(2);
    grad_clip(&p, pool, (char *)g, partial, norm * 2);
    ck_assert_mem_eq(g, before, sizeof g);
    grad_clip(&p, pool, (char *)g, partial, 1);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol(g[i], before[i] / norm, 1e-15);
    pool_free(pool);
}
END_TEST

/* --- threads --- */

static atomic_int done[1000];

static void count(void *arg, int thread, int unit)
{
    ck_assert_int_lt(thread, *(int *)arg);
    atomic_fetch_add(&done[unit], 1);
}

START_TEST(every_unit_runs_once)
{
    for (int threads = 1; threads <= 5; threads++) {
        Pool *p = pool_new(threads);
        for (int round = 0; round < 200; round++) {
            const int units = round * 5 % 1000;
            pool_run(p, count, &threads, units);
            for (int i = 0; i < 1000; i++)
                ck_assert_int_eq(atomic_exchange(&done[i], 0), i < units);
        }
        pool_free(p);
    }
}
END_TEST

START_TEST(shares_may_be_unequal)
{
    enum { THREADS = 4 };
    static const int ends[][THREADS] = {{0, 0, 0, 0}, {7, 7, 7, 7}, {0, 0, 0, 5}, {1, 3, 90, 400}};
    int threads = THREADS;
    Pool *p = pool_new(THREADS);
    for (int round = 0; round < 200; round++) {
        const int *end = ends[round % 4];
        pool_run_shares(p, count, &threads, end);
        for (int i = 0; i < 1000; i++)
            ck_assert_int_eq(atomic_exchange(&done[i], 0), i < end[THREADS - 1]);
    }
    pool_free(p);
}
END_TEST

/* --- JSON, memory --- */

START_TEST(strings_survive_json)
{
    const char *text = "a \"quoted\" back\\slash\nline\x01 \xc3\xa4";
    char quoted[200], back[200];
    const int n = json_quote(quoted, sizeof quoted, text);
    Json j = json_read(quoted, n);
    ck_assert(json_string(&j, back, sizeof back) && json_end(&j));
    ck_assert_str_eq(back, text);
    j = json_read("\"\\u00e4\\t\"", 10);
    ck_assert(json_string(&j, back, sizeof back) && json_end(&j));
    ck_assert_str_eq(back, "\xc3\xa4\t");
}
END_TEST

/* The name of a file can have any bytes: those that are not UTF-8 are replaced, so the line is valid JSON. */
START_TEST(bytes_that_are_no_text_are_marked_in_json)
{
    const char *name[] = {"m\xff\xfe.tn", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x9f\x99\x82\x82", "\xc3\xa4\xe2\x82\xac"};
    const char *want[] = {"\"m\\ufffd\\ufffd.tn\"", "\"\\ufffd\"", "\"\\ufffd\\ufffd\\ufffd\"", "\"\\ufffd\\ufffd\\ufffd\"",
                          "\"\xf0\x9f\x99\x82\\ufffd\"", "\"\xc3\xa4\xe2\x82\xac\""};
    char quoted[100];
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(json_quote(quoted, sizeof quoted, name[i]), (int)strlen(want[i]));
        ck_assert_str_eq(quoted, want[i]);
    }
}
END_TEST

START_TEST(the_peak_grows_with_what_is_touched)
{
    memory_map(64 << 20, true, "a test");             /* now is the peak, whatever earlier tests have given back */
    const int64_t before = memory_peak();
    memory_map(64 << 20, true, "a test");
    const int64_t grown = memory_peak() - before;
    ck_assert_int_ge(grown, 60 << 20);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)   /* sanitizers use memory for each byte */
    ck_assert_int_le(grown, 70 << 20);
#endif
}
END_TEST

int main(void)
{
    Suite *s = suite_create("parts");
    TCase *t = tcase_create("parts");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, groups_are_added_neighbours_first);
    tcase_add_test(t, every_split_of_the_shards_is_the_same_tree);
    tcase_add_test(t, clipping_scales_to_the_norm);
    tcase_add_test(t, every_unit_runs_once);
    tcase_add_test(t, shares_may_be_unequal);
    tcase_add_test(t, strings_survive_json);
    tcase_add_test(t, bytes_that_are_no_text_are_marked_in_json);
    tcase_add_test(t, the_peak_grows_with_what_is_touched);
    suite_add_tcase(s, t);
    return suite_run(s);
}
