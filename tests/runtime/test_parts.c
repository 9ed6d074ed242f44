/* test_parts.c -- single parts of the runtime: digests, schedules, initial weights, layouts, tree,
 * JSON. */
#include "step/grad.h"
#include "base/hash.h"
#include "train/init.h"
#include "base/json.h"
#include "base/memory.h"
#include "files/params.h"
#include "base/random.h"
#include "train/plateau.h"
#include "train/schedule.h"
#include "base/threads.h"
#include "data/data.h"
#include "suite.h"
#include <check.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
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

/* RFC 4231, test cases 1, 2, 3 and 6: a short key, a word, 20 bytes of 0xaa, a key of more than a block. */
START_TEST(hmac_knows_its_examples)
{
    static const struct { int fill, key; const char *word; int data; const char *text, *want; } example[] = {
        {0x0b, 20, NULL, 0, "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {0, 4, "Jefe", 0, "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {0xaa, 20, NULL, 50, NULL, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {0xaa, 131, NULL, 0, "Test Using Larger Than Block-Size Key - Hash Key First", "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"}};
    for (size_t i = 0; i < sizeof example / sizeof *example; i++) {
        uint8_t key[131], data[64], code[SHA256_BYTES];
        char hex[2 * SHA256_BYTES + 1];
        Hmac m, again;
        memset(key, example[i].fill, sizeof key);
        memset(data, 0xdd, sizeof data);
        hmac_new(&m, example[i].word ? (const void *)example[i].word : key, (size_t)example[i].key);
        again = m;
        for (int k = 0; k < 2; k++, m = again) {
            hmac_add(&m, example[i].text ? (const void *)example[i].text : data, example[i].text ? strlen(example[i].text) : (size_t)example[i].data);
            hmac_end(&m, code);
            for (int b = 0; b < SHA256_BYTES; b++)
                sprintf(hex + 2 * b, "%02x", code[b]);
            ck_assert_str_eq(hex, example[i].want);
        }
        code[31] ^= 1;
        ck_assert(!hmac_equal(code, key, 32) && hmac_equal(code, code, 32));
    }
}
END_TEST

START_TEST(sha256_knows_its_examples)
{
    static const struct { const char *text, *digest; } example[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    sha256_plain = _i;
    for (int i = 0; i < 3; i++) {
        Sha256 s;
        char hex[65];
        sha256_new(&s);
        for (const char *c = example[i].text; *c; c++)
            sha256_add(&s, c, 1);
        sha256_end(&s, hex);
        ck_assert_str_eq(hex, example[i].digest);
    }
}
END_TEST

/* Bytes of any number in pieces of any size, by the processor's own instructions where it has them, and without. */
START_TEST(sha256_is_the_same_both_ways)
{
    uint8_t bytes[1000], digest[2][SHA256_BYTES];
    unsigned seed = 1;
    for (int i = 0; i < 1000; i++)
        bytes[i] = (uint8_t)rand_r(&seed);
    for (int n = 0; n < 1000; n += 1 + n / 50) {
        for (int plain = 0; plain < 2; plain++) {
            Sha256 s;
            sha256_plain = plain;
            sha256_new(&s);
            for (int at = 0, piece; at < n; at += piece) {
                piece = 1 + rand_r(&seed) % (n - at);
                sha256_add(&s, bytes + at, (size_t)piece);
            }
            sha256_raw(&s, digest[plain]);
        }
        ck_assert_mem_eq(digest[0], digest[1], SHA256_BYTES);
    }
    sha256_plain = false;
}
END_TEST

START_TEST(a_hash_does_not_see_where_the_stream_is_cut)
{
    uint8_t bytes[1000];
    for (int i = 0; i < 1000; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 13);
    Hash whole = hash_new();
    hash_add(&whole, bytes, 1000);
    for (size_t cut = 0; cut <= 40; cut++) {
        Hash h = hash_new();
        hash_add(&h, bytes, cut);
        hash_add(&h, bytes + cut, 3);
        hash_add(&h, bytes + cut + 3, 1000 - cut - 3);
        ck_assert_uint_eq(hash_end(&h), hash_end(&whole));
    }
    bytes[999] ^= 1;
    Hash other = hash_new();
    hash_add(&other, bytes, 1000);
    ck_assert_uint_ne(hash_end(&other), hash_end(&whole));
    ck_assert_uint_ne(hash_text(""), hash_text("a"));
}
END_TEST

START_TEST(philox_knows_its_examples)
{
    uint32_t w[4];
    rt_philox(w, 0, 0, 0, 0, 0);                      /* kat_vectors of Random123 */
    ck_assert_uint_eq(w[0], 0x6627e8d5u);
    ck_assert_uint_eq(w[1], 0xe169c58du);
    ck_assert_uint_eq(w[2], 0xbc57ac4cu);
    ck_assert_uint_eq(w[3], 0x9b00dbd8u);
    rt_philox(w, ~0ull, ~0u, ~0u, ~0u, ~0u);
    ck_assert_uint_eq(w[0], 0x408f276du);
    ck_assert_uint_eq(w[1], 0x41c83b0eu);
    ck_assert_uint_eq(w[2], 0xa20bc7c6u);
    ck_assert_uint_eq(w[3], 0x6d5451fdu);
}
END_TEST

START_TEST(numbers_below_n_are_even)
{
    int count[5] = {0};
    Random r = random_from(1, RT_PURPOSE_SHUFFLE, 0, 0);
    for (int i = 0; i < 50000; i++)
        count[random_below(&r, 5)]++;
    for (int i = 0; i < 5; i++)
        ck_assert_int_lt(abs(count[i] - 10000), 400);         /* 4.5 sigma */
}
END_TEST

START_TEST(learning_rates_follow_their_schedule)
{
    RtRecipe r = {.lr = 0.5, .epochs = 12, .schedule = RT_SCHED_STEP, .nat = 2, .at = {4, 10}, .factor = 0.1};
    ck_assert_double_eq(schedule_lr(&r, r.lr, 0, 10), 0.5);
    ck_assert_double_eq(schedule_lr(&r, r.lr, 39, 10), 0.5);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 40, 10), 0.05, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 100, 10), 0.005, 1e-15);
    r.schedule = RT_SCHED_COSINE;
    ck_assert_double_eq(schedule_lr(&r, r.lr, 0, 10), 0.5);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 60, 10), 0.25, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 120, 10), 0, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 500, 10), 0, 1e-15);
    r.end = 0.2;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 120, 10), 0.1, 1e-15);
    r.schedule = RT_SCHED_POLYNOMIAL, r.power = 2, r.end = 0;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 60, 10), 0.125, 1e-15);
    r.warmup = 2;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 0, 10), 0.5 / 20, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 9, 10), 0.25, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 20, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 70, 10), 0.125, 1e-15);
    r.schedule = RT_SCHED_CONSTANT;
    ck_assert_double_eq(schedule_lr(&r, r.lr, 1000, 10), 0.5);

    r = (RtRecipe){.lr = 0.5, .epochs = 12, .schedule = RT_SCHED_ONE_CYCLE, .rise = 0.25, .start = 0.2, .end = 0.04};
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 0, 10), 0.1, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 15, 10), 0.3, 1e-15);                /* half way up */
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 30, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 75, 10), 0.26, 1e-15);               /* half way down */
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 120, 10), 0.02, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 500, 10), 0.02, 1e-15);
    r.rise = 0;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 0, 10), 0.5, 1e-15);

    /* cycles of 2, 4 and 8 epochs after one of warm-up */
    r = (RtRecipe){.lr = 0.5, .epochs = 99, .schedule = RT_SCHED_RESTARTS, .first = 2, .factor = 2, .warmup = 1, .end = 0.2};
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 4, 10), 0.25, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 10, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 20, 10), 0.3, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 30, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 50, 10), 0.3, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 70, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 110, 10), 0.3, 1e-15);
    r.factor = 1, r.warmup = 0;
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 400, 10), 0.5, 1e-15);
    ck_assert_double_eq_tol(schedule_lr(&r, r.lr, 410, 10), 0.3, 1e-15);

    r = (RtRecipe){.lr = 0.5, .epochs = 9, .schedule = RT_SCHED_PLATEAU, .warmup = 1};
    ck_assert_double_eq_tol(schedule_lr(&r, 0.125, 4, 10), 0.125 / 2, 1e-15);
    ck_assert_double_eq(schedule_lr(&r, 0.125, 400, 10), 0.125);
}
END_TEST

