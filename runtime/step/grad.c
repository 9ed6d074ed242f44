/* grad.c -- elementwise work on gradient buffers, in blocks of constant size so that no sum
 * depends on the threads. */
#include "step/grad.h"
#include <math.h>

enum { BLOCK = 4096 }; /* reals that one unit works on */

typedef struct Job {
    const RtProgram *p;
    char *grad;
    int64_t next;
    const Node *node;
    int n;
    double *partial;
    double factor;
} Job;

/* A block: n reals at `at` bytes. */
typedef struct Block {
    int64_t at;
    int n;
} Block;

static int64_t blocks_of(const RtProgram *p, int sums)
{
    int64_t blocks = 0;
    for (int i = 0; i < sums; i++)
        blocks += (p->sum[i].count + BLOCK - 1) / BLOCK;
    return blocks;
}

int64_t grad_blocks(const RtProgram *p)
{
    return blocks_of(p, p->nsum);
}

static Block block_of(const RtProgram *p, int unit)
{
    const RtSum *s = p->sum;
    for (int64_t blocks; unit >= (blocks = (s->count + BLOCK - 1) / BLOCK); s++)
        unit -= (int)blocks;
    const int64_t first = (int64_t)unit * BLOCK, left = s->count - first;
    return (Block){s->offset + first * p->real_bytes, (int)(left < BLOCK ? left : BLOCK)};
}

#define DEFINE(T, NAME)                                                                            \
    static void add_##NAME(T *restrict a, const T *restrict b, int n)                              \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            a[i] += b[i];                                                                          \
    }                                                                                              \
    static double squares_##NAME(const T *a, int n)                                                \
    {                                                                                              \
        double sum = 0;                                                                            \
        for (int i = 0; i < n; i++)                                                                \
            sum += (double)a[i] * (double)a[i];                                                    \
        return sum;                                                                                \
    }                                                                                              \
    static void scale_##NAME(T *a, int n, T factor)                                                \
    {                                                                                              \
        for (int i = 0; i < n; i++)                                                                \
            a[i] *= factor;                                                                        \
    }
DEFINE(float, f32)
DEFINE(double, f64)

typedef struct Adding {
    const Job *j;
    Block b;
} Adding;

static void add_buffers(void *arg, int to, int from)
{
    const Adding *x = arg;
    char *a = x->j->grad + to * x->j->next + x->b.at;
    const char *b = x->j->grad + from * x->j->next + x->b.at;
    if (x->j->p->real_bytes == 8)
        add_f64((double *)a, (const double *)b, x->b.n);
    else
        add_f32((float *)a, (const float *)b, x->b.n);
}

static void add_block(void *arg, int thread, int unit)
{
    (void)thread;
    const Job *j = arg;
    Adding x = {j, block_of(j->p, unit)};
    tree_add(j->node, j->n, add_buffers, &x);
}

static void block_squares(void *arg, int thread, int unit)
{
    (void)thread;
    const Job *j = arg;
    const Block b = block_of(j->p, unit);
    j->partial[unit] = j->p->real_bytes == 8 ? squares_f64((const double *)(j->grad + b.at), b.n)
                                             : squares_f32((const float *)(j->grad + b.at), b.n);
}

static void scale_block(void *arg, int thread, int unit)
{
    (void)thread;
    const Job *j = arg;
    const Block b = block_of(j->p, unit);
    if (j->p->real_bytes == 8)
        scale_f64((double *)(j->grad + b.at), b.n, j->factor);
    else
        scale_f32((float *)(j->grad + b.at), b.n, (float)j->factor);
}

void grad_tree(const RtProgram *p, Pool *pool, char *grad, int64_t next, const Node *node, int n)
{
    Job j = {.p = p, .grad = grad, .next = next, .node = node, .n = n};
    pool_run(pool, add_block, &j, (int)grad_blocks(p));
}

void grad_clip(const RtProgram *p, Pool *pool, char *grad, double *partial, double limit)
{
    const int blocks = (int)blocks_of(p, p->ngradient);
    Job j = {.p = p, .grad = grad, .partial = partial};
    pool_run(pool, block_squares, &j, blocks);
    double sum = 0;
    for (int i = 0; i < blocks; i++)
        sum += partial[i];
    const double norm = sqrt(sum);
    if (!(norm > limit) && !pool_simulation(pool)) /* a simulation needs steps with equal jobs */
        return;
    j.factor = norm > limit ? limit / norm : 1;
    pool_run(pool, scale_block, &j, blocks);
}
