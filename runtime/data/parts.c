/* parts.c -- several inputs: an array for each, and rows that hold one sample of all of them.
 *
 *   train_left.npy (N, 1, 28, 28) u8   train_age.npy (N) f32   ->   N rows of 784 u8, 1 f32
 *
 * All code after this sees one row for each sample: batches, ranks, devices and hashes. Only
 * kernels that load an input read its part of the row (Rt.part).  A part keeps the type of its
 * array and begins at a multiple of 8 bytes.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/data.h"
#include "data/npy.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { PART_ALIGN = 8, FILL_BYTES = 1 << 20 }; /* FILL_BYTES: of a unit of work, about */

struct Parts {
    Npy array[RT_INPUTS];
};

static int64_t part_bytes(const RtInput *x, const RtPart *part)
{
    return data_bytes(data_count(x), part->type);
}

/* Lays the parts out in a row, by their types.  A row of them is a row of bytes. */
void parts_place(const RtProgram *p, Data *d)
{
    int64_t at = 0;
    for (int k = 0; k < p->ninput; k++) {
        d->row_part[k].at = at;
        at +=
            (part_bytes(&p->input[k], &d->row_part[k]) + PART_ALIGN - 1) / PART_ALIGN * PART_ALIGN;
    }
    d->type = RT_U8;
    d->stride = d->features = at;
}

void parts_synthetic(const RtProgram *p, Data *d)
{
    for (int k = 0; k < p->ninput; k++)
        d->row_part[k].type = p->input[k].tokens ? RT_I32 : RT_U8;
    parts_place(p, d);
}

/* ---- arrays */

static void check_array(const RtProgram *p, const RtInput *x, const Npy *a)
{
    char have[128], want[128];
    if (a->rank < 1)
        rt_die("%s is a single number, not a list of samples", a->path);
    if (!data_shape_fits(a->rank - 1, a->dim + 1, x->rank, x->dim))
        rt_die("%s holds samples of shape %s, but the input '%s' of %s is %s", a->path,
               data_shape_text(have, a->rank - 1, a->dim + 1), x->name, p->model,
               data_shape_text(want, x->rank, x->dim));
    if (a->dim[0] == 0)
        rt_die("%s holds no sample", a->path);
}

/* Opens `before`NAME.npy for each input.  Returns the number of inputs that have a file; the
 * arrays are only checked if all have one. */
static int open_arrays(const RtProgram *p, const char *before, int64_t limit, Data *d)
{
    Npy *array = (d->parts = rt_alloc(sizeof *d->parts))->array;
    int found = 0;
    for (int k = 0; k < p->ninput; k++)
        found += npy_map(&array[k], rt_format("%s%s.npy", before, p->input[k].name));
    if (found < p->ninput)
        return found;
    for (int k = 0; k < p->ninput; k++) {
        const Npy *a = &array[k];
        check_array(p, &p->input[k], a);
        if (a->dim[0] != array[0].dim[0])
            rt_die("%s holds %lld samples, but %s %lld", array[0].path, (long long)array[0].dim[0],
                   a->path, (long long)a->dim[0]);
        d->row_part[k].type = p->input[k].tokens ? npy_token_type(p, a) : npy_number_type(a);
    }
    parts_place(p, d);
    d->n = limit > 0 && limit < array[0].dim[0] ? limit : array[0].dim[0];
    d->x = memory_map(d->n * d->stride, false, "the samples of several inputs");
    return found;
}

/* "train_left.npy, train_right.npy": those that do not exist. */
static const char *missing_arrays(const RtProgram *p, const Data *d, const char *split)
{
    const char *all = "";
    for (int k = 0; k < p->ninput; k++)
        if (!d->parts->array[k].data)
            all = rt_format("%s%s%s%s.npy", all, *all ? ", " : "", split, p->input[k].name);
    return all;
}

int64_t parts_open(const RtProgram *p, const char *directory, const char *split, int64_t limit,
                   Data *d)
{
    const char *prefix = npy_prefix(split);
    if (open_arrays(p, rt_format("%s/%s", directory, prefix), limit, d) < p->ninput)
        rt_die("%s does not hold all %s%sarrays of %s, one for each input: missing %s", directory,
               split, *split ? " " : "", p->model, missing_arrays(p, d, prefix));
    return d->parts->array[0].dim[0];
}

