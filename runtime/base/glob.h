/* glob.h -- patterns of names, such as "conv*" or "*.bias", for the compiler and for programs. */
#ifndef GLOB_H
#define GLOB_H
#include <stdbool.h>
#include <stddef.h>

/* Whether the word matches the pattern: * stands for any number of characters (also 0), ? for
 * one.  After a mismatch, the last * takes one more character; the time is linear except for
 * patterns with many stars. */
static inline bool glob_fits(const char *pattern, const char *word)
{
    const char *star = NULL, *from = word;
    while (*word) {
        if (*pattern == '*') {
            star = ++pattern, from = word;
        } else if (*pattern == '?' || *pattern == *word) {
            pattern++, word++;
        } else if (star) {
            pattern = star, word = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

#endif
