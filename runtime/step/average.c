/* average.c -- see average.h. */
#include "step/average.h"
#include "base/error.h"
#include "base/memory.h"
#include <string.h>

enum { PIECE = 16384 /* reals that one unit works on */, LANES = 16 };

/* Consecutive reals of a parameter. */
struct AveragePiece {
    int64_t at; /* bytes from the start of `fixed` */
    int n;
};

typedef struct Job {
    const Average *a;
    char *fixed;
    const struct AveragePiece *piece;
    double share; /* of the weights in the new average */
} Job;

static int pieces_of(const RtProgram *p, const RtSum *s)
{
    return s->param < 0 ? 0 : (int)((p->param[s->param].count_memory + PIECE - 1) / PIECE);
}

static bool in_bucket(const RtProgram *p, const RtSum *s, int bucket)
{
    const RtBucket *b = &p->bucket[bucket];
    return s->offset >= b->offset && s->offset < b->offset + b->bytes;
}

static void add_pieces(Average *a, const RtSum *s, int *n)
{
    const RtProgram *p = a->p;
    const RtParam *q = &p->param[s->param];
    a->averaged[s->param] = true;
    for (int64_t first = 0; first < q->count_memory; first += PIECE) {
        const int64_t left = q->count_memory - first;
        a->piece[(*n)++] = (struct AveragePiece){q->offset + first * p->real_bytes,
                                                 (int)(left < PIECE ? left : PIECE)};
    }
}

/* Lists the pieces of all parameters with a gradient, bucket by bucket. */
static void list_pieces(Average *a)
{
    const RtProgram *p = a->p;
    int all = 0, n = 0;
    for (int i = 0; i < p->ngradient; i++)
        all += pieces_of(p, &p->sum[i]);
    a->piece = rt_alloc(sizeof *a->piece * (size_t)(all + 1));
    a->first = rt_alloc(sizeof *a->first * (size_t)(p->nbucket + 1));
    for (int b = 0; b < p->nbucket; b++) {
        a->first[b] = n;
        for (int i = 0; i < p->ngradient; i++)
            if (p->sum[i].param >= 0 && in_bucket(p, &p->sum[i], b))
                add_pieces(a, &p->sum[i], &n);
    }
    a->first[p->nbucket] = n;
    if (n != all)
        rt_die("%d of %d pieces of the averaged weights lie in no bucket", all - n, all);
}

Average *average_new(const RtProgram *p, Pool *pool, char *fixed)
{
    if (p->recipe.average == RT_AVERAGE_NONE)
        return NULL;
    Average *a = rt_alloc(sizeof *a);
    *a = (Average){.p = p, .pool = pool};
    a->memory = p->average_offset > 0
                    ? fixed + p->average_offset
                    : memory_map(p->average_bytes, true, "the averages of the weights");
    a->averaged = rt_alloc(sizeof *a->averaged * (size_t)(p->nparam + 1));
    list_pieces(a);
    return a;
}

/* The loops of LANES numbers have a constant length, so -O2 makes vectors of them. */
#define DEFINE(T, NAME)                                                                            \
    static void add_##NAME(T *restrict a, const T *restrict w, int n, T share)                     \
    {                                                                                              \
        int i = 0;                                                                                 \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (int k = 0; k < LANES; k++)                                                        \
                a[i + k] += share * (w[i + k] - a[i + k]);                                         \
        for (; i < n; i++)                                                                         \
            a[i] += share * (w[i] - a[i]);                                                         \
    }                                                                                              \
    static void exchange_##NAME(T *restrict a, T *restrict w, int n)                               \
    {                                                                                              \
        for (int i = 0; i < n; i++) {                                                              \
            const T was = a[i];                                                                    \
            a[i] = w[i];                                                                           \
            w[i] = was;                                                                            \
        }                                                                                          \
    }
DEFINE(float, f32)
DEFINE(double, f64)

static void add_piece(void *arg, int thread, int unit)
{
    (void)thread;
    const Job *j = arg;
    const struct AveragePiece *x = &j->piece[unit];
    char *a = j->a->memory + x->at;
    const char *w = j->fixed + x->at;
    if (j->a->p->real_bytes == 8)
        add_f64((double *)a, (const double *)w, x->n, j->share);
    else
        add_f32((float *)a, (const float *)w, x->n, (float)j->share);
}

static void copy_piece(void *arg, int thread, int unit)
{
    (void)thread;
    const Job *j = arg;
    const struct AveragePiece *x = &j->piece[unit];
    memcpy(j->a->memory + x->at, j->fixed + x->at, (size_t)(x->n * j->a->p->real_bytes));
}

static void exchange_piece(void *arg, int thread, int unit)
{
    (void)thread;
    const Job *j = arg;
    const struct AveragePiece *x = &j->piece[unit];
    char *a = j->a->memory + x->at, *w = j->fixed + x->at;
    if (j->a->p->real_bytes == 8)
        exchange_f64((double *)a, (double *)w, x->n);
    else
        exchange_f32((float *)a, (float *)w, x->n);
}

/* Runs the work over the pieces of a bucket, or of all (-1). */
static void over_pieces(const Average *a, char *fixed, int bucket, double share, PoolWork work)
{
    const int first = bucket < 0 ? 0 : a->first[bucket],
              end = a->first[bucket < 0 ? a->p->nbucket : bucket + 1];
    Job j = {a, fixed, a->piece + first, share};
    pool_run(a->pool, work, &j, end - first);
}

/* Adds the weights to the average. share 1: the average begins. */
static void add(Average *a, const char *fixed, int bucket, double share)
{
    over_pieces(a, (char *)fixed, bucket, share, share == 1 ? copy_piece : add_piece);
    a->begun = true;
}

double average_share(const RtProgram *p, int64_t step)
{
    return step == 0 ? 1 : 1 - p->recipe.average_decay;
}

void average_step(Average *a, const char *fixed, int bucket, int64_t step)
{
    if (a->p->recipe.average == RT_AVERAGE_EMA)
        add(a, fixed, bucket, average_share(a->p, step));
}

void average_stepped(Average *a)
{
    a->begun |= a->p->recipe.average == RT_AVERAGE_EMA;
}

void average_epoch(Average *a, const char *fixed, int64_t epochs)
{
    const RtRecipe *r = &a->p->recipe;
    if (r->average == RT_AVERAGE_SWA && epochs >= r->average_from && epochs > a->epochs)
        add(a, fixed, -1, 1.0 / (double)(epochs - r->average_from + 1));
    a->epochs = epochs;
}

void average_resumed(Average *a, int64_t epochs, int64_t steps)
{
    const RtRecipe *r = &a->p->recipe;
    a->epochs = epochs;
    a->begun = r->average == RT_AVERAGE_EMA ? steps > 0 : epochs >= r->average_from;
}

void average_fill(Average *a, const char *fixed)
{
    if (!a->begun)
        over_pieces(a, (char *)fixed, -1, 1, copy_piece);
}

void average_exchange(Average *a, char *fixed)
{
    over_pieces(a, fixed, -1, 0, exchange_piece);
    a->shown = !a->shown;
}
