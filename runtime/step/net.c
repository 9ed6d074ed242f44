/* net.c -- a step: phases one after another, each shared out over the threads; sums over shards
 * in the fixed tree.
 *
 * A rank runs the phases of slices for all of its shards, and the sums for each part of them into a gradient buffer of
 * the part's own; the buffers are added as the tree goes, here and between ranks, and every rank does the same
 * update. What a phase of slices needs of the whole batch (RtKnown) all ranks tell each other before it. Between ranks the buffer goes bucket by bucket: added while the phases behind go on, those
 * of the next step's forward pass too, up to the first that needs the bucket's update. With one part and one rank the update happens inside the gradient phases instead: the
 * same arithmetic. So no bit depends on the number of ranks, or of groups.
 */
#include "step/net.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "device/remote.h"
#include "measure/ticks.h"
#include "step/grad.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rt as a program in double sees it: only `opt`, at the end, is larger. */
typedef struct Opt64 {
    double lr, decay, momentum, rho, beta1, beta2, eps, bias1, bias2, clip_value;
    bool nesterov;
} Opt64;
typedef union View {
    Rt rt;
    char room[sizeof(Rt) + sizeof(Opt64)];
} View;
enum { ROWS_MOST = 64 }; /* that ranks tell each other at once */

_Static_assert(sizeof(real) == sizeof(float),
               "the runtime is compiled without RT_F64, for programs of both types");
_Static_assert(offsetof(Rt, opt) % _Alignof(double) == 0, "opt must stand where both types can");

typedef struct Run {
    const Net *n;
    const Rt *r;
    const RtPhase *phase;
    int first; /* unit */
} Run;

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
               "it "
               "(batch_norm then takes its statistics of each shard)",
               what, ranks, ranks);
    rt_die("%s %d does not fit %d shards: possible are %s; or build with another --shards", what,
           ranks, p->shards, fit);
}

/* The parts of this rank's shards, or of each rank that is played. */
static void find_parts(Net *n, int groups)
{
    const int all = n->p->shards, ranks = n->comm->size * groups, each = all / ranks;
    n->part = rt_alloc(sizeof *n->part * TREE_NODES * (size_t)groups);
    for (int g = 0; g < groups; g++)
        n->nparts +=
            tree_nodes((n->comm->rank * groups + g) * each, each, all, n->part + n->nparts);
}

static int64_t shared_bytes(const RtProgram *p, int threads, int shards)
{
    return memory_round(p->fixed_bytes) + shards * memory_round(p->shard_bytes) +
           threads * memory_round(p->thread_bytes);
}

/* Regions of scratch: one a thread; a device has one. */
static int lanes(const RtProgram *p, int threads)
{
    return p->device ? 1 : threads;
}

int64_t net_bytes_alone(const RtProgram *p, int threads)
{
    return shared_bytes(p, lanes(p, threads), p->shards) +
           (p->fused_update ? 0 : memory_round(p->grad_bytes));
}

int64_t net_bytes(const Net *n)
{
    return shared_bytes(n->p, lanes(n->p, pool_threads(n->pool)), n->shards) +
           (n->reduced ? n->nparts * n->grad_bytes : 0) + n->sum.scratch_bytes;
}

/* A rank's report of a step: its shards' metrics, and whether it was asked to stop. */
static int report_size(const Net *n)
{
    return n->shards * RT_METRICS + 1;
}

/* Steps of one launch. */
static int steps_most(const Net *n)
{
    return n->p->device && n->p->steps_most > 1 ? n->p->steps_most : 1;
}

static void map_here(Net *n, int threads)
{
    n->fixed = memory_map(net_bytes(n), true, "the arena");
    n->shard = n->fixed + memory_round(n->p->fixed_bytes);
    n->thread = n->shard + n->shards * n->shard_bytes;
    n->grad = n->sum.buffer = n->thread + threads * n->thread_bytes;
    n->sum.scratch = n->grad + n->nparts * n->grad_bytes;
}

