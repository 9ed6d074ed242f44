/* kernels.cuh -- all kernels of a GPU, for generated programs.
 *
 * They have the names and arguments of runtime/cpu's plain kernels, row-major (N, C, H, W), weights as in files, or where a size says
 * `last` (N, H, W, C) and filters (O, R, S, I); sizes are constants, so nvcc specialises each call.  Rules that the tests rely on (tests/cuda): threads meet at block_sync and the
 * sums of threads.cuh only, shared memory is named by SHARED, nothing is launched but by LAUNCH.  No sum is left to atomics:
 * the order of every sum depends on sizes alone, so the same program gives the same bits on the same kind of GPU.
 */
#ifndef CUDA_KERNELS_CUH
#define CUDA_KERNELS_CUH
#include "cuda/launch.cuh"  /* LAUNCH: checked, in the one stream */
#include "cuda/threads.cuh" /* FOR_EACH, SHARED, sums of a warp and of a block */
#include "cuda/bf16.cuh"    /* numbers in two bytes */
#include "cuda/f16.cuh"
#include "cuda/math.cuh"    /* s_exp, s_tanh, ...: the words of elementwise rows */
#include "cuda/product.cuh" /* the tiled product that layers are made of */
#include "cuda/dense.cuh"
#include "cuda/conv.cuh"
#include "cuda/relayout.cuh"
#include "cuda/columns.cuh" /* sums over samples of what lies innermost */
#include "cuda/pool.cuh"
#include "cuda/matmul.cuh"
#include "cuda/loss.cuh"
#include "cuda/losses.cuh"
#include "cuda/softmax.cuh"
#include "cuda/embedding.cuh"
#include "cuda/gather.cuh"
#include "cuda/layer_norm.cuh"
#include "cuda/attention.cuh"
#include "cuda/rotary.cuh"
#include "cuda/scan.cuh" /* loops over time */
#include "cuda/dropout.cuh"
#include "cuda/begin.cuh"   /* which samples they are */
#include "cuda/samples.cuh" /* samples in, labels in, metrics and outputs out */
#include "cuda/image.cuh"   /* the same, normalised and augmented */
#include "cuda/update.cuh"
#include "cuda/clip.cuh" /* the same, of clipped gradients */
#include "cuda/loss_scale.cuh" /* and of scaled ones, in f16 */
#include "cuda/batch_norm.cuh"
#include "cuda/results.cuh" /* which thread makes which results */
#endif
