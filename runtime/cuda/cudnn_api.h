/* cudnn_api.h -- cuDNN's backend API through a table of symbols, so that a program starts without
 * the library.
 *
 * libcudnn.so.9 is opened at its first use, which takes 1 ms.  A program that does not use cuDNN
 * does not need the library.
 */
#ifndef CUDNN_API_H
#define CUDNN_API_H
#include <cudnn_graph.h>
#include <stdbool.h>
#include <stddef.h>

/* clang-format off */
#define CUDNN_SYMBOLS(S)                                                                           \
    S(GetVersion) S(GetErrorString) S(GetLastErrorString)                                          \
    S(BackendCreateDescriptor) S(BackendDestroyDescriptor) S(BackendFinalize)                      \
    S(BackendSetAttribute) S(BackendGetAttribute) S(BackendExecute)                                \
    S(Create) S(Destroy) S(SetStream)
/* clang-format on */

/* The functions, without the prefix "cudnn": api->BackendFinalize(d). */
typedef struct CudnnApi {
    void *library;
    size_t version; /* 91900: 9.19.0 */
#define CUDNN_FIELD(name) __typeof__(cudnn##name) *name;
    CUDNN_SYMBOLS(CUDNN_FIELD)
#undef CUDNN_FIELD
} CudnnApi;

enum { CUDNN_WHY = 512 }; /* room for a message */

/* Opens the library.  path NULL: $TENON_CUDNN, or libcudnn.so.9 where the loader finds it.  Returns
 * false on failure; `why` then says what is missing and what to do: no library, another major
 * version, or a library without the backend API. */
bool cudnn_open(CudnnApi *api, const char *path, char why[CUDNN_WHY]);
void cudnn_close(CudnnApi *api);

#endif
