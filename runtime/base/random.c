/* random.c -- Philox4x32-10 (rt.h) as streams and distributions. */
#include "base/random.h"
#include "rt.h"
#include <math.h>

Random random_from(uint64_t key, uint32_t purpose, uint32_t c2, uint32_t c3)
{
    return (Random){.key = key, .purpose = purpose, .c2 = c2, .c3 = c3};
}

uint32_t random_next(Random *r)
{
    if (r->left == 0) {
        rt_philox(r->word, r->key, r->block++, r->purpose, r->c2, r->c3);
        r->left = 4;
    }
    return r->word[--r->left];
}

/* Lemire 2019, "Fast random integer generation in an interval". */
uint32_t random_below(Random *r, uint32_t n)
{
    uint64_t m = (uint64_t)random_next(r) * n;
    if ((uint32_t)m < n)
        for (const uint32_t reject = -n % n; (uint32_t)m < reject;)
            m = (uint64_t)random_next(r) * n;
    return (uint32_t)(m >> 32);
}

/* 53 random bits plus half a unit, so that the result is never 0. */
static double unit(uint32_t high, uint32_t low)
{
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53 + 0x1p-54;
}

void random_uniform2(double u[2], uint64_t key, uint32_t purpose, uint32_t c2, uint32_t c3,
                     uint32_t block)
{
    uint32_t w[4];
    rt_philox(w, key, block, purpose, c2, c3);
    u[0] = unit(w[0], w[1]);
    u[1] = unit(w[2], w[3]);
}

void random_normal2(double z[2], uint64_t key, uint32_t purpose, uint32_t c2, uint32_t c3,
                    uint32_t block)
{
    double u[2];
    random_uniform2(u, key, purpose, c2, c3, block);
    const double radius = sqrt(-2 * log(u[0])), angle = 2 * M_PI * u[1];
    z[0] = radius * cos(angle);
    z[1] = radius * sin(angle);
}
