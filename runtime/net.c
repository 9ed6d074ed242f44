/* net.c -- a step: phases one after another, each shared out over the threads; sums over shards
 * in the fixed tree.
 *
 * With groups, every group of consecutive shards runs the phases as a rank of its own would, into
 * its own gradient buffer; the buffers are then added pairwise, neighbours first. That is the
 * upper part of the same tree, because a group is a power of two of shards: so no bit depends on
 * the number of groups.
 */
#include "net.h"
#include "clock.h"
#include "error.h"
#include "grad.h"
#include "memory.h"
#include "ticks.h"
#include <math.h>
#include <stddef.h>
#include <stdio.h>
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
_Static_assert(sizeof(real) == sizeof(float),
               "the runtime is compiled without RT_F64, for programs of both types");
_Static_assert(offsetof(Rt, opt) % _Alignof(double) == 0, "opt must stand where both types can");

typedef struct Run {
    const Net *n;
    const Rt *r;
    const RtPhase *phase;
} Run;

static bool reduced(const RtProgram *p, int groups)
{
    return groups > 1 || !p->fused_update;
}

int64_t net_bytes(const RtProgram *p, int threads, int groups)
{
    return memory_round(p->fixed_bytes) + p->shards * memory_round(p->shard_bytes) +
           threads * memory_round(p->thread_bytes) +
           (reduced(p, groups) ? groups * memory_round(p->grad_bytes) : 0);
}

static void check_groups(const RtProgram *p, int groups)
{
    char fit[256] = "";
    bool fits = false;
    for (int g = 1; g <= p->shards; g++) {
        const int each = p->shards / g;
        if (p->shards % g || (g > 1 && (each & (each - 1))))
            continue;
        const size_t have = strlen(fit);
        snprintf(fit + have, sizeof fit - have, "%s%d", have ? ", " : "", g);
        fits |= g == groups;
    }
    if (!fits)
        rt_die("--groups %d does not fit %d shards: possible are %s; or build with another "
               "--shards",
               groups, p->shards, fit);
}

Net *net_new(const RtProgram *p, Pool *pool, int groups, bool keep_gradients)
{
    check_groups(p, groups);
    const int threads = pool_threads(pool);
    Net *n = rt_alloc(sizeof *n);
    *n = (Net){.p = p,
               .pool = pool,
               .groups = groups,
               .reduced = keep_gradients || reduced(p, groups),
               .shard_bytes = memory_round(p->shard_bytes),
               .thread_bytes = memory_round(p->thread_bytes),
               .grad_bytes = memory_round(p->grad_bytes)};
    int64_t bytes = net_bytes(p, threads, groups);
    if (keep_gradients && !reduced(p, groups))
        bytes += n->grad_bytes;
    n->fixed = memory_map(bytes, true, "the arena");
    n->shard = n->fixed + memory_round(p->fixed_bytes);
    n->thread = n->shard + p->shards * n->shard_bytes;
    n->grad = n->thread + threads * n->thread_bytes;
    n->slot = rt_alloc(sizeof *n->slot * RT_METRICS * (size_t)(p->shards * p->slices));
    n->partial = rt_alloc(sizeof *n->partial * (size_t)grad_blocks(p));
    return n;
}

int net_metric_index(const RtProgram *p, const char *name)
{
    for (int i = 0; i < p->nmetric; i++)
        if (strcmp(p->metric[i], name) == 0)
            return i;
    return -1;
}

