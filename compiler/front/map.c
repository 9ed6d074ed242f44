/* map.c -- a hash table of names with linear probing (Knuth, volume 3, 6.4, algorithm L).
 *
 * Slots are never removed: a removed name keeps its slot, with the value NULL.
 */
#include "front/map.h"
#include "base/text.h"
#include <string.h>

Map map_new(Arena *a)
{
    return (Map){.arena = a};
}

static MapSlot *find_slot(const Map *m, const char *key)
{
    uint64_t i = text_hash(key, strlen(key), 0);
    for (;; i++) {
        MapSlot *s = &m->slot[i & (uint64_t)(m->cap - 1)];
        if (!s->key || strcmp(s->key, key) == 0)
            return s;
    }
}

void *map_get(const Map *m, const char *key)
{
    return m->cap ? find_slot(m, key)->value : NULL;
}

static void grow(Map *m)
{
    const Map old = *m;
    m->cap = old.cap ? 2 * old.cap : 8;
    m->slot = arena_alloc(m->arena, (size_t)m->cap * sizeof *m->slot);
    for (int i = 0; i < old.cap; i++)
        if (old.slot[i].key)
            *find_slot(m, old.slot[i].key) = old.slot[i];
}

void map_set(Map *m, const char *key, void *value)
{
    if (4 * (m->n + 1) > 3 * m->cap)
        grow(m);
    MapSlot *s = find_slot(m, key);
    m->n += !s->key;
    *s = (MapSlot){key, value};
}

const char **map_keys(const Map *m, int *n)
{
    const char **key = NULL;
    *n = 0;
    for (int i = 0; i < m->cap; i++)
        if (m->slot[i].value)
            ARENA_PUSH(m->arena, key, *n, m->slot[i].key);
    return key;
}
