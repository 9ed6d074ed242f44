/* arena.c -- memory that lives exactly as long as one compilation.
 *
 * The arena is a chain of blocks from calloc.  An allocation takes the next unused bytes of the
 * first block; calloc has already set them to zero.  A request larger than a quarter of a block
 * gets its own block, which stands second in the chain, so that the rest of the first block stays
 * in use.
 */
#include "base/arena.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64 * 1024, ALIGN = _Alignof(max_align_t) };

typedef struct Block {
    struct Block *next;
    size_t used, size; /* bytes of data[] */
    _Alignas(max_align_t) unsigned char data[];
} Block;

struct Arena {
    Block *block; /* the one in use; full ones follow */
};

static void *must_calloc(size_t bytes)
{
    void *p = calloc(1, bytes);
    if (!p) {
        fprintf(stderr, "tenon: error: out of memory (asked for %zu bytes)\n", bytes);
        exit(1);
    }
    return p;
}

static Block *block_new(size_t size)
{
    if (size > SIZE_MAX - sizeof(Block))
        size = SIZE_MAX - sizeof(Block); /* fails in calloc, with its message */
    Block *b = must_calloc(sizeof(Block) + size);
    b->size = size;
    return b;
}

Arena *arena_new(void)
{
    Arena *a = must_calloc(sizeof *a);
    a->block = block_new(BLOCK);
    return a;
}

void arena_free(Arena *a)
{
    if (!a)
        return;
    for (Block *b = a->block, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

void *arena_alloc(Arena *a, size_t bytes)
{
    Block *b = a->block;
    if (bytes > SIZE_MAX - ALIGN)
        bytes = SIZE_MAX - ALIGN;
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > BLOCK / 4) {
        Block *own = block_new(bytes);
        own->used = bytes;
        own->next = b->next;
        b->next = own;
        return own->data;
    }
    if (b->size - b->used < bytes) {
        b = block_new(BLOCK);
        b->next = a->block;
        a->block = b;
    }
    void *p = b->data + b->used;
    b->used += bytes;
    return p;
}

void *arena_grow(Arena *a, void *old, size_t old_bytes, size_t bytes)
{
    void *p = arena_alloc(a, bytes > old_bytes ? bytes : old_bytes);
    if (old_bytes)
        memcpy(p, old, old_bytes);
    return p;
}

char *arena_strndup(Arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    if (n)
        memcpy(p, s, n);
    return p;
}

char *arena_strdup(Arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(Arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = arena_alloc(a, (size_t)(n > 0 ? n : 0) + 1);
    if (n > 0)
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}
