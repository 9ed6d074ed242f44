/* mean.c -- the mean sample of a training set, for recipes with normalize = per_pixel_mean.
 *
 * The sum of each element is in double, over the samples in their order; sums of bytes are exact.
 * So the bits are the same for any number of threads.
 */
#include "base/error.h"
#include "data/data.h"
#include "files/params.h"
#include <stdlib.h>

enum { RANGE = 256 }; /* elements of a unit of work */

typedef struct Mean {
    const Batch *b;
    double *sum;
    int64_t features;
} Mean;

static double element(const Batch *b, const char *row, int64_t e)
{
    return b->x_type == RT_U8    ? ((const uint8_t *)row)[e]
           : b->x_type == RT_F32 ? ((const float *)row)[e]
                                 : ((const double *)row)[e];
}

static void add_samples(void *arg, int thread, int unit)
{
    (void)thread;
    const Mean *m = arg;
    const Batch *b = m->b;
    const int64_t first = (int64_t)unit * RANGE,
                  end = first + RANGE < m->features ? first + RANGE : m->features;
    for (int i = 0; i < b->valid; i++)
        for (int64_t e = first; e < end; e++)
            m->sum[e] += element(b, (const char *)b->x + (int64_t)b->index[i] * b->x_stride, e);
}

static void put_mean(const RtProgram *p, char *memory, const double *mean, int64_t features)
{
    for (int64_t first = 0; first < features; first += PARAMS_CHUNK) {
        const int n = (int)(features - first < PARAMS_CHUNK ? features - first : PARAMS_CHUNK);
        params_put(p->input_mean, memory, p->real_bytes, first, n, mean + first);
    }
}

void data_mean(const Data *d, const RtProgram *p, Pool *pool, char *fixed)
{
    if (!p->input_mean)
        return;
    const int64_t features = data_features(p), steps = (d->n + p->batch - 1) / p->batch;
    const Order order = order_stored(d->n, p->batch);
    Batch b = {.seed = 0};
    Mean m = {.b = &b, .sum = rt_alloc(sizeof *m.sum * (size_t)features), .features = features};
    for (int64_t s = 0; s < steps; s++) {
        const int64_t left = d->n - s * p->batch;
        data_batch(d, pool, &order, s, left < p->batch ? (int)left : p->batch, &b);
        pool_run(pool, add_samples, &m, (int)((features + RANGE - 1) / RANGE));
    }
    for (int64_t e = 0; e < features; e++)
        m.sum[e] *= (d->type == RT_U8 ? d->scale : 1) / (double)d->n;
    put_mean(p, fixed + p->input_mean->offset, m.sum, features);
    free(m.sum);
    free(order.sample);
}
