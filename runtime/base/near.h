/* near.h -- which word a misspelt word can mean. */
#ifndef NEAR_H
#define NEAR_H
#include <stddef.h>

/* Number of letters to insert, remove or replace that makes b of a.  Two exchanged neighbouring
 * letters have a distance of 2.  Long words have a large distance. */
int near_distance(const char *a, const char *b);

/* A word is near to one of n letters if its distance is smaller than this. */
int near_most(size_t n);

#endif
