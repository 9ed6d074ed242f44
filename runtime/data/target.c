/* target.c -- targets that are numbers: their shape, their values, and their variance. */
#include "base/error.h"
#include "data/data.h"
#include "files/params.h"
#include <float.h>
#include <math.h>
#include <string.h>

void target_take_shape(const RtProgram *p, const char *path, const char *name, int rank,
                       const int64_t *dim, int want_rank, const int64_t *want)
{
    if (data_shape_fits(rank, dim, want_rank, want))
        return;
    char a[128], b[128];
    rt_die("%s holds %s%s, but the target '%s' of %s is %s: save rows of this shape, or change "
           "the line target of the recipe",
           path, rank ? "targets of shape " : "one number for each sample",
           rank ? data_shape_text(a, rank, dim) : "", name, p->model,
           data_shape_text(b, want_rank, want));
}

int64_t target_count(const RtTarget *t)
{
    return t->kind == RT_TARGET_NUMBERS ? data_numbers(t->rank, t->dim) : 0;
}

void target_put(const Data *d, const char *path, bool truths, void *y, int64_t i, int64_t k,
                double v)
{
    if (!(fabs(v) <= (d->real_bytes == 8 ? DBL_MAX : FLT_MAX)))
        rt_die("%s: number %lld of the target of sample %lld is %g, %s", path, (long long)k,
               (long long)i, v,
               isfinite(v) ? "too large for f32: build with --dtype f64"
                           : "not a finite number: remove this sample or fill the gap");
    if (truths && !(v >= 0 && v <= 1))
        rt_die("%s: number %lld of the target of sample %lld is %g, and sigmoid_cross_entropy "
               "compares with numbers from 0 to 1: save a mask as 0 and 1, as mask > 0 does, or "
               "divide pixels by 255",
               path, (long long)k, (long long)i, v);
    if (d->real_bytes == 8)
        ((double *)y)[k] = v;
    else
        ((float *)y)[k] = (float)v;
}

/* The targets of sample i: in memory, or made in `made` if the data are synthetic. */
static const char *target_of(const Data *d, char *made, int64_t i)
{
    if (!d->synthetic)
        return data_label(d, i);
    synthetic_target(d, made, d->first + i);
    return made;
}

/* The variance of `count` numbers that lie `at` bytes from the start of each row.  Two passes in
 * double and in the order of the samples, so each rank gets the same bits. */
static double variance_of(const Data *d, int64_t at, int64_t count)
{
    double *mean = rt_alloc(sizeof *mean * (size_t)count), sum = 0;
    char *made = rt_alloc((size_t)data_label_stride(d));
    memset(mean, 0, sizeof *mean * (size_t)count);
    for (int64_t i = 0; i < d->n; i++) {
        const char *row = target_of(d, made, i) + at;
        for (int64_t k = 0; k < count; k++)
            mean[k] += params_real(row, d->real_bytes, k);
    }
    for (int64_t i = 0; i < d->n; i++) {
        const char *row = target_of(d, made, i) + at;
        for (int64_t k = 0; k < count; k++) {
            const double far = params_real(row, d->real_bytes, k) - mean[k] / (double)d->n;
            sum += far * far;
        }
    }
    return sum / (double)(d->n * count);
}

bool target_is_explained(const RtProgram *p, int k)
{
    const char *name = p->ntarget > 0 ? rt_format("r2_%s", p->targets[k].name) : "r2";
    bool found = false;
    for (int m = 0; m < p->nmetric; m++)
        found |= strcmp(p->metric[m], name) == 0;
    return found;
}

void target_variances(Data *d)
{
    if (d->targets && d->explained[0])
        d->variance[0] = variance_of(d, 0, d->targets);
    for (int k = 0; k < d->ntarget; k++)
        if (d->explained[k])
            d->variance[k] = variance_of(d, d->row_target[k].at, target_count(&d->row_target[k]));
}
