/* samples.c -- a hash of all bytes of the samples, in pieces of whole samples that threads take in
 * any order.
 *
 * A piece has the samples of 4 KB, at least one. The hash of all samples is a sum over the pieces;
 * its terms contain the hash and the index of a piece. So images.c can store the hashes of the
 * pieces in a packed file, and no run needs to read the whole file.
 *
 * Arrays have no stored hashes: all threads read their bytes. On one core this takes 0.12 s for 1
 * GiB in memory, which is the rate of reading. From a disk the bytes are read once, and the first
 * epoch finds them in memory. If an array has more than MOST bytes, only evenly spread samples are
 * read.
 */
#include "base/error.h"
#include "base/hash.h"
#include "data/data.h"
#include <stdatomic.h>

#define MOST ((int64_t)16 << 30)
enum { PIECE = 4096, UNIT = 1 << 20 };

int64_t data_piece(const Data *d)
{
    return d->stride > 0 && d->stride < PIECE ? PIECE / d->stride : 1;
}

uint64_t data_piece_hash(const Data *d, int64_t piece, int64_t samples)
{
    const int64_t each = data_piece(d), first = piece * each,
                  n = samples - first < each ? samples - first : each;
    return hash_block(d->x + first * d->stride, (size_t)(n * d->stride));
}

typedef struct Summing {
    const Data *d;
    int64_t pieces; /* of all samples */
    int64_t units;  /* pieces in a unit */
    int64_t each;   /* one unit of `each` units is read */
    _Atomic uint64_t sum;
} Summing;

static void sum_unit(void *arg, int thread, int unit)
{
    Summing *s = arg;
    const int64_t first = unit * s->each * s->units,
                  end = first + s->units < s->pieces ? first + s->units : s->pieces;
    uint64_t sum = 0;
    (void)thread;
    for (int64_t i = first; i < end; i++)
        sum += hash_place(data_piece_hash(s->d, i, s->d->n), i);
    atomic_fetch_add(&s->sum, sum);
}

uint64_t data_hash_samples(const Data *d, Pool *pool)
{
    const int64_t each = data_piece(d), bytes = each * d->stride;
    if (d->synthetic || d->vocab || !d->x)
        return 0;
    if (d->images)
        return images_hash(d);
    Summing s = {.d = d,
                 .pieces = (d->n + each - 1) / each,
                 .units = bytes < UNIT ? UNIT / bytes : 1,
                 .each = d->n * d->stride / MOST + 1};
    const int64_t units = (s.pieces + s.units - 1) / s.units;
    pool_run(pool, sum_unit, &s, (int)((units + s.each - 1) / s.each));
    return atomic_load(&s.sum);
}
