/* near.h -- which word a misspelt word can mean. */
#ifndef NEAR_H
#define NEAR_H
#include <stddef.h>

/* Number of letters to insert, remove or replace in a until a is equal to b.  Two exchanged
 * neighbouring letters have a distance of 2.  Long words have a large distance. */
int near_distance(const char *a, const char *b);

/* A word is near a word of n letters if their distance is smaller than this number. */
int near_most(size_t n);

#endif
