/* images.c -- folders of PNG and JPEG images: decoded and resized once, then kept in a packed file.
 *
 * The packed file has a head of 4096 bytes, the samples as (C, H, W) bytes in the order of the
 * kernels, and a hash of each piece of the samples (samples.c). A later run maps the file and
 * starts at once; it compares a piece with its hash when it reads the first sample of the piece.
 * The file lies beside the images, else in the cache directory of the user; if neither is possible,
 * the samples are only in memory. The file is valid while the hash of the names, sizes and times of
 * the images is the same. It appears when it is complete (file.h). If several processes start
 * together, usually one writes the file and the others keep the samples in memory.
 */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/memory.h"
#include "base/variables.h"
#include "base/whole.h"
#include "data/data.h"
#include "data/decode.h"
#include "data/folders.h"
#include "data/resample.h"
#include "files/file.h"
#include "files/names.h"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 4096 };

typedef struct Head {
    char magic[8]; /* "tenonpix" */
    int64_t version, n, channels, height, width, crop;
    uint64_t hash;
    uint64_t sums; /* hash of the hashes of the pieces */
} Head;

struct Images {
    const RtProgram *p;
    Folders folders;
    Head head;
    const char *place; /* the packed file; NULL: none */
    File *file;        /* the packed file while this run writes it; else NULL */
    char *map;
    int64_t bytes;  /* of the packed file */
    uint64_t *sum;  /* [pieces] hash of each piece, in the packed file */
    bool *seen;     /* [pieces] compared already; NULL: this run has made all pieces */
    int32_t *to_do; /* [batch] pieces to compare now */
    int64_t unseen;
};

/* ---- the packed file */

/* Images in a piece. */
static int64_t piece_images(const Images *m)
{
    return data_piece(&(Data){.stride = data_features(m->p)});
}

static int64_t pieces(const Images *m)
{
    return (m->folders.n + piece_images(m) - 1) / piece_images(m);
}

/* Maps the packed file; false if it is missing, damaged, or of other images: then it is
 * replaced. */
static bool map_packed(Images *m, const char *path)
{
    Head have;
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool good = fd >= 0 && fstat(fd, &info) == 0 && info.st_size == m->bytes &&
                      whole_read(fd, &have, sizeof have, 0) == sizeof have &&
                      memcmp(&have, &m->head, offsetof(Head, sums)) == 0;
    if (good)
        m->map = memory_map_file(fd, m->bytes, false, path);
    if (fd >= 0)
        close(fd);
    if (!good)
        return false;
    m->sum = (uint64_t *)(void *)(m->map + m->bytes) - pieces(m);
    if (hash_block(m->sum, sizeof *m->sum * (size_t)pieces(m)) != have.sums) {
        rt_note("%s is damaged and is made again", path);
        return false;
    }
    m->place = path;
    m->unseen = pieces(m);
    m->seen = rt_alloc(sizeof *m->seen * (size_t)m->unseen);
    m->to_do = rt_alloc(sizeof *m->to_do * (size_t)m->p->batch);
    return true;
}

/* Begins to write a packed file; false: it cannot be made there, or another process is writing
 * it. */
static bool begin_packed(Images *m, const char *path)
{
    if (file_others(path))
        return false;
    File *f = rt_alloc(sizeof *f);
    if (!file_try(f, path) || posix_fallocate(f->fd, 0, m->bytes) != 0) {
        if (f->fd >= 0)
            file_abandon(f);
        free(f);
        return false;
    }
    m->file = f;
    m->place = path;
    m->map = memory_map_file(f->fd, m->bytes, true, f->temporary);
    return true;
}

static void end_packed(Images *m)
{
    mapped_check(); /* dies if another program has truncated the file */
    memcpy(m->map, &m->head, sizeof m->head);
    memory_sync_file(m->map, m->bytes, m->file->temporary);
    file_commit(m->file);
    mapped_renamed(m->map, m->place);
    m->file = NULL;
}

