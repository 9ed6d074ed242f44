/* on_host.c -- a step of a program in the host's memory: phases over the threads of the pool, and
 * sums between ranks that overlap with later phases.
 *
 * Ranks add gradients bucket by bucket.  The sum of a bucket starts as soon as its gradients are
 * complete.  It overlaps with later phases, and with the next step's forward pass up to the first
 * phase that needs the bucket's update (RtBucket.due).  With one rank and one part, the update
 * happens inside the phases of gradients instead, by the same arithmetic: no bit depends on the
 * number of ranks.
 */
#include "base/error.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "base/team.h"
#include "measure/ticks.h"
#include "step/average.h"
#include "step/grad.h"
#include "step/step.h"
#include "step/trust.h"
#include <stdio.h>
#include <string.h>

enum {
    ROWS_MOST = 64, /* rows of one exchange of statistics between ranks */
    PAGE = 4096     /* bytes */
};

struct NetHost {
    CommSum sum;
    int64_t *posted;     /* [buckets]: number of the sum (comm_post_sum) */
    bool *late;          /* [buckets]: the bucket's update of the previous step is pending */
    View before;         /* the previous step */
    int64_t before_step; /* number of finished steps before the previous step */
    int regions;         /* thread regions at n->thread */
    char *scratch;       /* [threads][scratch_bytes], if there are more threads than regions */
    int64_t scratch_bytes;
    double *until; /* [units of sums + 1]: predicted ends in us, on one thread; NULL: equal units */
    int *end;      /* [threads]: end of a thread's range of units */
    Barrier *barrier; /* [threads] */
    uint64_t jobs;    /* jobs that teams have computed */
    double *partial;  /* clipping by norm: sum of squares of each block (grad_blocks) */
    Trust *trust;     /* lars, lamb: computes the trust ratios; else NULL */
};

/* ---- memory */

static double *predicted_ends(const RtProgram *p)
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

/* Touches each page that begins in from..to - 1, so that Linux allocates it. */
static void touch_pages(char *arena, int64_t from, int64_t to)
{
    for (int64_t at = (from + PAGE - 1) / PAGE * PAGE; at < to; at += PAGE)
        *(volatile char *)(arena + at) = 0;
}

/* Touches part `part` of `parts` equal parts of the bytes from..to - 1. */
static void touch_part(char *arena, int64_t from, int64_t to, int part, int parts)
{
    touch_pages(arena, from + (to - from) / parts * part,
                part == parts - 1 ? to : from + (to - from) / parts * (part + 1));
}

/* Unit t is for thread t.  Linux allocates a page on the NUMA node of the processor that touches
 * the page first.  A thread touches its own region or its part of its team's region, its scratch,
 * and the parts of shards with the slices that it computes first.  Each thread touches an equal
 * part of the region `fixed` and of gradients: every thread reads the weights, so they are spread
 * over the memory of all sockets. */
static void touch_own(void *arg, int thread, int unit)
{
    (void)thread;
    const Net *n = arg;
    const int threads = pool_threads(n->pool), regions = n->host->regions;
    const int64_t shard = n->shard - n->fixed, own = n->thread - n->fixed,
                  scratch = n->host->scratch - n->fixed, grad = n->grad - n->fixed;
    touch_part(n->fixed, 0, shard, unit, threads);
    if (unit < regions)
        touch_part(n->fixed, shard, own, unit, regions);
    touch_part(n->fixed, own, scratch, unit, threads);
    touch_part(n->fixed, scratch, grad, unit, threads);
    touch_part(n->fixed, grad, net_bytes(n), unit, threads);
}

static void host_map(Net *n)
{
    const RtProgram *p = n->p;
    const int threads = pool_threads(n->pool), buckets = p->nbucket + 1;
    struct NetHost *h = n->host = rt_alloc(sizeof *h);
    h->sum = (CommSum){.next = n->grad_bytes,
                       .n = p->grad_bytes / p->real_bytes,
                       .real_bytes = p->real_bytes,
                       .shards = p->shards,
                       .places = p->nbucket};
    comm_sum_plan(n->comm, &h->sum);
    comm_posts(n->comm, buckets);
    n->sum_bytes = h->sum.scratch_bytes;
    n->fixed = memory_map(net_bytes(n), false, "the arena");
    n->shard = n->fixed + memory_round(p->fixed_bytes);
    n->thread = n->shard + n->shards * n->shard_bytes;
    h->regions = net_regions(p, threads, n->shards);
    h->scratch = n->thread + h->regions * n->thread_bytes;
    h->scratch_bytes = threads > h->regions ? memory_round(p->scratch_bytes) : 0;
    n->grad = h->sum.buffer = h->scratch + threads * h->scratch_bytes;
    h->sum.scratch = n->grad + n->nparts * n->grad_bytes;
    if (pool_crowded(n->pool)) /* touch the memory now, so that a lack of it is found here */
        pool_run(n->pool, touch_own, n, threads);
    else
        pool_each(n->pool, touch_own, n);
    h->posted = rt_alloc(sizeof *h->posted * (size_t)buckets);
    h->late = rt_alloc(sizeof *h->late * (size_t)buckets);
    h->until = predicted_ends(p);
    h->end = rt_alloc(sizeof *h->end * (size_t)threads);
    h->barrier = barriers_new(threads);
    if (!h->barrier)
        rt_die("out of memory for %d threads", threads);
    h->partial = rt_alloc(sizeof *h->partial * (size_t)grad_blocks(p));
    h->trust = trust_new(p);
}