/* The state after an epoch with this loss; saved as text and read back each time. */
static bool plateau_falls(Plateau *s, const RtProgram *p, double loss)
{
    char text[PLATEAU_ROOM + 32];
    const bool fell = plateau_epoch(s, p, &(Result){.validation = {loss}});
    plateau_text(s, &p->recipe, text, sizeof text);
    *s = (Plateau){0};
    ck_assert_msg(plateau_read(s, &p->recipe, text), "%s", text);
    return fell;
}

START_TEST(a_rate_falls_on_a_plateau)
{
    RtProgram p = {.nmetric = 1, .metric = {"loss"},
                   .recipe = {.lr = 1, .schedule = RT_SCHED_PLATEAU, .plateau = {.result = "validation_loss", .epochs = 1},
                              .factor = 0.25, .threshold = 0.1, .cooldown = 2, .end = 0.1}};
    Plateau s = plateau_new(&p.recipe);
    ck_assert(!plateau_falls(&s, &p, NAN) && s.bad == 1 && isnan(s.best));
    ck_assert(!plateau_falls(&s, &p, 8) && s.bad == 0 && s.best == 8);
    ck_assert(!plateau_falls(&s, &p, 7.5) && s.bad == 1 && s.best == 8);   /* less than 10 % */
    ck_assert(plateau_falls(&s, &p, 7.5) && s.rate == 0.25 && s.cooldown == 2);
    ck_assert(!plateau_falls(&s, &p, 9) && s.bad == 0 && s.cooldown == 1); /* not counted */
    ck_assert(!plateau_falls(&s, &p, 9) && s.bad == 0 && s.cooldown == 0);
    ck_assert(!plateau_falls(&s, &p, 9) && s.bad == 1);
    ck_assert(plateau_falls(&s, &p, NAN) && s.rate == 0.1);                /* end, not 0.0625 */
    for (int i = 0; i < 9; i++)
        ck_assert(!plateau_falls(&s, &p, 9) && s.rate == 0.1);             /* it stays there */
    ck_assert(!plateau_falls(&s, &p, 7) && s.best == 7);

    p.recipe.plateau.larger = true;
    s = plateau_new(&p.recipe);
    ck_assert(!plateau_falls(&s, &p, 1) && !plateau_falls(&s, &p, 1.05) && s.bad == 1);
    ck_assert(!plateau_falls(&s, &p, 1.2) && s.best == 1.2);
    s = plateau_new(&p.recipe); /* a finite result is better than an infinite one */
    ck_assert(!plateau_falls(&s, &p, -INFINITY) && !plateau_falls(&s, &p, 3) && s.best == 3 && s.bad == 0);
    p.recipe.plateau.larger = false;
    s = plateau_new(&p.recipe);
    ck_assert(!plateau_falls(&s, &p, INFINITY) && !plateau_falls(&s, &p, INFINITY) && s.bad == 1);
    ck_assert(!plateau_falls(&s, &p, 3) && s.best == 3 && s.bad == 0);
    p.recipe.plateau.larger = true;
    ck_assert(!plateau_read(&s, &p.recipe, "validation_loss 0x1p+0 0x1p+0 1"));
    ck_assert(!plateau_read(&s, &p.recipe, "validation_loss 0x1p+0 0x1p+0 1 2 3"));
    ck_assert(!plateau_read(&s, &p.recipe, "validation_loss_fit 0x1p+0 0x1p+0 1 2"));
    ck_assert(!plateau_read(&s, &p.recipe, "test_loss 0x1p+0 0x1p+0 1 2"));
    p.recipe.plateau.result = NULL;
    ck_assert(!plateau_epoch(&s, &p, &(Result){.validation = {9}}));
}
END_TEST

