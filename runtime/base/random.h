/* random.h -- random numbers without state: the same (seed, purpose, place) always gives the same
 * number. */
#ifndef RANDOM_H
#define RANDOM_H
#include <stdint.h>

/* A stream of 32-bit numbers for one purpose (RT_PURPOSE_*).  c2 and c3 name the subject, such as a
 * sample and an epoch, or a parameter. */
typedef struct Random {
    uint64_t key;
    uint32_t purpose, c2, c3, block, word[4];
    int left;
} Random;

Random random_from(uint64_t key, uint32_t purpose, uint32_t c2, uint32_t c3);
uint32_t random_next(Random *r);
uint32_t random_below(Random *r, uint32_t n); /* 0 .. n - 1, unbiased; n > 0 */

/* The numbers at position `block` of a stream: two uniform numbers in (0, 1), or two standard
 * normal numbers (Box and Muller 1958). */
void random_uniform2(double u[2], uint64_t key, uint32_t purpose, uint32_t c2, uint32_t c3,
                     uint32_t block);
void random_normal2(double z[2], uint64_t key, uint32_t purpose, uint32_t c2, uint32_t c3,
                    uint32_t block);

#endif
