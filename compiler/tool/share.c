/* share.c -- see share.h.
 *
 * A row belongs to the test split if its random number is below the share.  The number is made of
 * two words of Philox4x32-10.  Programs have the same rule (rt_philox, split_takes): if the two
 * differed, a model that tests/programs/new.sh makes for a table would not train.
 *
 * Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3".
 */
#include "tool/share.h"

enum { SEED = 1, PURPOSE = 6 /* RT_PURPOSE_SPLIT of runtime/rt.h */, ROUNDS = 10 };

/* A number from 0 to 1. */
static double drawn(uint64_t row)
{
    uint32_t counter[4] = {(uint32_t)row, PURPOSE, (uint32_t)(row >> 32), 0}, key[2] = {SEED, 0};
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t even = UINT64_C(0xD2511F53) * counter[0],
                       odd = UINT64_C(0xCD9E8D57) * counter[2];
        counter[0] = (uint32_t)(odd >> 32) ^ counter[1] ^ key[0];
        counter[2] = (uint32_t)(even >> 32) ^ counter[3] ^ key[1];
        counter[1] = (uint32_t)odd;
        counter[3] = (uint32_t)even;
        key[0] += UINT32_C(0x9E3779B9);
        key[1] += UINT32_C(0xBB67AE85);
    }
    return ((double)counter[0] + (double)counter[1] * 0x1p-32) * 0x1p-32;
}

bool share_trains(int64_t row, double test)
{
    return drawn((uint64_t)row) >= test;
}
