/* test_bf16_time.c -- loops over time in a bf16 program: what moves two-byte numbers between steps
 * and sequences, by its definition, for one thread and for teams. */
#define RT_BF16
#pragma GCC diagnostic ignored                                                                     \
    "-Warray-bounds" /* gcc 12 warns wrongly of tiles whose size is not a literal */
#include "kernel_test.h"

#include "cpu/scan.h"
#include "cpu/token.h"

#ifndef RT_DOUBLE
static const Scan sizes[] = {{1, 1, 1},  {2, 3, 15},   {3, 5, 16},  {5, 4, 17},
                             {4, 2, 37}, {16, 3, 128}, {1, 6, 200}, {7, 1, 64}};
enum { SIZES = sizeof sizes / sizeof *sizes, EVERY = 2 };

/* Any two bytes are moved unchanged, also NaN and denormals. */
static bf16 *numbers(int64_t count, int seed)
{
    bf16 *p = buffer_bytes(count * (int64_t)sizeof *p);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits[4];
        rt_philox(bits, 0x5ca9, (uint32_t)i, (uint32_t)seed, 0, 0);
        p[i] = (bf16)bits[0];
    }
    return p;
}

static bf16 *copy(const bf16 *x, int64_t count)
{
    bf16 *p = buffer_bytes(count * (int64_t)sizeof *p);
    memcpy(p, x, (size_t)count * sizeof *p);
    return p;
}

typedef struct Moves {
    Scan s;
    int step;
    const bf16 *sequence, *value;
    bf16 *item, *put, *saved, *copied, *filled, *time;
} Moves;
static void run_moves(void *arg)
{
    const Moves *m = arg;
    const Scan stretches = {m->s.n, (m->s.steps + EVERY - 1) / EVERY, m->s.size};
    const int64_t count = (int64_t)m->s.n * m->s.size;
    scan_item_bf16(m->item, m->sequence, m->step, m->s);
    scan_put_bf16(m->put, m->value, m->step, m->s);
    scan_save_bf16(m->saved, m->value, m->step, stretches, EVERY);
    scan_copy_bf16(m->copied, m->value, count);
    scan_fill_bf16(m->filled, count, -0.7);
    time_from_row_bf16(m->time, m->sequence, m->s);
}

#define EQUAL(got, want, count, what)                                                              \
    do {                                                                                           \
        for (int64_t k_ = 0; k_ < (count); k_++)                                                   \
            REQUIRE((got)[k_] == (want)[k_], what ": number %d is %04x, not %04x", (int)k_,        \
                    (got)[k_], (want)[k_]);                                                        \
        check_guard(got, (count) * (int64_t)sizeof *(got), what);                                  \
    } while (0)

static void check_moves(Scan s, int step, int team)
{
    const int64_t one = (int64_t)s.n * s.size, all = one * s.steps,
                  some = one * ((s.steps + EVERY - 1) / EVERY);
    bf16 *sequence = numbers(all, 1), *value = numbers(one, 2), *before = numbers(all, 3),
         *item = copy(value, one), *put = copy(before, all), *saved = copy(before, some),
         *fill = copy(value, one), *time = copy(before, all);
    Moves m = {.s = s,
               .step = step,
               .sequence = sequence,
               .value = value,
               .item = buffer_bytes(one * (int64_t)sizeof *item),
               .put = copy(before, all),
               .saved = copy(before, some),
               .copied = buffer_bytes(one * (int64_t)sizeof *item),
               .filled = buffer_bytes(one * (int64_t)sizeof *item),
               .time = buffer_bytes(all * (int64_t)sizeof *item)};
    for (int n = 0; n < s.n; n++)
        for (int i = 0; i < s.size; i++) {
            const int64_t at = (int64_t)n * s.size + i;
            item[at] = sequence[((int64_t)n * s.steps + step) * s.size + i];
            put[((int64_t)n * s.steps + step) * s.size + i] = value[at];
            if (step % EVERY == 0)
                saved[((int64_t)n * ((s.steps + 1) / EVERY) + step / EVERY) * s.size + i] =
                    value[at];
            fill[at] = 0xbf33; /* -0.7 is between -0.69921875 and -0.703125 */
            for (int t = 0; t < s.steps; t++)
                time[t * one + at] = sequence[((int64_t)n * s.steps + t) * s.size + i];
        }
    if (team > 1)
        as_team(team, run_moves, &m);
    else
        run_moves(&m);
    EQUAL(m.item, item, one, "scan_item_bf16");
    EQUAL(m.put, put, all, "scan_put_bf16");
    EQUAL(m.saved, saved, some, "scan_save_bf16");
    EQUAL(m.copied, value, one, "scan_copy_bf16");
    EQUAL(m.filled, fill, one, "scan_fill_bf16");
    EQUAL(m.time, time, all, "time_from_row_bf16");
    release(14, sequence, value, before, item, put, saved, fill, time, m.item, m.put, m.saved,
            m.copied, m.filled, m.time);
}

START_TEST(moves)
{
    static const int team[] = {1, 2, 3, 7};
    const Scan s = sizes[_i / 4];
    for (int step = 0; step < s.steps; step++)
        check_moves(s, step, team[_i % 4]);
}
END_TEST

/* A state that is kept from one token to the next, among others. */
START_TEST(tokens)
{
    enum { AT = 5, COUNT = 33 };
    real *carried = random_buffer(AT + COUNT, 4), *carry = buffer(AT + COUNT + 1);
    bf16 *first = buffer_bytes(COUNT * sizeof *first), *next = buffer_bytes(COUNT * sizeof *next),
         *y = buffer_bytes(COUNT * sizeof *y);
    Rt r = {.carried = (const char *)carried, .carry = (char *)carry};
    for (int i = 0; i < AT + COUNT + 1; i++)
        carry[i] = 9;
    token_state_bf16(first, &r, AT, COUNT, 0.5);
    r.position = 1;
    token_state_bf16(next, &r, AT, COUNT, 0.5);
    token_next_bf16(y, next, &r, AT, COUNT);
    for (int i = 0; i < COUNT; i++) {
        REQUIRE(first[i] == 0x3f00, "number %d begins with %04x", i, first[i]);
        REQUIRE(next[i] == bf16_narrow(carried[AT + i]), "number %d is %04x", i, next[i]);
        REQUIRE(y[i] == next[i], "number %d becomes %04x", i, y[i]);
        REQUIRE(bf16_narrow(carry[AT + i]) == y[i] && carry[AT + i] == bf16_wide(y[i]),
                "number %d is kept as %g", i, (double)carry[AT + i]);
    }
    for (int i = 0; i < AT; i++)
        REQUIRE(carry[i] == 9, "number %d of another state is written", i);
    REQUIRE(carry[AT + COUNT] == 9, "number %d of another state is written", COUNT);
    check_guard(first, COUNT * sizeof *first, "token_state_bf16");
    check_guard(y, COUNT * sizeof *y, "token_next_bf16");
    release(5, carried, carry, first, next, y);
}
END_TEST
#endif

int main(void)
{
    TCase *c = tcase_create("bf16_time");
#ifndef RT_DOUBLE
    add_rounds(c, moves, 0, SIZES * 4);
    tcase_add_test(c, tokens);
#endif
    return run_suite(c, "bf16_time");
}