static void set_opt(const RtProgram *p, Rt *r, Hyper h)
{
    const RtRecipe *q = &p->recipe;
    const double t = (double)h.step + 1;
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

/* The step as shards first .. first + count - 1 see it. */
static View view(const Net *n, const Batch *b, Hyper h, int first, int count)
{
    const RtProgram *p = n->p;
    View v;
    memset(&v, 0, sizeof v);
    v.rt = (Rt){.fixed = n->fixed,
                .shard = n->shard + first * n->shard_bytes,
                .shard_bytes = n->shard_bytes,
                .shards = count,
                .first_shard = first,
                .x = b->x,
                .x_stride = b->x_stride,
                .x_type = b->x_type,
                .x_scale = b->x_scale,
                .x_height = b->x_height,
                .x_width = b->x_width,
                .label = b->label,
                .index = b->index,
                .valid = b->valid,
                .seed = b->seed,
                .epoch = b->epoch,
                .metric = n->slot + RT_METRICS * first * p->slices,
                .loss_scale = 1.0 / p->batch};
    set_opt(p, &v.rt, h);
    return v;
}

static void unit(void *arg, int thread, int unit)
{
    const Run *run = arg;
    ticks_unit_begin(run->n->ticks, thread);
    run->phase->run(run->r, run->n->thread + thread * run->n->thread_bytes, unit);
    ticks_unit_end(run->n->ticks, thread);
}

static void run_phase(const Net *n, const Rt *r, const RtPhase *phase)
{
    Run run = {n, r, phase};
    ticks_phase_begin(n->ticks);
    pool_run(n->pool, unit, &run, phase->per_slice ? r->shards * n->p->slices : phase->count);
    ticks_phase_end(n->ticks);
}

/* Slices in order within a shard, shards in the tree: neighbours first, as everywhere. */
static void sum_metrics(Net *n)
{
    const RtProgram *p = n->p;
    double *slot = n->slot;
    for (int s = 0; s < p->shards; s++)
        for (int k = 1; k < p->slices; k++)
            for (int m = 0; m < RT_METRICS; m++)
                slot[s * p->slices * RT_METRICS + m] += slot[(s * p->slices + k) * RT_METRICS + m];
    const int shard = p->slices * RT_METRICS;
    for (int step = 1; step < p->shards; step *= 2)
        for (int s = 0; s + step < p->shards; s += 2 * step)
            for (int m = 0; m < RT_METRICS; m++)
                slot[s * shard + m] += slot[(s + step) * shard + m];
    memcpy(n->metric, slot, sizeof n->metric);
}

static void clear_metrics(Net *n)
{
    memset(n->slot, 0, sizeof *n->slot * RT_METRICS * (size_t)(n->p->shards * n->p->slices));
}

static bool finite_loss(const Net *n, const Rt *r)
{
    const int loss = net_metric_index(n->p, "loss");
    double sum = 0;
    for (int i = 0; loss >= 0 && i < r->shards * n->p->slices; i++)
        sum += r->metric[i * RT_METRICS + loss];
    return isfinite(sum);
}

/* Forward, backward and sums of one group; with r->grad NULL the update too. The loss is looked
 * at before any phase that could touch a parameter. */
static bool run_group(const Net *n, const Rt *r)
{
    for (int i = 0; i < n->p->ntrain; i++) {
        const RtPhase *phase = &n->p->train[i];
        if (phase->from_grad)
            continue;
        run_phase(n, r, phase);
        if (phase->per_slice && !finite_loss(n, r))
            return false;
    }
    return true;
}

static bool run_groups(Net *n, const Batch *b, Hyper h)
{
    const int each = n->p->shards / n->groups;
    clear_metrics(n);
    for (int g = 0; g < n->groups; g++) {
        View v = view(n, b, h, g * each, each);
        if (n->reduced)
            v.rt.grad = n->grad + g * n->grad_bytes;
        if (!run_group(n, &v.rt))
            return false;
    }
    return true;
}

bool net_gradients(Net *n, const Batch *b)
{
    const bool finite = run_groups(n, b, (Hyper){0, 0});
    if (finite && n->groups > 1)
        grad_tree(n->p, n->pool, n->grad, n->grad_bytes, n->groups);
    sum_metrics(n);
    return finite;
}

bool net_step(Net *n, const Batch *b, Hyper h)
{
    const RtProgram *p = n->p;
    if (!run_groups(n, b, h))
        return false;
    sum_metrics(n);
    if (!n->reduced)
        return true;
    if (n->groups > 1)
        grad_tree(p, n->pool, n->grad, n->grad_bytes, n->groups);
    if (p->recipe.clip_norm > 0)
        grad_clip(p, n->pool, n->grad, n->partial, p->recipe.clip_norm);
    View v = view(n, b, h, 0, p->shards);
    v.rt.grad = n->grad;
    for (int i = 0; i < p->ntrain; i++)
        if (p->train[i].from_grad)
            run_phase(n, &v.rt, &p->train[i]);
    return true;
}

void net_evaluate(Net *n, const Batch *b, void *output)
{
    View v = view(n, b, (Hyper){0, 0}, 0, n->p->shards);
    v.rt.output = output;
    clear_metrics(n);
    for (int i = 0; i < n->p->ntest; i++)
        run_phase(n, &v.rt, &n->p->test[i]);
    sum_metrics(n);
}

int net_first_nonfinite(Net *n, const Batch *b)
{
    View v = view(n, b, (Hyper){0, 0}, 0, n->p->shards);
    int first = -1;
    for (int phase = 0; first < 0 && phase < n->p->nforward; phase++)
        for (int i = 0; i < n->p->shards * n->p->slices; i++) {
            const int at = n->p->nonfinite[phase](&v.rt, n->thread, i);
            if (at >= 0 && (first < 0 || at < first))
                first = at;
        }
    return first;
}
