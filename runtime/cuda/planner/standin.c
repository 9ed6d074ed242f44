/* standin.c -- replaces the driver's library, libcuda.so.1, in the planner's process.
 *
 * cuDNN compiles fused graphs for a GPU that need not exist, but it loads the result through the
 * driver, as a check, before it returns the plan.  Here each kernel loads, no kernel can be
 * launched, and there is no device: the CUDA runtime in the same process reports "no device".  The
 * planner opens this file before cuDNN; its SONAME is libcuda.so.1, so the loader uses it for
 * cuDNN's request.  Nothing else in Tenon opens it.
 */
#include <cuda.h>

/* The planner sets both: the version of the driver's API, and the number of multiprocessors. */
int tenon_standin_driver = 13000, tenon_standin_sms = 132;

static long handle; /* its address is the opaque handle that all functions return */

/* Functions that the planner's libraries may call.  All except cuInit succeed.  Arguments have
 * names only if the function uses them. */
#define OK(name, ...) CUresult name(__VA_ARGS__)
#define UNUSED        __attribute__((unused))

OK(cuInit, UNUSED unsigned flags)
{
    return CUDA_ERROR_NO_DEVICE;
}

OK(cuDriverGetVersion, int *version)
{
    *version = tenon_standin_driver;
    return CUDA_SUCCESS;
}

OK(cuDeviceGetCount, int *n)
{
    *n = 0;
    return CUDA_SUCCESS;
}

OK(cuDeviceGet, CUdevice *device, UNUSED int number)
{
    *device = 0;
    return CUDA_SUCCESS;
}

OK(cuCtxGetCurrent, CUcontext *context)
{
    *context = (void *)&handle;
    return CUDA_SUCCESS;
}

OK(cuCtxGetDevice, CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

OK(cuGetErrorString, UNUSED CUresult e, const char **text)
{
    *text = "the planner's stand-in for the driver has no device";
    return CUDA_SUCCESS;
}

OK(cuGetErrorName, UNUSED CUresult e, const char **name)
{
    *name = "TENON_STANDIN";
    return CUDA_SUCCESS;
}

OK(cuLibraryLoadData, CUlibrary *library, UNUSED const void *code, UNUSED CUjit_option *jit,
   UNUSED void **jit_values, UNUSED unsigned njit, UNUSED CUlibraryOption *option,
   UNUSED void **values, UNUSED unsigned n)
{
    *library = (void *)&handle;
    return CUDA_SUCCESS;
}

OK(cuLibraryUnload, UNUSED CUlibrary library)
{
    return CUDA_SUCCESS;
}

OK(cuLibraryGetKernel, CUkernel *kernel, UNUSED CUlibrary library, UNUSED const char *name)
{
    *kernel = (void *)&handle;
    return CUDA_SUCCESS;
}

OK(cuKernelGetFunction, CUfunction *function, UNUSED CUkernel kernel)
{
    *function = (void *)&handle;
    return CUDA_SUCCESS;
}

OK(cuModuleLoadData, CUmodule *module, UNUSED const void *image)
{
    *module = (void *)&handle;
    return CUDA_SUCCESS;
}

OK(cuModuleLoadDataEx, CUmodule *module, UNUSED const void *image, UNUSED unsigned n,
   UNUSED CUjit_option *option, UNUSED void **values)
{
    *module = (void *)&handle;
    return CUDA_SUCCESS;
}

OK(cuModuleGetFunction, CUfunction *function, UNUSED CUmodule module, UNUSED const char *name)
{
    *function = (void *)&handle;
    return CUDA_SUCCESS;
}

OK(cuModuleUnload, UNUSED CUmodule module)
{
    return CUDA_SUCCESS;
}

OK(cuFuncSetAttribute, UNUSED CUfunction f, UNUSED CUfunction_attribute a, UNUSED int value)
{
    return CUDA_SUCCESS;
}

OK(cuKernelSetAttribute, UNUSED CUfunction_attribute a, UNUSED int value, UNUSED CUkernel kernel,
   UNUSED CUdevice device)
{
    return CUDA_SUCCESS;
}

OK(cuFuncGetAttribute, int *value, UNUSED CUfunction_attribute a, UNUSED CUfunction f)
{
    *value = 0;
    return CUDA_SUCCESS;
}

/* A cluster occupies as many multiprocessors as it has blocks. */
OK(cuOccupancyMaxActiveClusters, int *n, UNUSED CUfunction f, const CUlaunchConfig *config)
{
    unsigned blocks = 1;
    for (unsigned i = 0; config && i < config->numAttrs; i++)
        if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
            blocks = config->attrs[i].value.clusterDim.x * config->attrs[i].value.clusterDim.y *
                     config->attrs[i].value.clusterDim.z;
    *n = tenon_standin_sms / (int)(blocks ? blocks : 1);
    return CUDA_SUCCESS;
}

OK(cuOccupancyMaxPotentialClusterSize, int *n, UNUSED CUfunction f,
   UNUSED const CUlaunchConfig *config)
{
    *n = 8;
    return CUDA_SUCCESS;
}

OK(cuOccupancyMaxActiveBlocksPerMultiprocessor, int *n, UNUSED CUfunction f, UNUSED int threads,
   UNUSED size_t shared)
{
    *n = 1;
    return CUDA_SUCCESS;
}

/* Functions that the planner's libraries look up but must not call. */
CUresult tenon_standin_refuse(void);
CUresult tenon_standin_refuse(void)
{
    return CUDA_ERROR_NO_DEVICE;
}

#define REFUSE(name) __asm__(".globl " #name "\n.set " #name ", tenon_standin_refuse")
REFUSE(cuLaunchKernel);
REFUSE(cuLaunchKernelEx);
REFUSE(cuLaunchCooperativeKernel);
REFUSE(cuStreamGetCtx);
REFUSE(cuStreamGetCtx_v2);
REFUSE(cuLinkCreate);
REFUSE(cuLinkCreate_v2);
REFUSE(cuLinkAddData);
REFUSE(cuLinkAddData_v2);
REFUSE(cuLinkComplete);
REFUSE(cuLinkDestroy);
REFUSE(cuLibraryLoadFromFile);
REFUSE(cuKernelGetAttribute);
REFUSE(cuCtxPushCurrent);
REFUSE(cuCtxPushCurrent_v2);
REFUSE(cuCtxPopCurrent);
REFUSE(cuCtxPopCurrent_v2);
REFUSE(cuCtxGetLimit);
