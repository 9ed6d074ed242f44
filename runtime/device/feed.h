/* feed.h -- samples that stay in the host's memory: each launch's go to a device (device.h) while the launch before it runs.
 *
 * A place is the rows of a launch, step by step, those of this rank alone.  There are two in pinned memory here and two there: what a
 * launch reads lies in one of them, what the next one will read is gathered into the other and copied, in a stream of its own.
 *
 *   launch n         reads place n % 2, behind its copy (device.h: arrived)
 *   meanwhile        launch n + 1's rows go to place (n + 1) % 2, which launch n - 1 has read: the host has waited for that one
 */
#ifndef FEED_H
#define FEED_H
#include "data/data.h"
#include "device/device.h"

typedef struct Feed Feed;

/* first, rows: of a batch, what this rank reads; steps: of a launch, at most. */
Feed *feed_new(const RtDevice *d, Pool *pool, int first, int rows, int steps);
int64_t feed_bytes(const Feed *f, const Batch *b);    /* of both places, for such samples */

/* What is launched from here on may read the samples of n batches; those that feed_ahead was given are on their way already. */
void  feed_take(Feed *f, const Batch *b, int n);
/* Where step i finds them: x, label and how far rows lie apart. */
void  feed_point(const Feed *f, int i, const Batch *b, Rt *r);
/* Behind a launch: that of n more batches will come, n = 0: it is not known. */
void  feed_ahead(Feed *f, const Batch *b, int n);

#endif