/* ---- phases */

typedef struct Run {
    const Net *n;
    const Rt *r;
    const RtPhase *phase;
    int first; /* index of the first unit */
} Run;

/* The thread region of a unit.  Only units of slice phases use one.  If there are fewer regions
 * than threads, each of these units has its own. */
static char *region_of(const Run *run, int thread, int unit)
{
    const Net *n = run->n;
    const bool enough = n->host->regions == pool_threads(n->pool);
    return n->thread + (enough ? thread : run->phase->per_slice ? unit : 0) * n->thread_bytes;
}

/* The scratch of a member of a team.  A batch that is not full has fewer units than there are
 * regions: then members use the scratch at the end of their own regions, after all values. */
static char *scratch_of(const Net *n, int thread)
{
    const RtProgram *p = n->p;
    return n->host->regions == pool_threads(n->pool)
               ? n->thread + thread * n->thread_bytes + p->thread_bytes - p->scratch_bytes
               : n->host->scratch + thread * n->host->scratch_bytes;
}

static void run_unit(void *arg, int thread, int unit)
{
    const Run *run = arg;
    ticks_unit_begin(run->n->ticks, thread);
    run->phase->run(run->r, region_of(run, thread, unit), run->first + unit);
    ticks_unit_end(run->n->ticks, thread);
}

/* Teams of threads, whose sizes differ by at most one.  Each computes an equal range of units, one
 * after another, in its thread region. */
typedef struct TeamRun {
    Run run;
    int units, teams;
    uint64_t job; /* number of the job, from 1 */
} TeamRun;

/* The first of `items` threads or units of a team. */
static int team_first(int items, int teams, int team)
{
    return (int)((int64_t)items * team / teams);
}

/* Runs the units of team `team`, one after another, in the region of the team. */
static void run_range(const TeamRun *t, int team)
{
    const Net *n = t->run.n;
    const int first = team_first(t->units, t->teams, team),
              end = team_first(t->units, t->teams, team + 1);
    for (int u = first; u < end; u++) {
        if (u > first)
            TEAM_BARRIER; /* a unit may overwrite what another member still reads */
        t->run.phase->run(t->run.r, n->thread + team * n->thread_bytes, t->run.first + u);
    }
}

static void run_member(void *arg, int thread, int unit)
{
    (void)unit;
    const TeamRun *t = arg;
    const Net *n = t->run.n;
    const int threads = pool_threads(n->pool);
    const int team = (int)(((int64_t)(thread + 1) * t->teams - 1) / threads);
    const int first = team_first(threads, t->teams, team);
    const int end = team_first(threads, t->teams, team + 1);
    rt_team = (RtTeam){thread - first, end - first, barriers_at(n->host->barrier, thread, t->job),
                       scratch_of(n, thread)};
    ticks_unit_begin(n->ticks, thread);
    run_range(t, team);
    ticks_unit_end(n->ticks, thread);
    rt_team = (RtTeam){.of = 1};
}

/* Runs the units of team `team`, which has one thread. */
static void run_alone(void *arg, int thread, int team)
{
    const TeamRun *t = arg;
    ticks_unit_begin(t->run.n->ticks, thread);
    run_range(t, team);
    ticks_unit_end(t->run.n->ticks, thread);
}

static RtTeamPlan plan_teams(const Net *n, const RtPhase *phase, int units)
{
    return phase->per_slice && !pool_crowded(n->pool)
               ? teams_plan(phase, units, pool_threads(n->pool), n->host->regions)
               : (RtTeamPlan){units, 0, 0};
}

/* Runs the units of a phase that is not divided in another way.  Members of a team wait for each
 * other, so each needs a processor.  If there are more threads than processors, each thread
 * computes a range of units alone. */
