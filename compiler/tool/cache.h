/* cache.h -- what was compiled before, found again by what it was made from. */
#ifndef CACHE_H
#define CACHE_H
#include "base/diag.h"
#include "base/text.h"

/* A key is a hash of everything that went into a result: text, headers, library, flags, compiler. */
typedef struct Key {
    uint64_t a, b;
} Key;
void key_add(Key *k, const void *bytes, size_t len);
void key_text(Key *k, const char *s);

typedef enum { CACHE_PROGRAM, CACHE_OBJECT, CACHE_PLAN, CACHE_KINDS } CacheKind;

typedef struct Cache {
    const char *dir; /* $TENON_CACHE, $XDG_CACHE_HOME/tenon or ~/.cache/tenon */
    int64_t hits[CACHE_KINDS], asked[CACHE_KINDS]; /* since cache_open */
    bool written;
} Cache;

/* Makes the directory when it is not there.  False when there can be none: then nothing is found and nothing kept.
 * One that cannot be written to is still read. */
bool cache_open(Arena *a, Cache *c);
/* The bytes of an entry, checked; NULL when it is not there.  A damaged one is removed. */
char *cache_get(Arena *a, Cache *c, CacheKind kind, Key k, size_t *len);
/* Keeps the bytes, whole or not at all.  A program lies at cache_path then and can be run there. */
bool cache_put(Arena *a, Cache *c, CacheKind kind, Key k, const char *bytes, size_t len);
const char *cache_path(Arena *a, const Cache *c, CacheKind kind, Key k);
/* Adds to the counts, and removes what was unused for longest until the limit is kept; `keep` (may be NULL) stays. */
void cache_close(Arena *a, const Cache *c, const char *keep);

/* tenon cache: what is there; --clear: nothing more; --limit SIZE: "500M", "2G", from then on. */
bool cache_report(Arena *a, Diag *d);
bool cache_clear(Arena *a, Diag *d);
bool cache_limit(Arena *a, const char *size, Diag *d);

#define CACHE_LIMIT 1000000000 /* bytes, unless told otherwise */

#endif
