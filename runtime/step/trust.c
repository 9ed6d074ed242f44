/* trust.c -- see trust.h. */
#include "step/trust.h"
#include "base/error.h"
#include "step/step.h"
#include <math.h>

enum { PIECE = 4096 /* reals that one unit works on */, LANES = 8 };

/* Squares of the weights, and of the gradient or of LAMB's step. */
typedef struct Norms {
    double weights, step;
} Norms;

/* Consecutive reals of a parameter. */
typedef struct Piece {
    const RtSum *sum;
    int64_t first;
    int n;
} Piece;

struct Trust {
    const RtProgram *p;
    double *ratio; /* [nsum] */
    int npiece;
    Piece *piece;
    Norms *norms; /* [npiece] */
    const Rt *r;  /* of the step */
};

/* What LAMB's step needs, in double; bias1, bias2: 1 / (1 - beta^t). */
typedef struct Lamb {
    double beta1, beta2, eps, bias1, bias2, decay;
} Lamb;

static double clamped(double g, double limit)
{
    return g > limit ? limit : g < -limit ? -limit : g;
}

/* One element of LAMB's step.  m, v: the states before the step. */
static inline double lamb_step(const Lamb *o, double w, double g, double m, double v)
{
    m = (o->beta1 * m + (1 - o->beta1) * g) * o->bias1;
    v = (o->beta2 * v + (1 - o->beta2) * g * g) * o->bias2;
    const double root = sqrt(v) + o->eps;
    return (root > 0 ? m / root : m * root) + o->decay * w;
}

/* LANES consecutive numbers as double; 0 after the first n. */
#define DEFINE(T, NAME)                                                                            \
    static inline void widen_##NAME(double *to, const T *from, int n)                              \
    {                                                                                              \
        if (n >= LANES)                                                                            \
            for (int k = 0; k < LANES; k++)                                                        \
                to[k] = (double)from[k];                                                           \
        else                                                                                       \
            for (int k = 0; k < LANES; k++)                                                        \
                to[k] = k < n ? (double)from[k] : 0;                                               \
    }
DEFINE(float, f32)
DEFINE(double, f64)

/* An array of a parameter: reals of the program. */
typedef struct Reals {
    const char *at;
    bool wide; /* they are double */
} Reals;
static inline void widen(double *to, Reals from, int first, int n)
{
    if (from.wide)
        widen_f64(to, (const double *)from.at + first, n - first);
    else
        widen_f32(to, (const float *)from.at + first, n - first);
}

/* The squares of n numbers, in LANES interleaved sums, so that the C compiler vectorises them.
 * lamb: NULL for LARS. */
static inline Norms norms_of(Reals weight, Reals gradient, Reals mean, Reals square, int n,
                             double limit, const Lamb *lamb)
{
    double weights[LANES] = {0}, step[LANES] = {0}, w[LANES], g[LANES], m[LANES], v[LANES];
    Norms all = {0};
    for (int i = 0; i < n; i += LANES) {
        widen(w, weight, i, n);
        widen(g, gradient, i, n);
        if (lamb) {
            widen(m, mean, i, n);
            widen(v, square, i, n);
        }
        for (int k = 0; k < LANES; k++)
            g[k] = clamped(g[k], limit);
        for (int k = 0; lamb && k < LANES; k++)
            g[k] = lamb_step(lamb, w[k], g[k], m[k], v[k]);
        for (int k = 0; k < LANES; k++)
            weights[k] += w[k] * w[k], step[k] += g[k] * g[k];
    }
    for (int k = 0; k < LANES; k++)
        all.weights += weights[k], all.step += step[k];
    return all;
}

static Lamb lamb_of(const Trust *t, const RtSum *s)
{
    const RtRecipe *q = &t->p->recipe;
    const Opt64 *o = (const Opt64 *)&t->r->opt;
    const bool wide = t->p->real_bytes == 8;
    return (Lamb){.beta1 = q->beta1,
                  .beta2 = q->beta2,
                  .eps = q->eps,
                  .bias1 = 1 / (wide ? o->bias1 : (double)t->r->opt.bias1),
                  .bias2 = 1 / (wide ? o->bias2 : (double)t->r->opt.bias2),
                  .decay = q->weight_decay * s->decay};
}

static void piece_norms(void *arg, int thread, int unit)
{
    (void)thread;
    const Trust *t = arg;
    const Piece *e = &t->piece[unit];
    const RtParam *q = &t->p->param[e->sum->param];
    const RtRecipe *recipe = &t->p->recipe;
    const bool wide = t->p->real_bytes == 8;
    const int64_t at = e->first * t->p->real_bytes;
    const char *fixed = t->r->fixed + at;
    const Reals w = {fixed + q->offset, wide}, g = {t->r->grad + e->sum->offset + at, wide},
                m = {fixed + q->state[0], wide}, v = {fixed + q->state[1], wide};
    const double limit = recipe->clip_value > 0 ? recipe->clip_value : INFINITY;
    const Lamb o = lamb_of(t, e->sum);

    t->norms[unit] = recipe->optimizer == RT_LAMB ? norms_of(w, g, m, v, e->n, limit, &o)
                                                  : norms_of(w, g, g, g, e->n, limit, NULL);
}

static double ratio_of(const RtRecipe *q, const RtSum *s, Norms sum)
{
    const double w = sqrt(sum.weights), step = sqrt(sum.step);
    if (w == 0 || step == 0)
        return 1;
    return q->optimizer == RT_LARS ? q->trust * w / (step + q->weight_decay * s->decay * w)
                                   : w / step;
}

static int pieces_of(const RtSum *s)
{
    return s->trusts ? (int)((s->count + PIECE - 1) / PIECE) : 0;
}

Trust *trust_new(const RtProgram *p)
{
    if (p->recipe.optimizer != RT_LARS && p->recipe.optimizer != RT_LAMB)
        return NULL;
    Trust *t = rt_alloc(sizeof *t);
    *t = (Trust){.p = p};
    for (int i = 0; i < p->nsum; i++)
        t->npiece += pieces_of(&p->sum[i]);
    t->ratio = rt_alloc(sizeof *t->ratio * (size_t)(p->nsum + 1));
    t->piece = rt_alloc(sizeof *t->piece * (size_t)(t->npiece + 1));
    t->norms = rt_alloc(sizeof *t->norms * (size_t)(t->npiece + 1));
    for (int i = 0, n = 0; i < p->nsum; i++)
        for (int k = 0; k < pieces_of(&p->sum[i]); k++) {
            const int64_t first = (int64_t)k * PIECE, left = p->sum[i].count - first;
            t->piece[n++] = (Piece){&p->sum[i], first, (int)(left < PIECE ? left : PIECE)};
        }
    return t;
}

void trust_compute(Trust *t, Pool *pool, const Rt *r)
{
    const RtProgram *p = t->p;
    const Norms *norms = t->norms;
    t->r = r;
    pool_run(pool, piece_norms, t, t->npiece);
    for (int i = 0; i < p->nsum; i++) {
        Norms sum = {0};
        for (int k = 0; k < pieces_of(&p->sum[i]); k++, norms++)
            sum.weights += norms->weights, sum.step += norms->step;
        t->ratio[i] = p->sum[i].trusts ? ratio_of(&p->recipe, &p->sum[i], sum) : 0;
    }
}

const double *trust_ratios(const Trust *t)
{
    return t->ratio;
}
