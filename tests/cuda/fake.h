/* fake.h -- shared by the stand-ins for CUDA (fake.cpp) and NCCL (fake_nccl.cpp): work of a stream
 * that is polled several times before it is done. */
#ifndef FAKE_H
#define FAKE_H
#include <cuda_runtime_api.h>
#include <functional>

/* Asked again and again once all before it in its stream is done, until it says true. */
extern "C" void fake_enqueue(cudaStream_t stream, const std::function<bool()> &work);

#endif