/* The arena lies on the device; here are copies of what files hold, and of gradients that a command asks for. */
static void map_there(Net *n)
{
    if (n->nparts > 1)
        rt_die("%d shards on %d GPUs: each has to hold 1, 2, 4, 8 ... of them, one node of the "
               "tree in which they are added; build with "
               "--shards %d",
               n->p->shards, n->comm->size, n->comm->size);
    n->fixed = memory_map(memory_round(n->p->fixed_bytes) + n->grad_bytes, true,
                          "copies of the parameters");
    n->grad = n->fixed + memory_round(n->p->fixed_bytes);
    n->remote = remote_new(n->p, n->fixed, n->reduced, n->comm);
    net_samples(n, NULL, 1);
    n->shard = remote_shard(n->remote);
    n->thread = remote_scratch(n->remote);
}

/* When the units of sums are done, one after the other; NULL: all alike. */
static double *units_until(const RtProgram *p)
{
    int units = 0, unit = 0;
    for (int i = 0; i < p->nrange; i++)
        units += p->range[i].units;
    double *until = units > 0 ? rt_alloc(sizeof *until * (size_t)(units + 1)) : NULL;
    for (int i = 0; i < p->nrange; i++)
        for (int k = 0; k < p->range[i].units; k++, unit++)
            until[unit + 1] = until[unit] + p->range[i].predicted / p->range[i].units;
    return until;
}

Net *net_new(const RtProgram *p, Pool *pool, Comm *comm, int groups, bool keep_gradients)
{
    check_divides(p, groups, "--groups");
    check_divides(p, comm->size, "the number of ranks");
    if (groups > 1 && comm->size > 1)
        rt_die("--groups computes as several ranks would, in one process: leave it out with %d ranks", comm->size);
    Net *n = rt_alloc(sizeof *n);
    const int shards = p->shards / comm->size, threads = pool_threads(pool);
    *n = (Net){.p = p,
               .pool = pool,
               .comm = comm,
               .first = comm->rank * shards,
               .shards = shards,
               .shard_bytes = memory_round(p->shard_bytes),
               .thread_bytes = memory_round(p->thread_bytes),
               .grad_bytes = memory_round(p->grad_bytes)};
    find_parts(n, groups);
    n->reduced = keep_gradients || n->nparts > 1 || comm->size > 1 || !p->fused_update;
    n->sum = (CommSum){.next = n->grad_bytes,
                       .n = p->grad_bytes / p->real_bytes,
                       .real_bytes = p->real_bytes,
                       .shards = p->shards,
                       .places = p->nbucket};
    if (!p->device)
        comm_sum_plan(comm, &n->sum);
    comm_posts(comm, p->nbucket + 1);
    if (p->device)
        map_there(n);
    else
        map_here(n, threads);
    n->slot = rt_alloc(sizeof *n->slot * RT_METRICS * (size_t)(shards * p->slices));
    n->report = rt_alloc(sizeof *n->report * (size_t)(report_size(n) * comm->size * steps_most(n)));
    n->end = rt_alloc(sizeof *n->end * (size_t)threads);
    n->until = units_until(p);
    n->partial = rt_alloc(sizeof *n->partial * (size_t)grad_blocks(p));
    net_scale(n, 0, -1);
    n->posted = rt_alloc(sizeof *n->posted * (size_t)(p->nbucket + 1));
    n->late = rt_alloc(sizeof *n->late * (size_t)(p->nbucket + 1));
    n->before = rt_alloc(sizeof(View));
    n->wrong = rt_alloc(sizeof *n->wrong);
    n->leaf = rt_alloc(sizeof *n->leaf * (size_t)p->shards);
    for (int s = 0; s < p->shards; s++)
        n->leaf[s] = (Node){s, 1, 0};
    return n;
}

