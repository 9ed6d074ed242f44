/* environment.h -- every variable of the environment that tenon reads: one row each, and the only place that asks for them. */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H
#include <stdbool.h>

typedef enum {
    ENV_CC, ENV_TENON_CFLAGS, ENV_TENON_CPU, ENV_TENON_CACHE, ENV_TENON_DATA, ENV_MPICC, ENV_NVCC, ENV_TENON_NVCCFLAGS,
    ENV_XDG_CACHE_HOME, ENV_HOME, ENV_TMPDIR, ENV_NO_COLOR, ENV_TERM, ENV_PATH, ENV_COLUMNS, ENV_CUDA_VISIBLE_DEVICES
} EnvironmentKey;

typedef struct Environment {
    const char *name;
    const char *fallback;                             /* what holds without it, as words; NULL = nothing */
    const char *about;
    bool        user;                                 /* `tenon --help` names it */
} Environment;

extern const Environment environment_table[];         /* by EnvironmentKey; ended by a row without a name */

const char *environment(EnvironmentKey key);          /* NULL when it is not set, or empty */

#endif
