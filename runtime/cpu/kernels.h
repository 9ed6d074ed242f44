/* kernels.h -- all CPU kernels, for generated code.
 *
 * Each kernel is always-inline and takes its sizes as literals, for which the C compiler
 * specialises it.  Each fast kernel follows its plain reference (suffix _plain), which is row-major
 * (N, C, H, W) with weights as in files.  Fast kernels need images as (N, H, W, C) and weights in
 * the layout that their file describes.  real is float or double; V: reals of a vector; P = 2 V:
 * reals of a panel.
 */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H
/* clang-format off */
#include "cpu/vec.h"       /* vec, V, v_load, v_store, v_load_n, v_set, v_fma, v_max ... */
#include "cpu/team.h"      /* the part of a result that a thread computes */
#include "cpu/math.h"      /* v_exp, v_tanh ...; scalar forms for --plain; derivatives d_tanh ... */
#include "cpu/input.h"     /* rt_input */
#include "cpu/image.h"     /* rt_input_normalized, rt_input_augmented */
#include "cpu/dense.h"     /* dense, dense_dx, dense_dw */
#include "cpu/dense_sparse.h" /* dense_sparse */
#include "cpu/dense_wide.h" /* dense_wide, dense_wide_dx */
#include "cpu/dense_update.h" /* dense_dw_update */
#include "cpu/dense_input.h" /* dense_dw_update_input */
#include "cpu/conv_pool_dw.h" /* conv2d and its gradients, max_pool in them */
#include "cpu/conv_pool_dx.h"
#include "cpu/conv_pool_forward.h"
#include "cpu/conv_dw_update.h" /* conv2d_dw_update */
#include "cpu/winograd_dw.h" /* conv2d and its gradients with fewer multiplications */
#ifdef RT_BLAS
#include "cpu/blas.h"      /* --kernels=blas: dense and conv through the library */
#endif
#include "cpu/pool.h"      /* max, average, global */
#include "cpu/resize.h"
#include "cpu/loss.h"      /* softmax, softmax_cross_entropy, accuracy, one_hot, l2, mse */
#include "cpu/robust_loss.h" /* l1, huber */
#include "cpu/along.h"     /* cumsum, argmax */
#include "cpu/mask_loss.h" /* sigmoid_cross_entropy_numbers, counts of masks */
#include "cpu/dropout.h"
#include "cpu/normal.h"
#include "cpu/scan.h"      /* loops over time */
#include "cpu/token.h"     /* a token at a time */
#include "cpu/output.h"    /* metrics, outputs, the check for non-finite values */
#include "cpu/update.h"    /* update_sgd ..., tree sums, clipping */
#include "cpu/batch_norm.h"
#include "cpu/group_norm.h"
#include "cpu/gemm.h"      /* matmul */
#include "cpu/attention.h"
#include "cpu/embedding.h" /* embedding, embedding_dw_update */
#include "cpu/gather.h"
#include "cpu/rotary.h"
#include "cpu/layer_norm.h" /* layer_norm, rms_norm */
#ifndef RT_DOUBLE
#include "cpu/bf16_conv.h" /* dense layers and convolutions with factors in bf16 */
#include "cpu/bf16_conv_dw.h"
#include "cpu/bf16_conv_update.h" /* bf16_conv2d_dw_update */
#include "cpu/bf16_gemm.h" /* matmul with factors in bf16 */
#include "cpu/bf16_attention.h" /* attention with factors in bf16 */
#include "cpu/bf16_update.h" /* bf16_dense_dw_update */
#endif
/* clang-format on */

#endif