int net_metric_index(const RtProgram *p, const char *name)
{
    for (int i = 0; i < p->nmetric; i++)
        if (strcmp(p->metric[i], name) == 0)
            return i;
    return -1;
}

/* skipped: steps that the optimizer knows nothing of. */
static void set_opt(const RtProgram *p, Rt *r, Hyper h, double skipped)
{
    const RtRecipe *q = &p->recipe;
    const double t = (double)h.step + 1 - skipped;
    const Opt64 o =
        {h.lr,   q->weight_decay,      q->momentum,          q->rho,        q->beta1,   q->beta2,
         q->eps, 1 - pow(q->beta1, t), 1 - pow(q->beta2, t), q->clip_value, q->nesterov};
    if (p->real_bytes == 8)
        memcpy(&r->opt, &o, sizeof o);
    else
        r->opt = (RtOpt){(float)o.lr,    (float)o.decay,      (float)o.momentum, (float)o.rho,
                         (float)o.beta1, (float)o.beta2,      (float)o.eps,      (float)o.bias1,
                         (float)o.bias2, (float)o.clip_value, o.nesterov};
}

/* ---- the loss's scale */

static RtScaling *scaling_here(const Net *n)
{
    return (RtScaling *)(n->fixed + n->p->scaling->offset);
}

void net_scale(Net *n, double scale, int64_t every)
{
    enum { SCALE = 65536, EVERY = 2000 };
    if (!n->p->scaling)
        return;
    n->scaling = (RtScaling){.scale = scale > 0 ? (float)scale : SCALE,
                             .every = every >= 0 ? (float)every : EVERY};
    *scaling_here(n) = n->scaling;
    remote_changed(n->remote);
}

void net_scale_resumed(Net *n)
{
    if (!n->p->scaling)
        return;
    const RtScaling was = *scaling_here(n), now = n->scaling;
    if (!(was.scale >= RT_SCALE_LEAST && was.scale <= RT_SCALE_MOST && was.good >= 0 &&
          was.skipped >= 0))
        rt_die("the checkpoint's loss scale, %.10g, is not possible", was.scale);
    if (was.every != now.every)
        rt_die("the checkpoint was made with --loss-scale-steps %.0f, this run has %.0f",
               was.every, now.every);
    if (now.every == 0 && was.scale != now.scale)
        rt_die("the checkpoint was made with the fixed --loss-scale %.10g, this run has %.10g",
               was.scale, now.scale);
    n->scaling = was;
}

/* The step as shards first .. first + count - 1 see it. */
static View view(const Net *n, const Batch *b, Hyper h, int first, int count)
{
    const RtProgram *p = n->p;
    View v;
    memset(&v, 0, sizeof v);
    v.rt = (Rt){.fixed = n->fixed,
                .shard = n->shard + (first - n->first) * n->shard_bytes,
                .shard_bytes = n->shard_bytes,
                .shards = count,
                .first_shard = first,
                .x = b->x,
                .x_stride = b->x_stride,
                .x_type = b->x_type,
                .vocab = p->vocab > 0 ? p->vocab : INT64_MAX,
                .wrong = n->remote ? NULL : n->wrong,
                .x_scale = b->x_scale,
                .x_height = b->x_height,
                .x_width = b->x_width,
                .label = b->label,
                .label_stride = b->label_stride,
                .label_type = b->label_type,
                .index = b->index,
                .valid = b->valid,
                .scored = (double)p->labels,
                .seed = b->seed,
                .epoch = b->epoch,
                .metric = n->slot + RT_METRICS * (first - n->first) * p->slices,
                .loss_scale = 1.0 / p->batch,
                .skipped = n->scaling.skipped};
    set_opt(p, &v.rt, h, (double)n->scaling.skipped);
    return v;
}

static void unit(void *arg, int thread, int unit)
{
    const Run *run = arg;
    ticks_unit_begin(run->n->ticks, thread);
    run->phase->run(run->r, run->n->thread + thread * run->n->thread_bytes, run->first + unit);
    ticks_unit_end(run->n->ticks, thread);
}

