/* on_device.c -- a step of a program in a device's memory: one thread launches all phases, and the
 * device distributes their units.
 *
 * The host's `fixed` is a copy (device/remote.h); n->shard and n->thread are addresses of the
 * device.  Several steps can be one launch: a function of the program (RtProgram.steps), or a
 * recording of launches that is played.  The host looks at the losses after the launch; the update
 * on the device looks at each loss itself and skips steps after a loss that is not finite.
 */
#include "base/error.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "device/remote.h"
#include "step/average.h"
#include "step/step.h"
#include <stdlib.h>

struct NetDevice {
    Remote *remote;
    View *step;         /* [net_steps_most]: what each step of a launch sees */
    int steps_most;     /* --launch-steps; 0: as many as the program allows */
    const Batch *ahead; /* [nahead]: the batches of the next launch, for a prefetch */
    int nahead;
    bool of_others; /* the loss that net_steps has found not to be finite is another rank's */
};

/* ---- memory */

static void device_map(Net *n)
{
    const RtProgram *p = n->p;
    struct NetDevice *d = n->device = rt_alloc(sizeof *d);
    comm_posts(n->comm, p->nbucket + 1);
    if (n->nparts > 1)
        rt_die("%d shards on %d GPUs: each has to hold 1, 2, 4, 8 ... of them, one node of the "
               "tree in which they are added; build with "
               "--shards %d",
               p->shards, n->comm->size, n->comm->size);
    n->fixed =
        memory_map(memory_round(p->fixed_bytes) + n->grad_bytes, true, "copies of the parameters");
    n->grad = n->fixed + memory_round(p->fixed_bytes);
    d->remote = remote_new(p, n->fixed, n->reduced, n->comm);
    net_samples(n, NULL, 1);
    n->shard = remote_shard(d->remote);
    n->thread = remote_scratch(d->remote);
}

static void device_changed(Net *n)
{
    remote_changed(n->device->remote);
}

static void device_fetch(Net *n)
{
    remote_fetch(n->device->remote);
}

static void device_load(Net *n, View *v, const Batch *b)
{
    remote_begin(n->device->remote, &v->rt, sizeof *v, b, false);
    remote_ready(n->device->remote, 1);
}

/* ---- launches */

static void launch(const Net *n, const Rt *r, const RtPhase *phase, int first, int units)
{
    for (int i = 0; i < units; i++)
        phase->run(r, n->thread, first + i);
}

/* Adds a bucket's gradients and starts their sum over ranks.  first: the bucket's first unit. */
static void launch_bucket(Net *n, const Rt *r, int bucket, int first)
{
    const RtProgram *p = n->p;
    const RtBucket *b = &p->bucket[bucket];
    launch(n, r, phase_of_sums(p), first, b->units);
    remote_sum(n->device->remote, bucket, b->offset / p->real_bytes, b->bytes / p->real_bytes);
}

/* Launches forward, backward and sums; the update, too, if r->grad is NULL. */
static void launch_phases(Net *n, const Rt *r)
{
    const RtProgram *p = n->p;
    int bucket = 0, unit = 0;
    for (int i = 0; i < p->ntrain; i++) {
        const RtPhase *phase = &p->train[i];
        if (!phase_in_step(phase, r))
            continue;
        launch(n, r, phase, 0, phase_units(n, r, phase));
        if (phase->known) {
            launch(n, r, &(RtPhase){.run = phase->known}, 0, r->shards);
            remote_gather(n->device->remote, phase->row, phase->nrow);
        }
        for (; r->grad && bucket < p->nbucket && p->bucket[bucket].ready <= i; bucket++) {
            launch_bucket(n, r, bucket, unit);
            unit += p->bucket[bucket].units;
        }
    }
}

/* Updates from sums.  An update that clips by norm computes the norm itself. */
static void launch_updates(Net *n, const Rt *r)
{
    const RtProgram *p = n->p;
    const RtPhase *phase = phase_of_updates(p);
    for (int b = 0; n->reduced && b < p->nbucket; b++) {
        remote_await(n->device->remote, b);
        if (phase)
            launch(n, r, phase, phase_first_update(p, b), p->bucket[b].updates);
    }
}

/* Copies the samples of the next launch while this one runs. */
static void prefetch(Net *n)
{
    struct NetDevice *d = n->device;
    remote_ahead(d->remote, d->ahead, d->nahead);
    d->nahead = 0;
}

/* ---- several steps at once */

int net_steps_most(const Net *n)
{
    const int most = n->device && n->p->steps_most > 1 ? n->p->steps_most : 1;
    return n->device && n->device->steps_most > 0 && n->device->steps_most < most
               ? n->device->steps_most
               : most;
}

void net_samples(Net *n, const char *where, int64_t steps)
{
    if (!n->device)
        return;
    n->device->steps_most = (int)steps;
    remote_samples(n->device->remote, n->pool, where, net_steps_most(n));
}

void net_ahead(Net *n, const Batch *b, int count)
{
    if (!n->device)
        return;
    n->device->ahead = b;
    n->device->nahead = count;
}

