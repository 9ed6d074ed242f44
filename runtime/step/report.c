/* report.c -- the metrics of a step: added over slices in order, then over the shards of all ranks
 * in the fixed tree.
 *
 * A rank's report of a step holds the metrics of its shards, and whether this rank was asked to
 * stop.  Ranks exchange reports, so that each rank adds all shards alike, and all ranks stop after
 * the same step.
 */
#include "base/error.h"
#include "step/step.h"
#include <math.h>
#include <string.h>

struct Reports {
    Node *leaf;    /* [shards of the batch]: leaves of the tree that adds metrics */
    double *row;   /* [ranks][steps of an exchange][report_size] */
    int steps, at; /* number of steps in an exchange; index of the current one */
    int64_t post;  /* number of the exchange (comm_post_gather) */
};

static int report_size(const Net *n)
{
    return n->shards * RT_METRICS + 1;
}

void report_open(Net *n)
{
    const int steps = n->p->device && n->p->steps_most > 1 ? n->p->steps_most : 1;
    struct Reports *s = n->reports = rt_alloc(sizeof *s);
    n->slot = rt_alloc(sizeof *n->slot * RT_METRICS * (size_t)(n->shards * n->p->slices));
    s->row = rt_alloc(sizeof *s->row * (size_t)(report_size(n) * n->comm->size * steps));
    s->leaf = rt_alloc(sizeof *s->leaf * (size_t)n->p->shards);
    for (int i = 0; i < n->p->shards; i++)
        s->leaf[i] = (Node){i, 1, 0};
}

void report_clear(Net *n)
{
    memset(n->slot, 0, sizeof *n->slot * RT_METRICS * (size_t)(n->shards * n->p->slices));
}

bool report_finite(const Net *n, const Rt *r)
{
    const int loss = net_metric_index(n->p, "loss");
    double sum = 0;
    const double *slot = n->slot + RT_METRICS * (r->first_shard - n->first) * n->p->slices;
    for (int i = 0; loss >= 0 && i < r->shards * n->p->slices; i++)
        sum += slot[i * RT_METRICS + loss];
    return isfinite(sum);
}

static double *report_of(const Net *n, int rank)
{
    const struct Reports *s = n->reports;
    return s->row + (rank * s->steps + s->at) * report_size(n);
}

/* The metrics of shard s of the batch, after all ranks have reported. */
static double *reported(const Net *n, int s)
{
    return report_of(n, s / n->shards) + s % n->shards * RT_METRICS;
}

static void add_shards(void *arg, int to, int from)
{
    const Net *n = arg;
    for (int m = 0; m < RT_METRICS; m++)
        reported(n, to)[m] += reported(n, from)[m];
}

void report_write(Net *n, int i, int steps)
{
    n->reports->steps = steps, n->reports->at = i;
    const int size = report_size(n), slices = n->p->slices;
    double *mine = report_of(n, n->comm->rank);
    memset(mine, 0, sizeof *mine * (size_t)size);
    for (int k = 0; k < n->shards * slices * RT_METRICS; k++)
        mine[k / RT_METRICS / slices * RT_METRICS + k % RT_METRICS] += n->slot[k];
    mine[size - 1] = n->stop;
}

static void post_reports(Net *n)
{
    struct Reports *s = n->reports;
    s->post = comm_post_gather(n->comm, s->row, (int64_t)sizeof *s->row * report_size(n) * s->steps,
                               "the metrics of a step");
}

static void await_reports(Net *n)
{
    comm_await(n->comm, n->reports->post);
}

void report_post(Net *n)
{
    report_write(n, 0, 1);
    post_reports(n);
}

void report_read(Net *n, int i)
{
    n->reports->at = i;
    n->all_stop = false;
    for (int r = 0; r < n->comm->size; r++)
        n->all_stop |= report_of(n, r)[report_size(n) - 1] != 0;
    tree_add(n->reports->leaf, n->p->shards, add_shards, n);
    memcpy(n->metric, reported(n, 0), sizeof n->metric);
}

void report_wait(Net *n)
{
    await_reports(n);
    report_read(n, 0);
    comm_started(n->comm);
}

int report_exchange(Net *n)
{
    const int loss = net_metric_index(n->p, "loss");
    struct Reports *s = n->reports;
    post_reports(n);
    await_reports(n);
    comm_started(n->comm);
    for (s->at = 0; s->at < s->steps; s->at++)
        for (int shard = 0; loss >= 0 && shard < n->p->shards; shard++)
            if (!isfinite(reported(n, shard)[loss]))
                return s->at;
    return s->steps;
}
