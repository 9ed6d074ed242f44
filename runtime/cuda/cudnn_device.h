/* cudnn_device.h -- the GPU for which plans are made: a present one, or a described one.
 *
 * A plan is valid for one architecture, number of multiprocessors and driver API.  Memory, clocks
 * and name do not matter.
 */
#ifndef CUDNN_DEVICE_H
#define CUDNN_DEVICE_H
#include "cuda/cudnn_api.h"

typedef struct CudnnDevice {
    const CudnnApi *api;
    cudnnBackendDescriptor_t descriptor;
    int arch, sms, driver; /* 900 for sm_90; multiprocessors; 13000 for CUDA 13.0 */
} CudnnDevice;

/* Describes the GPU that represents "sm_80", "sm_90" or "sm_100" (A100, H200, B200), under a driver
 * with this API version.  All three functions return false on failure, with the reason in `why`. */
bool cudnn_device_named(CudnnDevice *d, const CudnnApi *api, const char *arch, int driver,
                        char why[CUDNN_WHY]);
/* Reads the GPU from a description, JSON as cuDNN prints it. */
bool cudnn_device_described(CudnnDevice *d, const CudnnApi *api, const char *json,
                            char why[CUDNN_WHY]);
/* Describes GPU `number` of this process. */
bool cudnn_device_present(CudnnDevice *d, const CudnnApi *api, int number, char why[CUDNN_WHY]);
void cudnn_device_free(CudnnDevice *d);

#endif
