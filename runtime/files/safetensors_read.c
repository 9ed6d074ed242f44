/* safetensors_read.c -- reads safetensors files, and checks each number of a header before its use.
 * See safetensors.h. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mapped.h"
#include "files/params.h"
#include "files/safetensors.h"
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
    } types[] = {{"F64", 8},  {"F32", 4}, {"F16", 2},     {"BF16", 2},    {"I64", 8},    {"I32", 4},
                 {"I16", 2},  {"I8", 1},  {"U64", 8},     {"U32", 4},     {"U16", 2},    {"U8", 1},
                 {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"F8_E8M0", 1}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, dtype) == 0)
            return types[i].bytes;
    return 0;
}

bool st_is_float(const StEntry *e)
{
    static const char *const types[] = {"F64", "F32", "F16", "BF16"};
    for (int i = 0; i < 4; i++)
        if (strcmp(types[i], e->dtype) == 0)
            return true;
    return false;
}

/* ---- the header */

/* Makes room for one more item in a list of n; the room is a power of two. */
static void *grow_list(void *list, int64_t n, size_t bytes)
{
    if (n & (n - 1))
        return list;
    list = realloc(list, bytes * (n ? 2 * (size_t)n : 1));
    if (!list)
        rt_die("out of memory for the header of a safetensors file");
    return list;
}

/* Room for all strings of a header: a decoded string is not longer than its text with quotes. */
static int64_t strings_room(const StFile *f)
{
    return f->head + 8;
}

/* Reads a string into f->strings, where it lives as long as f. */
static const char *read_string(Json *j, StFile *f)
{
    char *text = f->strings + f->used;
    if (!json_string(j, text, strings_room(f) - f->used))
        return NULL;
    f->used += (int64_t)strlen(text) + 1;
    return text;
}

static bool read_entry_shape(Json *j, StFile *f, StEntry *e)
{
    bool first = true;
    e->first = f->ndim;
    e->rank = 0;
    if (!json_char(j, '['))
        return false;
    while (json_next(j, ']', &first)) {
        f->dims = grow_list(f->dims, f->ndim, sizeof *f->dims);
        if (!json_whole(j, &f->dims[f->ndim]))
            return false;
        f->ndim++;
        e->rank++;
    }
    return !j->wrong;
}

static bool read_offsets(Json *j, StEntry *e)
{
    return json_char(j, '[') && json_whole(j, &e->begin) && json_char(j, ',') &&
           json_whole(j, &e->end) && json_char(j, ']');
}

/* Reads an entry.  Unknown keys are skipped. */
static bool read_entry(Json *j, StFile *f, StEntry *e)
{
    bool first = true, ok = json_char(j, '{');
    e->end = -1;
    while (ok && json_next(j, '}', &first)) {
        const int64_t used = f->used;
        const char *key = read_string(j, f);
        if (!key || !json_char(j, ':'))
            return false;
        f->used = used;
        if (strcmp(key, "dtype") == 0)
            ok = (e->dtype = read_string(j, f)) != NULL;
        else if (strcmp(key, "shape") == 0)
            ok = read_entry_shape(j, f, e);
        else if (strcmp(key, "data_offsets") == 0)
            ok = read_offsets(j, e);
        else
            ok = json_skip(j);
    }
    return ok && !j->wrong && e->dtype && e->end >= 0;
}

static bool consistent(const StFile *f, const StEntry *e)
{
    int64_t bytes = dtype_bytes(e->dtype);
    for (int i = 0; i < e->rank; i++)
        if (__builtin_mul_overflow(bytes, f->dims[e->first + i], &bytes))
            return false;
    return dtype_bytes(e->dtype) > 0 && e->begin >= 0 && e->end >= e->begin &&
           e->end <= f->data_bytes && e->end - e->begin == bytes;
}

static bool read_metadata(Json *j, StFile *f)
{
    bool first = true;
    if (json_peek(j, 'n'))
        return json_word(j, "null");
    if (!json_char(j, '{'))
        return false;
    while (json_next(j, '}', &first)) {
        f->meta = grow_list(f->meta, f->nmeta, sizeof *f->meta);
        StMeta *m = &f->meta[f->nmeta];
        if (!(m->key = read_string(j, f)) || !json_char(j, ':') || !(m->value = read_string(j, f)))
            return false;
        f->nmeta++;
    }
    return !j->wrong;
}

static bool read_header_entry(Json *j, StFile *f, const char *name, char why[256])
{
    f->entry = grow_list(f->entry, f->n, sizeof *f->entry);
    StEntry *e = &f->entry[f->n++];
    *e = (StEntry){.name = name};
    if (!read_entry(j, f, e))
        return false;
    if (consistent(f, e))
        return true;
    snprintf(why, 256, "its tensor %.80s has offsets or a type that do not fit", e->name);
    return false;
}