/* --- parameters --- */

enum { ROWS = 40, COLUMNS = 60 };

/* One weight of the kind, file order = memory order, filled with seed 1 by `threads` threads. */
static void fill(RtInit init, int threads, double *w)
{
    const RtParam p = {.name = "w", .rank = 2, .dim = {ROWS, COLUMNS}, .naxis = 1,
                       .axis = {{ROWS * COLUMNS, 1, 1, 0}}, .count_memory = ROWS * COLUMNS,
                       .fan_in = COLUMNS, .fan_out = ROWS, .init = init};
    const RtProgram program = {.real_bytes = 8, .param = &p, .nparam = 1};
    Pool *pool = pool_new(threads);
    init_params(&program, (char *)w, 1, pool);
    pool_free(pool);
}

/* Mean, standard deviation and largest absolute value. */
static void moments(const double *w, double m[3])
{
    const int n = ROWS * COLUMNS;
    m[0] = m[1] = m[2] = 0;
    for (int i = 0; i < n; i++) {
        m[0] += w[i] / n;
        m[2] = fmax(m[2], fabs(w[i]));
    }
    for (int i = 0; i < n; i++)
        m[1] += (w[i] - m[0]) * (w[i] - m[0]) / n;
    m[1] = sqrt(m[1]);
}

