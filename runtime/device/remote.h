/* remote.h -- a program's memory on a device (device.h), and what goes to and fro.
 *
 * The arena lies there.  `fixed` has a copy here, for files, hashes and initialisation: whoever writes to the copy says
 * remote_changed, whoever reads it asks remote_fetch first.  Data sets are brought over when a batch first points into them, a
 * batch itself is some places of an order: which samples they are is found out there, and the step reads them there.  Of those that find no room each launch's are brought over (feed.h).
 */
#ifndef REMOTE_H
#define REMOTE_H
#include "comm/comm.h"
#include "data/data.h"
#include "device/device.h"

typedef struct Remote Remote;

/* grads: room for gradients outside of the update.  Where there are several ranks, their devices are linked (link.h). */
Remote *remote_new(const RtProgram *p, char *fixed, bool grads, Comm *c);
/* Where samples lie: "gpu", "host", NULL: there where they fit.  steps: of a launch, at most.  Before the first batch. */
void    remote_samples(Remote *m, Pool *pool, const char *where, int steps);
char   *remote_shard(const Remote *m);                /* first shard's region, scratch, gradients: there */
char   *remote_scratch(const Remote *m);
char   *remote_grad(const Remote *m);

/* Makes r, with b's data, places and parameters as they are here, true there; *r gets the address of its copy.  room: bytes of the
 * struct that r is part of. */
void remote_begin(Remote *m, Rt *r, int64_t room, const Batch *b, bool output);
/* The same of n training steps, at most p->steps_most: their structs, `room` bytes apart, of which each begins with an Rt, and batches. */
void remote_begin_steps(Remote *m, void *structs, int64_t room, const Batch *b, int n);
/* The first of what n steps launch: the index that their kernels read, and metrics cleared.  remote_steps and remote_play see to it. */
void remote_ready(Remote *m, int n);
void remote_steps(Remote *m, int n);                  /* which are one launch (p->steps) */

/* A list of launches that is the same each time: true when it has been played from its recording.  Else the caller launches, and
 * says so: the second time they are recorded (the first loads the kernels).  REMOTE_TRAIN + i: of 2^i steps. */
enum { REMOTE_TEST, REMOTE_TRAIN, REMOTE_LISTS = REMOTE_TRAIN + 7 };
bool remote_play(Remote *m, int list);
void remote_played(Remote *m, int list);

/* Of the buffer of gradients: reals from .. from + n - 1 over all ranks, as number `bucket` of the step; what is launched after
 * remote_await sees the sum. */
void remote_sum(Remote *m, int bucket, int64_t from, int64_t n);
void remote_await(Remote *m, int bucket);
/* Rows in `fixed`, of which each rank has made those of its own shards: from here on all have all. */
void remote_gather(Remote *m, const RtKnown *row, int n);

/* Behind a launch: the batches of the next one, n = 0: it is not known. */
void remote_ahead(Remote *m, const Batch *b, int n);

/* After the phases, or so many steps: waits; then what step i has left, 0 where there was one.  *scaling is left alone where no update has
 * changed it. */
void remote_wait(Remote *m, int steps);
void remote_metrics(const Remote *m, int i, double *slot, RtScaling *scaling);
void remote_output(Remote *m, void *output);
void remote_gradients(Remote *m, void *grad);

void remote_changed(Remote *m);
void remote_fetch(Remote *m);

#endif
