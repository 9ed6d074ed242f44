/* remote.c -- see remote.h. */
#include "remote.h"
#include "error.h"
#include "link.h"
#include "memory.h"
#include <string.h>

enum { PIECES = 8 }; /* samples and labels of a few data sets */

typedef struct Piece {
    const char *here;
    char *there;
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
    char *fixed_here, *fixed, *shard, *scratch, *grad;
    double *metric;
    char *output;
    char *arguments, *arguments_here; /* Rt, then the batch's index */
    int64_t arguments_room;
    int shards; /* this rank's */
    double *metric_here;
    bool changed, ahead; /* the copy here is newer; the device's is */
    Piece piece[PIECES];
    int npiece;
    List list[REMOTE_LISTS];
};

enum { STRUCT_ROOM = 1024 }; /* of Rt in either type */
_Static_assert(sizeof(Rt) * 2 <= STRUCT_ROOM, "Rt must fit in front of the index");

/* ---- other ranks */

static Comm *ranks; /* of the one program that this is */
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

/* In this order, so that a process that lacks NCCL says so before the others wait for it. */
static void join(const RtProgram *p, const RtDevice *d, Comm *c)
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

/* ---- memory */

/* A row a shard, and one for what the update has to tell of the loss's scale. */
static int64_t metric_bytes(const Remote *m)
{
    return (int64_t)sizeof(double) * RT_METRICS * (m->shards + 1);
}

Remote *remote_new(const RtProgram *p, char *fixed, bool grads, Comm *c)
{
    Remote *m = rt_alloc(sizeof *m);
    const RtDevice *d = p->device;
    *m = (Remote){.p = p,
                  .device = d,
                  .fixed_here = fixed,
                  .changed = true,
                  .shards = p->shards / c->size};
    const int64_t shards = m->shards * memory_round(p->shard_bytes),
                  grad = grads ? memory_round(p->grad_bytes) : 0;
    m->metric_here = rt_alloc((size_t)metric_bytes(m));
    m->arguments_room = STRUCT_ROOM + (int64_t)sizeof(uint32_t) * p->batch;
    m->arguments_here = rt_alloc((size_t)m->arguments_room);
    d->open(p, c->local_rank);
    if (p->libraries)
        p->libraries();
    if (c->size > 1)
        join(p, d, c);
    m->grad = linked && grad > 0 ? linked->memory(grad) : NULL;
    m->fixed = d->memory(memory_round(p->fixed_bytes) + shards + memory_round(p->thread_bytes) +
                             (m->grad ? 0 : grad),
                         "the arena");
    m->shard = m->fixed + memory_round(p->fixed_bytes);
    m->scratch = m->shard + shards;
    if (!m->grad)
        m->grad = m->scratch + memory_round(p->thread_bytes);
    m->metric = d->memory(memory_round(metric_bytes(m)), "metrics");
    m->arguments = d->memory(m->arguments_room, "a batch's index");
    m->output = d->memory(p->outputs * p->batch * p->real_bytes, "outputs");
    return m;
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

/* Where the memory that begins `here` lies there: brought over once, or anew when it changes from batch to batch. */
static char *bring(Remote *m, const void *here, int64_t bytes, bool fresh, const char *what)
{
    int i = 0;
    while (i < m->npiece && !(m->piece[i].here == here && m->piece[i].room >= bytes))
        i++;
    if (i < m->npiece && !fresh)
        return m->piece[i].there;
    if (i == m->npiece) {
        if (i == PIECES)
            rt_die("more data sets than a device's program keeps");
        m->piece[m->npiece++] = (Piece){here, m->device->memory(bytes, what), bytes};
    }
    m->device->put(m->piece[i].there, here, bytes);
    return m->piece[i].there;
}

void remote_begin(Remote *m, Rt *r, int64_t room, const Batch *b, bool output)
{
    const RtDevice *d = m->device;
    if (m->changed)
        d->put(m->fixed, m->fixed_here, m->p->fixed_bytes);
    m->changed = false;
    m->ahead = true;
    d->clear(m->metric, metric_bytes(m));
    r->fixed = m->fixed;
    r->metric = m->metric;
    if (m->p->scaling)
        r->scaling = (RtScaling *)(m->fixed + m->p->scaling->offset);
    r->output = output ? (real *)m->output : NULL;
    r->x = bring(m, b->stored, b->stored_bytes, b->fresh, "the samples") +
           ((const char *)b->x - (const char *)b->stored);
    if (b->label)
        r->label = bring(m, b->stored_label, b->label_bytes, b->fresh, "the labels") +
                   ((const char *)b->label - (const char *)b->stored_label);
    r->index = (const uint32_t *)(m->arguments + STRUCT_ROOM);
    r->there = (const Rt *)m->arguments;
    memcpy(m->arguments_here, r, (size_t)room);
    memcpy(m->arguments_here + STRUCT_ROOM, b->index, sizeof(uint32_t) * (size_t)m->p->batch);
    d->put(m->arguments, m->arguments_here, m->arguments_room);
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

void remote_metrics(Remote *m, double *slot, RtScaling *scaling)
{
    const double *told = m->metric_here + m->shards * RT_METRICS;
    m->device->get(m->metric_here, m->metric, metric_bytes(m));
    memcpy(slot, m->metric_here, sizeof *slot * RT_METRICS * (size_t)m->shards);
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
        m->device->get(m->fixed_here, m->fixed, m->p->fixed_bytes);
    if (m)
        m->ahead = false;
}
