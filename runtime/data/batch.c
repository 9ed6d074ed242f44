/* batch.c -- a batch of a data set: where a step finds its samples and labels. */
#include "base/error.h"
#include "base/mapped.h"
#include "base/random.h"
#include "data/data.h"
#include <math.h>
#include <stdlib.h>

#include "augment.h"

void data_share(Data *d, int rank, int ranks)
{
    if (!d->synthetic)
        return;
    d->part = d->batch / ranks;
    d->part_first = rank * d->part;
}

/* Windows of a text, and the tokens that follow.  From the second epoch on, windows begin at
 * another token. */
static void next_tokens(const Data *d, Batch *b)
{
    int64_t shift = 0;
    if (d->shift > 1 && b->epoch > 0) {
        Random r = random_from(b->seed, RT_PURPOSE_DATA, (uint32_t)b->epoch, 0);
        shift = random_below(&r, (uint32_t)d->shift) * data_bytes(1, d->type);
    }
    b->x = d->x + shift;
    b->label = d->next + shift;
    b->label_stride = d->stride;
    b->label_type = d->type;
    b->stored_label = b->stored = d->x;
    b->stored_bytes = b->label_bytes =
        d->next - d->x + (d->n - 1) * d->stride +
        (d->labels + (d->shift > 1 ? d->shift - 1 : 0)) * data_bytes(1, d->type);
}

static bool is_scored(const Batch *b, const char *row, int64_t i)
{
    return b->label_type == RT_U16 ? ((const uint16_t *)row)[i] != UINT16_MAX
                                   : ((const int32_t *)row)[i] >= 0;
}

bool data_unscored(const Data *d)
{
    return d->labels > 1 && d->label && !d->synthetic && d->scored == 0;
}

static void count_labels(const int32_t *label, int64_t n, int64_t count[RT_CLASS_WEIGHTS])
{
    for (int64_t k = 0; k < n; k++)
        if (label[k] >= 0 && label[k] < RT_CLASS_WEIGHTS)
            count[label[k]]++;
}

static double weigh(const double *weight, int64_t classes, const int64_t count[RT_CLASS_WEIGHTS])
{
    double sum = 0;
    for (int64_t c = 0; c < classes; c++)
        sum += weight[c] * (double)count[c];
    return sum > 0 ? sum : 1;
}

/* Calls count for each label of the sample, as the step sees it: moved by augment.  Inlined: a mask
 * of 512 x 512 has 262,144 labels. */
static inline __attribute__((always_inline)) void
each_label(const RtProgram *p, const Batch *b, int i, int64_t *state,
           void count(const Batch *b, const char *row, int64_t k, int64_t *state))
{
    static const int32_t blank[] = {-1, 0};
    const RtMoved *m = p->moved;
    const char *row = (const char *)b->label + (int64_t)b->index[i] * b->label_stride;
    if (!m)
        for (int64_t k = 0; k < p->labels; k++)
            count(b, row, k, state);
    if (!m)
        return;
    const Draw d = rt_draw(b->seed, b->epoch, b->index[i], m->h, m->w, &m->augment);
    for (int y = 0; y < m->h; y++)
        for (int x = 0; x < m->w; x++) {
            const int64_t from = rt_nearest(&d, &m->augment, m->h, m->w, y, x);
            if (from < 0)
                count(b, (const char *)blank, m->fill + 1, state);
            else
                count(b, row, from, state);
        }
}

static void count_scored(const Batch *b, const char *row, int64_t k, int64_t *state)
{
    *state += is_scored(b, row, k);
}

double data_scored(const RtProgram *p, const Batch *b)
{
    int64_t count = 0;
    if (p->labels == 1)
        return 1;
    for (int i = 0; i < p->batch; i++)
        each_label(p, b, i, &count, count_scored);
    return (double)(count ? count : 1) / p->batch;
}

static void count_class(const Batch *b, const char *row, int64_t k, int64_t *count)
{
    (void)b;
    count_labels((const int32_t *)(const void *)row + k, 1, count);
}

double data_weighted(const RtProgram *p, const Batch *b)
{
    int64_t count[RT_CLASS_WEIGHTS] = {0};
    if (!p->class_weight)
        return 1;
    for (int i = 0; i < p->batch; i++)
        each_label(p, b, i, count, count_class);
    return weigh(p->class_weight, p->classes, count) / p->batch;
}

/* Makes synthetic samples again to count their labels: only those of a batch are in memory. */
static void count_synthetic(const Data *d, int64_t count[RT_CLASS_WEIGHTS])
{
    char *x = rt_alloc((size_t)d->stride);
    int32_t *label = rt_alloc(sizeof *label * (size_t)d->labels);
    for (int64_t i = 0; i < d->n; i++) {
        synthetic_sample(d, x, label, d->first + i);
        count_labels(label, d->labels, count);
    }
    free(x);
    free(label);
}

void data_weigh(Data *d)
{
    int64_t count[RT_CLASS_WEIGHTS] = {0};
    if (!d->class_weight)
        return;
    if (d->synthetic)
        count_synthetic(d, count);
    else if (d->label)
        count_labels(d->label, d->n * d->labels, count);
    d->weighted = weigh(d->class_weight, d->classes, count);
}

