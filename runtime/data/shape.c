/* shape.c -- sizes of samples and labels, and whether stored samples fit the program.  All formats
 * use it. */
#include "base/error.h"
#include "data/data.h"
#include "files/params.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t data_numbers(int rank, const int64_t *dim)
{
    int64_t n = 1;
    for (int i = 0; i < rank; i++)
        n *= dim[i];
    return n;
}

int64_t data_features(const RtProgram *p)
{
    return data_numbers(p->input_rank, p->input_dim);
}

int64_t data_count(const RtInput *x)
{
    return data_numbers(x->rank, x->dim);
}

int64_t data_bytes(int64_t n, int type)
{
    static const int64_t each[] =
        {[RT_U8] = 1, [RT_F32] = 4, [RT_F64] = 8, [RT_U16] = 2, [RT_I32] = 4, [RT_I64] = 8};
    return n * each[type];
}

int64_t data_label_stride(const Data *d)
{
    return d->ntarget   ? d->target_bytes
           : d->targets ? d->targets * d->real_bytes
                        : d->labels * (int64_t)sizeof *d->label;
}

char *data_label(const Data *d, int64_t i)
{
    char *first = d->targets ? d->numbers : (char *)d->label;
    return first ? first + i * data_label_stride(d) : NULL;
}

int64_t data_targets(const RtProgram *p)
{
    return p->target_kind == RT_TARGET_NUMBERS ? data_numbers(p->target_rank, p->target_dim) : 0;
}

const char *data_shape_text(char text[128], int rank, const int64_t *dim)
{
    int n = snprintf(text, 128, rank ? "" : "a number");
    for (int i = 0; i < rank && n < 100; i++)
        n += snprintf(text + n, (size_t)(128 - n), "%s%lld", i ? " x " : "", (long long)dim[i]);
    return text;
}

/* Copies the dimensions other than 1; returns their number. */
static int data_squeezed(int rank, const int64_t *dim, int64_t *to)
{
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (dim[i] != 1)
            to[n++] = dim[i];
    return n;
}

/* Whether the dimensions are (C, H, W) or (H, W) of images that the program may stretch. */
static bool resizable(const RtProgram *p, int rank, const int64_t *dim)
{
    const int64_t channels = rank == 3 ? dim[0] : 1;
    if (!p->recipe.resize || (rank != 2 && rank != 3) || channels != p->input_dim[0])
        return false;
    const int64_t h = dim[rank - 2], w = dim[rank - 1];
    return h > 0 && w > 0 && h <= 65536 && w <= 65536;
}

/* The product of the dimensions; -1: too large. */
static int64_t product_of(int rank, const int64_t *dim)
{
    int64_t product = 1;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(product, dim[i], &product))
            return -1;
    return product;
}

bool data_shape_fits(int rank, const int64_t *dim, int want_rank, const int64_t *want)
{
    int64_t have[8] = {0}, wanted[8] = {0};
    const int n = data_squeezed(rank, dim, have), m = data_squeezed(want_rank, want, wanted);
    if (n == m && memcmp(have, wanted, sizeof *have * (size_t)n) == 0)
        return true;
    return (n <= 1 || m <= 1) && product_of(rank, dim) == product_of(want_rank, want);
}

void data_take_shape(Data *d, const RtProgram *p, const char *path, int rank, const int64_t *dim)
{
    if (data_shape_fits(rank, dim, p->input_rank, p->input_dim))
        return;
    if (!resizable(p, rank, dim)) {
        char a[128], b[128];
        rt_die("%s holds samples of shape %s, but %s takes %s", path, data_shape_text(a, rank, dim),
               p->model, data_shape_text(b, p->input_rank, p->input_dim));
    }
    d->features = product_of(rank, dim);
    d->height = dim[rank - 2];
    d->width = dim[rank - 1];
}

void data_check_finite(const RtProgram *p, const char *path, const char *x, int type, int64_t n,
                       int64_t features)
{
    const double most = p->real_bytes == 8 ? DBL_MAX : FLT_MAX;
    if (type != RT_F32 && type != RT_F64)
        return;
    for (int64_t i = 0; i < n * features; i++) {
        const double v = params_real(x, type == RT_F64 ? 8 : 4, i);
        if (!(fabs(v) <= most))
            rt_die("%s: number %lld of sample %lld is %g, %s", path, (long long)(i % features),
                   (long long)(i / features), v,
                   isfinite(v) ? "too large for f32" : "not a finite number");
    }
}

void data_check_class(int64_t classes, const char *path, int64_t sample, int64_t label)
{
    if (label < 0 || label >= classes)
        rt_die("%s: label %lld of sample %lld is out of range: the classes are 0 to %lld", path,
               (long long)label, (long long)sample, (long long)classes - 1);
}

void data_check_label(const Data *d, const char *path, int64_t sample, int64_t label)
{
    if (d->classes > 0)
        data_check_class(d->classes, path, sample, label);
}
