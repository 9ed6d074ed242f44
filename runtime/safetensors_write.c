/* safetensors_write.c -- see safetensors.h. */
#include "error.h"
#include "hash.h"
#include "json.h"
#include "params.h"
#include "safetensors.h"
#include <stdio.h>
#include <string.h>

enum { ENTRY = 512 }; /* bytes of an entry besides the name */

StWriter *st_writer_new(const RtProgram *p, int n, int64_t metadata_room)
{
    StWriter *w = rt_alloc(sizeof *w);
    w->real_bytes = p->real_bytes;
    w->n = n;
    w->tensor = rt_alloc(sizeof *w->tensor * (size_t)n);
    w->room = metadata_room + 64 + ENTRY + (int64_t)n * (ENTRY + 256);
    w->head = rt_alloc((size_t)w->room);
    return w;
}

static int64_t entry(char *to, const StWriter *w, const StTensor *t, int64_t at)
{
    const int64_t bytes = params_count(t->param) * w->real_bytes;
    int n = json_quote(to, 256, t->name);
    n += sprintf(to + n, ":{\"dtype\":\"%s\",\"shape\":[", w->real_bytes == 8 ? "F64" : "F32");
    for (int i = 0; i < t->param->rank; i++)
        n += sprintf(to + n, "%s%lld", i ? "," : "", (long long)t->param->dim[i]);
    return n + sprintf(to + n, "],\"data_offsets\":[%lld,%lld]}", (long long)at,
                       (long long)(at + bytes));
}

/* The header behind its 8 bytes of length, filled up with blanks to a multiple of 8. */
static int64_t header(StWriter *w, const char *metadata)
{
    char *h = w->head + 8;
    int64_t n = sprintf(h, "{\"__metadata__\":{%s}", metadata), at = 0;
    for (int i = 0; i < w->n; i++) {
        h[n++] = ',';
        n += entry(h + n, w, &w->tensor[i], at);
        at += params_count(w->tensor[i].param) * w->real_bytes;
    }
    if (w->extra)
        n += sprintf(h + n,
                     ",\"%s\":{\"dtype\":\"U8\",\"shape\":[%lld],\"data_offsets\":[%lld,%lld]}",
                     w->extra, (long long)w->extra_bytes, (long long)at,
                     (long long)(at + w->extra_bytes));
    h[n++] = '}';
    while (n % 8)
        h[n++] = ' ';
    for (int i = 0; i < 8; i++)
        w->head[i] = (char)(n >> 8 * i);
    return n + 8;
}

static void write_tensor(StWriter *w, const StTensor *t, Hash *hash)
{
    const int64_t count = params_count(t->param);
    for (int64_t first = 0; first < count; first += PARAMS_CHUNK) {
        double chunk[PARAMS_CHUNK];
        const int n = (int)(count - first < PARAMS_CHUNK ? count - first : PARAMS_CHUNK);
        params_get(t->param, t->from, w->real_bytes, first, n, chunk);
        hash_add(hash, chunk, (size_t)(n * w->real_bytes));
        file_write(&w->file, chunk, n * w->real_bytes);
    }
}

void st_write(StWriter *w, const char *path, const char *metadata)
{
    Hash hash = hash_new();
    const int64_t n = header(w, metadata);
    hash_add(&hash, w->head, (size_t)n);
    file_create(&w->file, path);
    file_write(&w->file, w->head, n);
    for (int i = 0; i < w->n; i++)
        write_tensor(w, &w->tensor[i], &hash);
    if (w->extra) {
        hash_add(&hash, w->extra_text, (size_t)w->extra_bytes);
        file_write(&w->file, w->extra_text, w->extra_bytes);
    }
    const char *place = strstr(metadata, ST_CONTENT);
    if (place) {
        char digits[17];
        snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash_end(&hash));
        const char *at = strstr(w->head + 8, ST_CONTENT) + strlen(ST_CONTENT) - 17;
        file_patch(&w->file, at - w->head, digits, 16);
    }
    file_commit(&w->file);
}
