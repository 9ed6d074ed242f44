/* nccl_api.h -- the functions of NCCL 2 that sums over GPUs need, through a table of symbols: a
 * program starts without the library.
 *
 * The functions are declared here as in nccl.h, so that programs are built without that header
 * (tests/cuda/nccl_abi.c compares the two if the header exists).
 * Source: NCCL's documentation, "NCCL API"; 2.18 is the first version with all functions, except
 * for NCCL_NEWER_SYMBOLS.
 */
#ifndef NCCL_API_H
#define NCCL_API_H
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct ncclComm *NcclComm;
typedef struct NcclId {
    char internal[128];
} NcclId;
typedef enum NcclResult { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 } NcclResult;
enum { NCCL_FLOAT32 = 7, NCCL_FLOAT64 = 8, NCCL_SUM = 0 };

/* The structure of version 2.18.  Later libraries accept this structure, and choose the values of
 * newer fields themselves. */
typedef struct NcclConfig {
    size_t size;
    unsigned magic, version;
    int blocking, cgaClusterSize, minCTAs, maxCTAs;
    const char *netName;
    int splitShare, trafficClass;
} NcclConfig;
#define NCCL_MAGIC 0xcafebeefu
enum { NCCL_CONFIG_VERSION = 21800, NCCL_UNDEFINED = -2147483647 - 1 };

#define NCCL_SYMBOLS(S)                                                                            \
    S(GetVersion, NcclResult, (int *version))                                                      \
    S(GetUniqueId, NcclResult, (NcclId * id))                                                      \
    S(CommInitRankConfig, NcclResult,                                                              \
      (NcclComm * comm, int ranks, NcclId id, int rank, NcclConfig *config))                       \
    S(CommGetAsyncError, NcclResult, (NcclComm comm, NcclResult * error))                          \
    S(CommAbort, NcclResult, (NcclComm comm))                                                      \
    S(GroupStart, NcclResult, (void))                                                              \
    S(GroupEnd, NcclResult, (void))                                                                \
    S(Send, NcclResult,                                                                            \
      (const void *from, size_t count, int type, int to, NcclComm comm, cudaStream_t stream))      \
    S(Recv, NcclResult,                                                                            \
      (void *to, size_t count, int type, int from, NcclComm comm, cudaStream_t stream))            \
    S(AllGather, NcclResult,                                                                       \
      (const void *from, void *to, size_t count, int type, NcclComm comm, cudaStream_t stream))    \
    S(AllReduce, NcclResult,                                                                       \
      (const void *from, void *to, size_t count, int type, int op, NcclComm comm,                  \
       cudaStream_t stream))                                                                       \
    S(GetErrorString, const char *, (NcclResult result))                                           \
    S(GetLastError, const char *, (NcclComm comm))

/* Since 2.19; NULL in older libraries. */
#define NCCL_NEWER_SYMBOLS(S)                                                                      \
    S(MemAlloc, NcclResult, (void **there, size_t bytes))                                          \
    S(CommRegister, NcclResult, (NcclComm comm, void *there, size_t bytes, void **handle))

/* The functions, without the prefix "nccl": api->Send(...). */
typedef struct NcclApi {
    void *handle; /* of the open library */
    int version;  /* 22809: 2.28.9 */
#define NCCL_FIELD(name, type, arguments) type(*name) arguments;
    NCCL_SYMBOLS(NCCL_FIELD)
    NCCL_NEWER_SYMBOLS(NCCL_FIELD)
#undef NCCL_FIELD
} NcclApi;

enum { NCCL_WHY = 512 }; /* room for a message */

/* Opens $TENON_NCCL, or libnccl.so.2 where the loader finds it.  Returns false on failure; `why`
 * then says what is missing and what to do. */
bool nccl_open(NcclApi *api, char why[NCCL_WHY]);

#endif
