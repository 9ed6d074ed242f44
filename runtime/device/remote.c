/* remote.c -- see remote.h. */
#include "device/remote.h"
#include "base/error.h"
#include "base/memory.h"
#include "device/feed.h"
#include "device/link.h"
#include <string.h>

enum { PIECES = 8 }; /* samples and labels of a few data sets */

typedef struct Piece {
    const char *host;
    char *there; /* NULL: samples that stay in the host's memory */
    int64_t room;
} Piece;

typedef struct List {
    int runs;
    bool recording;
    void *kept;
} List;

struct Remote {
    const RtProgram *p;
    const RtDevice *device;
    char *fixed_host, *fixed, *shard, *scratch, *grad;
    int *halted; /* Rt.halted, before the metrics */
    double *metric;
    char *output;
    char *arguments, *arguments_host; /* for each step: Rt, then RtPlaces */
    int64_t arguments_room;
    uint32_t *index;   /* of each step's batch */
    int shards;        /* this rank's */
    int steps;         /* of a launch, at most */
    unsigned *arrived; /* for p->steps: counts blocks; else NULL */
    double *metric_host;
    bool changed, ahead; /* the host's copy of `fixed` is newer; the device's is newer */
    Piece piece[PIECES];
    int npiece;
    int rank;
    Feed *feed;        /* samples that stay in the host's memory */
    const char *where; /* --samples-in */
    bool fed;          /* the current launch reads from `feed` */
    List list[REMOTE_LISTS];
};

enum { STRUCT_ROOM = 1024, HALTED_ROOM = 64 }; /* bytes: of Rt (f32 or f64); before the metrics */
_Static_assert(sizeof(Rt) * 2 <= STRUCT_ROOM, "Rt must fit before the places");
_Static_assert(1 << (REMOTE_LISTS - REMOTE_TRAIN - 1) == RT_STEPS_MOST,
               "each number of steps needs a list");

/* ---- other ranks */

static Comm *ranks; /* a process has one program */
static const RtLink *linked;
static bool (*awaited)(void);

static bool done_or_failed(void)
{
    linked->look();
    return awaited();
}

static void wait_with_ranks(bool (*done)(void))
{
    awaited = done;
    comm_poll(ranks, done_or_failed, "a step of the GPU");
}

/* Joins the ranks. identify comes first: if rank 0 has no NCCL, it reports this before the others
 * wait for it. */
static void join_ranks(const RtProgram *p, const RtDevice *d, Comm *c)
{
    char id[LINK_ID] = "";
    int64_t most = 0;
    if (!p->link)
        rt_die("this program is for one GPU: build it with --comm nccl to run it on %d", c->size);
    for (int b = 0; b < p->nbucket; b++)
        most = p->bucket[b].bytes > most ? p->bucket[b].bytes : most;
    if (c->rank == 0)
        p->link->identify(id);
    comm_broadcast(c, id, sizeof id, "the start of the GPUs' link");
    p->link->open(id, c, d, most / p->real_bytes, p->nbucket);
    comm_at_death(c, p->link->let_go);
    comm_poll(c, p->link->opened, "the start of the GPUs' link");
    ranks = c;
    linked = p->link;
    d->waits(wait_with_ranks);
}

void remote_sum(Remote *m, int bucket, int64_t from, int64_t n)
{
    if (linked)
        linked->sum(bucket, m->grad + from * m->p->real_bytes, n);
}

void remote_await(Remote *m, int bucket)
{
    (void)m;
    if (linked)
        linked->await(bucket);
}

void remote_gather(Remote *m, const RtKnown *row, int n)
{
    if (linked)
        linked->gather(m->fixed, row, n, m->shards);
}

/* ---- memory */

/* Numbers of a step: a row for each shard, and a row for the loss scale after the update. */
static int metric_count(const Remote *m)
{
    return RT_METRICS * (m->shards + 1);
}
static int64_t metric_bytes(const Remote *m, int steps)
{
    return (int64_t)sizeof(double) * metric_count(m) * steps;
}

