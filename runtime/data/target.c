/* target.c -- targets that are numbers: their shape, their values, and their variance. */
#include "base/error.h"
#include "data/data.h"
#include "files/params.h"
#include <float.h>
#include <math.h>
#include <string.h>

void target_take_shape(const RtProgram *p, const char *path, int rank, const int64_t *dim)
{
    if (data_shape_fits(rank, dim, p->target_rank, p->target_dim))
        return;
    char a[128], b[128];
    rt_die("%s holds %s%s, but the target '%s' of %s is %s: save rows of this shape, or change "
           "the line target of the recipe",
           path, rank ? "targets of shape " : "one number for each sample",
           rank ? data_shape_text(a, rank, dim) : "", p->target_name, p->model,
           data_shape_text(b, p->target_rank, p->target_dim));
}

void target_put(Data *d, const char *path, int64_t i, double v)
{
    if (!(fabs(v) <= (d->real_bytes == 8 ? DBL_MAX : FLT_MAX)))
        rt_die("%s: number %lld of the target of sample %lld is %g, %s", path,
               (long long)(i % d->targets), (long long)(i / d->targets), v,
               isfinite(v) ? "too large for f32: build with --dtype f64"
                           : "not a finite number: remove this sample or fill the gap");
    if (d->real_bytes == 8)
        ((double *)(void *)d->numbers)[i] = v;
    else
        ((float *)(void *)d->numbers)[i] = (float)v;
}

/* The target of sample i: in memory, or made in `made` if the data are synthetic. */
static const char *target_of(const Data *d, char *made, int64_t i)
{
    if (!d->synthetic)
        return data_label(d, i);
    synthetic_target(d, made, d->first + i);
    return made;
}

/* Two passes in double and in the order of the samples, so each rank gets the same bits. */
void target_variance(Data *d)
{
    double *mean = rt_alloc(sizeof *mean * (size_t)d->targets), sum = 0;
    char *made = rt_alloc((size_t)data_label_stride(d));
    memset(mean, 0, sizeof *mean * (size_t)d->targets);
    for (int64_t i = 0; i < d->n; i++) {
        const char *row = target_of(d, made, i);
        for (int64_t k = 0; k < d->targets; k++)
            mean[k] += params_real(row, d->real_bytes, k);
    }
    for (int64_t i = 0; i < d->n; i++) {
        const char *row = target_of(d, made, i);
        for (int64_t k = 0; k < d->targets; k++) {
            const double far = params_real(row, d->real_bytes, k) - mean[k] / (double)d->n;
            sum += far * far;
        }
    }
    d->variance = sum / (double)(d->n * d->targets);
}
