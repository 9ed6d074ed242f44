/* test_samples.c -- a batch from stored samples: images, targets, tokens. */
#include "kernel_test.h"

#include "cpu/input.h"

START_TEST(input)
{
    const int c = _i ? 3 : 1, hw = 21, stored = 5;
    uint8_t bytes[5 * 3 * 21];
    float floats[5 * 3 * 21];
    double doubles[5 * 3 * 21];
    const int32_t label[5] = {10, 11, 12, 13, 14};
    const uint32_t index[4] = {4, 0, 3, 1};
    for (int i = 0; i < stored * c * hw; i++)
        bytes[i] = (uint8_t)(i * 37), floats[i] = (float)i / 7, doubles[i] = i / 3.0;
    const void *data[3] = {bytes, floats, doubles};
    static const int size[3] = {1, 4, 8};
    for (int type = RT_U8; type <= RT_F64; type++) {
        const Rt r = {.x = data[type],
                      .x_stride = (int64_t)c * hw * size[type],
                      .x_type = type,
                      .x_scale = 1 / 255.0,
                      .label = label,
                      .label_stride = sizeof *label,
                      .label_type = RT_I32,
                      .index = index};
        real *y = buffer(2 * c * hw), *l = buffer(2 * c * hw), *rows = buffer(2 * c * hw);
        int32_t got[2];
        rt_input(y, &r, 1, 2, c, hw, false);
        rt_input(l, &r, 1, 2, c, hw, true);
        check_guard(y, 2 * c * hw * (int64_t)sizeof(real), "rt_input");
        for (int i = 0; i < 2 * c * hw; i++) {
            const int at = (int)index[1 + i / (c * hw)] * c * hw + i % (c * hw);
            const real want = type == RT_U8    ? (real)bytes[at] * (real)(1 / 255.0)
                              : type == RT_F32 ? (real)floats[at]
                                               : (real)doubles[at];
            ck_assert(y[i] == want);
        }
        chw_from_hwc(rows, l, 2, c, hw);
        check_same(rows, y, 2 * c * hw * (int64_t)sizeof(real), "rt_input, channels last");
        rt_labels(got, &r, 1, 2, 1);
        ck_assert(got[0] == 10 && got[1] == 13);
        release(3, y, l, rows);
    }
}
END_TEST

/* Rows of reals by the index of the batch; zeros where there are none.  A team gives the same. */
enum { TARGET_N = 5, TARGET_K = 19 };
typedef struct Targets {
    Rt r, blind;
    real y[TARGET_N * TARGET_K], none[TARGET_N * TARGET_K];
} Targets;

static void all_targets(void *arg)
{
    Targets *t = arg;
    rt_target(t->y, &t->r, 1, TARGET_N, TARGET_K);
    rt_target(t->none, &t->blind, 1, TARGET_N, TARGET_K);
}

START_TEST(targets)
{
    static const uint32_t index[TARGET_N + 1] = {0, 3, 1, 1, 0, 2};
    real *rows = random_buffer(4 * TARGET_K, 1);
    Targets one = {.blind.index = index}, team;
    one.r = (Rt){.label = rows, .label_stride = TARGET_K * sizeof(real), .index = index};
    all_targets(&one);
    for (int i = 0; i < TARGET_N * TARGET_K; i++) {
        ck_assert(one.y[i] == rows[(int)index[1 + i / TARGET_K] * TARGET_K + i % TARGET_K]);
        ck_assert(one.none[i] == 0);
    }
    for (int threads = 2; threads < 8; threads++) {
        team = (Targets){.r = one.r, .blind = one.blind};
        memset(team.none, 0xff, sizeof team.none);
        as_team(threads, all_targets, &team);
        check_same(team.y, one.y, sizeof one.y, "rt_target of a team");
        check_same(team.none, one.none, sizeof one.none, "no target, of a team");
    }
    release(1, rows);
}
END_TEST

/* The threads of a team divide the samples. */
enum { TEXT_N = 6, TEXT_T = 5 };
typedef struct Texts {
    Rt r, blind; /* blind: without labels */
    int32_t y[TEXT_N * TEXT_T], label[TEXT_N * TEXT_T], none[TEXT_N * TEXT_T];
} Texts;

