/* framework.c -- the table of frameworks.
 *
 * PyTorch gets settings of malloc: by default glibc returns the pages of large tensors to the system in each step (bench/README.md).
 */
#include "sweep/framework.h"
#include <string.h>

#define KEEP_PAGES "MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=2000000000"

static const Framework table[] = {
    {"tenon", NULL, "", ""},
    {"pytorch", "pytorch", KEEP_PAGES, ""},
    {"pytorch-compiled", "pytorch", KEEP_PAGES, "--compile"},
    {"keras-tensorflow", "keras", "KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3", ""},
    {"keras-tensorflow-xla", "keras", "KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3",
     "--compile"},
    {"keras-jax", "keras", "KERAS_BACKEND=jax", ""},
    {"keras-torch", "keras", "KERAS_BACKEND=torch " KEEP_PAGES, ""},
    {"mxnet", "mxnet", "", ""},
};

const char *const framework_known[] = {"tenon",
                                       "pytorch",
                                       "pytorch-compiled",
                                       "keras-tensorflow",
                                       "keras-tensorflow-xla",
                                       "keras-jax",
                                       "keras-torch",
                                       "mxnet",
                                       NULL};

const Framework *framework_find(const char *name)
{
    static const Framework other = {"", "", "", ""};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!name || strcmp(table[i].name, name) == 0)
            return &table[i];
    return &other;
}

const char *framework_words(Arena *a, const char *name)
{
    return name && strcmp(name, table[0].name) != 0 ? arena_printf(a, "%s, ", name) : "";
}
