/* environment.c -- the environment variables that tenon reads. */
#include "base/environment.h"
#include <stdlib.h>

const Environment environment_table[] =
    {[ENV_CC] = {"CC", "cc", "the C compiler", true},
     [ENV_TENON_CFLAGS] = {"TENON_CFLAGS", NULL, "further flags for the C compiler", true},
     [ENV_TENON_STEP_CFLAGS] = {"TENON_STEP_CFLAGS", NULL,
                                "flags after TENON_CFLAGS, for the C file that calls the kernels",
                                false},
     [ENV_TENON_CPU] = {"TENON_CPU", "native", "the processor, where --cpu is not given", true},
     [ENV_TENON_CACHE] =
         {"TENON_CACHE", "$XDG_CACHE_HOME/tenon, else ~/.cache/tenon",
          "the directory that keeps compiled objects, programs, plans and measurements", true},
     [ENV_TENON_DATA] =
         {"TENON_DATA", NULL,
          "a directory of data sets, where programs first look up names such as mnist", true},
     [ENV_MPICC] = {"MPICC", "mpicc",
                    "with --comm mpi: the wrapper of the C compiler that adds MPI", true},
     [ENV_NVCC] = {"NVCC", "the nvcc that was found when tenon was configured",
                   "with --target cuda: NVIDIA's compiler", true},
     [ENV_TENON_NVCCFLAGS] = {"TENON_NVCCFLAGS", NULL, "further flags for nvcc", true},
     [ENV_XDG_CACHE_HOME] = {"XDG_CACHE_HOME", "~/.cache",
                             "the parent of the cache directory, where TENON_CACHE is not set",
                             false},
     [ENV_HOME] = {"HOME", NULL,
                   "the home directory, where neither TENON_CACHE nor XDG_CACHE_HOME is set",
                   false},
     [ENV_TMPDIR] = {"TMPDIR", "/tmp", "the directory for temporary files", false},
     [ENV_NO_COLOR] = {"NO_COLOR", NULL,
                       "if it has a value, messages have no colours, unless --color=always", false},
     [ENV_TERM] = {"TERM", NULL,
                   "if it is dumb or not set, messages have no colours, unless --color=always",
                   false},
     [ENV_PATH] = {"PATH", NULL,
                   "where the C compiler and the programs that `tenon sweep` starts are looked up",
                   false},
     [ENV_COLUMNS] = {"COLUMNS", "the width of the terminal, else 100",
                      "the width of `tenon results plot` and `tenon watch`, at least 20", false},
     [ENV_CUDA_VISIBLE_DEVICES] = {"CUDA_VISIBLE_DEVICES", NULL,
                                   "the indices of the GPUs that `tenon sweep` measures", false},
     {0}};

const char *environment(EnvironmentKey key)
{
    const char *value = getenv(environment_table[key].name);
    return value && *value ? value : NULL;
}