/* Units of sums are small and large: each thread begins with a range that takes as long, not with one of as many.
 * Otherwise the one with the small units takes large ones from the others, which have their weights in their
 * caches, and not the same ones in every step. */
static void share_out(const Net *n, int first, int units)
{
    const int threads = pool_threads(n->pool);
    const double *until = n->until + first, all = until[units] - until[0];
    int unit = 0;
    for (int t = 0; t < threads; t++) {
        const double goal = until[0] + all * (t + 1) / threads;
        while (unit < units && (t == threads - 1 || (until[unit] + until[unit + 1]) / 2 < goal))
            unit++;
        n->end[t] = unit;
    }
}

static void run_units(const Net *n, const Rt *r, const RtPhase *phase, int first, int units)
{
    Run run = {n, r, phase, first};
    for (int i = 0; n->remote && i < units; i++) /* launches: the device shares them out */
        phase->run(r, n->thread, first + i);
    if (n->remote)
        return;
    ticks_phase_begin(n->ticks);
    if (phase->to_grad && n->until) {
        share_out(n, first, units);
        pool_run_shares(n->pool, unit, &run, n->end);
    } else {
        pool_run(n->pool, unit, &run, units);
    }
    ticks_phase_end(n->ticks);
}

static void run_phase(const Net *n, const Rt *r, const RtPhase *phase)
{
    run_units(n, r, phase, 0, phase->per_slice ? r->shards * n->p->slices : phase->count);
}

/* Slices that hold a sample which counts. */
static int valid_slices(const Net *n, const Rt *r)
{
    const RtProgram *p = n->p;
    const int shard = p->batch / p->shards, slice = shard / p->slices, all = r->shards * p->slices,
              valid = (r->valid - r->first_shard * shard + slice - 1) / slice;
    return valid < 0 ? 0 : valid < all ? valid : all;
}

static double *report_of(const Net *n, int rank)
{
    return n->report + (rank * n->reports + n->at) * report_size(n);
}

/* Where the metrics of shard s of the batch stand, once all ranks have reported. */
static double *reported(const Net *n, int s)
{
    return report_of(n, s / n->shards) + s % n->shards * RT_METRICS;
}

static void add_metrics(void *arg, int to, int from)
{
    const Net *n = arg;
    for (int m = 0; m < RT_METRICS; m++)
        reported(n, to)[m] += reported(n, from)[m];
}

/* What this rank has to report of the step at hand, slices in order within a shard. */
static void write_report(Net *n)
{
    const int size = report_size(n), slices = n->p->slices;
    double *mine = report_of(n, n->comm->rank);
    memset(mine, 0, sizeof *mine * (size_t)size);
    for (int i = 0; i < n->shards * slices * RT_METRICS; i++)
        mine[i / RT_METRICS / slices * RT_METRICS + i % RT_METRICS] += n->slot[i];
    mine[size - 1] = n->stop;
}

/* Tells the other ranks all of it. */
static void tell_reports(Net *n)
{
    n->told = comm_post_gather(n->comm, n->report,
                               (int64_t)sizeof *n->report * report_size(n) * n->reports,
                               "the metrics of a step");
}

static void report(Net *n)
{
    n->reports = 1, n->at = 0;
    write_report(n);
    tell_reports(n);
}

/* Shards of all ranks in the tree: of the step at hand. */
static void add_reports(Net *n)
{
    n->all_stop = false;
    for (int r = 0; r < n->comm->size; r++)
        n->all_stop |= report_of(n, r)[report_size(n) - 1] != 0;
    tree_add(n->leaf, n->p->shards, add_metrics, n);
    memcpy(n->metric, reported(n, 0), sizeof n->metric);
}

static void sum_metrics(Net *n)
{
    comm_await(n->comm, n->told);
    add_reports(n);
    comm_started(n->comm);
}