START_TEST(initial_weights_have_their_spread)
{
    static const struct { RtInit init; double mean, sigma, bound; } law[] = {
        {{RT_XAVIER, true, RT_FAN_IN, 2, 0}, 0, 0.182574, 0},          /* sqrt(2 / 60) */
        {{RT_XAVIER, false, RT_FAN_AVG, 3, 0}, 0, 0.141421, 0.244949}, /* bound sqrt(3 / 50) */
        {{RT_XAVIER, false, RT_FAN_OUT, 3, 0}, 0, 0.158114, 0.273861},
        {{RT_GLOROT, true, 0, 0, 0}, 0, 0.141421, 0},
        {{RT_GLOROT, false, 0, 0, 0}, 0, 0.141421, 0.244949},
        {{RT_HE, true, RT_FAN_IN, 0, 0}, 0, 0.182574, 0},
        {{RT_HE, false, RT_FAN_IN, 0, 0}, 0, 0.182574, 0.316228},
        {{RT_LECUN, true, 0, 0, 0}, 0, 0.129099, 0},
        {{RT_LECUN, false, 0, 0, 0}, 0, 0.129099, 0.223607},
        {{RT_UNIFORM, false, 0, 1, 3}, 2, 0.577350, 3},
        {{RT_NORMAL, false, 0, -1, 0.5}, -1, 0.5, 0},
        {{RT_CONSTANT, false, 0, 0.25, 0}, 0.25, 0, 0.25}};
    for (size_t i = 0; i < sizeof law / sizeof *law; i++) {
        static double w[ROWS * COLUMNS];
        double m[3];
        fill(law[i].init, 1, w);
        moments(w, m);
        ck_assert_double_eq_tol(m[0], law[i].mean, 5 * law[i].sigma / sqrt(ROWS * COLUMNS) + 1e-12);
        ck_assert_double_eq_tol(m[1], law[i].sigma, 0.06 * law[i].sigma + 1e-12);
        if (law[i].bound > 0)
            ck_assert(m[2] <= law[i].bound + 1e-12 && m[2] > 0.98 * law[i].bound);
    }
}
END_TEST

START_TEST(orthogonal_rows_are_orthonormal)
{
    static double w[ROWS * COLUMNS];
    fill((RtInit){RT_ORTHOGONAL, false, 0, 2, 0}, 1, w);
    for (int a = 0; a < ROWS; a++)
        for (int b = 0; b <= a; b++) {
            double dot = 0;
            for (int k = 0; k < COLUMNS; k++)
                dot += w[a * COLUMNS + k] * w[b * COLUMNS + k];
            ck_assert_double_eq_tol(dot, a == b ? 4 : 0, 1e-12);
        }
}
END_TEST

START_TEST(initial_weights_do_not_depend_on_threads)
{
    static double a[ROWS * COLUMNS], b[ROWS * COLUMNS];
    fill((RtInit){RT_HE, true, RT_FAN_IN, 0, 0}, 1, a);
    fill((RtInit){RT_HE, true, RT_FAN_IN, 0, 0}, 3, b);
    ck_assert_mem_eq(a, b, sizeof a);
}
END_TEST

