/* framework.h -- what a sweep measures: programs of Tenon, or scripts that `tenon emit` writes for other frameworks. */
#ifndef SWEEP_FRAMEWORK_H
#define SWEEP_FRAMEWORK_H
#include "base/text.h"

typedef struct Framework {
    const char *name;    /* "keras-jax" */
    const char *to;      /* value of `tenon emit --to`; NULL: Tenon itself */
    const char *setting; /* for the environment, "KERAS_BACKEND=jax"; "" = none */
    const char *option;  /* for the script, "--compile"; "" = none */
} Framework;

extern const char *const framework_known[]; /* their names, ended by NULL */

const Framework *framework_find(
    const char *name); /* NULL: Tenon; an unknown name in a store: a framework without a name, not Tenon */
const char *framework_words(Arena *a, const char *name); /* "pytorch, "; "" for Tenon */

#endif
