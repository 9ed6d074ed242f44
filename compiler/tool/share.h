/* share.h -- the rows of a table that a program trains on: `tenon new` counts only these. */
#ifndef SHARE_H
#define SHARE_H
#include <stdbool.h>
#include <stdint.h>

/* Whether a row, counted from 0, belongs to the training split of a recipe with this share for the
 * test split and the default seed: the rule of runtime/data/split.c. */
bool share_trains(int64_t row, double test);

#endif