/* Regions of the GPU's memory begin at addresses that are aligned as those of cudaMalloc are. */
static int64_t region(int64_t bytes)
{
    enum { ALIGN = 256 };
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

Remote *remote_new(const RtProgram *p, char *fixed, bool grads, Comm *c)
{
    Remote *m = rt_alloc(sizeof *m);
    const RtDevice *d = p->device;
    *m = (Remote){.p = p,
                  .device = d,
                  .fixed_host = fixed,
                  .changed = true,
                  .shards = p->shards / c->size,
                  .rank = c->rank,
                  .steps = p->steps_most > 1 ? p->steps_most : 1};
    const int64_t fixed_bytes = region(p->fixed_bytes), scratch = region(p->thread_bytes),
                  shards = region(m->shards * memory_round(p->shard_bytes)),
                  grad = grads ? memory_round(p->grad_bytes) : 0;
    m->metric_host = rt_alloc((size_t)metric_bytes(m, m->steps));
    m->arguments_room = memory_round(STRUCT_ROOM + sizeof(RtPlaces));
    m->arguments_host = rt_alloc((size_t)(m->arguments_room * m->steps));
    d->open(p, c->local_rank);
    if (p->libraries)
        p->libraries();
    if (c->size > 1)
        join_ranks(p, d, c);
    m->grad = linked && grad > 0 ? linked->memory(grad) : NULL;
    m->fixed = d->memory(fixed_bytes + shards + scratch + (m->grad ? 0 : grad), "the arena");
    m->shard = m->fixed + fixed_bytes;
    m->scratch = m->shard + shards;
    if (!m->grad)
        m->grad = m->scratch + scratch;
    m->halted = d->memory(memory_round(metric_bytes(m, m->steps) + HALTED_ROOM), "metrics");
    m->metric = (double *)((char *)m->halted + HALTED_ROOM);
    m->arguments = d->memory(m->arguments_room * m->steps, "what changes from step to step");
    m->index = d->memory((int64_t)sizeof *m->index * p->batch * m->steps, "a batch's index");
    m->arrived = p->steps ? d->memory(memory_round(sizeof *m->arrived), "a count of blocks") : NULL;
    m->output = d->memory(p->outputs * p->batch * p->real_bytes, "outputs");
    return m;
}

void remote_samples(Remote *m, Pool *pool, const char *where, int steps)
{
    const int rows = m->p->batch / m->p->shards * m->shards;
    m->where = where;
    if (m->p->mixes) /* samples of other ranks, too */
        m->feed = feed_new(m->device, pool, 0, m->p->batch, steps);
    else
        m->feed = feed_new(m->device, pool, m->rank * rows, rows, steps);
}

char *remote_shard(const Remote *m)
{
    return m->shard;
}
char *remote_scratch(const Remote *m)
{
    return m->scratch;
}
char *remote_grad(const Remote *m)
{
    return m->grad;
}

static int find_piece(const Remote *m, const void *host, int64_t bytes)
{
    int i = 0;
    while (i < m->npiece && !(m->piece[i].host == host && m->piece[i].room >= bytes))
        i++;
    return i;
}

static void keep_piece(Remote *m, const void *host, char *there, int64_t bytes)
{
    if (m->npiece == PIECES)
        rt_die("this program reads more data sets than a device can keep");
    m->piece[m->npiece++] = (Piece){host, there, bytes};
}

/* The device's copy of the host's memory `host`: made once, or again for each batch (fresh). */
static char *bring(Remote *m, const void *host, int64_t bytes, bool fresh, const char *what)
{
    const int i = find_piece(m, host, bytes);
    if (i < m->npiece && !fresh)
        return m->piece[i].there;
    if (i == m->npiece)
        keep_piece(m, host, m->device->memory(bytes, what), bytes);
    m->device->put(m->piece[i].there, host, bytes);
    return m->piece[i].there;
}

/* Whether these samples fit on the device.  Leaves room for a feed, because other samples, such as
 * the test set, can need one. */
static bool fits(const Remote *m, const Batch *b)
{
    const int64_t labels = b->label && b->stored_label != b->stored ? b->label_bytes : 0;
    return b->stored_bytes + labels + feed_bytes(m->feed, b) <= m->device->room();
}

/* Whether the samples of this batch stay in the host's memory; decided once for each data set. */
static bool stays(Remote *m, const Batch *b)
{
    if (b->fresh || b->x_row == 0)
        return false;
    const int i = find_piece(m, b->stored, b->stored_bytes);
    if (i < m->npiece)
        return !m->piece[i].there;
    const bool host = m->where ? strcmp(m->where, "host") == 0 : !fits(m, b);
    if (host)
        keep_piece(m, b->stored, NULL, b->stored_bytes);
    return host;
}

/* Copies the samples of `steps` steps, and parameters that the host has changed. */
static void bring_inputs(Remote *m, const Batch *b, int steps)
{
    m->fed = stays(m, b);
    if (m->fed)
        feed_take(m->feed, b, steps);
    if (m->changed)
        m->device->put(m->fixed, m->fixed_host, m->p->fixed_bytes);
    m->changed = false;
    m->ahead = true;
}

/* Sets r->x and r->label to the batch's samples on the device. */
static void point(Remote *m, Rt *r, const Batch *b)
{
    r->x = bring(m, b->stored, b->stored_bytes, b->fresh, "the samples") +
           ((const char *)b->x - (const char *)b->stored);
    if (b->label)
        r->label = bring(m, b->stored_label, b->label_bytes, b->fresh, "the labels") +
                   ((const char *)b->label - (const char *)b->stored_label);
}

/* Fills in the Rt of step i, as its kernels read it. */
static void fill_arguments(Remote *m, int i, Rt *r, int64_t room, const Batch *b, bool output)
{
    char *host = m->arguments_host + i * m->arguments_room,
         *there = m->arguments + i * m->arguments_room;
    r->fixed = m->fixed;
    r->metric = m->metric + i * metric_count(m);
    r->halted = m->halted;
    r->stride = m->arguments_room;
    r->scratch = m->scratch;
    if (m->p->scaling)
        r->scaling = (RtScaling *)(m->fixed + m->p->scaling->offset);
    r->output = output ? (real *)m->output : NULL;
    if (m->fed)
        feed_point(m->feed, i, b, r);
    else
        point(m, r, b);
    r->index = m->index + (int64_t)i * m->p->batch;
    r->there = (const Rt *)there;
    memcpy(host, r, (size_t)room);
    memcpy(host + STRUCT_ROOM, &(RtPlaces){*b->order, b->first}, sizeof(RtPlaces));
}

void remote_begin(Remote *m, Rt *r, int64_t room, const Batch *b, bool output)
{
    bring_inputs(m, b, 1);
    fill_arguments(m, 0, r, room, b, output);
    m->device->put(m->arguments, m->arguments_host, m->arguments_room);
}

void remote_begin_steps(Remote *m, void *structs, int64_t room, const Batch *b, int n)
{
    bring_inputs(m, b, n);
    for (int i = 0; i < n; i++)
        fill_arguments(m, i, (Rt *)((char *)structs + i * room), room, &b[i], false);
    m->device->put(m->arguments, m->arguments_host, n * m->arguments_room);
}

void remote_ready(Remote *m, int n)
{
    m->device->begin(m->index, (const RtPlaces *)(m->arguments + STRUCT_ROOM), m->arguments_room,
                     m->p->batch, n, m->halted, HALTED_ROOM + metric_bytes(m, n));
}

void remote_steps(Remote *m, int n)
{
    remote_ready(m, n);
    m->p->steps((const Rt *)m->arguments, m->arguments_room, n, m->arrived);
}

void remote_ahead(Remote *m, const Batch *b, int n)
{
    if (m->fed)
        feed_ahead(m->feed, b, n);
}

bool remote_play(Remote *m, int list)
{
    List *l = &m->list[list];
    if (l->kept) {
        m->device->play(l->kept);
        return true;
    }
    l->recording = l->runs++ == 1;
    if (l->recording)
        m->device->record();
    remote_ready(m, list == REMOTE_TEST ? 1 : 1 << (list - REMOTE_TRAIN));
    return false;
}

void remote_played(Remote *m, int list)
{
    List *l = &m->list[list];
    if (!l->recording)
        return;
    l->kept = m->device->recorded();
    l->recording = false;
    m->device->play(l->kept);
}

void remote_wait(Remote *m, int steps)
{
    m->device->get(m->metric_host, m->metric, metric_bytes(m, steps));
}

void remote_metrics(const Remote *m, int i, double *slot, RtScaling *scaling)
{
    const double *metric = m->metric_host + i * metric_count(m),
                 *told = metric + m->shards * RT_METRICS;
    memcpy(slot, metric, sizeof *slot * RT_METRICS * (size_t)m->shards);
    if (told[0] > 0)
        *scaling = (RtScaling){(float)told[0], (float)told[1], (float)told[2], (float)told[3]};
}

void remote_output(Remote *m, void *output)
{
    m->device->get(output, m->output, m->p->outputs * m->p->batch * m->p->real_bytes);
}

void remote_gradients(Remote *m, void *grad)
{
    m->device->get(grad, m->grad, m->p->grad_bytes);
}

void remote_changed(Remote *m)
{
    if (m)
        m->changed = true;
}

void remote_fetch(Remote *m)
{
    if (m && m->ahead)
        m->device->get(m->fixed_host, m->fixed, m->p->fixed_bytes);
    if (m)
        m->ahead = false;
}
