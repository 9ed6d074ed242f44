/* targets.c -- several targets: an array for each, and rows that hold one sample of all of them.
 *
 *   train_digit.npy (N) u8, train_brightness.npy (N) f32   ->   N rows of an int32 and a real
 *
 * All code after this sees one row of labels for each sample.  Only kernels that load a target read
 * its place in the row, which the compiler has chosen (RtTarget.at).
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/data.h"
#include "data/npy.h"

struct Targets {
    Npy array[RT_TARGETS];
};

/* "train_digit.npy, train_brightness.npy": those that do not exist. */
static const char *missing_arrays(const Data *d, const char *split)
{
    const char *all = "";
    for (int k = 0; k < d->ntarget; k++)
        if (d->row_target[k].kind != RT_TARGET_INPUT && !d->arrays->array[k].data)
            all = rt_format("%s%s%s%s.npy", all, *all ? ", " : "", npy_prefix(split),
                            d->row_target[k].name);
    return all;
}

static void check_array(const RtProgram *p, const RtTarget *t, const Npy *a, const char *x_path,
                        int64_t samples)
{
    if (t->kind == RT_TARGET_CLASS)
        npy_check_classes(a, 1);
    else
        npy_check_numbers(p, a, t->name, t->truths, t->rank, t->dim);
    if (a->dim[0] != samples)
        rt_die("%s holds %lld samples, but %s %lld targets", x_path, (long long)samples, a->path,
               (long long)a->dim[0]);
}

void targets_open(const RtProgram *p, const char *x_path, const char *directory, const char *split,
                  int64_t samples, Data *d)
{
    bool all = true;
    d->arrays = rt_alloc(sizeof *d->arrays);
    for (int k = 0; k < d->ntarget; k++) {
        Npy *a = &d->arrays->array[k];
        const RtTarget *t = &d->row_target[k];
        all &= t->kind == RT_TARGET_INPUT ||
               npy_map(a, rt_format("%s/%s%s.npy", directory, npy_prefix(split), t->name));
    }
    if (!all)
        rt_die("%s does not hold all %s%sarrays of the targets of %s: missing %s", directory, split,
               *split ? " " : "", p->model, missing_arrays(d, split));
    for (int k = 0; k < d->ntarget; k++)
        if (d->row_target[k].kind != RT_TARGET_INPUT)
            check_array(p, &d->row_target[k], &d->arrays->array[k], x_path, samples);
    if (d->target_bytes > 0)
        d->label = memory_map(d->n * d->target_bytes, false, "the targets of the samples");
}

static void fill_one(Data *d, const RtTarget *t, const Npy *a)
{
    const int64_t count = target_count(t);
    for (int64_t i = 0; i < data_rows(d); i++) {
        void *at = data_label(d, i) + t->at;
        for (int64_t k = 0; k < count; k++)
            target_put(d, a->path, t->truths, at, i, k, npy_number_at(a, i * count + k));
        if (t->kind == RT_TARGET_CLASS) {
            const int64_t class = npy_class_at(a, i);
            data_check_class(t->classes, a->path, i, class);
            *(int32_t *)at = (int32_t) class;
        }
    }
}

void targets_fill(Data *d)
{
    for (int k = 0; k < d->ntarget; k++)
        if (d->row_target[k].kind != RT_TARGET_INPUT)
            fill_one(d, &d->row_target[k], &d->arrays->array[k]);
    target_variances(d);
}
