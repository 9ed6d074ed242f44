/* nans.c -- see nans.h. */
#include "train/nans.h"
#include "base/error.h"
#include "files/params.h"
#include <math.h>

typedef struct Search {
    const Nans *n;
    const char *output;
    int first; /* sample of unit 0 */
} Search;

/* Threads share the samples: an output with a class for each pixel has millions of numbers. */
static void search_sample(void *arg, int thread, int unit)
{
    const Search *s = arg;
    const RtProgram *p = s->n->p;
    const int64_t at = (s->first + unit) * p->outputs;
    bool found = false;
    (void)thread;
    for (int64_t k = 0; k < p->outputs && !found; k++)
        found = isnan(params_real(s->output, p->real_bytes, at + k));
    s->n->found[unit] = found;
}

static void add_batch(OutputReader *self, const Batch *b, const char *output)
{
    Nans *n = (Nans *)self; /* its first member */
    const int each = n->p->batch / n->comm->size, first = n->comm->rank * each,
              left = b->valid - first, samples = left < each ? left : each;
    Search s = {n, output, first};
    if (samples > 0)
        pool_run(n->pool, search_sample, &s, samples);
    for (int i = 0; i < samples; i++)
        n->count[n->comm->rank] += n->found[i];
}

Nans *nans_new(const RtProgram *p, Pool *pool, Comm *c)
{
    if (p->perplexity)
        return NULL;
    Nans *n = rt_alloc(sizeof *n);
    *n = (Nans){.p = p, .pool = pool, .comm = c, .reader.add = add_batch};
    n->reader.output = rt_alloc((size_t)(p->batch * p->outputs * p->real_bytes));
    n->found = rt_alloc(sizeof *n->found * (size_t)(p->batch / c->size));
    n->count = rt_alloc(sizeof *n->count * (size_t)c->size);
    return n;
}

void nans_end(Nans *n)
{
    comm_gather(n->comm, n->count, (int64_t)sizeof *n->count, "counts of NaN");
    for (int r = 0; r < n->comm->size; r++)
        n->all += n->count[r];
}
