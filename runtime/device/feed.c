/* feed.c -- see feed.h. */
#include "device/feed.h"
#include "base/error.h"
#include "base/memory.h"
#include <string.h>

enum { PLACES = 2, ROWS_EACH = 32 }; /* ROWS_EACH: rows of a unit of work */

/* The samples in a place. */
typedef struct Content {
    const void *x, *label;
    const uint32_t *index;
    int64_t epoch;
    int n; /* steps; 0: none */
} Content;

struct Feed {
    const RtDevice *device;
    Pool *pool;
    int first, rows, steps;
    int64_t bytes;      /* of a place */
    char *host, *there; /* the places */
    int at, n;          /* the place of the current launch, and its steps */
    Content ahead;      /* what the place of the next launch holds */
};

/* Rows of a launch that are being gathered: all x, then all labels. */
typedef struct Gathering {
    const Feed *f;
    const Batch *b;
    char *to;
    int n;
} Gathering;

Feed *feed_new(const RtDevice *d, Pool *pool, int first, int rows, int steps)
{
    Feed *f = rt_alloc(sizeof *f);
    *f = (Feed){.device = d, .pool = pool, .first = first, .rows = rows, .steps = steps};
    return f;
}

/* Bytes of n steps: of the samples; of the samples and labels. */
static int64_t samples_bytes(const Feed *f, const Batch *b, int n)
{
    return memory_round(n * f->rows * b->x_row);
}
static int64_t place_bytes(const Feed *f, const Batch *b, int n)
{
    return samples_bytes(f, b, n) + memory_round(n * f->rows * b->label_row);
}

int64_t feed_bytes(const Feed *f, const Batch *b)
{
    return PLACES * place_bytes(f, b, f->steps);
}

/* Makes larger places for larger samples: once or twice a run. */
static void make_places(Feed *f, const Batch *b, int n)
{
    f->steps = n > f->steps ? n : f->steps;
    const int64_t bytes = place_bytes(f, b, f->steps);
    if (bytes <= f->bytes)
        return;
    f->bytes = bytes;
    f->host = f->device->pinned(PLACES * bytes, "two places for samples");
    f->there = f->device->memory(PLACES * bytes, "two places for samples");
    rt_note("samples stay in the host's memory, %.1f MB of it pinned: those of each launch are "
            "copied to the GPU during the launch before it",
            (double)(PLACES * bytes) / 1e6);
}

static void gather_rows(void *arg, int thread, int unit)
{
    const Gathering *g = arg;
    const Feed *f = g->f;
    const int first = unit * ROWS_EACH, all = g->n * f->rows,
              end = first + ROWS_EACH < all ? first + ROWS_EACH : all;
    char *const labels = g->to + samples_bytes(f, g->b, g->n);
    (void)thread;
    for (int i = first; i < end; i++) {
        const Batch *b = &g->b[i / f->rows];
        const int64_t row = b->index[f->first + i % f->rows];
        memcpy(g->to + i * b->x_row, (const char *)b->x + row * b->x_stride, (size_t)b->x_row);
        if (b->label_row > 0)
            memcpy(labels + i * b->label_row, (const char *)b->label + row * b->label_stride,
                   (size_t)b->label_row);
    }
}

/* Copies samples to a place.  The host may overwrite the place, because all launches that read it
 * are done.  If an earlier copy to the place is still pending, no launch reads that copy. */
static void send_samples(Feed *f, int place, const Batch *b, int n)
{
    make_places(f, b, n);
    char *const host = f->host + place * f->bytes;
    Gathering g = {f, b, host, n};
    pool_run(f->pool, gather_rows, &g, (n * f->rows + ROWS_EACH - 1) / ROWS_EACH);
    f->device->send(f->there + place * f->bytes, host, place_bytes(f, b, n));
}

static Content content_of(const Batch *b, int n)
{
    return n > 0 ? (Content){b->x, b->label, b->index, b->epoch, n} : (Content){.n = 0};
}

static bool content_holds(const Content *c, const Batch *b, int n)
{
    const Content w = content_of(b, n);
    return c->n == n && c->x == w.x && c->label == w.label && c->index == w.index &&
           c->epoch == w.epoch;
}

static int other(const Feed *f)
{
    return (f->at + 1) % PLACES;
}

void feed_take(Feed *f, const Batch *b, int n)
{
    f->at = other(f);
    f->n = n;
    if (!content_holds(&f->ahead, b, n))
        send_samples(f, f->at, b, n);
    f->ahead.n = 0;
    f->device->arrived();
}

/* Kernels count the rows of x and label from the first of the batch, which can belong to another
 * rank; so both pointers begin before this rank's rows. */
void feed_point(const Feed *f, int i, const Batch *b, Rt *r)
{
    const uintptr_t x = (uintptr_t)(f->there + f->at * f->bytes),
                    label = x + (uintptr_t)samples_bytes(f, b, f->n);
    const int64_t before = (int64_t)i * f->rows - f->first;
    r->in_order = true;
    r->x_stride = b->x_row;
    r->label_stride = b->label_row;
    r->x = (const void *)(x + (uintptr_t)(before * b->x_row));
    r->label = b->label ? (const void *)(label + (uintptr_t)(before * b->label_row)) : NULL;
}

void feed_ahead(Feed *f, const Batch *b, int n)
{
    f->ahead = content_of(b, n);
    if (n > 0)
        send_samples(f, other(f), b, n);
}
