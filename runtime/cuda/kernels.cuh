/* kernels.cuh -- all kernels of a GPU, for generated programs.
 *
 * Names and arguments are those of runtime/cpu's plain kernels: row-major (N, C, H, W), weights as
 * in files; with `last`, images (N, H, W, C) and filters (O, R, S, I).  Sizes are constants, so
 * nvcc specialises each call.
 *
 * Rules on which the tests rely (tests/cuda): threads synchronise only at block_sync and in the
 * sums of threads.cuh; SHARED declares all shared memory; LAUNCH makes all launches.  No sum uses
 * atomics: the order of each sum depends on sizes only, so a program gives the same bits on each
 * GPU of one kind.
 */
#ifndef CUDA_KERNELS_CUH
#define CUDA_KERNELS_CUH
/* clang-format off */
#include "cuda/launch.cuh"  /* LAUNCH: in the one stream, checked */
#include "cuda/threads.cuh" /* FOR_EACH, SHARED, sums of a warp and of a block */
#include "cuda/pack.cuh"    /* reads and writes of adjacent numbers at once */
#include "cuda/bf16.cuh"    /* numbers in two bytes */
#include "cuda/f16.cuh"
#include "cuda/math.cuh"    /* s_exp, s_tanh ...: functions of the elementwise table */
#include "cuda/product.cuh" /* the tiled product inside dense layers and convolutions */
#include "cuda/dense.cuh"
#include "cuda/conv.cuh"
#include "cuda/parts.cuh" /* products with few results and long sums, in parts */
#include "cuda/relayout.cuh"
#include "cuda/columns.cuh" /* sums over rows, for innermost channels */
#include "cuda/pool.cuh"
#include "cuda/resize.cuh"
#include "cuda/matmul.cuh"
#include "cuda/loss.cuh"
#include "cuda/losses.cuh"
#include "cuda/softmax.cuh"
#include "cuda/embedding.cuh"
#include "cuda/gather.cuh"
#include "cuda/layer_norm.cuh"
#include "cuda/group_norm.cuh"
#include "cuda/attention.cuh"
#include "cuda/rotary.cuh"
#include "cuda/scan.cuh" /* loops over time */
#include "cuda/recurrence.cuh" /* a loop over time in one launch */
#include "cuda/along.cuh"
#include "cuda/dropout.cuh"
#include "cuda/normal.cuh"
#include "cuda/begin.cuh"   /* which samples a batch has */
#include "cuda/samples.cuh" /* samples in, labels in, metrics and outputs out */
#include "cuda/image.cuh"   /* images in, normalised and augmented */
#include "cuda/update.cuh"
#include "cuda/clip.cuh" /* the update with clipped gradients */
#include "cuda/average.cuh"
#include "cuda/loss_scale.cuh" /* the update with scaled gradients, in f16 */
#include "cuda/trust.cuh"      /* the update of lars and lamb */
#include "cuda/batch_norm.cuh"
#include "cuda/results.cuh" /* the results of each thread */
/* clang-format on */

#endif
