/* change.c -- what changed from one group of runs to another.
 *
 * A difference counts as a change if its 99 % interval excludes 1 and the medians differ by more than the floor.  Layers are
 * matched by name, place and the number of earlier layers with both, because a new layer changes the numbers of kernels.
 */
#include "sweep/compare.h"
#include <math.h>
#include <stdlib.h>

static const double level = 0.99;

static bool same_layer(const Layer *a, const Layer *b)
{
    return same_text(a->layer, b->layer) && same_text(a->place, b->place);
}

/* Number of layers before layer i of a run that have its name and place. */
static int count_before(const Run *r, int i)
{
    int n = 0;
    for (int k = 0; k < i; k++)
        n += same_layer(&r->layer[k], &r->layer[i]);
    return n;
}

static const Layer *find_layer(const Run *r, const Layer *like, int nth)
{
    for (int i = 0; i < r->nlayer; i++)
        if (same_layer(&r->layer[i], like) && nth-- == 0)
            return &r->layer[i];
    return NULL;
}

/* A layer's ms in each run of a group that has it. */
static int times(const Group *g, const Layer *like, int nth, double *ms, int most)
{
    int n = 0;
    for (int i = 0; i < g->n && n < most; i++) {
        const Layer *l = find_layer(g->run[i], like, nth);
        if (l)
            ms[n++] = l->ms;
    }
    return n;
}

static int by_size(const void *a, const void *b)
{
    const Part *x = a, *y = b;
    return (fabs(x->ms.value) < fabs(y->ms.value)) - (fabs(x->ms.value) > fabs(y->ms.value));
}

static void parts(Arena *a, const Group *x, const Group *y, double floor, Change *c)
{
    enum { MOST = 256 };
    double before[MOST], after[MOST];
    const Run *first = x->run[0];
    double step = 0;
    for (int i = 0; i < first->nlayer; i++)
        step += first->layer[i].ms;
    for (int i = 0; i < first->nlayer; i++) {
        const Layer *l = &first->layer[i];
        const int nth = count_before(first, i);
        const int n = times(x, l, nth, before, MOST), m = times(y, l, nth, after, MOST);
        if (n < COMPARE_LEAST || m < COMPARE_LEAST)
            continue;
        Part p = {.layer = l, .ms = stats_difference(before, n, after, m, level)};
        p.share = p.ms.value / stats_median(before, n);
        p.sure = (p.ms.low > 0 || p.ms.high < 0) && fabs(p.share) > floor &&
                 fabs(p.ms.value) > 0.002 * step;
        if (p.sure)
            ARENA_PUSH(a, c->part, c->npart, p);
    }
    if (c->npart)
        qsort(c->part, (size_t)c->npart, sizeof *c->part, by_size);
}

void compare_groups(Arena *a, const Group *x, const Group *y, double floor, Change *c)
{
    *c = (Change){.a = x,
                  .b = y,
                  .kind = CHANGE_UNKNOWN,
                  .ratio = stats_ratio(x->rate, x->n, y->rate, y->n, level)};
    if (x->n < COMPARE_LEAST || y->n < COMPARE_LEAST)
        return;
    const Interval *r = &c->ratio;
    c->kind = r->high < 1 && r->value < 1 - floor  ? CHANGE_SLOWER
              : r->low > 1 && r->value > 1 + floor ? CHANGE_FASTER
                                                   : CHANGE_NONE;
    parts(a, x, y, floor, c);
}

const Group *compare_partner(const Group *group, int n, const Group *like)
{
    const Run *a = like->first;
    for (int i = 0; i < n; i++) {
        const Run *b = group[i].first;
        if (group[i].n && same_text(a->model, b->model) && same_text(a->framework, b->framework) &&
            same_text(a->build, b->build) && same_text(a->data, b->data) && a->batch == b->batch &&
            a->threads == b->threads && a->ranks == b->ranks && a->gpus == b->gpus &&
            a->steps == b->steps && a->epochs == b->epochs && a->limit_samples == b->limit_samples)
            return &group[i];
    }
    return NULL;
}

/* Whether two runs must end with the same weights.  Threads, ranks and repeats can differ; so can labels if the bytes of
 * the program are the same. */
static bool same_training(const Run *a, const Run *b)
{
    return a->weights_hash && b->weights_hash && same_text(a->network, b->network) &&
           same_text(a->build, b->build) && same_text(a->cpu, b->cpu) &&
           same_text(a->data, b->data) && same_text(a->framework, b->framework) &&
           a->batch == b->batch && a->shards == b->shards && a->epochs == b->epochs &&
           a->seed == b->seed && a->limit_samples == b->limit_samples &&
           (same_text(a->label, b->label) || same_text(a->binary, b->binary));
}

int compare_bits(Arena *a, const Group *group, int n, const char ***line)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        for (int k = i; k < n; k++)
            for (int j = 0; j < group[k].n; j++) {
                const Run *x = group[i].n ? group[i].run[0] : NULL, *y = group[k].run[j];
                if (!x || !same_training(x, y) || same_text(x->weights_hash, y->weights_hash))
                    continue;
                const char *text =
                    arena_printf(a, "%s (%s) and %s (%s), runs %lld and %lld", group_name(a, x),
                                 x->weights_hash, group_name(a, y), y->weights_hash,
                                 (long long)x->id, (long long)y->id);
                ARENA_PUSH(a, *line, found, text);
                break; /* one line for each pair of groups */
            }
    return found;
}
