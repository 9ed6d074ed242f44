/* images.c -- folders of PNG and JPEG images: decoded and brought to the input's size once, then kept in a packed file.
 *
 * The packed file is a head of 4096 bytes and the samples, (C, H, W) bytes each, as the kernels read them: a later run maps it
 * and starts at once.  It lies beside the images, else in the user's cache directory, else nowhere (the samples are then in
 * memory).  It is good for as long as the hash of the images' names, sizes and times stays, and it appears whole or not at
 * all (file.h).  Of processes that start together one writes it, as a rule, and the others keep samples in memory.
 */
#define _GNU_SOURCE
#include "data/data.h"
#include "data/decode.h"
#include "data/folders.h"
#include "data/resample.h"
#include "error.h"
#include "file.h"
#include "hash.h"
#include "memory.h"
#include <errno.h>
#include <fcntl.h>
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
} Head;

struct Images {
    const RtProgram *p;
    Folders folders;
    Head head;
    const char *place; /* the packed file; NULL: none */
    File *file;        /* that will have that place; NULL: samples are in memory only, or read from there */
    char *map;
    int64_t bytes; /* of the packed file */
};

/* ---- the packed file */

/* Good: maps it.  What is there but of other images will be replaced. */
static bool map_packed(Images *m, const char *path)
{
    Head have;
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool good = fd >= 0 && fstat(fd, &info) == 0 && info.st_size == m->bytes &&
                      pread(fd, &have, sizeof have, 0) == sizeof have &&
                      memcmp(&have, &m->head, sizeof have) == 0;
    if (good)
        m->map = memory_map_file(fd, m->bytes, false, path);
    if (fd >= 0)
        close(fd);
    return good;
}

/* False: it cannot be made there, or another process is at it. */
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
    memcpy(m->map, &m->head, sizeof m->head);
    memory_sync_file(m->map, m->bytes, m->file->temporary);
    file_commit(m->file);
    m->file = NULL;
}

/* .../tenon/images-HASH; NULL without a home. */
static const char *users_place(const Images *m, const char *directory)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"),
               *real = realpath(directory, NULL);
    if ((!cache || !*cache) && (!home || !*home))
        return NULL;
    const char *base = cache && *cache ? rt_format("%s", cache) : rt_format("%s/.cache", home);
    mkdir(base, 0777);
    base = rt_format("%s/tenon", base);
    mkdir(base, 0777);
    const uint64_t of_place = hash_text(real ? real : directory);
    return rt_format("%s/images-%016llx-%lldx%lldx%lld", base,
                     (unsigned long long)(of_place ^ m->head.hash), (long long)m->head.channels,
                     (long long)m->head.height, (long long)m->head.width);
}

/* ---- decoding */

static uint8_t *read_file(const ImageFile *f)
{
    uint8_t *data = malloc((size_t)f->bytes + 1);
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    int64_t have = 0;
    for (ssize_t n = 1; data && fd >= 0 && n > 0 && have <= f->bytes; have += n > 0 ? n : 0)
        n = read(fd, data + have, (size_t)(f->bytes + 1 - have));
    if (fd >= 0)
        close(fd);
    if (data && fd >= 0 && have == f->bytes)
        return data;
    rt_die("%s %s", f->path,
           fd < 0  ? "cannot be opened"
           : !data ? "is too large for the memory that is left"
                   : "changed while it was read");
}

static void decode(void *arg, int thread, int unit)
{
    (void)thread;
    const Data *d = arg;
    const Images *m = d->images;
    const ImageFile *f = &m->folders.image[unit];
    Pixels p;
    char why[DECODE_WHY];
    uint8_t *file = read_file(f);
    if (!m->p->decode->image(file, (size_t)f->bytes, &p, why)) {
        rt_die("%s is no image that can be read: %s", f->path, why);
    }
    free(file);
    resample((uint8_t *)d->x + unit * d->stride, (int)m->head.channels, (int)m->head.height,
             (int)m->head.width, p.rgb, p.height, p.width, m->head.crop);
    free(p.rgb);
}

/* ---- the data set */

static Images *images_new(const RtProgram *p, Folders folders)
{
    Images *m = rt_alloc(sizeof *m);
    *m = (Images){.p = p, .folders = folders};
    m->head = (Head){.version = 1,
                     .n = folders.n,
                     .channels = p->input_dim[0],
                     .height = p->input_dim[1],
                     .width = p->input_dim[2],
                     .crop = !p->recipe.stretch,
                     .hash = folders.hash};
    memcpy(m->head.magic, "tenonpix", 8);
    m->bytes = HEAD + folders.n * data_features(p);
    return m;
}

static void find_samples(Images *m, const char *directory, const char *split)
{
    const char *beside = rt_format("%s/.tenon-%s-%lldx%lldx%lld%s", directory, split,
                                   (long long)m->head.channels, (long long)m->head.height,
                                   (long long)m->head.width, m->head.crop ? "" : "-stretched");
    const char *users = users_place(m, directory);
    if (map_packed(m, beside) || (users && map_packed(m, users)))
        return;
    if (!begin_packed(m, beside) && !(users && begin_packed(m, users)))
        m->map = memory_map(m->bytes, false, directory);
    rt_note("%lld images of %s/%s are decoded%s%s", (long long)m->folders.n, directory, split,
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
    const bool known = memcmp(m->map, m->head.magic, sizeof m->head.magic) == 0;
    if (known)
        return;
    if (pool)
        pool_run(pool, decode, d, (int)m->folders.n);
    for (int64_t i = 0; !pool && i < m->folders.n; i++)
        decode(d, 0, (int)i);
    if (m->file)
        end_packed(m);
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
