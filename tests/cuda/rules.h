/* rules.h -- shared by the programs that break the rules of CUDA and its libraries, one after another: the stand-ins must notice each.
 * A program prints a line for each rule that is not noticed; status 0: none.
 */
#ifndef RULES_H
#define RULES_H
#include <cuda_runtime_api.h>
#include <cstdio>

static int unnoticed;

static inline void hold(const char *what, bool noticed)
{
    if (!noticed)
        printf("%s: not noticed\n", what), unnoticed++;
}

/* Whether all bytes are undefined: NaN in each type. */
static inline bool undefined(const void *at, size_t bytes)
{
    const unsigned char *b = (const unsigned char *)at;
    for (size_t i = 0; i < bytes; i++)
        if (b[i] != 0xff)
            return false;
    return true;
}

template <class T> static T *new_memory(size_t count)
{
    void *there = nullptr;
    cudaMalloc(&there, count * sizeof(T));
    return (T *)there;
}

static inline cudaStream_t new_stream()
{
    cudaStream_t s = nullptr;
    cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    return s;
}

#endif