static void all_texts(void *arg)
{
    Texts *t = arg;
    rt_tokens(t->y, &t->r, 1, TEXT_N, TEXT_T);
    rt_labels(t->label, &t->r, 1, TEXT_N, TEXT_T);
    rt_labels(t->none, &t->blind, 1, TEXT_N, TEXT_T);
}

START_TEST(tokens_in_teams)
{
    static const int counts[] = {1, 2, 3, 7, 16};
    static const uint8_t text[] = {7, 1, 2, 3, 4, 5, 6, 0, 9, 255, 8, 2};
    static const uint32_t index[TEXT_N + 1] = {0, 2, 6, 1, 0, 5, 3};
    int wrong = 0;
    Texts one = {.blind.index = index};
    one.r = (Rt){.x = text,
                 .x_stride = 1,
                 .x_type = RT_U8,
                 .vocab = 9,
                 .wrong = &wrong,
                 .index = index,
                 .label = text + 1,
                 .label_stride = 1,
                 .label_type = RT_U8};
    Texts team = one;
    all_texts(&one);
    ck_assert_int_eq(wrong, 1);
    for (int i = 0; i < 5; i++) {
        memset(team.y, 0xff, sizeof team.y + sizeof team.label + sizeof team.none);
        wrong = 0;
        as_team(counts[i], all_texts, &team);
        ck_assert_int_eq(wrong, 1);
        ck_assert_mem_eq(team.y, one.y, sizeof one.y + sizeof one.label + sizeof one.none);
    }
}
END_TEST

/* Windows of a text, three tokens apart, and a token later their labels; padding is token 0 and label -1. */
START_TEST(tokens)
{
    const uint8_t u8[] = {7, 1, 2, 3, 4, 5, 6, 0, 9, 255, 8};
    uint16_t u16[11];
    int32_t i32[11];
    int64_t i64[11];
    const uint32_t index[3] = {2, 0, 1};
    for (int i = 0; i < 11; i++)
        u16[i] = u8[i], i32[i] = u8[i], i64[i] = u8[i];
    u16[9] = UINT16_MAX, i32[9] = i64[9] = -1;
    const void *data[4] = {u8, u16, i32, i64};
    static const int type[4] = {RT_U8, RT_U16, RT_I32, RT_I64}, size[4] = {1, 2, 4, 8};
    for (int k = 0; k < 4; k++) {
        const Rt r = {.x = data[k],
                      .x_stride = 3 * size[k],
                      .x_type = type[k],
                      .vocab = 256,
                      .label = (const char *)data[k] + size[k],
                      .label_stride = 3 * size[k],
                      .label_type = type[k],
                      .index = index};
        const int32_t padding = k == 0 ? 255 : 0, unscored = k == 0 ? 255 : -1;
        const int32_t x[12] = {6, 0, 9, padding, 7, 1, 2, 3, 3, 4, 5, 6},
                      y[12] = {0, 9, unscored, 8, 1, 2, 3, 4, 4, 5, 6, 0};
        int32_t got[12];
        rt_tokens(got, &r, 0, 3, 4);
        ck_assert_mem_eq(got, x, sizeof x);
        rt_labels(got, &r, 0, 3, 4);
        ck_assert_mem_eq(got, y, sizeof y);
        rt_tokens(got, &r, 1, 2, 4);
        ck_assert_mem_eq(got, x + 4, sizeof x - 4 * sizeof *x);
        Rt few = r; /* a token outside of the vocabulary is never looked up */
        int wrong = 0;
        few.vocab = 7, few.wrong = &wrong;
        rt_tokens(got, &few, 0, 3, 4);
        for (int i = 0; i < 12; i++)
            ck_assert_int_eq(got[i], x[i] < 7 ? x[i] : 0);
        ck_assert_int_eq(wrong, 1);
    }
    int32_t none[4] = {1, 1, 1, 1};
    rt_labels(none, &(Rt){.index = index}, 0, 2, 2);
    ck_assert(none[0] == 0 && none[3] == 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sample");
    tcase_add_loop_test(t, input, 0, 2);
    tcase_add_test(t, tokens);
    tcase_add_test(t, tokens_in_teams);
    tcase_add_test(t, targets);
    return run_suite(t, "sample kernels");
}
