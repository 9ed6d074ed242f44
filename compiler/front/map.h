/* map.h -- a map from names to pointers, in constant time: the time to compile a file with a
 * million names grows linearly with its length. */
#ifndef MAP_H
#define MAP_H
#include "base/arena.h"

typedef struct MapSlot {
    const char *key;
    void *value;
} MapSlot;
typedef struct Map {
    Arena *arena;
    MapSlot *slot; /* open addressing; cap is a power of two, at most 3/4 full */
    int cap, n;
} Map;

Map map_new(Arena *a);
void *map_get(const Map *m, const char *key);       /* NULL if absent */
void map_set(Map *m, const char *key, void *value); /* NULL: as if absent */

/* The keys with a value, for "did you mean".  Owned by the arena. */
const char **map_keys(const Map *m, int *n);

#endif
