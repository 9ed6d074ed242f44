/* arena.h -- memory that lives exactly as long as one compilation.
 *
 * Everything the compiler builds (tree, graph, names, messages) comes from one arena and is
 * freed all at once.  No other file in compiler/ calls malloc or free.
 */
#ifndef ARENA_H
#define ARENA_H
#include <stdarg.h>
#include <stddef.h>

typedef struct Arena Arena;

Arena *arena_new(void);    /* never NULL: exits if memory runs out */
void arena_free(Arena *a); /* a may be NULL */

void *arena_alloc(Arena *a, size_t bytes); /* zeroed; aligned for any type */
/* a larger zero-padded copy */
void *arena_grow(Arena *a, void *old, size_t old_bytes, size_t bytes);
char *arena_strdup(Arena *a, const char *s);
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);

/* ARENA_PUSH(a, list, n, item): appends to an array of length n that the arena owns; the
 * capacity doubles. */
#define ARENA_PUSH(a, list, n, item)                                                               \
    do {                                                                                           \
        if (((n) & ((n)-1)) == 0)                                                                  \
            (list) = arena_grow((a), (list), (size_t)(n) * sizeof *(list),                         \
                                ((n) ? 2 * (size_t)(n) : 1) * sizeof *(list));                     \
        (list)[(n)++] = (item);                                                                    \
    } while (0)

#endif
