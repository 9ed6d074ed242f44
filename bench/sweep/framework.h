/* framework.h -- who computes: Tenon's programs, or the scripts that `tenon emit` writes for others. */
#ifndef SWEEP_FRAMEWORK_H
#define SWEEP_FRAMEWORK_H
#include "base/text.h"

typedef struct Framework {
    const char *name;    /* "keras-jax" */
    const char *to;      /* of `tenon emit --to`; NULL: Tenon itself */
    const char *setting; /* of the environment, "KERAS_BACKEND=jax"; "" = none */
    const char *option;  /* of the script, "--compile"; "" = none */
} Framework;

extern const char *const framework_known[]; /* their names, ended by NULL */

const Framework *framework_find(
    const char *name); /* of one that only a store knows: no name, not Tenon; of NULL: Tenon */
const char *framework_words(Arena *a, const char *name); /* "pytorch, "; "" of Tenon */

#endif
