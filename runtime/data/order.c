/* order.c -- see order.h.
 *
 * A list is filled in pieces of LANES indices, one round at a time, so the C compiler vectorises
 * the loops. On a Xeon with AVX2:
 *
 *   samples      in pieces   one by one   Fisher-Yates shuffle
 *   60,000       0.34 ms     2.0 ms       0.24 ms
 *   1,281,167    7.8 ms      42 ms        8.8 ms
 */
#include "data/order.h"
#include "base/error.h"

enum { LANES = 64 };

RtOrder order_by(int64_t n, uint64_t seed, int64_t epoch, bool shuffle)
{
    RtOrder o = {.n = n, .across = 2};
    if (!shuffle)
        return o;
    while ((int64_t)o.across * o.across < n)
        o.across += 2;
    o.down = (uint32_t)((n + o.across - 1) / o.across);
    o.rounds = n < RT_ORDER_MANY ? RT_ORDER_ROUNDS : RT_ORDER_ROUNDS / 2;
    for (uint32_t i = 0; i < RT_ORDER_ROUNDS / 4; i++)
        rt_philox(o.key + 4 * i, seed, i, RT_PURPOSE_SHUFFLE, 0, (uint32_t)epoch);
    return o;
}

/* The rounds of rt_order_at for neighbouring places. */
static inline __attribute__((always_inline)) void
rounds(const RtOrder *o, uint32_t row[restrict LANES], uint32_t column[restrict LANES])
{
    const uint32_t across = o->across, down = o->down;
    for (int i = 0; i < o->rounds; i += 2) {
        const uint32_t of_row = o->key[i], of_column = o->key[i + 1];
        for (int k = 0; k < LANES; k++)
            row[k] = rt_order_round(row[k], column[k], of_row, across);
        for (int k = 0; k < LANES; k++)
            column[k] = rt_order_round(column[k], row[k], of_column, down);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void rounds_v3(const RtOrder *o, uint32_t row[LANES],
                                                      uint32_t column[LANES])
{
    rounds(o, row, column);
}
#endif

static void rounds_any(const RtOrder *o, uint32_t row[LANES], uint32_t column[LANES])
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        rounds_v3(o, row, column);
        return;
    }
#endif
    rounds(o, row, column);
}

/* An index beyond the last sample goes through the network again. */
static void shuffled(const RtOrder *o, uint32_t *sample, int64_t count)
{
    uint32_t row[LANES], column[LANES], r = 0, c = 0;
    for (int64_t at = 0; at < count; at += LANES) {
        for (int k = 0; k < LANES; k++) {
            row[k] = r, column[k] = c;
            if (++c == o->down)
                c = 0, r++;
        }
        rounds_any(o, row, column);
        for (int k = 0; k < LANES && at + k < count; k++) {
            const uint32_t to = row[k] * o->down + column[k];
            sample[at + k] = to < o->n ? to : rt_order_walk(o, to);
        }
    }
}

void order_fill(const RtOrder *o, uint32_t *sample, int64_t count)
{
    const int64_t once = count < o->n ? count : o->n;
    for (int64_t i = 0; o->rounds == 0 && i < once; i++)
        sample[i] = (uint32_t)i;
    if (o->rounds > 0)
        shuffled(o, sample, once);
    for (int64_t i = once; i < count; i++)
        sample[i] = sample[i - o->n];
}

Order order_stored(int64_t n, int64_t batch)
{
    const int64_t count = (n + batch - 1) / batch * batch;
    Order o = {order_by(n, 0, 0, false), rt_alloc(sizeof *o.sample * (size_t)count)};
    order_fill(&o.by, o.sample, count);
    return o;
}
