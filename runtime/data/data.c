/* data.c -- a data set by name, whatever its format, and the batches of it. */
#include "data/data.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "base/random.h"
#include "data/folders.h"
#include "data/text.h"
#include "files/params.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int64_t data_features(const RtProgram *p)
{
    int64_t n = 1;
    for (int i = 0; i < p->input_rank; i++)
        n *= p->input_dim[i];
    return n;
}

int64_t data_label_stride(const Data *d)
{
    return d->labels * (int64_t)sizeof *d->label;
}

/* "28 x 28" */
static const char *sample_shape_text(char text[128], int rank, const int64_t *dim)
{
    int n = snprintf(text, 128, rank ? "" : "a number");
    for (int i = 0; i < rank && n < 100; i++)
        n += snprintf(text + n, (size_t)(128 - n), "%s%lld", i ? " x " : "", (long long)dim[i]);
    return text;
}

static int squeezed(int rank, const int64_t *dim, int64_t *to)
{
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (dim[i] != 1)
            to[n++] = dim[i];
    return n;
}

/* (C, H, W) or (H, W) of images that the program may stretch. */
static bool resizable(const RtProgram *p, int rank, const int64_t *dim)
{
    const int64_t channels = rank == 3 ? dim[0] : 1;
    if (!p->recipe.resize || (rank != 2 && rank != 3) || channels != p->input_dim[0])
        return false;
    const int64_t h = dim[rank - 2], w = dim[rank - 1];
    return h > 0 && w > 0 && h <= 65536 && w <= 65536;
}

void data_take_shape(Data *d, const RtProgram *p, const char *path, int rank, const int64_t *dim)
{
    int64_t have[8] = {0}, want[8] = {0}, product = 1;
    const int n = squeezed(rank, dim, have), m = squeezed(p->input_rank, p->input_dim, want);
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(product, have[i], &product))
            product = -1;
    const bool same = n == m && memcmp(have, want, sizeof *have * (size_t)n) == 0;
    const bool flat = (n <= 1 || m <= 1) && product == data_features(p);
    if (same || flat)
        return;
    if (!resizable(p, rank, dim)) {
        char a[128], b[128];
        rt_die("%s holds samples of shape %s, but %s takes %s", path, sample_shape_text(a, rank, dim),
               p->model, sample_shape_text(b, p->input_rank, p->input_dim));
    }
    d->features = product;
    d->height = dim[rank - 2];
    d->width = dim[rank - 1];
}

void data_check_label(const Data *d, const char *path, int64_t sample, int64_t label)
{
    if (d->classes > 0 && (label < 0 || label >= d->classes))
        rt_die("%s: label %lld of sample %lld is out of range: the classes are 0 to %lld", path,
               (long long)label, (long long)sample, (long long)d->classes - 1);
}

static Data *new_data(const RtProgram *p, const char *place)
{
    Data *d = rt_alloc(sizeof *d);
    *d = (Data){.place = place,
                .scale = p->recipe.x_scale,
                .features = data_features(p),
                .vocab = p->vocab,
                .classes = p->classes,
                .labels = p->labels,
                .batch = p->batch,
                .device = p->device != NULL,
                .part = p->batch};
    if (p->input_rank == 3) {
        d->height = p->input_dim[1];
        d->width = p->input_dim[2];
    }
    return d;
}

/* Room for n of them. */
static void synthetic_room(Data *d, int64_t n)
{
    d->type = d->vocab ? RT_I32 : RT_U8;
    d->stride = d->features * (d->vocab ? (int64_t)sizeof(int32_t) : 1);
    d->x = memory_map(n * d->stride, false, "synthetic samples");
    d->label = memory_map(n * data_label_stride(d), false, "the labels of synthetic samples");
}

/* Room for one batch, which data_batch fills. */
static void open_synthetic(const RtProgram *p, const char *split, int64_t limit, Data *d)
{
    const bool test = strcmp(split, "test") == 0;
    if (p->recipe.samples <= 0)
        rt_die("--data synthetic: the recipe does not say how many samples to generate: build it with data = "
               "synthetic(samples = N), or measure steps with `bench`");
    d->synthetic = true;
    synthetic_room(d, p->batch);
    d->first = test ? p->recipe.samples : 0;
    d->n = test ? p->recipe.test_samples : p->recipe.samples;
    if (limit > 0 && limit < d->n)
        d->n = limit;
    d->position = rt_alloc(sizeof *d->position * (size_t)p->batch);
}

