/* fake.h -- shared by the stand-ins for CUDA (fake.cpp) and NCCL (fake_nccl.cpp): work of a stream
 * that is polled several times before it is done. */
#ifndef FAKE_H
#define FAKE_H
#include <cuda_runtime_api.h>
#include <functional>

/* Adds work to a stream.  When all work before it is done, `work` is called repeatedly until it returns true. */
extern "C" void fake_enqueue(cudaStream_t stream, const std::function<bool()> &work);

#endif
