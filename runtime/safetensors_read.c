/* safetensors_read.c -- a header is believed only after every number in it has been checked; see
 * safetensors.h. */
#define _GNU_SOURCE
#include "error.h"
#include "hash.h"
#include "json.h"
#include "params.h"
#include "safetensors.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int dtype_bytes(const char *dtype)
{
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                 {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U64", 8},  {"U32", 4},
                 {"U16", 2}, {"U8", 1},  {"BOOL", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, dtype) == 0)
            return types[i].bytes;
    return 0;
}

static bool read_list(Json *j, int64_t *v, int room, int *n)
{
    bool first = true;
    *n = 0;
    if (!json_char(j, '['))
        return false;
    while (json_next(j, ']', &first))
        if (*n == room || !json_whole(j, &v[(*n)++]))
            return false;
    return !j->wrong;
}

static bool read_entry(Json *j, StEntry *e)
{
    bool first = true;
    int64_t offset[2] = {0, -1};
    int n = 0;
    if (!json_char(j, '{'))
        return false;
    while (json_next(j, '}', &first)) {
        char key[32];
        if (!json_string(j, key, sizeof key) || !json_char(j, ':'))
            return false;
        bool ok = false;
        if (strcmp(key, "dtype") == 0)
            ok = json_string(j, e->dtype, sizeof e->dtype);
        else if (strcmp(key, "shape") == 0)
            ok = read_list(j, e->dim, 8, &e->rank);
        else if (strcmp(key, "data_offsets") == 0)
            ok = read_list(j, offset, 2, &n);
        if (!ok)
            return false;
    }
    e->begin = offset[0];
    e->end = offset[1];
    return !j->wrong && n == 2;
}

static bool consistent(const StFile *f, const StEntry *e)
{
    int64_t bytes = dtype_bytes(e->dtype);
    for (int i = 0; i < e->rank; i++)
        if (__builtin_mul_overflow(bytes, e->dim[i], &bytes))
            return false;
    return dtype_bytes(e->dtype) > 0 && e->begin >= 0 && e->end >= e->begin &&
           e->end <= f->data_bytes && e->end - e->begin == bytes;
}

static bool read_metadata(Json *j, StFile *f)
{
    bool first = true;
    if (!json_char(j, '{'))
        return false;
    while (json_next(j, '}', &first)) {
        f->meta = realloc(f->meta, sizeof *f->meta * (size_t)(f->nmeta + 1));
        if (!f->meta)
            rt_die("out of memory");
        if (!json_string(j, f->meta[f->nmeta].key, sizeof f->meta->key) || !json_char(j, ':') ||
            !json_string(j, f->meta[f->nmeta].value, sizeof f->meta->value))
            return false;
        f->nmeta++;
    }
    return !j->wrong;
}

static bool read_header(StFile *f, char why[256])
{
    Json j = json_read(f->bytes + 8, f->head - 8);
    bool first = true, ok = json_char(&j, '{');
    while (ok && json_next(&j, '}', &first)) {
        char name[256];
        ok = json_string(&j, name, sizeof name) && json_char(&j, ':');
        if (ok && strcmp(name, "__metadata__") == 0) {
            ok = read_metadata(&j, f);
            continue;
        }
        if (ok && f->n % 64 == 0)
            f->entry = realloc(f->entry, sizeof *f->entry * (size_t)(f->n + 64));
        if (ok && !f->entry)
            rt_die("out of memory");
        if (!ok)
            break;
        StEntry *e = &f->entry[f->n++];
        *e = (StEntry){.rank = 0};
        memcpy(e->name, name, sizeof e->name);
        ok = read_entry(&j, e);
        if (ok && !consistent(f, e)) {
            snprintf(why, 256, "its tensor %.80s has offsets or a type that do not fit", e->name);
            return false;
        }
    }
    ok = ok && json_end(&j);
    if (!ok)
        snprintf(why, 256, "its header is damaged: %s",
                 j.wrong ? j.wrong : "an entry is not complete");
    return ok;
}

