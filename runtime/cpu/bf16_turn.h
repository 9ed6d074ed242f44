/* bf16_turn.h -- the operands of gradients of weights, and their product.
 *
 * In these gradients, the factors of a sum are positions, which lie apart in memory.  Position p is
 * at row[p] + at, with `lanes` <= 32 adjacent numbers.  Positions are copied, a block of them at a
 * time: those of the first factor are turned to rows, those of the second factor become packed
 * panels (bf16_pack.h).  Blocks are filled with zeros.
 */
#ifndef CPU_BF16_TURN_H
#define CPU_BF16_TURN_H
#include "cpu/bf16_tile.h"

#ifndef RT_DOUBLE
enum { BF16_POSITIONS = 512 }; /* that are copied at a time: two operands of 32 KB */

/* Number of positions of a block.  Blocks are as equal as multiples of 32 allow. */
RT_INLINE int bf16_positions_most(int all)
{
    const int blocks = BF16_BLOCKS(all),
              parts = (blocks * BF16_BLOCK + BF16_POSITIONS - 1) / BF16_POSITIONS;
    return parts > 0 ? (blocks + parts - 1) / parts * BF16_BLOCK : BF16_BLOCK;
}

/* BV numbers of positions p and p + 1, interleaved.  whole: all of these numbers exist. */
RT_INLINE bvec_bits bf16_pair(const bf16 *const *row, int64_t at, int p, int count, int lanes,
                              bool whole)
{
    if (whole)
        return b_load_low(row[p] + at) | b_load_low(row[p + 1] + at) << 16;
    const int n = lanes < 0 ? 0 : lanes < BV ? lanes : BV;
    bvec_bits pair = {0};
    if (n > 0 && p < count)
        pair = b_load_low_n(row[p] + at, n);
    if (n > 0 && p + 1 < count)
        pair |= b_load_low_n(row[p + 1] + at, n) << 16;
    return pair;
}

/* Packs a panel of 16 lanes of the second factor. */
RT_INLINE void bf16_pairs_panel(bf16 *restrict to, const bf16 *const *row, int64_t at, int count,
                                int lanes, bool whole)
{
    for (int p = 0; p < BF16_BLOCKS(count) * BF16_BLOCK; p += 2, to += 2 * BF16_LANES) {
        RT_UNROLL
        for (int j = 0; j < BF16_LANES; j += BV) {
            const bvec_bits pair = bf16_pair(row, at + j, p, count, lanes - j, whole);
            memcpy(to + 2 * j, &pair, sizeof pair);
        }
    }
}

#ifdef RT_AVX512
/* These functions pack two panels, and one: an instruction interleaves 16 lanes of two
 * positions. */
