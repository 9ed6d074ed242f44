/* remote.h -- a program's memory on a device (device.h), and the copies between it and the host.
 *
 * The arena lies on the device.  The host has a copy of `fixed`, for files, hashes and
 * initialisation: call remote_changed after a write to the copy, and remote_fetch before a read of
 * it.  A data set is copied to the device when a batch first refers to it.  A batch is a range of
 * places of an order; the device computes which samples they are.  If a data set does not fit, the
 * samples of each launch are copied (feed.h).
 */
#ifndef REMOTE_H
#define REMOTE_H
#include "comm/comm.h"
#include "data/data.h"
#include "device/device.h"

typedef struct Remote Remote;

/* grads: room for gradients outside of the update.  Devices of several ranks are linked
 * (link.h). */
Remote *remote_new(const RtProgram *p, char *fixed, bool grads, Comm *c);
/* Before the first batch.  Where samples are kept: "gpu", "host", NULL: on the device if they fit.
 * steps: of a launch, at most. */
void remote_samples(Remote *m, Pool *pool, const char *where, int steps);
/* Addresses on the device: the first shard's region, scratch, gradients. */
char *remote_shard(const Remote *m);
char *remote_scratch(const Remote *m);
char *remote_grad(const Remote *m);

/* Copies to the device what a step needs: r, the batch's data and places, changed parameters.  *r
 * gets the device's addresses.  room: bytes of the struct that begins with r. */
void remote_begin(Remote *m, Rt *r, int64_t room, const Batch *b, bool output);
/* The same for n training steps, at most p->steps_most: structs of `room` bytes, and batches. */
void remote_begin_steps(Remote *m, void *structs, int64_t room, const Batch *b, int n);
/* Launches the kernel that prepares n steps: it computes the index that kernels read, and clears
 * the metrics.  remote_steps and remote_play include this launch. */
void remote_ready(Remote *m, int n);
void remote_steps(Remote *m, int n); /* n steps as one launch (p->steps) */

/* A list of launches that is the same each time.  True: its recording has been played.  False: the
 * caller launches, and then calls remote_played.  The first call loads the kernels; the launches
 * of the second call are recorded.  REMOTE_TRAIN + i: the list of 2^i steps. */
enum { REMOTE_TEST, REMOTE_TRAIN, REMOTE_LISTS = REMOTE_TRAIN + 7 };
bool remote_play(Remote *m, int list);
void remote_played(Remote *m, int list);

/* Starts the sum over all ranks of reals from .. from + n - 1 in the gradient buffer, bucket
 * `bucket` of the step.  Launches after remote_await see the sum. */
void remote_sum(Remote *m, int bucket, int64_t from, int64_t n);
void remote_await(Remote *m, int bucket);
/* Exchanges rows in `fixed`: each rank has computed the rows of its own shards, and gets all
 * rows. */
void remote_gather(Remote *m, const RtKnown *row, int n);

/* To be called after a launch, with the batches of the next launch, for a prefetch; n = 0: they are
 * not known. */
void remote_ahead(Remote *m, const Batch *b, int n);

/* remote_wait waits for the launched phases or steps.  Then remote_metrics gives the results of
 * step i; i is 0 if the launch was one step.  *scaling stays as it is if no update has changed
 * it. */
void remote_wait(Remote *m, int steps);
void remote_metrics(const Remote *m, int i, double *slot, RtScaling *scaling);
void remote_output(Remote *m, void *output);
void remote_gradients(Remote *m, void *grad);

void remote_changed(Remote *m);
void remote_fetch(Remote *m);

#endif