/* (5, 3, 2, 2) in files, (O, R, S, I) in memory; and (5, 6) in panels of 4: every element has one place of its own. */
START_TEST(places_follow_the_axes)
{
    const RtParam conv = {.rank = 4, .dim = {5, 3, 2, 2}, .naxis = 4,
                          .axis = {{5, 1, 12, 0}, {3, 1, 1, 0}, {2, 1, 6, 0}, {2, 1, 3, 0}}};
    const RtParam dense = {.rank = 2, .dim = {5, 6}, .naxis = 2, .axis = {{5, 4, 24, 1}, {6, 1, 4, 0}}};
    int64_t place[60];
    ck_assert_int_eq(params_count(&conv), 60);
    params_places(&conv, 0, 60, place);
    for (int o = 0, e = 0; o < 5; o++)
        for (int i = 0; i < 3; i++)
            for (int r = 0; r < 2; r++)
                for (int s = 0; s < 2; s++, e++)
                    ck_assert_int_eq(place[e], ((o * 2 + r) * 2 + s) * 3 + i);
    for (int first = 0; first < 30; first++) {
        params_places(&dense, first, 1, place);
        ck_assert_int_eq(place[0], first / 6 / 4 * 24 + first / 6 % 4 + first % 6 * 4);
    }
}
END_TEST

START_TEST(values_come_back_from_memory_order)
{
    const RtParam p = {.rank = 2, .dim = {5, 6}, .naxis = 2, .axis = {{5, 4, 24, 1}, {6, 1, 4, 0}}};
    double in[30];
    float memory[48] = {0}, out[30];
    for (int i = 0; i < 30; i++)
        in[i] = i + 1;
    params_put(&p, (char *)memory, 4, 0, 30, in);
    params_get(&p, (char *)memory, 4, 0, 30, out);
    for (int i = 0; i < 30; i++)
        ck_assert_float_eq(out[i], (float)in[i]);
    float sum = 0;
    for (int i = 0; i < 48; i++)
        sum += memory[i];
    ck_assert_float_eq(sum, 465);
}
END_TEST

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

/* --- JSON, memory, synthetic data --- */

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
    Suite *s = suite_create("parts");
    TCase *t = tcase_create("parts");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, ranks_make_their_part_of_synthetic_samples);
    tcase_add_loop_test(t, sha256_knows_its_examples, 0, 2);
    tcase_add_test(t, sha256_is_the_same_both_ways);
    tcase_add_test(t, hmac_knows_its_examples);
    tcase_add_test(t, a_hash_does_not_see_where_the_stream_is_cut);
    tcase_add_test(t, philox_knows_its_examples);
    tcase_add_test(t, numbers_below_n_are_even);
    tcase_add_test(t, learning_rates_follow_their_schedule);
    tcase_add_test(t, a_rate_falls_on_a_plateau);
    tcase_add_test(t, initial_weights_have_their_spread);
    tcase_add_test(t, orthogonal_rows_are_orthonormal);
    tcase_add_test(t, initial_weights_do_not_depend_on_threads);
    tcase_add_test(t, places_follow_the_axes);
    tcase_add_test(t, values_come_back_from_memory_order);
    tcase_add_test(t, groups_are_added_neighbours_first);
    tcase_add_test(t, every_split_of_the_shards_is_the_same_tree);
    tcase_add_test(t, clipping_scales_to_the_norm);
    tcase_add_test(t, every_unit_runs_once);
    tcase_add_test(t, shares_may_be_unequal);
    tcase_add_test(t, strings_survive_json);
    tcase_add_test(t, bytes_that_are_no_text_are_marked_in_json);
    tcase_add_test(t, the_peak_grows_with_what_is_touched);
    tcase_add_test(t, synthetic_samples_are_functions_of_their_number);
    tcase_add_test(t, synthetic_tokens_tell_their_class);
    tcase_add_loop_test(t, synthetic_positions_divide_a_sample, 0, 8);
    suite_add_tcase(s, t);
    return suite_run(s);
}