/* Path in the user's cache, .../tenon/images-HASH; NULL if there is no home directory. */
static const char *users_place(const Images *m, const char *directory)
{
    const char *cache = getenv(VARIABLE(XDG_CACHE_HOME)), *home = getenv(VARIABLE(HOME)),
               *real = realpath(directory, NULL);
    if ((!cache || !*cache) && (!home || !*home))
        return NULL;
    const char *base = cache && *cache ? rt_format("%s", cache) : rt_format("%s/.cache", home);
    mkdir(base, 0777);
    base = rt_format("%s/tenon", base);
    mkdir(base, 0777);
    const uint64_t of_place = hash_text(real ? real : directory);
    return rt_format("%s/" FILE_IMAGES, base, (unsigned long long)(of_place ^ m->head.hash),
                     (long long)m->head.channels, (long long)m->head.height,
                     (long long)m->head.width);
}

/* ---- decoding */

static uint8_t *read_image(const ImageFile *f)
{
    uint8_t *data = malloc((size_t)f->bytes + 1);
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const int64_t have = data && fd >= 0 ? whole_read(fd, data, f->bytes + 1, 0) : 0;
    const int error = errno;
    if (fd >= 0)
        close(fd);
    if (data && fd >= 0 && have == f->bytes)
        return data;
    if (fd < 0 || have < 0)
        rt_die("%s cannot be %s: %s", f->path, fd < 0 ? "opened" : "read", strerror(error));
    rt_die("%s %s", f->path,
           !data ? "is too large for the memory that is left" : "changed while it was read");
}

static void decode(void *arg, int thread, int unit)
{
    (void)thread;
    const Data *d = arg;
    const Images *m = d->images;
    const ImageFile *f = &m->folders.image[unit];
    Pixels p;
    char why[DECODE_WHY];
    uint8_t *file = read_image(f);
    if (!m->p->decode->image(file, (size_t)f->bytes, &p, why)) {
        rt_die("%s cannot be read as an image: %s", f->path, why);
    }
    free(file);
    resample((uint8_t *)d->x + unit * d->stride, (int)m->head.channels, (int)m->head.height,
             (int)m->head.width, p.rgb, p.height, p.width, m->head.crop);
    m->p->decode->done(&p);
}

/* Hashes a piece of the samples that this run has decoded. */
static void sum_piece(void *arg, int thread, int unit)
{
    const Data *d = arg;
    (void)thread;
    d->images->sum[unit] = data_piece_hash(d, unit, d->images->folders.n);
}

static void each(Pool *pool, PoolWork work, Data *d, int64_t n)
{
    if (pool)
        pool_run(pool, work, d, (int)n);
    for (int64_t i = 0; !pool && i < n; i++)
        work(d, 0, (int)i);
}

/* ---- the data set */

static Images *images_new(const RtProgram *p, Folders folders)
{
    Images *m = rt_alloc(sizeof *m);
    *m = (Images){.p = p, .folders = folders};
    m->head = (Head){.version = 2,
                     .n = folders.n,
                     .channels = p->input_dim[0],
                     .height = p->input_dim[1],
                     .width = p->input_dim[2],
                     .crop = !p->recipe.stretch,
                     .hash = folders.hash};
    memcpy(m->head.magic, "tenonpix", 8);
    const int64_t aligned = (HEAD + folders.n * data_features(p) + 7) / 8 * 8;
    m->bytes = aligned + pieces(m) * (int64_t)sizeof *m->sum;
    return m;
}