/* A directory of tokens that somebody else has made of a text. */
static bool holds_arrays(const char *directory)
{
    return access(rt_format("%s/train_x.npy", directory), F_OK) == 0;
}

Data *data_open(const RtProgram *p, const char *name, const char *split, int64_t limit)
{
    if (strcmp(name, "synthetic") == 0) {
        Data *d = new_data(p, name);
        open_synthetic(p, split, limit, d);
        return d;
    }
    if (p->recipe.text.unit && !holds_arrays(name)) {
        Data *d = new_data(p, name);
        if (p->recipe.text.table)
            tsv_open(p, d->place = find_data(p, name), split, limit, d);
        else
            text_open(p, name, split, limit, d);
        return d;
    }
    Data *d = new_data(p, find_data(p, name));
    const bool test = strcmp(split, "test") == 0;
    if (!npy_open(p, d->place, split, limit, d) && !idx_open(p, d->place, split, limit, d) &&
        !cifar_open(p, d->place, split, limit, d) && !images_open(p, d->place, split, limit, d))
        rt_die("%s holds no %s data: neither %s_x.npy and %s_y.npy, nor MNIST's "
               "%s-images-idx3-ubyte, nor CIFAR-10's %s.bin (plain, .gz or .xz)%s",
               d->place, split, split, split, test ? "t10k" : split,
               test ? "test_batch" : "data_batch_1",
               p->decode ? rt_format(", nor a folder %s with one folder of images a class", split)
                         : "; folders of images need data = imagefolder(...) in the recipe");
    if (d->n >= UINT32_MAX - 2 * (int64_t)p->batch)
        rt_die("%s holds %lld samples; at most 2^32 are possible", d->place, (long long)d->n);
    return d;
}

void data_fill(Data *d, Pool *pool)
{
    if (d->x_file)
        idx_fill(d);
    else if (d->cifar)
        cifar_fill(d, pool);
    else if (d->images)
        images_fill(d, pool);
    else if (d->y_numbers)
        npy_fill(d);
}

static void open_lines(const RtProgram *p, const char *path, Data *d)
{
    const char *slash = strrchr(path, '/');
    Text t;
    if (!text_read(p, slash ? rt_format("%.*s", (int)(slash - path), path) : ".",
                   slash ? slash + 1 : path, &t))
        rt_die("%s does not exist", path);
    if (p->recipe.text.unit != RT_TEXT_BYTE)
        text_check_utf8(&t);
    text_lines(p, d, &t);
}

/* In training the loss tells of such numbers; here nothing else would. */
static void check_finite(const RtProgram *p, const Data *d)
{
    const double most = p->real_bytes == 8 ? DBL_MAX : FLT_MAX;
    if (d->type != RT_F32 && d->type != RT_F64)
        return;
    for (int64_t i = 0; i < d->n * d->features; i++) {
        const double v = params_real(d->x, d->type == RT_F64 ? 8 : 4, i);
        if (!(fabs(v) <= most))
            rt_die("%s: number %lld of sample %lld is %g, %s", d->place,
                   (long long)(i % d->features), (long long)(i / d->features), v,
                   isfinite(v) ? "too large for f32" : "not a finite number");
    }
}

Data *data_open_file(const RtProgram *p, const char *path)
{
    Data *d = new_data(p, path);
    const size_t n = strlen(path);
    if (n > 4 && strcmp(path + n - 4, ".npy") == 0)
        npy_open_input(p, path, d);
    else if (n > 4 && strcmp(path + n - 4, ".csv") == 0)
        csv_open_input(p, path, d);
    else if (p->recipe.text.unit)
        open_lines(p, path, d);
    else if (p->decode)
        images_open_input(p, path, d);
    else if (folders_is_image(path))
        rt_die("%s is an image, and %s was built without the libraries that read one: build it "
               "with data = imagefolder(...), as --set 'data=imagefolder(\"DIR\")'",
               path, p->model);
    else
        rt_die("%s: input is a .npy or a .csv file", path);
    check_finite(p, d);
    return d;
}

Data *data_open_text(const RtProgram *p, const char *text)
{
    const Text t = {"--text", text, (int64_t)strlen(text), 1};
    if (p->recipe.text.unit != RT_TEXT_BYTE)
        text_check_utf8(&t);
    return text_lines(p, new_data(p, "--text"), &t);
}

typedef struct Making {
    const Data *d;
    const uint32_t *order;
    int first; /* place of unit 0 */
} Making;