static void run_units(Run run, int units)
{
    const Net *n = run.n;
    const RtTeamPlan plan = plan_teams(n, run.phase, units);
    const int regions = n->host->regions;
    if (run.phase->per_slice && plan.whole > regions && regions < pool_threads(n->pool)) {
        pool_run(n->pool, run_alone, &(TeamRun){run, units, regions, 0}, regions);
        return;
    }
    pool_run(n->pool, run_unit, &run, plan.whole);
    if (plan.whole < units) {
        run.first += plan.whole;
        pool_each(n->pool, run_member,
                  &(TeamRun){run, units - plan.whole, plan.teams, ++n->host->jobs});
    }
}

/* Units of sums differ in size, so each thread begins with a range of the same predicted time, not
 * of the same number of units.  With equal numbers, a thread that has finished its small units
 * would take large units of other threads, and different units in each step.  But the other threads
 * have the weights of these units in their caches. */
static void share_out(const Net *n, int first, int units)
{
    const int threads = pool_threads(n->pool);
    const double *until = n->host->until + first, all = until[units] - until[0];
    int unit = 0;
    for (int t = 0; t < threads; t++) {
        const double goal = until[0] + all * (t + 1) / threads;
        while (unit < units && (t == threads - 1 || (until[unit] + until[unit + 1]) / 2 < goal))
            unit++;
        n->host->end[t] = unit;
    }
}

void host_run(const Net *n, const Rt *r, const RtPhase *phase, int first, int units)
{
    Run run = {n, r, phase, first};
    ticks_phase_begin(n->ticks);
    pool_next(n->pool, phase->what, phase->bytes, phase->local_bytes);
    if (phase->to_grad && n->host->until) {
        share_out(n, first, units);
        pool_run_shares(n->pool, run_unit, &run, n->host->end);
    } else {
        run_units(run, units);
    }
    ticks_phase_end(n->ticks);
}

/* Whether the loss is finite.  Also false after a data file broke or a wrong token was read: the
 * caller finds out which. */
static bool loss_finite(const Net *n, const Rt *r)
{
    return report_finite(n, r) && !(mapped_broken() || *n->wrong);
}

/* The step as part i sees it: its shards, its gradient buffer. */
static View view_of_part(const Net *n, const View *all, int i)
{
    View v = *all;
    v.rt.shard = n->shard + (n->part[i].first - n->first) * n->shard_bytes;
    v.rt.first_shard = n->part[i].first;
    v.rt.shards = n->part[i].count;
    v.rt.grad = all->rt.grad + i * n->grad_bytes;
    return v;
}

/* Adds a bucket's gradients, part by part, and starts their sum over ranks.  first: the bucket's
 * first unit. */
static void sum_bucket(Net *n, const View *all, int bucket, int first)
{
    const RtProgram *p = n->p;
    const RtBucket *b = &p->bucket[bucket];
    char during[64];
    for (int i = 0; i < n->nparts; i++) {
        const View v = view_of_part(n, all, i);
        host_run(n, &v.rt, phase_of_sums(p), first, b->units);
    }
    snprintf(during, sizeof during, "the sum of gradients, bucket %d of %d", bucket + 1,
             p->nbucket);
    n->host->posted[bucket] =
        comm_post_sum(n->comm, &n->host->sum, bucket, b->offset / p->real_bytes,
                      b->bytes / p->real_bytes, during);
}

/* Sends the statistics of this rank's shards to all ranks after a phase, so that each rank has the
 * statistics of all shards of the batch. */