static void find_samples(Images *m, const char *directory, const char *split)
{
    const char *beside = rt_format("%s/" FILE_PACKED, directory, shares_stored(split),
                                   (long long)m->head.channels, (long long)m->head.height,
                                   (long long)m->head.width, m->head.crop ? "" : "-stretched");
    const char *users = users_place(m, directory);
    if (map_packed(m, beside) || (users && map_packed(m, users)))
        return;
    if (!begin_packed(m, beside) && !(users && begin_packed(m, users)))
        m->map = memory_map(m->bytes, false, directory);
    m->sum = (uint64_t *)(void *)(m->map + m->bytes) - pieces(m);
    const char *own = rt_format("%s/%s", directory, split);
    rt_note("%lld images of %s are decoded%s%s", (long long)m->folders.n,
            find_is_directory(own) ? own : rt_format("the split '%s' of %s", split, directory),
            m->place ? ", and kept in " : "", m->place ? m->place : "");
}

bool images_open(const RtProgram *p, const char *directory, const char *split, int64_t limit,
                 Data *d)
{
    Folders folders;
    if (!p->decode || !folders_list(p, directory, split, &folders))
        return false;
    if (folders.n > INT32_MAX)
        rt_die("%s/%s holds %lld images; at most 2^31 can be read", directory, split,
               (long long)folders.n);
    Images *m = images_new(p, folders);
    find_samples(m, directory, split);
    d->images = m;
    d->type = RT_U8;
    d->stride = data_features(p);
    d->x = m->map + HEAD;
    d->n = limit > 0 && limit < folders.n ? limit : folders.n;
    d->label = memory_map(folders.n * (int64_t)sizeof *d->label, false, directory);
    for (int64_t i = 0; i < folders.n; i++)
        d->label[i] = folders.image[i].label;
    return true;
}

void images_fill(Data *d, Pool *pool)
{
    Images *m = d->images;
    if (m->seen)
        return;
    each(pool, decode, d, m->folders.n);
    if (m->sum)
        each(pool, sum_piece, d, pieces(m));
    if (m->sum)
        m->head.sums = hash_block(m->sum, sizeof *m->sum * (size_t)pieces(m));
    if (m->file)
        end_packed(m);
}

/* ---- the hash of the samples, and a check of each piece of a file that another run has made */

uint64_t images_hash(const Data *d)
{
    const Images *m = d->images;
    const int64_t whole = d->n == m->folders.n ? pieces(m) : d->n / piece_images(m);
    uint64_t sum = 0;
    for (int64_t i = 0; i < whole; i++)
        sum += hash_place(m->sum[i], i);
    for (int64_t i = whole; i * piece_images(m) < d->n;
         i++) /* --limit-samples can end inside a piece */
        sum += hash_place(data_piece_hash(d, i, d->n), i);
    return sum;
}

static void compare_images(void *arg, int thread, int unit)
{
    const Data *d = arg;
    const Images *m = d->images;
    const int64_t piece = m->to_do[unit], first = piece * piece_images(m);
    (void)thread;
    if (data_piece_hash(d, piece, m->folders.n) != m->sum[piece])
        mapped_wrong("%s is damaged: image %lld of %lld in it, %s, is not what was packed; remove "
                     "that file, and the images are decoded again",
                     m->place, (long long)first + 1, (long long)m->folders.n,
                     m->folders.image[first].path);
}

void images_check(const Data *d, Pool *pool, const uint32_t *index)
{
    Images *m = d->images;
    const int64_t size = piece_images(m);
    int n = 0;
    for (int i = 0; m->unseen && i < d->batch; i++) {
        const int64_t piece = index[i] / size;
        if (m->seen[piece])
            continue;
        m->seen[piece] = true;
        m->to_do[n++] = (int32_t)piece;
        m->unseen--;
    }
    if (n)
        pool_run(pool, compare_images, (void *)d, n);
}

void images_open_input(const RtProgram *p, const char *path, Data *d)
{
    Folders folders;
    folders_input(path, &folders);
    Images *m = images_new(p, folders);
    m->map = memory_map(m->bytes, false, path);
    d->images = m;
    d->type = RT_U8;
    d->stride = data_features(p);
    d->x = m->map + HEAD;
    d->n = folders.n;
}

const char *images_path(const Data *d, int64_t i)
{
    return d->images->folders.image[i].path;
}
