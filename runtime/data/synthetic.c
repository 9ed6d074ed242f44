/* synthetic.c -- samples without a file: the prototype of a random class, half covered by noise.
 *
 * Byte e of sample i is (prototype[class(i)][e] + noise[i][e]) / 2, both uniform bytes: a linear
 * model can learn it, and any sample can be made at any time by itself.
 */
#include "data/data.h"

enum { SEED = 20231, CLASS = 0, NOISE = 1, PROTOTYPE = 2 };

/* 16 random bytes of one of the three kinds. */
static void bytes16(uint32_t w[4], uint32_t kind, int64_t which, int64_t block)
{
    const uint32_t high = (uint32_t)(which >> 32) << 2 | kind;
    rt_philox(w, SEED, (uint32_t)block, RT_PURPOSE_DATA, (uint32_t)which, high);
}

/* Four bytes at a time: floor((a + b) / 2) of each (Dietz's average). */
static uint32_t average4(uint32_t a, uint32_t b)
{
    return (a & b) + (((a ^ b) & 0xFEFEFEFEu) >> 1);
}

int32_t synthetic_sample(uint8_t *x, int64_t features, int64_t classes, int64_t i)
{
    uint32_t w[4], proto[4];
    bytes16(w, CLASS, i, 0);
    const int32_t label = classes > 0 ? (int32_t)(((uint64_t)w[0] * (uint64_t)classes) >> 32) : 0;
    for (int64_t e = 0; e < features; e += 16) {
        bytes16(w, NOISE, i, e / 16);
        bytes16(proto, PROTOTYPE, label, e / 16);
        for (int64_t k = 0; k < 16 && e + k < features; k++)
            x[e + k] = (uint8_t)(average4(w[k / 4], proto[k / 4]) >> (k % 4 * 8));
    }
    return label;
}
