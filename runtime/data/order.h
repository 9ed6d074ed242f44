/* order.h -- the order of the samples in an epoch: a function of (seed, epoch, index), see RtOrder
 * in rt.h.
 *
 * The host reads the order from a list, which that function fills; a device computes the part of
 * its batches itself.
 */
#ifndef ORDER_H
#define ORDER_H
#include "rt.h"

typedef struct Order {
    RtOrder by;
    uint32_t *sample; /* [places that order_fill has filled] */
} Order;

/* The order of n samples, 1 .. 2^32: shuffled, or as they are stored. */
RtOrder order_by(int64_t n, uint64_t seed, int64_t epoch, bool shuffle);

/* Fills sample[0 .. count - 1]; the order repeats after its n samples. */
void order_fill(const RtOrder *by, uint32_t *sample, int64_t count);

/* Returns all samples in their stored order, in whole batches; the memory comes from rt_alloc. */
Order order_stored(int64_t n, int64_t batch);

#endif
