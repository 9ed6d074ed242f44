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

/* What LAMB's step needs, in double. */
typedef struct Lamb {
    double beta1, beta2, eps, bias1, bias2, decay;
} Lamb;

static double clamped(double g, double limit)
{
    return limit > 0 && g > limit ? limit : limit > 0 && g < -limit ? -limit : g;
}

/* One element of LAMB's step.  m, v: the states before the step. */
static double lamb_step(const Lamb *o, double w, double g, double m, double v)
{
    m = o->beta1 * m + (1 - o->beta1) * g;
    v = o->beta2 * v + (1 - o->beta2) * g * g;
    const double root = sqrt(v / o->bias2) + o->eps;
    return (root > 0 ? m / o->bias1 / root : 0) + o->decay * w;
}

/* The squares of n reals in LANES interleaved sums, which the C compiler vectorises.  lamb: NULL
 * for LARS. */
#define DEFINE(T, NAME)                                                                            \
    static Norms norms_##NAME(const T *w, const T *g, const T *m, const T *v, int n, double limit, \
                              const Lamb *lamb)                                                    \
    {                                                                                              \
        double weights[LANES] = {0}, step[LANES] = {0};                                            \
        Norms all = {0};                                                                           \
        for (int i = 0; i < n; i += LANES)                                                         \
            for (int k = 0; k < LANES && i + k < n; k++) {                                         \
                const double x = (double)w[i + k], d = clamped((double)g[i + k], limit),           \
                             u = !lamb                                                             \
                                     ? d                                                           \
                                     : lamb_step(lamb, x, d, (double)m[i + k], (double)v[i + k]);  \
                weights[k] += x * x;                                                               \
                step[k] += u * u;                                                                  \
            }                                                                                      \
        for (int k = 0; k < LANES; k++)                                                            \
            all.weights += weights[k], all.step += step[k];                                        \
        return all;                                                                                \
    }
DEFINE(float, f32)
DEFINE(double, f64)

static Lamb lamb_of(const Trust *t, const RtSum *s)
{
    const RtRecipe *q = &t->p->recipe;
    const Opt64 *o = (const Opt64 *)&t->r->opt;
    const bool wide = t->p->real_bytes == 8;
    return (Lamb){.beta1 = q->beta1,
                  .beta2 = q->beta2,
                  .eps = q->eps,
                  .bias1 = wide ? o->bias1 : (double)t->r->opt.bias1,
                  .bias2 = wide ? o->bias2 : (double)t->r->opt.bias2,
                  .decay = q->weight_decay * s->decay};
}

static void piece_norms(void *arg, int thread, int unit)
{
    (void)thread;
    const Trust *t = arg;
    const Piece *e = &t->piece[unit];
    const RtParam *q = &t->p->param[e->sum->param];
    const RtRecipe *recipe = &t->p->recipe;
    const int64_t at = e->first * t->p->real_bytes;
    const char *fixed = t->r->fixed + at, *w = fixed + q->offset, *m = fixed + q->state[0],
               *v = fixed + q->state[1], *g = t->r->grad + e->sum->offset + at;
    const Lamb o = lamb_of(t, e->sum), *lamb = recipe->optimizer == RT_LAMB ? &o : NULL;

    t->norms[unit] = t->p->real_bytes == 8
                         ? norms_f64((const double *)w, (const double *)g, (const double *)m,
                                     (const double *)v, e->n, recipe->clip_value, lamb)
                         : norms_f32((const float *)w, (const float *)g, (const float *)m,
                                     (const float *)v, e->n, recipe->clip_value, lamb);
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