static void make_samples(void *arg, int thread, int unit)
{
    (void)thread;
    const Making *m = arg;
    const Data *d = m->d;
    const int at = m->first + unit;
    const int64_t sample = d->first + (m->order ? m->order[at] : (uint32_t)at);
    synthetic_sample(d, d->x + at * d->stride, d->label + at * d->labels, sample);
}

void data_share(Data *d, int rank, int ranks)
{
    if (!d->synthetic)
        return;
    d->part = d->batch / ranks;
    d->part_first = rank * d->part;
}

Data *data_in_memory(const RtProgram *p, int64_t n, Pool *pool)
{
    Data *d = new_data(p, "synthetic");
    d->n = n;
    synthetic_room(d, n);
    Making m = {.d = d};
    pool_run(pool, make_samples, &m, (int)n);
    return d;
}

static int64_t token_bytes(int type)
{
    return type == RT_U8 ? 1 : type == RT_U16 ? 2 : type == RT_I32 ? 4 : 8;
}

uint64_t data_hash(const Data *d)
{
    const int64_t head[4] = {d->n, d->stride, d->type, d->classes};
    Hash h = hash_new();
    hash_add(&h, head, sizeof head);
    if (d->label && !d->synthetic)
        hash_add(&h, d->label, (size_t)(d->n * data_label_stride(d)));
    if (d->vocab && !d->synthetic) {
        const int64_t row = d->features * token_bytes(d->type);
        hash_add(&h, d->x, (size_t)((d->n - 1) * d->stride + row));
    }
    return hash_end(&h);
}

uint64_t data_hash_rows(const Data *d)
{
    enum { MOST = 1 << 24 };
    Hash h = hash_new();
    const uint64_t rest = data_hash(d), images = d->images ? images_hash(d) : 0;
    const int64_t row = d->features * (d->type == RT_F32 ? 4 : token_bytes(d->type)), each = d->n * row / MOST + 1;
    hash_add(&h, &rest, sizeof rest);
    hash_add(&h, &images, sizeof images);
    for (int64_t i = 0; d->x && !d->synthetic && !d->vocab && !d->images && i < d->n; i += each)
        hash_add(&h, d->x + i * d->stride, (size_t)row);
    return hash_end(&h);
}

/* Of a sample that is read where it lies, without what lies between two. */
static int64_t row_bytes(int64_t n, int type)
{
    static const int64_t each[] = {
        [RT_U8] = 1, [RT_F32] = 4, [RT_F64] = 8, [RT_U16] = 2, [RT_I32] = 4, [RT_I64] = 8};
    return n * each[type];
}

/* Windows of a text and the tokens behind them; from the second epoch on they begin somewhere else. */
static void next_tokens(const Data *d, Batch *b)
{
    int64_t shift = 0;
    if (d->shift > 1 && b->epoch > 0) {
        Random r = random_from(b->seed, RT_PURPOSE_DATA, (uint32_t)b->epoch, 0);
        shift = random_below(&r, (uint32_t)d->shift) * token_bytes(d->type);
    }
    b->x = d->x + shift;
    b->label = d->next + shift;
    b->label_stride = d->stride;
    b->label_type = d->type;
    b->stored_label = b->stored = d->x;
    b->stored_bytes = b->label_bytes =
        d->next - d->x + (d->n - 1) * d->stride +
        (d->labels + (d->shift > 1 ? d->shift - 1 : 0)) * token_bytes(d->type);
}

static bool is_scored(const Batch *b, const char *row, int64_t i)
{
    return b->label_type == RT_U16 ? ((const uint16_t *)row)[i] != UINT16_MAX
                                   : ((const int32_t *)row)[i] >= 0;
}

double data_scored(const RtProgram *p, const Batch *b)
{
    int64_t count = 0;
    if (p->labels == 1)
        return 1;
    for (int i = 0; i < p->batch; i++) {
        const char *row = (const char *)b->label + (int64_t)b->index[i] * b->label_stride;
        for (int64_t k = 0; k < p->labels; k++)
            count += is_scored(b, row, k);
    }
    return (double)(count ? count : 1) / p->batch;
}

/* ---- tokens of a mapped file, which somebody may write to while it is read */

enum { TOKEN_ROWS = 16, LANES = 64 }; /* rows that a thread looks at at a time; tokens that a loop does */

typedef struct Looking {
    const Data *d;
    const uint32_t *index;
} Looking;

