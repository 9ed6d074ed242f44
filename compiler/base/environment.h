/* environment.h -- the table of all environment variables that tenon reads; no other file calls
 * getenv. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H
#include <stdbool.h>

typedef enum {
    ENV_CC,
    ENV_TENON_CFLAGS,
    ENV_TENON_STEP_CFLAGS,
    ENV_TENON_CPU,
    ENV_TENON_CACHE,
    ENV_TENON_DATA,
    ENV_MPICC,
    ENV_NVCC,
    ENV_TENON_NVCCFLAGS,
    ENV_XDG_CACHE_HOME,
    ENV_HOME,
    ENV_TMPDIR,
    ENV_NO_COLOR,
    ENV_TERM,
    ENV_PATH,
    ENV_COLUMNS,
    ENV_CUDA_VISIBLE_DEVICES
} EnvironmentKey;

typedef struct Environment {
    const char *name;
    const char *fallback; /* the value when the variable is not set, in words; NULL: none */
    const char *about;
    bool user; /* `tenon --help` lists it */
} Environment;

/* Indexed by EnvironmentKey; the last row has no name. */
extern const Environment environment_table[];

const char *environment(EnvironmentKey key); /* NULL when the variable is not set or empty */

#endif