static bool read_header(StFile *f, char why[256])
{
    Json j = json_read(f->bytes + 8, f->head - 8);
    bool first = true, ok = json_char(&j, '{');
    *why = '\0';
    f->strings = malloc((size_t)strings_room(f));
    if (!f->strings)
        rt_die("out of memory for the header of a safetensors file");
    while (ok && json_next(&j, '}', &first)) {
        const char *name = read_string(&j, f);
        ok = name && json_char(&j, ':') &&
             (strcmp(name, "__metadata__") == 0 ? read_metadata(&j, f)
                                                : read_header_entry(&j, f, name, why));
    }
    ok = ok && json_end(&j);
    if (!ok && !*why)
        snprintf(why, 256, "its header is damaged: %s",
                 j.wrong ? j.wrong : "an entry is not complete");
    for (int64_t i = 0; ok && i < f->n; i++) /* not earlier: realloc moves dims */
        f->entry[i].dim = f->dims + f->entry[i].first;
    return ok;
}

static void forget(StFile *f)
{
    free(f->entry);
    free(f->meta);
    free(f->dims);
    free(f->strings);
}

bool st_readable(const char *head, int64_t head_bytes, int64_t data_bytes, char why[256])
{
    StFile f = {.bytes = head, .head = head_bytes, .data_bytes = data_bytes};
    const bool ok = read_header(&f, why);
    forget(&f);
    return ok;
}

/* ---- the file */

static bool map_whole(StFile *f, char why[256])
{
    struct stat info;
    const int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
    mapped_watch(at, f->size, f->path);
    uint64_t length = 0;
    for (int i = 0; i < 8; i++)
        length |= (uint64_t)(unsigned char)f->bytes[i] << 8 * i;
    if (length > (uint64_t)f->size - 8 || length > ST_HEAD_READ) {
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
        mapped_leave(f->bytes); /* dies if the file was truncated meanwhile */
    if (f->bytes)
        munmap((void *)f->bytes, (size_t)f->size);
    forget(f);
    free(f);
}

const char *st_meta(const StFile *f, const char *key)
{
    for (int64_t i = 0; i < f->nmeta; i++)
        if (strcmp(f->meta[i].key, key) == 0)
            return f->meta[i].value;
    return NULL;
}

const StEntry *st_find(const StFile *f, const char *name)
{
    for (int64_t i = 0; i < f->n; i++)
        if (strcmp(f->entry[i].name, name) == 0)
            return &f->entry[i];
    return NULL;
}

/* Whether the file must have a hash: it has the format item of Tenon, or a content item of 16 hex
 * digits.  One wrong bit cannot damage both. */
static bool has_hash(const StFile *f)
{
    const char *format = st_meta(f, "format"), *content = st_meta(f, "content");
    const bool ours = format && strncmp(format, "tenon ", 6) == 0,
               old = ours && !content &&
                     (strcmp(format, "tenon weights 1") == 0 ||
                      strcmp(format, "tenon gradients 1") == 0);
    return (ours && !old) || (content && strlen(content) == ST_DIGITS &&
                              strspn(content, "0123456789abcdef") == ST_DIGITS);
}

/* The hash is that of the content with zeros in place of the digits of the hash. */
bool st_intact(const StFile *f, bool must)
{
    const char *content = st_meta(f, "content");
    const size_t key = strlen(ST_CONTENT);
    const char *at = content ? memmem(f->bytes, (size_t)f->head, ST_CONTENT, key) : NULL;
    if (!must && !has_hash(f))
        return true;
    char found[ST_DIGITS + 1];
    const int64_t before = at ? at - f->bytes + (int64_t)key : 0;
    if (!at || before + ST_DIGITS > f->head)
        return false;
    Hash h = hash_new();
    hash_add(&h, f->bytes, (size_t)before);
    hash_add(&h, "0000000000000000", ST_DIGITS);
    hash_add(&h, f->bytes + before + ST_DIGITS, (size_t)(f->size - before - ST_DIGITS));
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

static double read_number(const char *at, const char *dtype)
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
        const char *from = f->data + e->begin + first * size;
        if (size == real_bytes) {
            params_put_bits(p, to, real_bytes, first, n, from);
            continue;
        }
        for (int k = 0; k < n; k++)
            chunk[k] = read_number(from + k * size, e->dtype);
        params_put(p, to, real_bytes, first, n, chunk);
    }
}