/* ---- packing */

typedef struct Packing {
    const Data *d;
    int part, rows; /* rows: of a unit of work */
    int64_t all;
} Packing;

static void pack_rows(void *arg, int thread, int unit)
{
    (void)thread;
    const Packing *k = arg;
    const Data *d = k->d;
    const int64_t bytes = part_bytes(&d->input[k->part], &d->row_part[k->part]),
                  first = (int64_t)unit * k->rows,
                  end = first + k->rows < k->all ? first + k->rows : k->all;
    const char *from = d->parts->array[k->part].data + first * bytes;
    char *to = d->x + first * d->stride + d->row_part[k->part].at;
    for (int64_t i = first; i < end; i++, from += bytes, to += d->stride)
        memcpy(to, from, (size_t)bytes);
}

void parts_fill(Data *d, Pool *pool)
{
    const int64_t all = data_rows(d);
    for (int k = 0; k < d->ninput; k++) {
        const Npy *a = &d->parts->array[k];
        const int64_t count = data_count(&d->input[k]), bytes = count * a->size;
        const int64_t rows = FILL_BYTES / (bytes + PART_ALIGN) + 1;
        if (d->input[k].tokens)
            npy_check_tokens(a->path, a->data, d->row_part[k].type, all * count, count, d->vocab);
        Packing g = {d, k, (int)rows, all};
        const int units = (int)((all + rows - 1) / rows);
        if (pool)
            pool_run(pool, pack_rows, &g, units);
        for (int i = 0; !pool && i < units; i++)
            pack_rows(&g, 0, i);
        memory_forget(a->data, all * bytes);
    }
}

/* ---- samples to predict */

/* The parts of rows that hold the numbers of all inputs one after another. */
static void split_rows(const RtProgram *p, Data *d)
{
    int64_t at = 0;
    for (int k = 0; k < p->ninput; k++) {
        d->row_part[k] = (RtPart){data_bytes(at, d->type), d->type};
        at += data_count(&p->input[k]);
    }
}

/* "left 784, right 784" */
static const char *counts_text(const RtProgram *p)
{
    const char *all = "";
    for (int k = 0; k < p->ninput; k++)
        all = rt_format("%s%s%s %lld", all, k ? ", " : "", p->input[k].name,
                        (long long)data_count(&p->input[k]));
    return all;
}

void parts_check_finite(const RtProgram *p, const Data *d)
{
    for (int k = 0; k < p->ninput; k++)
        if (!p->input[k].tokens)
            data_check_finite(p, d->parts->array[k].path, d->parts->array[k].data,
                              d->row_part[k].type, d->n, data_count(&p->input[k]));
}

void parts_open_input(const RtProgram *p, const char *path, Data *d)
{
    const bool npy = find_has_ending(path, ".npy"), csv = find_has_ending(path, ".csv");
    if (find_is_directory(path)) {
        if (open_arrays(p, rt_format("%s/", path), 0, d) < p->ninput)
            rt_die("%s does not hold all arrays of %s, one for each input: missing %s", path,
                   p->model, missing_arrays(p, d, ""));
        parts_check_finite(p, d);
        return;
    }
    if (access(path, F_OK) != 0)
        rt_die("%s cannot be read: %s", path, strerror(errno));
    if (p->vocab)
        rt_die("%s: the input of %s is a directory with NAME.npy for each input, because a row of "
               "numbers has no tokens: %s",
               path, p->model, counts_text(p));
    if (npy)
        npy_open_input(p, path, d);
    else if (csv)
        csv_open_input(p, path, d);
    else
        rt_die("%s: the input of %s is a directory with NAME.npy for each input, or a .npy or .csv "
               "file whose rows hold all their numbers: %s",
               path, p->model, counts_text(p));
    split_rows(p, d);
    data_check_finite(p, path, d->x, d->type, d->n, data_features(p));
}

const char *parts_file(const RtProgram *p, const char *path, int k)
{
    return find_is_directory(path) ? rt_format("%s/%s.npy", path, p->input[k].name) : path;
}
