/* fake.h -- what the tests' CUDA runtime (fake.cpp) and their NCCL (fake_nccl.cpp) share: work of a stream that takes several looks. */
#ifndef FAKE_H
#define FAKE_H
#include <cuda_runtime_api.h>
#include <functional>

/* Asked again and again once all before it in its stream is done, until it says true. */
extern "C" void fake_enqueue(cudaStream_t stream, const std::function<bool()> &work);

#endif
