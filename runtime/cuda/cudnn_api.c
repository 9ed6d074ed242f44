/* cudnn_api.c -- cuDNN's backend API through a table of symbols. */
#include "cuda/cudnn_api.h"
#include "base/variables.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAJOR = 9, OLDEST = 90800 }; /* 9.8 is the first version that plans without a device */

static bool refuse_library(CudnnApi *api, char *why, const char *fmt, const char *a, size_t version)
{
    snprintf(why, CUDNN_WHY, fmt, a, version / 10000, version / 100 % 100);
    cudnn_close(api);
    return false;
}

/* memcpy as cast: ISO C has no other way from an object pointer to a function pointer. */
static bool bind_cudnn(CudnnApi *api, const char **missing)
{
    void *symbol;
#define BIND(name)                                                                                 \
    if (!(symbol = dlsym(api->library, *missing = "cudnn" #name)))                                 \
        return false;                                                                              \
    memcpy(&api->name, &symbol, sizeof symbol);
    CUDNN_SYMBOLS(BIND)
#undef BIND
    return true;
}

bool cudnn_open(CudnnApi *api, const char *path, char why[CUDNN_WHY])
{
    const char *named = getenv(VARIABLE(TENON_CUDNN)), *missing = "";
    *api = (CudnnApi){0};
    path = path ? path : named && *named ? named : "libcudnn.so.9";
    api->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!api->library)
        return refuse_library(api, why,
                              "cuDNN 9 was not found: %s; install it (PyPI: nvidia-cudnn-cu13), or "
                              "set TENON_CUDNN=/path/libcudnn.so.9",
                              dlerror(), 0);
    if (!bind_cudnn(api, &missing))
        return refuse_library(api, why, "this cuDNN has no %s: Tenon needs version 9.8 or later",
                              missing, 0);
    api->version = api->GetVersion();
    if (api->version < OLDEST || api->version / 10000 != MAJOR)
        return refuse_library(api, why, "%s is cuDNN %zu.%zu; Tenon needs version 9.8 or a later 9",
                              path, api->version);
    return true;
}

void cudnn_close(CudnnApi *api)
{
    if (api->library)
        dlclose(api->library);
    *api = (CudnnApi){0};
}