/* ---- tokens of a mapped file, which another process may change during the run */

enum { TOKEN_ROWS = 16, LANES = 64 }; /* rows of a unit of work; tokens of an inner loop */

typedef struct Scan {
    const Data *d;
    const uint32_t *index;
} Scan;

/* LANES at a time, so that the C compiler vectorises the loop.  A negative number counts as a large
 * one. */
#define BEYOND(type, row, most, padding)                                                           \
    do {                                                                                           \
        const type *v_ = (const type *)(const void *)(row), least_ = (type)(most);                 \
        type any_ = 0;                                                                             \
        int64_t k_ = 0;                                                                            \
        for (; k_ + LANES <= d->features; k_ += LANES)                                             \
            for (int j_ = 0; j_ < LANES; j_++)                                                     \
                any_ |= (type)((v_[k_ + j_] >= least_) & (v_[k_ + j_] != (type)(padding)));        \
        for (; k_ < d->features; k_++)                                                             \
            any_ |= (type)((v_[k_] >= least_) & (v_[k_] != (type)(padding)));                      \
        return any_ != 0;                                                                          \
    } while (0)

static bool tokens_beyond(const Data *d, const char *row)
{
    if (d->type == RT_U8 && d->vocab <= UINT8_MAX)
        BEYOND(uint8_t, row, d->vocab, 0); /* without padding */
    if (d->type == RT_U16)
        BEYOND(uint16_t, row, d->vocab, -1);
    if (d->type == RT_I32)
        BEYOND(uint32_t, row, d->vocab, -1);
    if (d->type == RT_I64)
        BEYOND(uint64_t, row, d->vocab, -1);
    return false;
}

void data_wrong_token(const Data *d)
{
    mapped_wrong("%s has changed while it was read: it holds a token that is not one of the %lld "
                 "of "
                 "the vocabulary; put it back as it was",
                 d->x_path ? d->x_path : d->place, (long long)d->vocab);
}

static void scan_tokens(void *arg, int thread, int unit)
{
    const Scan *l = arg;
    const Data *d = l->d;
    const int end = (unit + 1) * TOKEN_ROWS < d->batch ? (unit + 1) * TOKEN_ROWS : d->batch;
    (void)thread;
    for (int i = unit * TOKEN_ROWS; i < end; i++)
        if (tokens_beyond(d, d->x + l->index[i] * d->stride))
            data_wrong_token(d);
}

/* Checks the batch before the launch of a device, because a launch cannot be undone.  On the
 * processor rt_tokens checks the tokens that it reads. */
static void check_batch(const Data *d, Pool *pool, const uint32_t *index)
{
    Scan l = {d, index};
    if (d->images)
        images_check(d, pool, index);
    if (d->device && d->vocab && d->x_path)
        pool_run(pool, scan_tokens, &l, (d->batch + TOKEN_ROWS - 1) / TOKEN_ROWS);
}

/* The order of synthetic samples: as stored. */
static const RtOrder one_by_one = {.n = (int64_t)1 << 32};

/* Makes the synthetic samples of this batch that this rank reads.  (data_scored also asks for
 * labels of other ranks' samples; all labels of synthetic samples count.)  A sample gets its place
 * in the epoch as its index, so that a mask keyed by the index differs from step to step.  The
 * addresses x and label lie so far before the samples that this index finds the samples. */
static void make_batch(const Data *d, Pool *pool, Batch *b)
{
    synthetic_fill(d, pool, b->index, d->part_first, d->part);
    for (int i = 0; i < d->batch; i++)
        d->position[i] = (uint32_t)(b->first + i);
    b->x = (const void *)((uintptr_t)d->x - (uintptr_t)(b->first * d->stride));
    b->label =
        (const void *)((uintptr_t)data_label(d, 0) - (uintptr_t)(b->first * b->label_stride));
    b->index = d->position;
    b->order = &one_by_one;
}

void data_batch(const Data *d, Pool *pool, const Order *order, int64_t step, int valid, Batch *b)
{
    const int64_t first = step * d->batch;
    b->x_stride = d->stride;
    b->x_type = d->type;
    b->x_scale = d->scale;
    b->x_height = (int)d->height;
    b->x_width = (int)d->width;
    b->valid = valid;
    b->x = d->x;
    b->label = data_label(d, 0);
    b->label_stride = data_label_stride(d);
    b->label_type = !d->targets ? RT_I32 : d->real_bytes == 8 ? RT_F64 : RT_F32;
    b->index = order->sample + first;
    b->order = &order->by;
    b->first = first;
    b->stored = d->x + d->part_first * d->stride;
    b->stored_label = data_label(d, d->part_first);
    b->stored_bytes = (d->synthetic ? d->part : d->n) * d->stride;
    b->label_bytes = (d->synthetic ? d->part : d->n) * b->label_stride;
    b->fresh = d->synthetic;
    if (d->next)
        next_tokens(d, b);
    b->part = d->row_part;
    b->x_row = data_bytes(d->features, d->type);
    b->label_row = !b->label                  ? 0
                   : d->targets || d->ntarget ? b->label_stride
                                              : data_bytes(d->labels, b->label_type);
    check_batch(d, pool, b->index);
    if (d->synthetic)
        make_batch(d, pool, b);
}
