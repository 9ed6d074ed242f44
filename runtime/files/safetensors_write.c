/* safetensors_write.c -- see safetensors.h. */
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "files/params.h"
#include "files/safetensors.h"
#include <stdio.h>
#include <string.h>

enum { ENTRY = 512 }; /* bytes of an entry without its name */

StWriter *st_writer_new(const RtProgram *p, int n)
{
    StWriter *w = rt_alloc(sizeof *w);
    w->real_bytes = p->real_bytes;
    w->n = n;
    w->tensor = rt_alloc(sizeof *w->tensor * (size_t)n);
    return w;
}

void st_writer_item(StWriter *w, const char *key, const char *value, int64_t most)
{
    if (w->items == ST_ITEMS)
        rt_die("more than %d items of metadata", ST_ITEMS);
    w->item[w->items++] = (StItem){key, value, most ? most : (int64_t)strlen(value)};
}

/* Upper bound of the bytes of a header: as if each byte of each string were escaped. */
static int64_t room_of(const StWriter *w)
{
    int64_t room = 2 * ENTRY + (w->extra ? (int64_t)strlen(w->extra) : 0);
    for (int i = 0; i < w->items; i++)
        room += json_room(w->item[i].most) + json_room((int64_t)strlen(w->item[i].key));
    for (int i = 0; i < w->n; i++)
        room += json_room((int64_t)strlen(w->tensor[i].name)) + ENTRY;
    return room;
}

static int64_t tensor_bytes(const StWriter *w, const StTensor *t)
{
    return params_count(t->param) * w->real_bytes;
}

static int64_t entry(char *to, int64_t room, const StWriter *w, const StTensor *t, int64_t at)
{
    int64_t n = json_quote(to, room, t->name);
    n += sprintf(to + n, ":{\"dtype\":\"%s\",\"shape\":[", w->real_bytes == 8 ? "F64" : "F32");
    for (int i = 0; i < t->param->rank; i++)
        n += sprintf(to + n, "%s%lld", i ? "," : "", (long long)t->param->dim[i]);
    return n + sprintf(to + n, "],\"data_offsets\":[%lld,%lld]}", (long long)at,
                       (long long)(at + tensor_bytes(w, t)));
}

static int64_t metadata(char *to, int64_t room, const StWriter *w)
{
    int64_t n = sprintf(to, "{\"__metadata__\":{%s0000000000000000\"", ST_CONTENT);
    for (int i = 0; i < w->items; i++) {
        to[n++] = ',';
        n += json_quote(to + n, room - n, w->item[i].key);
        to[n++] = ':';
        n += json_quote(to + n, room - n, w->item[i].value);
    }
    to[n++] = '}';
    return n;
}

/* Writes the header after its 8 bytes of length, with blanks up to a multiple of 8. */
static int64_t write_header(StWriter *w)
{
    char *h = w->head + 8;
    const int64_t room = w->room - 8;
    int64_t n = metadata(h, room, w), at = 0;
    for (int i = 0; i < w->n; i++) {
        h[n++] = ',';
        n += entry(h + n, room - n, w, &w->tensor[i], at);
        at += tensor_bytes(w, &w->tensor[i]);
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

void st_writer_ready(StWriter *w, const char *path)
{
    char why[256];
    int64_t data = w->extra ? w->extra_bytes : 0, later = 0;
    for (int i = 0; i < w->n; i++)
        data += tensor_bytes(w, &w->tensor[i]);
    for (int i = 0; i < w->items; i++)
        later += json_room(w->item[i].most);
    w->room = room_of(w);
    w->head = rt_alloc((size_t)w->room);
    const int64_t n = write_header(w);
    if (n + later > ST_HEAD_WRITTEN)
        rt_die("%s cannot be written: names of %d tensors make a header of %lld bytes, and "
               "safetensors files have at most %d",
               path, w->n, (long long)n, ST_HEAD_WRITTEN);
    if (!st_readable(w->head, n, data, why))
        rt_die("%s cannot be written, because no program could read it: %s", path, why);
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

/* Hashes the written file as the reader does: with zeros instead of the digits of the hash. */
static void read_back(StWriter *w, int64_t digits, uint64_t want)
{
    Hash hash = hash_new();
    const int64_t bytes = w->file.bytes;
    for (int64_t at = 0; at < bytes; at += FILE_PIECE) {
        const int64_t n = bytes - at < FILE_PIECE ? bytes - at : FILE_PIECE;
        file_read(&w->file, at, w->back, n);
        for (int64_t i = digits > at ? digits - at : 0; i < n && at + i < digits + ST_DIGITS; i++)
            w->back[i] = '0';
        hash_add(&hash, w->back, (size_t)n);
    }
    if (hash_end(&hash) != want)
        rt_die("%s cannot be written: what is read back is not what was written", w->file.path);
}

void st_write(StWriter *w, const char *path)
{
    Hash hash = hash_new();
    const int64_t n = write_header(w);
    char digits[ST_DIGITS + 1];
    hash_add(&hash, w->head, (size_t)n);
    file_create(&w->file, path);
    file_write(&w->file, w->head, n);
    for (int i = 0; i < w->n; i++)
        write_tensor(w, &w->tensor[i], &hash);
    if (w->extra) {
        hash_add(&hash, w->extra_text, (size_t)w->extra_bytes);
        file_write(&w->file, w->extra_text, w->extra_bytes);
    }
    const int64_t at = strstr(w->head + 8, ST_CONTENT) + strlen(ST_CONTENT) - w->head;
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)hash_end(&hash));
    file_patch(&w->file, at, digits, ST_DIGITS);
    file_sync(&w->file);
    read_back(w, at, hash_end(&hash));
    file_commit(&w->file);
}
