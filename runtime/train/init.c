/* init.c -- initial weights, computed in double and rounded once.
 *
 *   xavier      sigma or bound sqrt(a / fan), fan = in, out or their mean      MXNet, magnitude a
 *   glorot      uniform bound sqrt(6 / (in + out)), sigma sqrt(2 / (in + out)) Glorot & Bengio 2010
 *   he          uniform bound sqrt(6 / fan),  sigma sqrt(2 / fan)              He et al. 2015
 *   lecun       uniform bound sqrt(3 / in),   sigma sqrt(1 / in)               LeCun et al. 1998
 *   orthogonal  a * Q of the QR of a gaussian matrix                           Saxe et al. 2014
 *   uniform(a, b)   normal(mean a, std b)   constant(a)   second: a if b <= element < 2 b, else 0
 */
#include "train/init.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "files/params.h"
#include <math.h>
#include <stdlib.h>

typedef struct Job {
    const RtProgram *p;
    char *fixed;
    uint64_t seed;
} Job;

/* mean + scale * (standard normal, or uniform in -1 .. 1) */
typedef struct Law {
    bool gaussian;
    double mean, scale;
} Law;

static double fan_of(const RtParam *p)
{
    const double in = (double)p->fan_in, out = (double)p->fan_out;
    const double fan = p->init.fan == RT_FAN_IN    ? in
                       : p->init.fan == RT_FAN_OUT ? out
                                                   : (in + out) / 2;
    return fan > 0 ? fan : 1;
}

static Law law(const RtParam *p)
{
    const RtInit *i = &p->init;
    const double in = p->fan_in > 0 ? (double)p->fan_in : 1, both = in + (double)p->fan_out;
    switch (i->kind) {
    case RT_XAVIER:
        return (Law){i->gaussian, 0, sqrt(i->a / fan_of(p))};
    case RT_GLOROT:
        return (Law){i->gaussian, 0, sqrt((i->gaussian ? 2 : 6) / both)};
    case RT_HE:
        return (Law){i->gaussian, 0, sqrt((i->gaussian ? 2 : 6) / fan_of(p))};
    case RT_LECUN:
        return (Law){i->gaussian, 0, sqrt((i->gaussian ? 1 : 3) / in)};
    case RT_UNIFORM:
        return (Law){false, (i->a + i->b) / 2, (i->b - i->a) / 2};
    case RT_NORMAL:
        return (Law){true, i->a, i->b};
    default:
        return (Law){false, i->a, 0};
    }
}

/* Draws elements first .. first + n - 1 (first is even) from the distribution. */
static void draw_weights(double *v, const RtParam *p, Law l, uint64_t seed, int64_t first, int n)
{
    const uint64_t name = hash_text(p->name);
    for (int k = 0; k < n; k += 2) {
        double z[2];
        const uint32_t pair = (uint32_t)((first + k) / 2);
        if (l.gaussian)
            random_normal2(z, seed, RT_PURPOSE_INIT, (uint32_t)name, (uint32_t)(name >> 32), pair);
        else
            random_uniform2(z, seed, RT_PURPOSE_INIT, (uint32_t)name, (uint32_t)(name >> 32), pair);
        for (int i = 0; i < 2 && k + i < n; i++)
            v[k + i] = l.mean + l.scale * (l.gaussian ? z[i] : 2 * z[i] - 1);
    }
}

/* Makes the n vectors of length m (n <= m) at q, rows or columns of a matrix, orthonormal: modified
 * Gram-Schmidt with two sweeps for each vector, which is enough (Giraud et al. 2005). step:
 * distance between elements, next: between vectors. */