static bool map_whole(StFile *f, char why[256])
{
    struct stat info;
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size < 8) {
        snprintf(why, 256, "%s", fd < 0 ? strerror(errno) : "it is not a safetensors file");
        if (fd >= 0)
            close(fd);
        return false;
    }
    f->size = info.st_size;
    void *at = mmap(NULL, (size_t)f->size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (at == MAP_FAILED) {
        snprintf(why, 256, "%s", strerror(errno));
        return false;
    }
    f->bytes = at;
    uint64_t length = 0;
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)(unsigned char)f->bytes[i] << 8 * i;
    if (length > (uint64_t)f->size - 8 || length > 100 << 20) {
        snprintf(why, 256, "it is truncated or not a safetensors file");
        return false;
    }
    f->head = 8 + (int64_t)length;
    f->data = f->bytes + f->head;
    f->data_bytes = f->size - f->head;
    return true;
}

StFile *st_open(const char *path, char why[256])
{
    StFile *f = rt_alloc(sizeof *f);
    f->path = path;
    if (map_whole(f, why) && read_header(f, why))
        return f;
    st_close(f);
    return NULL;
}

void st_close(StFile *f)
{
    if (f->bytes)
        munmap((void *)f->bytes, (size_t)f->size);
    free(f->entry);
    free(f->meta);
    free(f);
}

const char *st_meta(const StFile *f, const char *key)
{
    for (int i = 0; i < f->nmeta; i++)
        if (strcmp(f->meta[i].key, key) == 0)
            return f->meta[i].value;
    return NULL;
}

const StEntry *st_find(const StFile *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (strcmp(f->entry[i].name, name) == 0)
            return &f->entry[i];
    return NULL;
}

/* The hash was taken while its own digits were still zeros. */
bool st_intact(const StFile *f)
{
    const char *content = st_meta(f, "content");
    const char *key = "\"content\":\"";
    const char *at = content ? memmem(f->bytes, (size_t)f->head, key, strlen(key)) : NULL;
    if (!at)
        return !content;
    char found[17];
    const int64_t before = at - f->bytes + (int64_t)strlen(key);
    if (before + 16 > f->size)
        return false;
    Hash h = hash_new();
    hash_add(&h, f->bytes, (size_t)before);
    hash_add(&h, "0000000000000000", 16);
    hash_add(&h, f->bytes + before + 16, (size_t)(f->size - before - 16));
    snprintf(found, sizeof found, "%016llx", (unsigned long long)hash_end(&h));
    return strcmp(found, content) == 0;
}

bool st_same_shape(const StEntry *e, const RtParam *p)
{
    if (e->rank != p->rank)
        return false;
    for (int i = 0; i < p->rank; i++)
        if (e->dim[i] != p->dim[i])
            return false;
    return true;
}

/* IEEE half precision; subnormals are multiples of 2^-24. */
static double half(uint16_t h)
{
    const int exponent = h >> 10 & 31, fraction = h & 1023;
    const double sign = h >> 15 ? -1 : 1;
    if (exponent == 0)
        return sign * fraction * 0x1p-24;
    if (exponent == 31)
        return fraction ? (double)__builtin_nanf("") : sign * __builtin_inf();
    return sign * __builtin_ldexp(1024 + fraction, exponent - 25);
}

static double number(const char *at, const char *dtype)
{
    if (dtype[0] == 'F' && dtype[1] == '6') {
        double v;
        memcpy(&v, at, 8);
        return v;
    }
    if (dtype[0] == 'F' && dtype[1] == '3') {
        float v;
        memcpy(&v, at, 4);
        return (double)v;
    }
    uint16_t v;
    memcpy(&v, at, 2);
    if (dtype[0] == 'F')
        return half(v);
    const uint32_t wide = (uint32_t)v << 16; /* BF16 */
    float f;
    memcpy(&f, &wide, 4);
    return (double)f;
}

void st_load(const StFile *f, const StEntry *e, const RtParam *p, int real_bytes, char *to)
{
    const int64_t count = params_count(p);
    const int size = dtype_bytes(e->dtype);
    for (int64_t first = 0; first < count; first += PARAMS_CHUNK) {
        double chunk[PARAMS_CHUNK];
        const int n = (int)(count - first < PARAMS_CHUNK ? count - first : PARAMS_CHUNK);
        for (int k = 0; k < n; k++)
            chunk[k] = number(f->data + e->begin + (first + k) * size, e->dtype);
        params_put(p, to, real_bytes, first, n, chunk);
    }
}
