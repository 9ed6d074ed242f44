/* table.c -- open addressing, at most half full; see table.h. */
#define _GNU_SOURCE
#include "data/table.h"
#include "base/error.h"
#include <stdlib.h>
#include <string.h>

enum { STORE = 1 << 20 };

typedef struct Store {
    struct Store *before;
    char bytes[];
} Store;

static uint32_t hash_of(const char *bytes, int32_t length)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (int32_t i = 0; i < length; i++)
        h = (h ^ (uint8_t)bytes[i]) * 16777619u;
    return h ^ h >> 15;
}

/* The slot of the piece, or the empty slot in which it belongs. */
static uint32_t slot_of(const Table *t, const char *bytes, int32_t length)
{
    uint32_t s = hash_of(bytes, length) & (t->slots - 1);
    for (; t->slot[s]; s = (s + 1) & (t->slots - 1)) {
        const Piece *p = &t->piece[t->slot[s] - 1];
        if (p->length == length && memcmp(p->bytes, bytes, (size_t)length) == 0)
            break;
    }
    return s;
}

static void index_all(Table *t)
{
    memset(t->slot, 0, sizeof *t->slot * t->slots);
    for (int32_t i = 0; i < t->n; i++)
        t->slot[slot_of(t, t->piece[i].bytes, t->piece[i].length)] = i + 1;
}

static void *grown(void *old, size_t bytes)
{
    void *p = realloc(old, bytes);
    if (!p)
        rt_die("out of memory for a vocabulary");
    return p;
}

static void grow_table(Table *t)
{
    t->room = t->room ? 2 * t->room : 256;
    t->slots = 2 * (uint32_t)t->room;
    t->piece = grown(t->piece, sizeof *t->piece * (size_t)t->room);
    t->count = grown(t->count, sizeof *t->count * (size_t)t->room);
    t->slot = grown(t->slot, sizeof *t->slot * t->slots);
    index_all(t);
}

static const char *copy_key(Table *t, const char *bytes, int32_t length)
{
    if (!t->store || t->left < length) {
        t->used = 0;
        t->left = length > STORE ? length : STORE;
        Store *s = grown(NULL, sizeof *s + (size_t)t->left);
        s->before = t->store;
        t->store = s;
    }
    char *at = memcpy(t->store->bytes + t->used, bytes, (size_t)length);
    t->used += length;
    t->left -= length;
    return at;
}

int32_t table_find(const Table *t, const char *bytes, int32_t length)
{
    return t->slots ? t->slot[slot_of(t, bytes, length)] - 1 : -1;
}

int32_t table_add(Table *t, const char *bytes, int32_t length)
{
    if (t->n == t->room)
        grow_table(t);
    const uint32_t s = slot_of(t, bytes, length);
    if (t->slot[s])
        return t->slot[s] - 1;
    t->piece[t->n] = (Piece){copy_key(t, bytes, length), length};
    t->count[t->n] = 0;
    t->slot[s] = ++t->n;
    return t->n - 1;
}

void table_free(Table *t)
{
    free(t->piece);
    free(t->count);
    free(t->slot);
    for (Store *s = t->store, *before; s; s = before) {
        before = s->before;
        free(s);
    }
    *t = (Table){.n = 0};
}

typedef struct Entry {
    Piece piece;
    int64_t count;
} Entry;

static int by_bytes(const void *a, const void *b)
{
    const Piece *p = &((const Entry *)a)->piece, *q = &((const Entry *)b)->piece;
    const int32_t n = p->length < q->length ? p->length : q->length;
    const int c = memcmp(p->bytes, q->bytes, (size_t)n);
    return c ? c : p->length - q->length;
}

static int by_falling_count(const void *a, const void *b)
{
    const int64_t x = ((const Entry *)a)->count, y = ((const Entry *)b)->count;
    return x != y ? (x < y) - (x > y) : by_bytes(a, b);
}

/* Whether the piece is a number. */
static int is_number(const Piece *p, double *value)
{
    char text[64], *end;
    if (p->length < 1 || p->length >= (int32_t)sizeof text)
        return 0;
    memcpy(text, p->bytes, (size_t)p->length);
    text[p->length] = 0;
    *value = strtod(text, &end);
    return !*end && *value == *value;
}

static int by_value(const void *a, const void *b)
{
    double v, w;
    const int p = is_number(&((const Entry *)a)->piece, &v),
              q = is_number(&((const Entry *)b)->piece, &w);
    if (p && q && v != w)
        return (v > w) - (v < w);
    return p != q ? q - p : by_bytes(a, b);
}

static void sort(Table *t, int (*compare)(const void *, const void *))
{
    Entry *e = grown(NULL, sizeof *e * (size_t)(t->n + 1));
    for (int32_t i = 0; i < t->n; i++)
        e[i] = (Entry){t->piece[i], t->count[i]};
    qsort(e, (size_t)t->n, sizeof *e, compare);
    for (int32_t i = 0; i < t->n; i++)
        t->piece[i] = e[i].piece, t->count[i] = e[i].count;
    free(e);
    if (t->slots)
        index_all(t);
}

void table_sort(Table *t, int by_count)
{
    sort(t, by_count ? by_falling_count : by_bytes);
}

void table_sort_values(Table *t)
{
    sort(t, by_value);
}
