/* cache.h -- stores results of builds, and finds them by a hash of their inputs. */
#ifndef CACHE_H
#define CACHE_H
#include "base/diag.h"
#include "base/text.h"

/* A key is a hash of everything on which a result depends: text, headers, library, flags,
 * compiler. */
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

/* Makes the directory.  Returns false if that is impossible: then there are no entries, and nothing
 * is stored.  A directory without write permission is still read. */
bool cache_open(Arena *a, Cache *c);
/* The bytes of an entry, checked; NULL if there is none.  A damaged entry is removed. */
char *cache_get(Arena *a, Cache *c, CacheKind kind, Key k, size_t *len);
/* Stores the bytes, completely or not at all.  A program can then run from cache_path. */
bool cache_put(Arena *a, Cache *c, CacheKind kind, Key k, const char *bytes, size_t len);
const char *cache_path(Arena *a, const Cache *c, CacheKind kind, Key k);
/* Updates the counts.  Removes the least recently used entries until the rest is within the limit;
 * `keep` (may be NULL) stays. */
void cache_close(Arena *a, const Cache *c, const char *keep);

/* tenon cache: prints the contents; --clear removes them; --limit SIZE ("500M") sets the limit from
 * now on. */
bool cache_report(Arena *a, Diag *d);
bool cache_clear(Arena *a, Diag *d);
bool cache_limit(Arena *a, const char *size, Diag *d);

#define CACHE_LIMIT 1000000000 /* bytes, without --limit */

#endif
