/* shares.c -- splits that the data do not have: a share of the training samples becomes the test or
 * the validation split (split.h).
 *
 * Of the files of MNIST and CIFAR-10, only the samples of the split are kept while they are read
 * (stream_rows).  Arrays are opened as if all their samples were needed.  Then the samples of the
 * split move together.  Folders of images choose files by their names (folders.c), and tables
 * choose rows (tabular.c).
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/data.h"
#include "data/npy.h"
#include "data/split.h"
#include <string.h>
#include <unistd.h>

/* The share of a split that the recipe gives; 0 if the data have this split: `own` is its file.
 * Dies if there are both. */
static double share_of(const RtProgram *p, const char *place, const char *split, const char *own)
{
    const double given = strcmp(split, "test") == 0 ? p->recipe.test : p->recipe.validation;
    if (own && given > 0)
        rt_die("%s holds a split '%s' of its own, %s: remove %s = %g from the recipe", place, split,
               own, split, given);
    return own ? 0 : given;
}

static bool tests, all_tested; /* the command is `test`; with --all */
static double tested_share;

void shares_test(bool all)
{
    tests = true;
    all_tested = all;
}

const char *shares_advice(void)
{
    return tests ? "; --all tests all samples" : "";
}

const char *shares_stored(const char *split)
{
    return all_tested && strcmp(split, "test") == 0 ? "all" : split;
}

double shares_tested(void)
{
    return tested_share;
}

bool shares_divide(const RtProgram *p, const char *place, const char *split, const char *test,
                   const char *validation, double usual, Split *share)
{
    const double given = share_of(p, place, "test", test),
                 validated = share_of(p, place, "validation", validation),
                 tested = test || given > 0 ? given : usual;
    const bool divided = strcmp(split, "train") == 0  ? tested + validated > 0
                         : strcmp(split, "test") == 0 ? tested > 0
                                                      : validated > 0;
    *share = (Split){0};
    if (divided)
        *share = split_of((uint64_t)p->recipe.seed, split, tested, validated);
    if (divided && strcmp(split, "test") == 0) {
        tested_share = tested;
        if (all_tested)
            *share = split_all(split);
    }
    return divided;
}

const char *shares_array(const RtProgram *p, const char *directory, const char *prefix)
{
    const char *path =
        rt_format("%s/%s%s.npy", directory, prefix, p->ninput > 0 ? p->input[0].name : "x");
    return access(path, F_OK) == 0 ? path : NULL;
}

const char *shares_find(const RtProgram *p, const char *directory, const char *split, Split *share)
{
    const char *train = shares_array(p, directory, "train_"),
               *whole = shares_array(p, directory, "");
    const bool arrays = train || whole, folders = !arrays && p->decode;
    *share = (Split){0};
    if (folders || (!arrays && shares_array(p, directory, npy_prefix(split))))
        return split; /* folders.c; or a directory with this split alone */
    const char *test = arrays ? shares_array(p, directory, "test_") : "its test files",
               *validation = shares_array(p, directory, "validation_");
    if (!train && whole && !test && p->recipe.test <= 0)
        rt_die("%s is not divided into training and test: write test = 0.2 in the parentheses of "
               "the data, as \"directory\"(test = 0.2)",
               whole);
    if (!shares_divide(p, directory, split, test, validation, 0, share))
        return split;
    return train || !whole ? "train" : "";
}

void shares_take(Data *d, const Split *share, int64_t limit)
{
    int64_t n = 0;
    d->all = d->n;
    d->row = memory_map(d->all * (int64_t)sizeof *d->row, false, "the samples of a split");
    for (int64_t i = 0; i < d->all && (limit <= 0 || n < limit); i++)
        if (split_takes(share, (uint64_t)i))
            d->row[n++] = (uint32_t)i;
    if (n == 0)
        rt_die("the split '%s' of %s has no sample: %lld are too few for %s%s", share->name,
               d->place, (long long)d->all,
               strcmp(share->name, "train") == 0 ? "these shares" : "this share", shares_advice());
    d->n = n;
}

/* Moves rows of `bytes` bytes to the places of the first samples. */
static void move_rows(const Data *d, char *to, const char *from, int64_t stride, int64_t bytes)
{
    for (int64_t i = 0; i < d->n; i++)
        memmove(to + i * stride, from + d->row[i] * stride, (size_t)bytes);
}

void shares_keep(Data *d)
{
    char *const from = d->x;
    const bool mapped = d->x_path && !d->parts; /* the samples are a file */
    const int64_t all = d->all * d->stride, kept = d->n * d->stride;
    if (mapped)
        d->x = memory_map(kept, false, "the samples of a split");
    move_rows(d, d->x, from, d->stride, data_bytes(d->features, d->type));
    if (mapped)
        memory_forget(from, all);
    else
        memory_forget(from + kept, all - kept);
    if (data_label(d, 0))
        move_rows(d, data_label(d, 0), data_label(d, 0), data_label_stride(d),
                  data_label_stride(d));
    d->scored = 0;
    for (int64_t i = 0; d->labels > 1 && d->label && i < d->n * d->labels; i++)
        d->scored += d->label[i] >= 0;
    target_variances(d);
}