static void exchange_statistics(Net *n, const Rt *r, const RtPhase *phase)
{
    CommPart part[ROWS_MOST];
    char during[64];
    host_run(n, r, &(RtPhase){.run = phase->known}, 0, r->shards);
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

static void await_bucket(const Net *n, int bucket)
{
    comm_await(n->comm, n->host->posted[bucket]);
}

/* Updates from the sum of this bucket alone.  step: finished steps before this one. */
static void update_bucket(Net *n, const Rt *r, int bucket, int64_t step)
{
    const RtPhase *phase = phase_of_updates(n->p);
    await_bucket(n, bucket);
    if (phase)
        host_run(n, r, phase, phase_first_update(n->p, bucket), n->p->bucket[bucket].updates);
    if (n->average)
        average_step(n->average, n->fixed, bucket, step);
}

/* Whether the first update needs the sums of all buckets: for their norm, or to compute all trust
 * ratios at once. */
static bool needs_all_sums(const Net *n)
{
    return n->p->recipe.clip_norm > 0 || n->host->trust;
}

/* Updates from all sums. */
static void update_all(Net *n, const Rt *r, int64_t step)
{
    const RtProgram *p = n->p;
    if (!n->reduced) /* the phases of gradients have updated the weights */
        return;
    for (int b = 0; needs_all_sums(n) && b < p->nbucket; b++)
        await_bucket(n, b);
    if (p->recipe.clip_norm > 0)
        grad_clip(p, n->pool, n->grad, n->host->partial, p->recipe.clip_norm);
    if (n->host->trust)
        trust_compute(n->host->trust, n->pool, r);
    for (int b = 0; b < p->nbucket; b++)
        update_bucket(n, r, b, step);
}

/* Leaves all updates pending for the next step. */
static void defer_updates(Net *n, const View *v, int64_t step)
{
    memcpy(&n->host->before, v, sizeof *v);
    n->host->before_step = step;
    for (int b = 0; b < n->p->nbucket; b++)
        n->host->late[b] = true;
}

/* Makes the pending updates of the previous step that a phase needs.  The last bucket, which has
 * the first layers, is due first. */
static void catch_up(Net *n, int phase)
{
    struct NetHost *h = n->host;
    for (int b = n->p->nbucket - 1; b >= 0; b--)
        if (h->late[b] && n->p->bucket[b].due <= phase) {
            update_bucket(n, &h->before.rt, b, h->before_step);
            h->late[b] = false;
        }
}

static void host_settle(Net *n)
{
    catch_up(n, n->p->ntrain);
}

/* ---- the step */

/* Forward, backward and sums; the update, too, if r->grad is NULL.  The loss is checked before
 * any phase that could change a parameter, and ranks exchange metrics before the first sum. */
static bool run_phases(Net *n, const View *all)
{
    const RtProgram *p = n->p;
    const Rt *r = &all->rt;
    int bucket = 0, unit = 0;
    for (int i = 0; i < p->ntrain; i++) {
        const RtPhase *phase = &p->train[i];
        if (!phase_in_step(phase, r))
            continue;
        catch_up(n, i);
        host_run(n, r, phase, 0, phase_units(n, r, phase));
        if (phase->per_slice && !loss_finite(n, r))
            return false;
        if (phase->known)
            exchange_statistics(n, r, phase);
        for (; r->grad && bucket < p->nbucket && p->bucket[bucket].ready <= i; bucket++) {
            if (bucket == 0)
                report_post(n);
            sum_bucket(n, all, bucket, unit);
            unit += p->bucket[bucket].units;
        }
    }
    if (!r->grad)
        report_post(n);
    return true;
}

/* Computes this rank's sums of the step and starts their sums over ranks, which are pending when
 * this returns.  A rank whose loss is not finite stops here; then no rank can continue. */
static bool run_sums(Net *n, View *v, const Batch *b)
{
    report_clear(n);
    v->rt.trust = n->host->trust ? trust_ratios(n->host->trust) : NULL;
    v->rt.scored = data_scored(n->p, b);
    v->rt.weighted = data_weighted(n->p, b);
    if (n->reduced)
        v->rt.grad = n->grad;
    if (!run_phases(n, v))
        return false;
    if (n->comm->size == 1 && n->nparts > 1)
        grad_tree(n->p, n->pool, n->grad, n->grad_bytes, n->part, n->nparts);
    return true;
}

static bool host_step(Net *n, const Batch *b, Hyper h)
{
    View v = net_view(n, b, h, n->first, n->shards);
    if (!run_sums(n, &v, b))
        return false;
    if (n->comm->size > 1 && !needs_all_sums(n))
        defer_updates(n, &v, h.step);
    else
        update_all(n, &v.rt, h.step);
    if (!n->reduced && n->average)
        average_step(n->average, n->fixed, -1, h.step);
    report_wait(n);
    return true;
}

static bool host_gradients(Net *n, View *v, const Batch *b)
{
    if (!run_sums(n, v, b))
        return false;
    report_wait(n);
    for (int i = 0; i < n->p->nbucket; i++)
        await_bucket(n, i);
    return true;
}

/* Slices with at least one sample that counts. */
static int valid_slices(const Net *n, const Rt *r)
{
    const RtProgram *p = n->p;
    const int shard = p->batch / p->shards, slice = shard / p->slices, all = r->shards * p->slices,
              valid = (r->valid - r->first_shard * shard + slice - 1) / slice;
    return valid < 0 ? 0 : valid < all ? valid : all;
}

static void host_evaluate(Net *n, View *v, const Batch *b, void *output)
{
    (void)b;
    v->rt.output = output;
    for (int i = 0; i < n->p->ntest; i++) {
        const RtPhase *phase = &n->p->test[i];
        host_run(n, &v->rt, phase, 0, phase->per_slice ? valid_slices(n, &v->rt) : phase->count);
    }
}

const struct NetOps net_on_host = {.map = host_map,
                                   .step = host_step,
                                   .settle = host_settle,
                                   .gradients = host_gradients,
                                   .evaluate = host_evaluate};
