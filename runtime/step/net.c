/* net.c -- see net.h: a program's memory, its parts of the batch, and the operations on it.
 *
 * A rank computes its shards.  The gradients of each part of its shards are added in the buffer of
 * this part.  The buffers are added in the fixed tree, in this process and between ranks, and every
 * rank makes the same update.  So no bit depends on the number of ranks, or of groups.  on_host.c
 * and on_device.c run the phases.
 */
#include "step/net.h"
#include "base/error.h"
#include "base/memory.h"
#include "step/average.h"
#include "step/step.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_divides(const RtProgram *p, int ranks, const char *what)
{
    char fit[256] = "";
    if (p->shards % ranks == 0)
        return;
    for (int g = 1; g <= p->shards; g++)
        if (p->shards % g == 0 && strlen(fit) < 200)
            snprintf(fit + strlen(fit), sizeof fit - strlen(fit), "%s%d", *fit ? ", " : "", g);
    if (p->shards == 1)
        rt_die("%s %d does not fit a batch of one shard: build with --shards %d, or a multiple of "
               "it (batch_norm then computes its statistics for each shard)",
               what, ranks, ranks);
    rt_die("%s %d does not fit %d shards: use one of %s; or build with another --shards", what,
           ranks, p->shards, fit);
}

/* Finds the parts of this rank's shards; with groups, the parts of each simulated rank's shards. */
static void find_parts(Net *n, int groups)
{
    const int all = n->p->shards, ranks = n->comm->size * groups, each = all / ranks;
    n->part = rt_alloc(sizeof *n->part * TREE_NODES * (size_t)groups);
    for (int g = 0; g < groups; g++)
        n->nparts +=
            tree_nodes((n->comm->rank * groups + g) * each, each, all, n->part + n->nparts);
}

int net_regions(const RtProgram *p, int threads, int shards)
{
    if (p->device)
        return 1;
    const bool alone = shards == p->shards && p->fused_update;
    RtTeamCost *cost = rt_alloc(sizeof *cost * (size_t)(p->ntrain + 1));
    int n = 0;
    for (int i = 0; i < p->ntrain; i++)
        if (p->train[i].per_slice)
            cost[n++] =
                (RtTeamCost){p->train[i].unit_us, p->train[i].alone_us, p->train[i].barriers};
    const int regions =
        rt_regions(p->fixed_bytes + shards * p->shard_bytes + (alone ? 0 : p->grad_bytes),
                   p->thread_bytes, p->scratch_bytes, shards * p->slices, threads, cost, n);
    free(cost);
    return regions;
}

/* Bytes before the gradients. */
static int64_t shared_bytes(const RtProgram *p, int threads, int shards)
{
    const int regions = net_regions(p, threads, shards);
    return memory_round(p->fixed_bytes) + shards * memory_round(p->shard_bytes) +
           regions * memory_round(p->thread_bytes) +
           (p->device || threads == regions ? 0 : threads * memory_round(p->scratch_bytes));
}

int64_t net_bytes_alone(const RtProgram *p, int threads)
{
    return shared_bytes(p, threads, p->shards) +
           (p->fused_update ? 0 : memory_round(p->grad_bytes));
}

int64_t net_bytes(const Net *n)
{
    return shared_bytes(n->p, pool_threads(n->pool), n->shards) +
           (n->reduced ? n->nparts * n->grad_bytes : 0) + n->sum_bytes;
}

Net *net_new(const RtProgram *p, Pool *pool, Comm *comm, int groups, bool keep_gradients)
{
    check_divides(p, groups, "--groups");
    check_divides(p, comm->size, "the number of ranks");
    if (groups > 1 && comm->size > 1)
        rt_die("--groups computes as several ranks would, in one process: leave it out with %d "
               "ranks",
               comm->size);
    Net *n = rt_alloc(sizeof *n);
    const int shards = p->shards / comm->size;
    *n = (Net){.p = p,
               .pool = pool,
               .comm = comm,
               .ops = p->device ? &net_on_device : &net_on_host,
               .first = comm->rank * shards,
               .shards = shards,
               .shard_bytes = memory_round(p->shard_bytes),
               .thread_bytes = memory_round(p->thread_bytes),
               .grad_bytes = memory_round(p->grad_bytes)};
    find_parts(n, groups);
    n->reduced = keep_gradients || n->nparts > 1 || comm->size > 1 || !p->fused_update;
    n->ops->map(n);
    report_open(n);
    net_scale(n, 0, -1);
    n->wrong = rt_alloc(sizeof *n->wrong);
    return n;
}

int net_metric_index(const RtProgram *p, const char *name)
{
    for (int i = 0; i < p->nmetric; i++)
        if (strcmp(p->metric[i], name) == 0)
            return i;
    return -1;
}

void net_changed(Net *n)
{
    if (n->ops->changed)
        n->ops->changed(n);
}

void net_settle(Net *n)
{
    if (n->ops->settle)
        n->ops->settle(n);
}

void net_fetch(Net *n)
{
    net_settle(n);
    if (n->ops->fetch)
        n->ops->fetch(n);
}

void net_average_open(Net *n)
{
    n->average = average_new(n->p, n->pool, n->fixed);
}

void net_average_epoch(Net *n, int64_t epochs)
{
    if (!n->average)
        return;
    net_fetch(n);
    average_epoch(n->average, n->fixed, epochs);
}

void net_show_average(Net *n, bool shown)
{
    Average *a = n->average;
    if (!a || !a->begun || a->shown == shown)
        return;
    net_fetch(n);
    average_exchange(a, n->fixed);
    net_changed(n);
}

bool net_step(Net *n, const Batch *b, Hyper h)
{
    n->comm->step = h.step;
    return n->ops->step(n, b, h);
}

bool net_gradients(Net *n, const Batch *b)
{
    View v = net_view(n, b, (Hyper){0, 0}, n->first, n->shards);
    net_settle(n);
    n->comm->step = 0;
    return n->ops->gradients(n, &v, b);
}

void net_evaluate(Net *n, const Batch *b, void *output)
{
    View v = net_view(n, b, (Hyper){0, 0}, n->first, n->shards);
    net_settle(n);
    report_clear(n);
    n->ops->evaluate(n, &v, b, output);
    report_post(n);
    report_wait(n);
}

int net_first_nonfinite(Net *n, const Batch *b)
{
    View v = net_view(n, b, (Hyper){0, 0}, n->first, n->shards);
    int first = -1;
    net_settle(n);
    if (n->ops->load)
        n->ops->load(n, &v, b);
    for (int phase = 0; first < 0 && phase < n->p->nforward; phase++)
        for (int i = 0; i < n->shards * n->p->slices; i++) {
            const int at = n->p->nonfinite[phase](&v.rt, n->thread, i);
            if (at >= 0 && (first < 0 || at < first))
                first = at;
        }
    return first;
}
