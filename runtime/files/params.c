/* params.c -- conversion between the order in files and the order in memory, by RtParam.axis. */
#include "files/params.h"
#include "base/hash.h"
#include <math.h>
#include <string.h>

int64_t params_count(const RtParam *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->rank; i++)
        n *= p->dim[i];
    return n;
}

static int64_t along(const RtAxis *a, int64_t i)
{
    return i / a->block * a->outer + i % a->block * a->inner;
}

/* Counts through the axes; the last axis changes fastest.  base: the offset due to the other
 * axes. */
void params_places(const RtParam *p, int64_t first, int n, int64_t *place)
{
    const int last = p->naxis - 1;
    int64_t digit[8] = {0}, base = 0;
    for (int k = last; k >= 0; k--) {
        digit[k] = first % p->axis[k].n;
        first /= p->axis[k].n;
        if (k < last)
            base += along(&p->axis[k], digit[k]);
    }
    for (int e = 0; e < n; e++) {
        place[e] = base + (last >= 0 ? along(&p->axis[last], digit[last]) : 0);
        int k = last;
        while (k >= 0 && ++digit[k] == p->axis[k].n)
            digit[k--] = 0;
        if (k == last)
            continue;
        base = 0;
        for (int i = 0; i < last; i++)
            base += along(&p->axis[i], digit[i]);
    }
}

void params_get(const RtParam *p, const char *memory, int real_bytes, int64_t first, int n,
                void *out)
{
    int64_t place[PARAMS_CHUNK];
    params_places(p, first, n, place);
    for (int e = 0; e < n; e++)
        memcpy((char *)out + e * real_bytes, memory + place[e] * real_bytes, (size_t)real_bytes);
}

void params_put(const RtParam *p, char *memory, int real_bytes, int64_t first, int n,
                const double *in)
{
    int64_t place[PARAMS_CHUNK];
    params_places(p, first, n, place);
    for (int e = 0; e < n; e++)
        params_set_real(memory, real_bytes, place[e], in[e]);
}

void params_put_bits(const RtParam *p, char *memory, int real_bytes, int64_t first, int n,
                     const void *in)
{
    int64_t place[PARAMS_CHUNK];
    params_places(p, first, n, place);
    for (int e = 0; e < n; e++)
        memcpy(memory + place[e] * real_bytes, (const char *)in + e * real_bytes,
               (size_t)real_bytes);
}

double params_real(const char *memory, int real_bytes, int64_t place)
{
    return real_bytes == 8 ? ((const double *)memory)[place]
                           : (double)((const float *)memory)[place];
}

void params_set_real(char *memory, int real_bytes, int64_t place, double v)
{
    if (real_bytes == 8)
        ((double *)memory)[place] = v;
    else
        ((float *)memory)[place] = (float)v;
}

static int params_piece(int64_t count, int64_t first)
{
    return (int)(count - first < PARAMS_CHUNK ? count - first : PARAMS_CHUNK);
}

uint64_t params_hash(const RtProgram *p, const char *fixed)
{
    Hash h = hash_new();
    for (int i = 0; i < p->nparam; i++) {
        const RtParam *w = &p->param[i];
        const int64_t count = params_count(w);
        for (int64_t first = 0; first < count; first += PARAMS_CHUNK) {
            double chunk[PARAMS_CHUNK];
            const int n = params_piece(count, first);
            params_get(w, fixed + w->offset, p->real_bytes, first, n, chunk);
            hash_add(&h, chunk, (size_t)n * (size_t)p->real_bytes);
        }
    }
    return hash_end(&h);
}

const RtParam *params_nonfinite(const RtProgram *p, const char *fixed)
{
    for (int i = 0; i < p->nparam; i++)
        for (int64_t k = 0; k < p->param[i].count_memory; k++)
            if (!isfinite(params_real(fixed + p->param[i].offset, p->real_bytes, k)))
                return &p->param[i];
    return NULL;
}
