/* text.h -- a string that grows, and functions on strings that a compiler needs. */
#ifndef TEXT_H
#define TEXT_H
#include "arena.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct Text {
    Arena *arena;
    char *s; /* always NUL-terminated, never NULL */
    size_t len, cap;
} Text;

Text text_new(Arena *a);
void text_add(Text *t, const char *s);
void text_addn(Text *t, const char *s, size_t n);
/* Adds an argument to a call, whose parenthesis ends at `open`: behind a comma, if it is not the
 * first one, and in a new line below the first argument, if its line would have more than `width`
 * columns.  *line: where the last line begins, 0 at first. */
void text_add_argument(Text *t, size_t open, size_t *line, const char *word, int width);
void text_printf(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds lines, each with `columns` more blanks before it.  If `columns` is negative, drops as many
 * characters from the beginning of each line.  Each added line ends with a newline. */
void text_shifted(Text *t, const char *lines, int columns);

/* Nearest of n candidates by edit distance, for "did you mean"; NULL when none is near enough to
 * be a typing error (distance <= 1 + length/3). */
const char *text_nearest(const char *word, const char *const *candidate, int n);
/* The candidate that has the meaning of a word of another framework ("padding": "pad"), or NULL.
 * text_nearest calls this function first. */
const char *foreign_word(const char *word, const char *const *candidate, int n);
/* The block of losses.tn with this name or meaning ("dice_loss": "dice"), or NULL. */
const char *foreign_loss(const char *word);

/* glob_fits of runtime/base/glob.h: whether the word matches the pattern. */
bool text_glob(const char *pattern, const char *word);

/* Length in bytes of the UTF-8 character at the start of s, which has n bytes.  0 when there is
 * no valid character; overlong forms and surrogates are not valid. */
int text_character(const char *s, size_t n);

/* 64-bit FNV-1a hash with a final mix. */
uint64_t text_hash(const void *bytes, size_t n, uint64_t seed);
const char *text_commas(Arena *a, int64_t v);    /* 431080 -> "431,080" */
const char *text_bytes(Arena *a, int64_t bytes); /* 9830400 -> "9.83 MB" (decimal) */
int64_t text_size(const char *s);                /* "500M" -> 500,000,000; -1: not a size */

#endif
