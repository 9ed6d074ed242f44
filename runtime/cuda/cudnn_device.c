/* cudnn_device.c -- the GPU for which plans are made: a present one, or a described one.
 *
 * Source of the figures: the table of compute capabilities in the CUDA C++ Programming Guide; data
 * sheets of A100 80 GB, H200, B200.
 */
#include "cuda/cudnn_device.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Known {
    const char *arch, *name;
    int version, sms, shared; /* 900; multiprocessors; bytes of shared memory of a block, at most */
    int clock, memory_clock, l2; /* kHz, kHz, bytes */
    int64_t memory;
} Known;

static const Known known[] = {
    {"sm_80", "NVIDIA A100-SXM4-80GB", 800, 108, 166912, 1410000, 1593000, 41943040, 85094432768},
    {"sm_90", "NVIDIA H200", 900, 132, 232448, 1980000, 3201000, 62914560, 150119383040},
    {"sm_100", "NVIDIA B200", 1000, 148, 232448, 1965000, 3996000, 132644864, 191514148864},
};

static const char format[] =
    "{\"deviceVer\":%d,\"driverVer\":%d,\"cudaDeviceId\":0,\"totalGlobalMem\":%" PRId64
    ",\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":"
    "65536,\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":1024,"
    "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
    "\"smClockRateKHz\":%d,\"memClockRateKHz\":%d,\"l2CacheSize\":%d,\"deviceName\":\"%s\"}";

static bool refuse_device(CudnnDevice *d, const char *what, cudnnStatus_t s, char *why)
{
    snprintf(why, CUDNN_WHY, "cuDNN refuses %s: %s", what, d->api->GetErrorString(s));
    cudnn_device_free(d);
    return false;
}

static bool set_device_property(CudnnDevice *d, cudnnBackendAttributeName_t name,
                                cudnnBackendAttributeType_t type, int64_t n, const void *v,
                                const char *what, char *why)
{
    cudnnStatus_t s =
        d->api->BackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &d->descriptor);
    if (!s)
        s = d->api->BackendSetAttribute(d->descriptor, name, type, n, v);
    if (!s)
        s = d->api->BackendFinalize(d->descriptor);
    return !s || refuse_device(d, what, s, why);
}

static int number_of(const char *json, const char *key)
{
    const char *s = strstr(json, key);
    return s ? atoi(s + strlen(key)) : 0;
}

static bool read_key(CudnnDevice *d, const char *json, char *why)
{
    d->arch = number_of(json, "\"deviceVer\":");
    d->sms = number_of(json, "\"multiProcessorCount\":");
    d->driver = number_of(json, "\"driverVer\":");
    return (d->arch > 0 && d->sms > 0 && d->driver > 0) ||
           refuse_device(d, "the device's description", CUDNN_STATUS_BAD_PARAM, why);
}

bool cudnn_device_described(CudnnDevice *d, const CudnnApi *api, const char *json,
                            char why[CUDNN_WHY])
{
    *d = (CudnnDevice){.api = api};
    size_t n = strlen(json);
    while (n && (json[n - 1] == '\n' || json[n - 1] == ' '))
        n--;
    return read_key(d, json, why) &&
           set_device_property(d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                               (int64_t)n, json, "the device's description", why);
}

bool cudnn_device_named(CudnnDevice *d, const CudnnApi *api, const char *arch, int driver,
                        char why[CUDNN_WHY])
{
    char json[1024];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const Known *k = &known[i];
        if (strcmp(k->arch, arch) != 0)
            continue;
        snprintf(json, sizeof json, format, k->version, driver, k->memory, k->sms, k->shared,
                 k->clock, k->memory_clock, k->l2, k->name);
        return cudnn_device_described(d, api, json, why);
    }
    snprintf(why, CUDNN_WHY,
             "no GPU of architecture '%s' is described here; sm_80, sm_90 and sm_100 are", arch);
    return false;
}

bool cudnn_device_present(CudnnDevice *d, const CudnnApi *api, int number, char why[CUDNN_WHY])
{
    char json[4096];
    int64_t n = 0;
    const int32_t id = number;
    *d = (CudnnDevice){.api = api};
    if (!set_device_property(d, CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, 1, &id,
                             "the GPU", why))
        return false;
    const cudnnStatus_t s =
        api->BackendGetAttribute(d->descriptor, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, sizeof json - 1, &n, json);
    if (s || n >= (int64_t)sizeof json)
        return refuse_device(d, "to describe the GPU", s, why);
    json[n] = 0;
    return read_key(d, json, why);
}

void cudnn_device_free(CudnnDevice *d)
{
    if (d->descriptor)
        d->api->BackendDestroyDescriptor(d->descriptor);
    d->descriptor = NULL;
}
