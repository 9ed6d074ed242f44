/* split.h -- which samples are for training, test and validation, if the data do not say. */
#ifndef SPLIT_H
#define SPLIT_H
#include <stdbool.h>
#include <stdint.h>

/* The samples whose random number lies between `from` and `to`. */
typedef struct Split {
    const char *name; /* "train", "test", "validation" */
    double from, to;
    uint64_t seed;
} Split;

/* The split of this name, where the shares `test` and `validation` are taken away from the training
 * samples.  seed: that of the recipe.  A share is 0 where the data have this split already. */
Split split_of(uint64_t seed, const char *name, double test, double validation);

/* A split of this name with all samples. */
Split split_all(const char *name);

/* Whether the split has the sample with this key, such as its index.  The random number of a sample
 * depends on the recipe's seed and the key only.  So no sample moves when others are appended, and
 * --seed gives another run on the same splits. */
bool split_takes(const Split *s, uint64_t key);

#endif
