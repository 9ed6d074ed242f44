/* data.c -- a data set by name, in any format, and its hash.  batch.c makes batches of it. */
#include "data/data.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "data/folders.h"
#include "data/npy.h"
#include "data/split.h"
#include "data/text.h"
#include <string.h>
#include <unistd.h>

static Data *new_data(const RtProgram *p, const char *place)
{
    Data *d = rt_alloc(sizeof *d);
    *d = (Data){.place = place,
                .scale = p->recipe.x_scale,
                .features = data_features(p),
                .vocab = p->vocab,
                .input = p->input,
                .ninput = p->ninput,
                .classes = p->target_kind == RT_TARGET_CLASS || p->ntarget ? p->classes : 0,
                .targets = data_targets(p),
                .truths = p->target_truths,
                .row_target = p->targets,
                .ntarget = p->ntarget,
                .target_bytes = p->target_bytes,
                .real_bytes = p->real_bytes,
                .labels = p->labels,
                .ignored = p->ignored,
                .class_weight = p->class_weight,
                .batch = p->batch,
                .device = p->device != NULL,
                .part = p->batch};
    for (int k = 0; k == 0 || k < p->ntarget; k++)
        d->explained[k] = target_is_explained(p, k);
    if (p->input_rank == 3) {
        d->height = p->input_dim[1];
        d->width = p->input_dim[2];
    }
    return d;
}

/* Classes of synthetic samples whose target is no class. */
enum { SYNTHETIC_CLASSES = 10 };

/* Allocates n synthetic samples. */
static void synthetic_room(const RtProgram *p, Data *d, int64_t n)
{
    if (d->classes == 0)
        d->classes = SYNTHETIC_CLASSES;
    d->type = d->vocab ? RT_I32 : RT_U8;
    d->stride = d->features * (d->vocab ? (int64_t)sizeof(int32_t) : 1);
    if (p->ninput > 0)
        parts_synthetic(p, d);
    d->x = memory_map(n * d->stride, false, "synthetic samples");
    char *labels = memory_map(n * data_label_stride(d), false, "the labels of synthetic samples");
    if (d->ntarget)
        d->label = d->target_bytes > 0 ? (int32_t *)(void *)labels : NULL;
    else if (d->targets)
        d->numbers = labels;
    else
        d->label = (int32_t *)(void *)labels;
}

/* Allocates one batch of synthetic samples, which data_batch fills. */
static void open_synthetic(const RtProgram *p, const char *split, int64_t limit, Data *d)
{
    const bool test = strcmp(split, "test") == 0;
    if (p->recipe.samples <= 0)
        rt_die("--data synthetic: the recipe does not say how many samples to generate: build it "
               "with data = synthetic(samples = N), or measure steps with `bench`");
    d->synthetic = true;
    synthetic_room(p, d, p->batch);
    d->first = test ? p->recipe.samples : 0;
    d->n = test ? p->recipe.test_samples : p->recipe.samples;
    if (limit > 0 && limit < d->n)
        d->n = limit;
    d->position = rt_alloc(sizeof *d->position * (size_t)p->batch);
    target_variances(d);
}

/* Whether the directory has arrays of tokens, which another program has made of a text. */
static bool holds_arrays(const char *directory)
{
    return access(rt_format("%s/train_x.npy", directory), F_OK) == 0;
}

/* Opens the split `stored` of the data, which holds samples of `split`. */
static void open_stored(const RtProgram *p, Data *d, const char *split, const char *stored,
                        int64_t limit)
{
    const bool test = strcmp(split, "test") == 0, checked = strcmp(split, "train") != 0,
               arrays = npy_open(p, d->place, stored, limit, d);
    if (d->ntarget > 0 && !arrays)
        rt_die("%s holds no arrays for the %d targets of %s: %s_x.npy is missing", d->place,
               d->ntarget, p->model, stored);
    else if (d->targets && !arrays)
        rt_die("%s holds no numbers for the target '%s' of %s: %s_x.npy and %s_y.npy are missing",
               d->place, p->target_name, p->model, stored, stored);
    else if (p->labels > 1 && !arrays)
        rt_die("%s holds no class for each %s, which %s learns: %s_x.npy and %s_y.npy are missing",
               d->place, p->label_rank > 1 ? "pixel" : "position", p->model, stored, stored);
    else if (!arrays && !idx_open(p, d->place, stored, limit, d) &&
             !cifar_open(p, d->place, stored, limit, d) &&
             !images_open(p, d->place, split, limit, d))
        rt_die("%s holds no %s data: neither %s_x.npy and %s_y.npy, nor MNIST's "
               "%s-images-idx3-ubyte, nor CIFAR-10's %s.bin (plain, .gz or .xz)%s",
               d->place, split, split, split, test ? "t10k" : split,
               test ? "test_batch" : "data_batch_1",
               p->decode ? rt_format(", nor a folder %s with one folder of images a class", split)
                         : "; folders of images need data = imagefolder(...) in the recipe");
    if (d->n >= UINT32_MAX - 2 * (int64_t)p->batch)
        rt_die("%s holds %lld samples; at most 2^32 are possible", d->place, (long long)d->n);
    if (checked && d->parts)
        parts_check_finite(p, d);
    else if (checked && d->x)
        data_check_finite(p, rt_format("%s/%sx.npy", d->place, npy_prefix(stored)), d->x, d->type,
                          d->n, d->features);
}