RT_INLINE void bf16_pairs_two(bf16 *restrict to, int64_t panel, const bf16 *const *row, int64_t at,
                              int count)
{
    for (int p = 0; p < count; p += 2, to += 2 * BF16_LANES) {
        const Bf16Line x = *(const Bf16LineMemory *)(row[p] + at),
                       y = *(const Bf16LineMemory *)(row[p + 1] + at);
        *(Bf16Line *)to =
            __builtin_shufflevector(x, y, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8,
                                    40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
        *(Bf16Line *)(to + panel) =
            __builtin_shufflevector(x, y, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54,
                                    23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62,
                                    31, 63);
    }
}

RT_INLINE void bf16_pairs_one(bf16 *restrict to, const bf16 *const *row, int64_t at, int count)
{
    typedef bf16 Half __attribute__((vector_size(32), aligned(2), may_alias));
    for (int p = 0; p < count; p += 2, to += 2 * BF16_LANES)
        *(Bf16Line *)to =
            __builtin_shufflevector(*(const Half *)(row[p] + at), *(const Half *)(row[p + 1] + at),
                                    0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24,
                                    9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
#endif

/* Packs the second factor: panels of 16 lanes, `panel` numbers apart.  The memory is aligned to 64
 * bytes. */
RT_INLINE void bf16_pairs(bf16 *restrict to, int64_t panel, const bf16 *const *row, int64_t at,
                          int count, int lanes)
{
#ifdef RT_AVX512
    if (lanes == 2 * BF16_LANES && count % BF16_BLOCK == 0) {
        bf16_pairs_two(to, panel, row, at, count);
        return;
    }
    if (lanes == BF16_LANES && count % BF16_BLOCK == 0) {
        bf16_pairs_one(to, row, at, count);
        return;
    }
#endif
    for (int first = 0; first < lanes; first += BF16_LANES, to += panel)
        if (lanes - first >= BF16_LANES && count % BF16_BLOCK == 0)
            bf16_pairs_panel(to, row, at + first, count, BF16_LANES, true);
        else
            bf16_pairs_panel(to, row, at + first, count, lanes - first, false);
}

/* Turns BV lanes of 2 BV positions of the first factor. */
RT_INLINE void bf16_turn_square(bf16 *restrict to, const bf16 *const *row, int64_t at, int p,
                                int count, int lanes, bool whole)
{
    bvec t[BV];
    RT_UNROLL
    for (int i = 0; i < BV; i++)
        t[i] = (bvec)bf16_pair(row, at, p + 2 * i, count, lanes, whole);
    b_transpose(t);
    RT_UNROLL
    for (int i = 0; i < BV; i++)
        if (i < lanes)
            memcpy(to + i * BF16_POSITIONS, &t[i], sizeof t[i]);
}

/* Turns the first factor to rows of positions, BF16_POSITIONS apart. */
RT_INLINE void bf16_turn(bf16 *restrict to, const bf16 *const *row, int64_t at, int count,
                         int lanes)
{
    for (int first = 0; first < lanes; first += BV)
        for (int p = 0; p < count; p += 2 * BV)
            if (lanes - first >= BV && p + 2 * BV <= count)
                bf16_turn_square(to + first * BF16_POSITIONS + p, row, at + first, p, count, BV,
                                 true);
            else
                bf16_turn_square(to + first * BF16_POSITIONS + p, row, at + first, p, count,
                                 lanes - first, false);
}

/* sum (rows, line) += turned (rows, BF16_POSITIONS) times packed pairs, whose panels are `panel`
 * numbers apart, over the positions of `runs`.  A last block that is not full is filled with zeros
 * in both factors.  line and begin are those of bf16_product_rows. */
RT_INLINE void bf16_product_turned_runs(float *sum, int64_t line, bool begin, const bf16 *turned,
                                        int rows, const bf16 *pairs, int64_t panel, int outputs,
                                        const Bf16Runs *runs)
{
#ifdef RT_AMX
    if ((int)BV == (int)BF16_LANES && bf16_has_tiles()) { /* bf16_turn has written whole blocks */
        Bf16Runs whole = *runs;
        whole.length = BF16_BLOCKS(runs->length) * BF16_BLOCK;
        bf16_product_even(sum, line, begin, turned, BF16_POSITIONS, rows > BF16_LANES, pairs, panel,
                          BF16_PANELS(outputs), &whole);
        return;
    }
#endif
    const bf16 *row[BF16_ROWS];
    for (int i = 0; i < rows; i++)
        row[i] = turned + i * BF16_POSITIONS;
    const Bf16Rows all = bf16_rows(row, rows, turned + BF16_ROWS * BF16_POSITIONS, runs, NULL, 1);
    bf16_product_rows(sum, line, begin, &all, pairs, panel, BF16_PANELS(outputs), runs);
}

/* The same over the first `count` positions. */
RT_INLINE void bf16_product_turned_apart(float *sum, int64_t line, bool begin, const bf16 *turned,
                                         int rows, const bf16 *pairs, int64_t panel, int outputs,
                                         int count)
{
    const int64_t zero = 0;
    const Bf16Runs run = {1, count, &zero, &zero, 0};
    bf16_product_turned_runs(sum, line, begin, turned, rows, pairs, panel, outputs, &run);
}

/* The same for panels that bf16_pairs has written for up to BF16_POSITIONS positions. */
RT_INLINE void bf16_product_turned(float *sum, int64_t line, bool begin, const bf16 *turned,
                                   int rows, const bf16 *pairs, int outputs, int count)
{
    bf16_product_turned_apart(sum, line, begin, turned, rows, pairs, BF16_POSITIONS * BF16_LANES,
                              outputs, count);
}
#endif

#endif
