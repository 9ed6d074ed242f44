/* cifar.c -- CIFAR-10's binary version: consecutive records of a label and an image.
 *
 *   data_batch_1.bin .. data_batch_5.bin   training split, each plain, .gz or .xz
 *   test_batch.bin                         test split
 *   a record                               1 byte: the class 0 .. 9
 *                                          3 x 32 x 32 bytes: red, green, blue
 *
 * The original files have 10,000 records each; other numbers are accepted.  Records stay in memory
 * as they are: a sample is a record without its first byte.
 *
 * Source: A. Krizhevsky, "The CIFAR-10 dataset", binary version.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/data.h"
#include "data/stream.h"
#include <string.h>

enum { CLASSES = 10, FILES = 5 };
static const int64_t shape[3] = {3, 32, 32};
static const int64_t RECORD = 1 + 3 * 32 * 32;

struct Cifar {
    Stream *file[FILES];
    int64_t whole[FILES], first[FILES + 1]; /* records in a file, and before it */
    int n;
};

static void open_file(Cifar *c, Stream *s)
{
    const int64_t bytes = stream_content(s);
    if (bytes == 0 || bytes % RECORD)
        rt_die("%s holds %lld bytes: a file of CIFAR-10 has %lld for each of its images (30730000 "
               "for 10000)",
               stream_path(s), (long long)bytes, (long long)RECORD);
    c->file[c->n] = s;
    c->whole[c->n] = bytes / RECORD;
    c->first[c->n + 1] = c->first[c->n] + c->whole[c->n];
    c->n++;
}

/* Opens the test file, or as many of the five training files as the limit needs. */
static bool open_batches(Cifar *c, const RtProgram *p, const char *directory, const char *split,
                         int64_t limit)
{
    const bool test = strcmp(split, "test") == 0;
    for (int i = 0; i < (test ? 1 : FILES) && (limit <= 0 || c->first[i] < limit); i++) {
        const char *name = test ? "test_batch.bin" : rt_format("data_batch_%d.bin", i + 1);
        Stream *s = stream_open(p, directory, name);
        if (!s && i == 0)
            return false;
        if (!s)
            rt_die("%s/%s is missing (plain, .gz or .xz): CIFAR-10 has five training files and "
                   "test_batch.bin",
                   directory, name);
        open_file(c, s);
    }
    return true;
}

bool cifar_open(const RtProgram *p, const char *directory, const char *split, int64_t limit,
                Data *d)
{
    Cifar *c = rt_alloc(sizeof *c);
    if (!open_batches(c, p, directory, split, limit))
        return false;
    const char *path = stream_path(c->file[0]);
    data_take_shape(d, p, path, 3, shape);
    if (p->softmax_output ? p->classes != CLASSES : p->classes > 0 && p->classes < CLASSES)
        rt_die("%s: CIFAR-10 has %d classes, but %s has %lld: build it with the same number (--set "
               "model.classes=%d, "
               "where it is a parameter)",
               path, CLASSES, p->model, (long long)p->classes, CLASSES);
    d->cifar = c;
    d->type = RT_U8;
    d->stride = RECORD;
    d->n = limit > 0 && limit < c->first[c->n] ? limit : c->first[c->n];
    d->x = (char *)memory_map(d->n * RECORD, false, directory) + 1;
    d->label = memory_map(d->n * (int64_t)sizeof *d->label, false, directory);
    return true;
}

/* Stores the labels of samples from .. to - 1; `first` is the number of the file's first image. */
static void take_labels(Data *d, const char *path, int64_t from, int64_t to, int64_t first)
{
    for (int64_t i = from; i < to; i++) {
        const int label = (uint8_t)d->x[i * RECORD - 1];
        if (label >= CLASSES)
            rt_die("%s: label %d of image %lld: a class of CIFAR-10 is 0 to %d; is this its "
                   "binary version?",
                   path, label, (long long)((d->row ? d->row[i] : i) - first), CLASSES - 1);
        d->label[i] = label;
    }
}

/* Number of samples of the split that lie before image `first`. */
static int64_t samples_before(const Data *d, int64_t first)
{
    int64_t n = 0;
    if (!d->row)
        return first < d->n ? first : d->n;
    while (n < d->n && d->row[n] < first)
        n++;
    return n;
}

static void fill_file(void *arg, int thread, int unit)
{
    (void)thread;
    Data *d = arg;
    const Cifar *c = d->cifar;
    Stream *s = c->file[unit];
    const int64_t first = c->first[unit], from = samples_before(d, first),
                  to = samples_before(d, c->first[unit + 1]);
    const int64_t wanted = to == from ? 0 : d->row ? d->row[to - 1] + 1 - first : to - from;
    int64_t bytes = stream_rows(s, d->x - 1 + from * RECORD, RECORD, d->row ? d->row + from : NULL,
                                to - from, first);
    if (bytes == wanted * RECORD)
        take_labels(d, stream_path(s), from, to, first);
    bytes += stream_end(s, c->whole[unit] * RECORD - bytes);
    if (bytes != c->whole[unit] * RECORD)
        rt_die("%s changed while it was read, or its size is wrong: it holds %lld bytes or more, "
               "not %lld",
               stream_path(s), (long long)bytes, (long long)(c->whole[unit] * RECORD));
}

void cifar_fill(Data *d, Pool *pool)
{
    if (pool)
        pool_run(pool, fill_file, d, d->cifar->n);
    for (int i = 0; !pool && i < d->cifar->n; i++)
        fill_file(d, 0, i);
}