static void clear_metrics(Net *n)
{
    memset(n->slot, 0, sizeof *n->slot * RT_METRICS * (size_t)(n->shards * n->p->slices));
}

/* Of the shards that r is about; of samples that were not there it says nothing. */
static bool finite_loss(const Net *n, const Rt *r)
{
    const int loss = net_metric_index(n->p, "loss");
    double sum = 0;
    const double *slot = n->slot + RT_METRICS * (r->first_shard - n->first) * n->p->slices;
    for (int i = 0; loss >= 0 && i < r->shards * n->p->slices; i++)
        sum += slot[i * RT_METRICS + loss];
    return isfinite(sum) && (n->remote || !(mapped_broken() || *n->wrong));
}

static const RtPhase *gradient_phase(const RtProgram *p)
{
    const RtPhase *phase = p->train;
    while (!phase->to_grad)
        phase++;
    return phase;
}

/* The step as part i sees it: its shards, its gradient buffer. */
static View of_part(const Net *n, const View *all, int i)
{
    View v = *all;
    v.rt.shard = n->shard + (n->part[i].first - n->first) * n->shard_bytes;
    v.rt.first_shard = n->part[i].first;
    v.rt.shards = n->part[i].count;
    v.rt.grad = all->rt.grad + i * n->grad_bytes;
    return v;
}

/* The sums of a bucket, part by part; they are on their way to the other ranks from here. */
static void run_bucket(Net *n, const View *all, int bucket, int first)
{
    const RtBucket *b = &n->p->bucket[bucket];
    for (int i = 0; i < n->nparts; i++) {
        const View v = of_part(n, all, i);
        run_units(n, &v.rt, gradient_phase(n->p), first, b->units);
    }
    if (n->remote) {
        remote_sum(n->remote, bucket, b->offset / n->p->real_bytes, b->bytes / n->p->real_bytes);
        return;
    }
    char during[64];
    snprintf(during, sizeof during, "the sum of gradients, bucket %d of %d", bucket + 1,
             n->p->nbucket);
    n->posted[bucket] = comm_post_sum(n->comm, &n->sum, bucket, b->offset / n->p->real_bytes,
                                      b->bytes / n->p->real_bytes, during);
}

/* What this rank's shards have behind a phase, for all ranks; from here on each has it of every shard of the batch. */
static void tell(Net *n, const Rt *r, const RtPhase *phase)
{
    CommPart part[ROWS_MOST];
    char during[64];
    run_units(n, r, &(RtPhase){.run = phase->known}, 0, r->shards);
    if (n->remote) {
        remote_gather(n->remote, phase->row, phase->nrow);
        return;
    }
    snprintf(during, sizeof during, "the statistics of the batch, phase %d of %d",
             (int)(phase - n->p->train) + 1, n->p->ntrain);
    for (int i = 0; i < phase->nrow; i += ROWS_MOST) {
        int k = 0;
        for (; k < ROWS_MOST && i + k < phase->nrow; k++)
            part[k] = (CommPart){n->fixed + phase->row[i + k].offset,
                                 n->shards * phase->row[i + k].bytes};
        comm_gather_parts(n->comm, part, k, during);
    }
}

/* ---- updates from sums */

static const RtPhase *update_phase(const RtProgram *p)
{
    for (int i = 0; i < p->ntrain; i++)
        if (p->train[i].from_grad)
            return &p->train[i];
    return NULL;
}

static void await_bucket(Net *n, int bucket)
{
    if (n->remote)
        remote_await(n->remote, bucket);
    else
        comm_await(n->comm, n->posted[bucket]);
}

/* It needs that bucket's sum alone. */
static void update(Net *n, const Rt *r, int bucket)
{
    const RtProgram *p = n->p;
    const RtPhase *phase = update_phase(p);
    int unit = 0;
    for (int b = 0; b < bucket; b++)
        unit += p->bucket[b].updates;
    await_bucket(n, bucket);
    if (phase)
        run_units(n, r, phase, unit, p->bucket[bucket].updates);
}

