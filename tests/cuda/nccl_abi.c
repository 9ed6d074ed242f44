/* nccl_abi.c -- compiles only if the declarations of runtime/cuda/nccl_api.h agree with nccl.h. */
#include "cuda/nccl_api.h"
#include <nccl.h>
#include <stddef.h>

#define SAME(field) _Static_assert(offsetof(NcclConfig, field) == offsetof(ncclConfig_t, field), #field)
SAME(size);
SAME(magic);
SAME(version);
SAME(blocking);
SAME(cgaClusterSize);
SAME(minCTAs);
SAME(maxCTAs);
SAME(netName);
SAME(splitShare);
SAME(trafficClass);
_Static_assert(sizeof(NcclId) == sizeof(ncclUniqueId), "an id");
_Static_assert(sizeof(NcclResult) == sizeof(ncclResult_t) && sizeof(int) == sizeof(ncclDataType_t) && sizeof(int) == sizeof(ncclRedOp_t), "enumerations");
_Static_assert((int)NCCL_SUCCESS == (int)ncclSuccess && (int)NCCL_IN_PROGRESS == (int)ncclInProgress, "results");
_Static_assert((int)NCCL_FLOAT32 == (int)ncclFloat32 && (int)NCCL_FLOAT64 == (int)ncclFloat64 && (int)NCCL_SUM == (int)ncclSum, "types");

ncclResult_t ncclAllGather(const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t); /* again: another type would be an error */
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
ncclResult_t ncclMemAlloc(void **, size_t);
ncclResult_t ncclCommRegister(const ncclComm_t, void *, size_t, void **);
#endif

int main(void)
{
    const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    return theirs.magic != NCCL_MAGIC || theirs.minCTAs != NCCL_UNDEFINED || theirs.version < NCCL_CONFIG_VERSION;
}