Data *data_open(const RtProgram *p, const char *name, const char *split, int64_t limit)
{
    if (strcmp(name, "synthetic") == 0) {
        Data *d = new_data(p, name);
        open_synthetic(p, split, limit, d);
        return d;
    }
    if (p->recipe.table.given) {
        Data *d = new_data(p, name);
        tabular_open(p, name, split, limit, d);
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
    Split share;
    const char *const place = d->place, *stored = shares_find(p, place, split, &share);
    open_stored(p, d, split, stored, share.name ? 0 : limit);
    if (share.name && !d->images)
        shares_take(d, &share, limit);
    return d;
}

/* Whether the directory holds the validation split of its format. */
static bool holds_validation(const RtProgram *p, const char *directory)
{
    return shares_array(p, directory, "validation_") ||
           (p->decode && find_is_directory(rt_format("%s/validation", directory)));
}

bool data_has_validation(const RtProgram *p, const char *name)
{
    if (strcmp(name, "synthetic") == 0 || p->recipe.text.unit)
        return false;
    if (p->recipe.table.given)
        return tabular_has_validation(p, name);
    return p->recipe.validation > 0 || holds_validation(p, find_data(p, name));
}

static void fill(Data *d, Pool *pool)
{
    if (d->parts)
        parts_fill(d, pool);
    if (d->x_file)
        idx_fill(d);
    else if (d->cifar)
        cifar_fill(d, pool);
    else if (d->images)
        images_fill(d, pool);
    else if (d->y_numbers || d->arrays)
        npy_fill(d);
}

void data_fill(Data *d, Pool *pool)
{
    fill(d, pool);
    if (data_reads_all(d))
        shares_keep(d);
    data_weigh(d);
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

Data *data_open_file(const RtProgram *p, const char *path, const char *id)
{
    Data *d = new_data(p, path);
    if (p->recipe.table.given) {
        tabular_open_input(p, path, id, d);
        return d;
    }
    if (p->ninput > 0) {
        parts_open_input(p, path, d);
        return d;
    }
    if (find_has_ending(path, ".npy"))
        npy_open_input(p, path, d);
    else if (find_has_ending(path, ".csv"))
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
        rt_die("%s: the input must be a .npy or .csv file", path);
    data_check_finite(p, d->place, d->x, d->type, d->n, d->features);
    return d;
}

Data *data_open_text(const RtProgram *p, const char *text)
{
    const Text t = {"--text", text, (int64_t)strlen(text), 1};
    if (p->recipe.text.unit != RT_TEXT_BYTE)
        text_check_utf8(&t);
    return text_lines(p, new_data(p, "--text"), &t);
}

Data *data_in_memory(const RtProgram *p, int64_t n, Pool *pool)
{
    Data *d = new_data(p, "synthetic");
    d->n = n;
    synthetic_room(p, d, n);
    synthetic_fill(d, pool, NULL, 0, (int)n);
    return d;
}

uint64_t data_hash(const Data *d)
{
    const int64_t head[4] = {d->n, d->stride, d->type, d->classes};
    Hash h = hash_new();
    hash_add(&h, head, sizeof head);
    for (int k = 0; k < d->ninput; k++) {
        const int64_t part[2] = {d->row_part[k].at, d->row_part[k].type};
        hash_add(&h, part, sizeof part);
    }
    if (data_label(d, 0) && !d->synthetic)
        hash_add(&h, data_label(d, 0), (size_t)(d->n * data_label_stride(d)));
    if (d->vocab && !d->synthetic) {
        const int64_t row = data_bytes(d->features, d->type);
        hash_add(&h, d->x, (size_t)((d->n - 1) * d->stride + row));
    }
    return hash_end(&h);
}

uint64_t data_hash_rows(const Data *d)
{
    enum { MOST = 1 << 24 };
    Hash h = hash_new();
    const uint64_t rest = data_hash(d), images = d->images ? images_hash(d) : 0;
    const int64_t row = data_bytes(d->features, d->type), each = d->n * row / MOST + 1;
    hash_add(&h, &rest, sizeof rest);
    hash_add(&h, &images, sizeof images);
    for (int64_t i = 0; d->x && !d->synthetic && !d->vocab && !d->images && i < d->n; i += each)
        hash_add(&h, d->x + i * d->stride, (size_t)row);
    return hash_end(&h);
}
