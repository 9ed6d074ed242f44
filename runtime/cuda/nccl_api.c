/* nccl_api.c -- NCCL through a table of symbols. */
#include "cuda/nccl_api.h"
#include "base/variables.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 21800 };

/* memcpy as cast: ISO C has no other way from an object pointer to a function pointer. */
static bool bind_nccl(NcclApi *api, const char **missing)
{
    void *symbol;
#define BIND(name, type, arguments)                                                                \
    if (!(symbol = dlsym(api->handle, *missing = "nccl" #name)))                                   \
        return false;                                                                              \
    memcpy(&api->name, &symbol, sizeof symbol);
    NCCL_SYMBOLS(BIND)
#undef BIND
#define BIND_NEWER(name, type, arguments)                                                          \
    if ((symbol = dlsym(api->handle, "nccl" #name)))                                               \
        memcpy(&api->name, &symbol, sizeof symbol);
    NCCL_NEWER_SYMBOLS(BIND_NEWER)
#undef BIND_NEWER
    return true;
}

bool nccl_open(NcclApi *api, char why[NCCL_WHY])
{
    const char *named = getenv(VARIABLE(TENON_NCCL)), *missing = "";
    const char *path = named && *named ? named : "libnccl.so.2";
    *api = (NcclApi){0};
    api->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!api->handle)
        snprintf(why, NCCL_WHY,
                 "NCCL 2, which adds gradients between GPUs, was not found: %s; install it (PyPI: "
                 "nvidia-nccl-cu13), or set TENON_NCCL=/path/libnccl.so.2",
                 dlerror());
    else if (!bind_nccl(api, &missing))
        snprintf(why, NCCL_WHY, "%s has no %s: NCCL 2.18 or a later 2 is needed", path, missing);
    else if (api->GetVersion(&api->version) != NCCL_SUCCESS || api->version < OLDEST ||
             api->version >= 30000)
        snprintf(why, NCCL_WHY, "%s is NCCL %d.%d; version 2.18 or a later 2 is needed", path,
                 api->version / 10000, api->version / 100 % 100);
    else
        return true;
    return false;
}
