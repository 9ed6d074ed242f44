/* text.h -- a string that grows, and the few string questions a compiler asks. */
#ifndef TEXT_H
#define TEXT_H
#include "arena.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct Text {
    Arena *arena;
    char  *s;                                         /* always NUL-terminated, never NULL */
    size_t len, cap;
} Text;

Text     text_new(Arena *a);
void     text_add(Text *t, const char *s);
void     text_addn(Text *t, const char *s, size_t n);
void     text_printf(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Nearest of n candidates by edit distance, or NULL when none is close enough to be a slip
 * (distance <= 1 + length/3).  For "did you mean". */
const char *text_nearest(const char *word, const char *const *candidate, int n);
/* The one that a word of another framework means ("padding": "pad"), or NULL; text_nearest asks it first. */
const char *foreign_word(const char *word, const char *const *candidate, int n);

/* Does the word fit the pattern?  * stands for any characters, none too, ? for one. */
bool text_glob(const char *pattern, const char *word);

/* Bytes of the UTF-8 character that s begins with, of n bytes at most; 0: none does (overlong forms and surrogates too). */
int text_character(const char *s, size_t n);

uint64_t text_hash(const void *bytes, size_t n, uint64_t seed);          /* 64 bits, FNV-1a with a final mix */
const char *text_commas(Arena *a, int64_t v);                            /* 431080 -> "431,080" */
const char *text_bytes(Arena *a, int64_t bytes);                         /* 9830400 -> "9.83 MB" (decimal) */
int64_t text_size(const char *s);                                       /* "500M" -> 500,000,000; -1 when it is no size */

#endif