/* By LANES at once, so that the C compiler makes vectors of it.  A negative number is a large one here. */
#define BEYOND(type, row, most, padding)                                                           \
    do {                                                                                           \
        const type *v_ = (const type *)(const void *)(row), least_ = (type)(most);                 \
        type any_ = 0;                                                                             \
        int64_t k_ = 0;                                                                            \
        for (; k_ + LANES <= d->features; k_ += LANES)                                             \
            for (int j_ = 0; j_ < LANES; j_++)                                                     \
                any_ |= (type)((v_[k_ + j_] >= least_) & (v_[k_ + j_] != (type)(padding)));        \
        for (; k_ < d->features; k_++)                                                             \
            any_ |= (type)((v_[k_] >= least_) & (v_[k_] != (type)(padding)));                      \
        return any_ != 0;                                                                          \
    } while (0)

static bool tokens_beyond(const Data *d, const char *row)
{
    if (d->type == RT_U8 && d->vocab <= UINT8_MAX)
        BEYOND(uint8_t, row, d->vocab, 0); /* without padding */
    if (d->type == RT_U16)
        BEYOND(uint16_t, row, d->vocab, -1);
    if (d->type == RT_I32)
        BEYOND(uint32_t, row, d->vocab, -1);
    if (d->type == RT_I64)
        BEYOND(uint64_t, row, d->vocab, -1);
    return false;
}

void data_wrong_token(const Data *d)
{
    mapped_wrong("%s has changed while it was read: it holds a token that is not one of the %lld of "
                 "the vocabulary; put it back as it was",
                 d->x_path ? d->x_path : d->place, (long long)d->vocab);
}

static void scan_tokens(void *arg, int thread, int unit)
{
    const Looking *l = arg;
    const Data *d = l->d;
    const int end = (unit + 1) * TOKEN_ROWS < d->batch ? (unit + 1) * TOKEN_ROWS : d->batch;
    (void)thread;
    for (int i = unit * TOKEN_ROWS; i < end; i++)
        if (tokens_beyond(d, d->x + l->index[i] * d->stride))
            data_wrong_token(d);
}

/* For a device, before a launch that nobody can take back; on the processor rt_tokens looks at what it reads. */
static void check_batch(const Data *d, Pool *pool, const uint32_t *index)
{
    Looking l = {d, index};
    if (d->images)
        images_check(d, pool, index);
    if (d->device && d->vocab && d->x_path)
        pool_run(pool, scan_tokens, &l, (d->batch + TOKEN_ROWS - 1) / TOKEN_ROWS);
}

/* Of samples that are made for their place. */
static const RtOrder one_by_one = {.n = (int64_t)1 << 32};

/* Synthetic samples are made here, for this batch, by all threads: those that this rank reads.  (Of the others' labels data_scored
 * asks whether they count, and made-up labels all do, as what stands in their places does.) Their index is their place in
 * the epoch, and x and label are set so far back that index finds them: a mask keyed by the index
 * is then another one in every step. */
void data_batch(const Data *d, Pool *pool, const Order *order, int64_t step, int valid, Batch *b)
{
    const int64_t first = step * d->batch;
    b->x_stride = d->stride;
    b->x_type = d->type;
    b->x_scale = d->scale;
    b->x_height = (int)d->height;
    b->x_width = (int)d->width;
    b->valid = valid;
    b->x = d->x;
    b->label = d->label;
    b->label_stride = data_label_stride(d);
    b->label_type = RT_I32;
    b->index = order->sample + first;
    b->order = &order->by;
    b->first = first;
    b->stored = d->x + d->part_first * d->stride;
    b->stored_label = d->label + d->part_first * d->labels;
    b->stored_bytes = (d->synthetic ? d->part : d->n) * d->stride;
    b->label_bytes = (d->synthetic ? d->part : d->n) * b->label_stride;
    b->fresh = d->synthetic;
    if (d->next)
        next_tokens(d, b);
    b->x_row = row_bytes(d->features, d->type);
    b->label_row = b->label ? row_bytes(d->labels, b->label_type) : 0;
    check_batch(d, pool, b->index);
    if (!d->synthetic)
        return;
    Making m = {.d = d, .order = b->index, .first = d->part_first};
    pool_run(pool, make_samples, &m, d->part);
    for (int i = 0; i < d->batch; i++)
        d->position[i] = (uint32_t)(first + i);
    b->x = (const void *)((uintptr_t)d->x - (uintptr_t)(first * d->stride));
    b->label = (const void *)((uintptr_t)d->label - (uintptr_t)(first * b->label_stride));
    b->index = d->position;
    b->order = &one_by_one;
}