/* Clipping by norm needs all of them. */
static void update_all(Net *n, const Rt *r)
{
    const RtProgram *p = n->p;
    if (!n->reduced)
        return;
    if (p->recipe.clip_norm > 0 && !n->remote) { /* a device's update finds the norm by itself */
        for (int b = 0; b < p->nbucket; b++)
            await_bucket(n, b);
        grad_clip(p, n->pool, n->grad, n->partial, p->recipe.clip_norm);
    }
    for (int b = 0; b < p->nbucket; b++)
        update(n, r, b);
}

/* Whether updates may wait for the next step. */
static bool puts_off(const Net *n)
{
    return n->comm->size > 1 && !n->remote && n->p->recipe.clip_norm == 0;
}

static void put_off(Net *n, const View *v)
{
    memcpy(n->before, v, sizeof *v);
    for (int b = 0; b < n->p->nbucket; b++)
        n->late[b] = true;
}

/* What the step before has left of updates, of buckets that a phase needs: those of the first layers, the last bucket, are due first. */
static void catch_up(Net *n, int phase)
{
    const View *before = n->before;
    for (int b = n->p->nbucket - 1; b >= 0; b--)
        if (n->late[b] && n->p->bucket[b].due <= phase) {
            update(n, &before->rt, b);
            n->late[b] = false;
        }
}

void net_settle(Net *n)
{
    catch_up(n, n->p->ntrain);
}

/* ---- the step */

/* Forward, backward and sums; with r->grad NULL the update too. The loss is looked at before any phase
 * that could touch a parameter, and ranks tell each other their metrics before the first sum. */
static bool run_phases(Net *n, const View *all)
{
    const RtProgram *p = n->p;
    const Rt *r = &all->rt;
    int bucket = 0, unit = 0;
    for (int i = 0; i < p->ntrain; i++) {
        const RtPhase *phase = &p->train[i];
        if (phase->from_grad || (phase->to_grad && r->grad))
            continue;
        catch_up(n, i);
        run_phase(n, r, phase);
        if (phase->per_slice && !n->remote && !finite_loss(n, r))
            return false;
        if (phase->known)
            tell(n, r, phase);
        for (; r->grad && bucket < p->nbucket && p->bucket[bucket].ready <= i; bucket++) {
            if (bucket == 0 && !n->remote)
                report(n);
            run_bucket(n, all, bucket, unit);
            unit += p->bucket[bucket].units;
        }
    }
    if (!r->grad && !n->remote)
        report(n);
    return true;
}

/* On a device nobody looks at the loss in between. */
static bool run_there(Net *n, const View *all)
{
    run_phases(n, all);
    remote_wait(n->remote, 1);
    remote_metrics(n->remote, 0, n->slot, &n->scaling);
    return finite_loss(n, &all->rt);
}

/* All sums of the step: this rank's, then with the other ranks', which goes on when this returns. A rank whose loss is not
 * finite goes no further, and so the others do not either. */
static bool run_sums(Net *n, View *v, const Batch *b)
{
    clear_metrics(n);
    v->rt.scored = data_scored(n->p, b);
    if (n->reduced)
        v->rt.grad = n->remote ? remote_grad(n->remote) : n->grad;
    if (n->remote) {
        remote_begin(n->remote, &v->rt, sizeof *v, b, false);
        remote_ready(n->remote, 1);
    }
    if (!(n->remote ? run_there(n, v) : run_phases(n, v)))
        return false;
    if (n->remote)
        report(n);
    if (n->comm->size == 1 && n->nparts > 1)
        grad_tree(n->p, n->pool, n->grad, n->grad_bytes, n->part, n->nparts);
    return true;
}

