/* cudnn_device.h -- the GPU that plans are made for: one that is there, or one that is only described.
 *
 * A plan holds for one architecture, number of multiprocessors and driver API; memory, clocks and name do not matter to it.
 */
#ifndef CUDNN_DEVICE_H
#define CUDNN_DEVICE_H
#include "cuda/cudnn_api.h"

typedef struct CudnnDevice {
    const CudnnApi *api;
    cudnnBackendDescriptor_t descriptor;
    int arch, sms, driver; /* 900 for sm_90; multiprocessors; 13000 for CUDA 13.0 */
} CudnnDevice;

/* The GPU that stands for "sm_80", "sm_90" or "sm_100" (A100, H200, B200), under a driver of that API version. */
bool cudnn_device_named(CudnnDevice *d, const CudnnApi *api, const char *arch, int driver,
                        char why[CUDNN_WHY]);
/* From a description as cuDNN prints it, JSON. */
bool cudnn_device_described(CudnnDevice *d, const CudnnApi *api, const char *json,
                            char why[CUDNN_WHY]);
/* The GPU of that number in this process. */
bool cudnn_device_present(CudnnDevice *d, const CudnnApi *api, int number, char why[CUDNN_WHY]);
void cudnn_device_free(CudnnDevice *d);

#endif