int net_steps_now(const Net *n, int64_t wanted)
{
    const int most = net_steps_most(n);
    int now = 1;
    if (n->p->steps && wanted > 1)
        now = wanted < most ? (int)wanted : most;
    while (!n->p->steps && 2 * now <= most && 2 * now <= wanted)
        now *= 2;
    return now;
}

/* Records the launches of `count` steps once, then plays them as one launch; sums over ranks are
 * part of the recording. */
static void play_steps(Net *n, const View *v, int count)
{
    Remote *remote = n->device->remote;
    int list = REMOTE_TRAIN;
    while (1 << (list - REMOTE_TRAIN) < count)
        list++;
    if (remote_play(remote, list))
        return;
    for (int i = 0; i < count; i++) {
        launch_phases(n, &v[i].rt);
        launch_updates(n, &v[i].rt);
    }
    remote_played(remote, list);
}

/* Metrics of each step of a launch.  Returns how many steps have a finite loss on all ranks.  If
 * another rank's loss was the first that is not finite, this rank's later updates are void. */
static int finite_steps(Net *n, const View *v, int count)
{
    int mine = count;
    for (int i = 0; i < count; i++) {
        remote_metrics(n->device->remote, i, n->slot, &n->scaling);
        if (mine == count && !report_finite(n, &v[i].rt))
            mine = i;
        report_write(n, i, count);
    }
    const int all = report_exchange(n);
    n->device->of_others = all < mine;
    return all;
}

int net_steps(Net *n, const Batch *b, const Hyper *h, int count)
{
    struct NetDevice *d = n->device;
    if (!d->step)
        d->step = rt_alloc(sizeof(View) * (size_t)net_steps_most(n));
    View *v = d->step;
    n->comm->step = h->step;
    for (int i = 0; i < count; i++) {
        v[i] = net_view(n, &b[i], h[i], n->first, n->shards);
        v[i].rt.scored = data_scored(n->p, &b[i]);
        v[i].rt.weighted = data_weighted(n->p, &b[i]);
        v[i].rt.grad = n->reduced ? remote_grad(d->remote) : NULL;
    }
    remote_begin_steps(d->remote, v, sizeof *v, b, count);
    if (mapped_broken()) /* a file broke while samples were gathered: nothing was launched */
        return 0;
    if (n->p->steps)
        remote_steps(d->remote, count);
    else
        play_steps(n, v, count);
    prefetch(n);
    remote_wait(d->remote, count);
    const int done = finite_steps(n, v, count);
    if (n->average && done > 0)
        average_stepped(n->average);
    return done;
}

void net_step_metrics(Net *n, int i)
{
    remote_metrics(n->device->remote, i, n->slot, &n->scaling);
    report_read(n, i);
}

void net_await_failure(Net *n)
{
    char *here = rt_alloc((size_t)n->comm->size);
    if (n->device && n->device->of_others)
        comm_gather(n->comm, here, 1, "a step whose loss is not finite");
    free(here);
}

static bool device_step(Net *n, const Batch *b, Hyper h)
{
    if (net_steps(n, b, &h, 1) < 1)
        return false;
    net_step_metrics(n, 0);
    return true;
}

/* ---- gradients and evaluation */

static bool device_gradients(Net *n, View *v, const Batch *b)
{
    Remote *remote = n->device->remote;
    report_clear(n);
    v->rt.scored = data_scored(n->p, b);
    v->rt.weighted = data_weighted(n->p, b);
    if (n->reduced)
        v->rt.grad = remote_grad(remote);
    device_load(n, v, b);
    launch_phases(n, &v->rt);
    remote_wait(remote, 1);
    remote_metrics(remote, 0, n->slot, &n->scaling);
    if (!report_finite(n, &v->rt))
        return false;
    report_post(n);
    report_wait(n);
    for (int i = 0; i < n->p->nbucket; i++)
        remote_await(remote, i);
    remote_gradients(remote, n->grad);
    return true;
}

/* Evaluates all shards, also those without a sample that counts, so that the launches are the same
 * for each batch. */
static void device_evaluate(Net *n, View *v, const Batch *b, void *output)
{
    Remote *remote = n->device->remote;
    remote_begin(remote, &v->rt, sizeof *v, b, output != NULL);
    if (!remote_play(remote, REMOTE_TEST)) {
        for (int i = 0; i < n->p->ntest; i++)
            launch(n, &v->rt, &n->p->test[i], 0, phase_units(n, &v->rt, &n->p->test[i]));
        remote_played(remote, REMOTE_TEST);
    }
    prefetch(n);
    remote_wait(remote, 1);
    remote_metrics(remote, 0, n->slot, &n->scaling);
    if (output)
        remote_output(remote, output);
}

const struct NetOps net_on_device = {.map = device_map,
                                     .step = device_step,
                                     .gradients = device_gradients,
                                     .evaluate = device_evaluate,
                                     .load = device_load,
                                     .changed = device_changed,
                                     .fetch = device_fetch};
