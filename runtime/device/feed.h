/* feed.h -- samples that stay in the host's memory: those of a launch are copied to the device
 * while the launch before it runs.
 *
 * A place is a buffer for the rows that this rank reads in a launch, step by step.  There are two
 * places in pinned memory of the host and two on the device (double buffering).  A launch reads one
 * place; the rows of the next launch are gathered and copied, in a stream of their own, to the
 * other.
 *
 *   launch n     reads place n % 2, after its copy (device.h: arrived)
 *   meanwhile    rows of launch n + 1 go to place (n + 1) % 2: launch n - 1, which read it, is done
 */
#ifndef FEED_H
#define FEED_H
#include "data/data.h"
#include "device/device.h"

typedef struct Feed Feed;

/* first, rows: the rows of a batch that this rank reads; steps: steps of a launch, at most. */
Feed *feed_new(const RtDevice *d, Pool *pool, int first, int rows, int steps);
int64_t feed_bytes(const Feed *f, const Batch *b); /* of both places, for samples like those of b */

/* Prepares the samples of n batches for the launches after this call; uses the copy that feed_ahead
 * has begun, if there is one. */
void feed_take(Feed *f, const Batch *b, int n);
/* Where step i finds its samples: sets x, label and their strides. */
void feed_point(const Feed *f, int i, const Batch *b, Rt *r);
/* After a launch: begins the copy for n more batches; n = 0: they are not known. */
void feed_ahead(Feed *f, const Batch *b, int n);

#endif
