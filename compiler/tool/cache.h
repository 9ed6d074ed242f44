/* cache.h -- programs already compiled, found again by what they were made from. */
#ifndef CACHE_H
#define CACHE_H
#include "base/text.h"

/* A key is a hash of everything that went into the program: text, headers, library, flags, compiler. */
typedef struct Key { uint64_t a, b; } Key;
void key_add(Key *k, const void *bytes, size_t len);

/* $TENON_CACHE, $XDG_CACHE_HOME/tenon or ~/.cache/tenon; made when it is not there.  NULL when there can be none. */
const char *cache_dir(Arena *a);
/* The place of a program in the cache, whether it is there or not. */
const char *cache_path(Arena *a, const char *dir, Key k);
/* True when it is there; notes that it was used. */
bool cache_has(const char *path);
/* Removes the programs unused for longest until CACHE_BYTES are enough; `keep` stays. */
void cache_trim(Arena *a, const char *dir, const char *keep);

enum { CACHE_BYTES = 512 * 1000 * 1000 };

#endif