static void orthonormal(double *q, int64_t n, int64_t m, int64_t next, int64_t step)
{
    for (int64_t j = 0; j < n; j++) {
        double *a = q + j * next, norm = 0;
        for (int64_t k = 0; k < 2 * j; k++) {
            const double *b = q + k % j * next;
            double dot = 0;
            for (int64_t i = 0; i < m; i++)
                dot += a[i * step] * b[i * step];
            for (int64_t i = 0; i < m; i++)
                a[i * step] -= dot * b[i * step];
        }
        for (int64_t i = 0; i < m; i++)
            norm += a[i * step] * a[i * step];
        for (int64_t i = 0; i < m; i++)
            a[i * step] /= sqrt(norm);
    }
}

/* Treats the parameter as a matrix of dim[0] rows, and makes its shorter side orthonormal. */
static void orthogonal(const Job *j, const RtParam *p)
{
    const int64_t count = params_count(p), rows = p->rank > 0 ? p->dim[0] : 1,
                  columns = count / rows;
    double *q = rt_alloc(sizeof *q * (size_t)count);
    for (int64_t first = 0; first < count; first += PARAMS_CHUNK) {
        const int n = (int)(count - first < PARAMS_CHUNK ? count - first : PARAMS_CHUNK);
        draw_weights(q + first, p, (Law){true, 0, 1}, j->seed, first, n);
    }
    if (rows <= columns)
        orthonormal(q, rows, columns, columns, 1);
    else
        orthonormal(q, columns, rows, 1, columns);
    for (int64_t e = 0; e < count; e++)
        q[e] *= p->init.a;
    for (int64_t first = 0; first < count; first += PARAMS_CHUNK) {
        const int n = (int)(count - first < PARAMS_CHUNK ? count - first : PARAMS_CHUNK);
        params_put(p, j->fixed + p->offset, j->p->real_bytes, first, n, q + first);
    }
    free(q);
}

/* Fills chunk `unit`, counted over the chunks of all parameters. */
static void fill_chunk(void *arg, int thread, int unit)
{
    (void)thread;
    const Job *j = arg;
    const RtParam *p = j->p->param;
    for (int64_t chunks; unit >= (chunks = (params_count(p) + PARAMS_CHUNK - 1) / PARAMS_CHUNK);
         p++)
        unit -= (int)chunks;
    if (p->init.kind == RT_ORTHOGONAL) {
        if (unit == 0)
            orthogonal(j, p);
        return;
    }
    double v[PARAMS_CHUNK];
    const int64_t first = (int64_t)unit * PARAMS_CHUNK, left = params_count(p) - first;
    const int n = (int)(left < PARAMS_CHUNK ? left : PARAMS_CHUNK);
    if (p->init.kind == RT_SECOND)
        for (int k = 0; k < n; k++)
            v[k] = (double)(first + k) >= p->init.b && (double)(first + k) < 2 * p->init.b
                       ? p->init.a
                       : 0;
    else
        draw_weights(v, p, law(p), j->seed, first, n);
    params_put(p, j->fixed + p->offset, j->p->real_bytes, first, n, v);
}

/* Clears the row of padding in an embedding table. */
static void clear_blank(const RtProgram *p, char *fixed, const RtParam *w)
{
    static const double zero[PARAMS_CHUNK];
    const int64_t end = w->blank * w->dim[1];
    for (int64_t first = end - w->dim[1]; first < end; first += PARAMS_CHUNK) {
        const int n = (int)(end - first < PARAMS_CHUNK ? end - first : PARAMS_CHUNK);
        params_put(w, fixed + w->offset, p->real_bytes, first, n, zero);
    }
}

void init_params(const RtProgram *p, char *fixed, uint64_t seed, Pool *pool)
{
    Job j = {p, fixed, seed};
    int64_t chunks = 0;
    for (int i = 0; i < p->nparam; i++)
        chunks += (params_count(&p->param[i]) + PARAMS_CHUNK - 1) / PARAMS_CHUNK;
    pool_run(pool, fill_chunk, &j, (int)chunks);
    for (int i = 0; i < p->nparam; i++)
        if (p->param[i].blank > 0)
            clear_blank(p, fixed, &p->param[i]);
}