bool net_gradients(Net *n, const Batch *b)
{
    View v = view(n, b, (Hyper){0, 0}, n->first, n->shards);
    net_settle(n);
    n->comm->step = 0;
    if (!run_sums(n, &v, b))
        return false;
    sum_metrics(n);
    for (int i = 0; i < n->p->nbucket; i++)
        await_bucket(n, i);
    if (n->remote)
        remote_gradients(n->remote, n->grad);
    return true;
}

int net_steps_most(const Net *n)
{
    const int most = steps_most(n);
    return n->steps_most > 0 && n->steps_most < most ? n->steps_most : most;
}

void net_samples(Net *n, const char *where, int64_t steps)
{
    n->steps_most = (int)steps;
    if (n->remote)
        remote_samples(n->remote, n->pool, where, net_steps_most(n));
}

void net_ahead(Net *n, const Batch *b, int count)
{
    n->ahead = b;
    n->nahead = count;
}

/* While the launch runs. */
static void look_ahead(Net *n)
{
    remote_ahead(n->remote, n->ahead, n->nahead);
    n->nahead = 0;
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

/* As launches, one behind the other, which are recorded and then played as one.  The update looks at the loss itself, so that a step is one
 * list, sums over ranks among them. */
static void launch_steps(Net *n, const View *v, int count)
{
    int list = REMOTE_TRAIN;
    while (1 << (list - REMOTE_TRAIN) < count)
        list++;
    if (remote_play(n->remote, list))
        return;
    for (int i = 0; i < count; i++) {
        run_phases(n, &v[i]);
        update_all(n, &v[i].rt);
    }
    remote_played(n->remote, list);
}

/* Tells the other ranks of all steps, and looks at their losses: how many steps are finite everywhere. */
static int finite_steps(Net *n, int count)
{
    const int loss = net_metric_index(n->p, "loss");
    tell_reports(n);
    comm_await(n->comm, n->told);
    comm_started(n->comm);
    for (n->at = 0; n->at < count; n->at++)
        for (int s = 0; loss >= 0 && s < n->p->shards; s++)
            if (!isfinite(reported(n, s)[loss]))
                return n->at;
    return count;
}

/* What the launch has left of each step.  Where another rank's loss is not finite before this one's, what was updated here since was so in vain. */
static int look_at_steps(Net *n, const View *v, int count)
{
    int mine = count;
    n->reports = count;
    for (n->at = 0; n->at < count; n->at++) {
        remote_metrics(n->remote, n->at, n->slot, &n->scaling);
        if (mine == count && !finite_loss(n, &v[n->at].rt))
            mine = n->at;
        write_report(n);
    }
    const int all = finite_steps(n, count);
    n->of_others = all < mine;
    return all;
}

void net_leave_word(Net *n)
{
    char *here = rt_alloc((size_t)n->comm->size);
    if (n->of_others)
        comm_gather(n->comm, here, 1, "a step whose loss is not finite");
    free(here);
}

int net_steps(Net *n, const Batch *b, const Hyper *h, int count)
{
    if (!n->step)
        n->step = rt_alloc(sizeof(View) * (size_t)net_steps_most(n));
    View *v = n->step;
    n->comm->step = h->step;
    for (int i = 0; i < count; i++) {
        v[i] = view(n, &b[i], h[i], n->first, n->shards);
        v[i].rt.scored = data_scored(n->p, &b[i]);
        v[i].rt.grad = n->reduced ? remote_grad(n->remote) : NULL;
    }
    remote_begin_steps(n->remote, v, sizeof *v, b, count);
    if (mapped_broken()) /* while the samples were gathered: nothing has been launched */
        return 0;
    if (n->p->steps)
        remote_steps(n->remote, count);
    else
        launch_steps(n, v, count);
    look_ahead(n);
    remote_wait(n->remote, count);
    return look_at_steps(n, v, count);
}

void net_step_metrics(Net *n, int i)
{
    remote_metrics(n->remote, i, n->slot, &n->scaling);
    n->at = i;
    add_reports(n);
}

bool net_step(Net *n, const Batch *b, Hyper h)
{
    if (n->remote) {
        if (net_steps(n, b, &h, 1) < 1)
            return false;
        net_step_metrics(n, 0);
        return true;
    }
    View v = view(n, b, h, n->first, n->shards);
    n->comm->step = h.step;
    if (!run_sums(n, &v, b))
        return false;
    if (puts_off(n))
        put_off(n, &v);
    else
        update_all(n, &v.rt);
    sum_metrics(n);
    return true;
}

/* All shards, also those without a sample that counts: the list is the same each time. */
static void evaluate_there(Net *n, Rt *r, int64_t room, const Batch *b, void *output)
{
    const RtProgram *p = n->p;
    remote_begin(n->remote, r, room, b, output != NULL);
    if (!remote_play(n->remote, REMOTE_TEST)) {
        for (int i = 0; i < p->ntest; i++)
            run_phase(n, r, &p->test[i]);
        remote_played(n->remote, REMOTE_TEST);
    }
    look_ahead(n);
    remote_wait(n->remote, 1);
    remote_metrics(n->remote, 0, n->slot, &n->scaling);
    if (output)
        remote_output(n->remote, output);
}

void net_evaluate(Net *n, const Batch *b, void *output)
{
    View v = view(n, b, (Hyper){0, 0}, n->first, n->shards);
    net_settle(n);
    v.rt.output = output;
    clear_metrics(n);
    if (n->remote)
        evaluate_there(n, &v.rt, sizeof v, b, output);
    for (int i = 0; !n->remote && i < n->p->ntest; i++)
        run_units(n, &v.rt, &n->p->test[i], 0,
                  n->p->test[i].per_slice ? valid_slices(n, &v.rt) : n->p->test[i].count);
    report(n);
    sum_metrics(n);
}

Trail net_trail(const RtProgram *p)
{
    const size_t state = (size_t)(p->carried * p->real_bytes);
    return (Trail){.carried = rt_alloc(state + 1),
                   .carry = rt_alloc(state + 1),
                   .cache = rt_alloc((size_t)(p->cached * p->real_bytes) + MEMORY_SLACK)};
}

/* What is made of the parameters alone is made before the first token. */
void net_token(Net *n, Trail *t, int32_t token, void *output)
{
    const uint32_t first = 0;
    const Batch b = {.x = &token,
                     .x_stride = sizeof token,
                     .x_type = RT_I32,
                     .index = &first,
                     .valid = 1};
    View v = view(n, &b, (Hyper){0, 0}, n->first, 1);
    net_settle(n);
    v.rt.output = output;
    v.rt.carried = t->carried, v.rt.carry = t->carry, v.rt.cache = t->cache;
    v.rt.position = t->position++;
    for (int i = 0; i < n->p->ntoken; i++) {
        const RtPhase *phase = &n->p->token[i];
        if (phase->per_slice || v.rt.position == 0)
            run_units(n, &v.rt, phase, 0, phase->per_slice ? 1 : phase->count);
    }
    char *const left = t->carry;
    t->carry = t->carried, t->carried = left;
}

void net_changed(Net *n)
{
    remote_changed(n->remote);
}

void net_fetch(Net *n)
{
    net_settle(n);
    remote_fetch(n->remote);
}

int net_first_nonfinite(Net *n, const Batch *b)
{
    View v = view(n, b, (Hyper){0, 0}, n->first, n->shards);
    int first = -1;
    net_settle(n);
    if (n->remote) {
        remote_begin(n->remote, &v.rt, sizeof v, b, false);
        remote_ready(n->remote, 1);
    }
    for (int phase = 0; first < 0 && phase < n->p->nforward; phase++)
        for (int i = 0; i < n->shards * n->p->slices; i++) {
            const int at = n->p->nonfinite[phase](&v.rt, n->thread, i);
            if (at >= 0 && (first < 0 || at < first))
                first = at;
        }
    return first;
}
