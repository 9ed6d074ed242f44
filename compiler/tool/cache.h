/* cache.h -- results of earlier builds, found by what they were made from. */
#ifndef CACHE_H
#define CACHE_H
#include "base/diag.h"
#include "base/text.h"

/* A key is a hash of everything that decides a result: text, headers, library, flags, compiler. */
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

/* Makes the directory.  Returns false if there can be none: then nothing is found and nothing is
 * kept.  A directory without write permission is still read. */
bool cache_open(Arena *a, Cache *c);
/* The bytes of an entry, checked; NULL if there is none.  A damaged entry is removed. */
char *cache_get(Arena *a, Cache *c, CacheKind kind, Key k, size_t *len);
/* Keeps the bytes, whole or not at all.  A program can run from cache_path then. */
bool cache_put(Arena *a, Cache *c, CacheKind kind, Key k, const char *bytes, size_t len);
const char *cache_path(Arena *a, const Cache *c, CacheKind kind, Key k);
/* Adds to the counts.  Removes the entries with the oldest use until the limit is kept; `keep` (may
 * be NULL) stays. */
void cache_close(Arena *a, const Cache *c, const char *keep);

/* tenon cache: prints the contents; --clear removes them; --limit SIZE ("500M") holds from then
 * on. */
bool cache_report(Arena *a, Diag *d);
bool cache_clear(Arena *a, Diag *d);
bool cache_limit(Arena *a, const char *size, Diag *d);

#define CACHE_LIMIT 1000000000 /* bytes, without --limit */

#endif
