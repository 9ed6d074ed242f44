/* cublas.h -- products with cuBLASLt: a row for each call of a step, prepared when the program
 * starts.
 *
 *   y (count, rows, columns) = a b + bias    row-major; each number of y sums `depth` products
 *   a (count, rows, depth)   b (count, depth, columns)
 *   transposed: a (count, depth, rows), b (count, columns, depth)
 *   sums (rows), if count is 1: the sum of each row of a, in f32
 *   mask, for a relu and if count is 1: a bit for each number of y, which says whether it is above
 *   0; the library chooses the order of bits; a row takes a multiple of 128 bits
 *
 * Numbers are reals, or bf16 or f16 (according to the program) if the row says so.  The library is
 * opened when the first row is prepared; other programs do not need it.
 */
#ifndef CUDA_CUBLAS_H
#define CUDA_CUBLAS_H
#include "rt.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum RtRounding {
    RT_EXACT,
    RT_TF32,
    RT_BF16,
    RT_F16
} RtRounding; /* of factors, f32 in memory */

typedef struct RtProduct {
    const char *layer; /* "dense1 (lenet.tn:10)", for messages */
    int count, rows, columns, depth;
    bool transpose_a, transpose_b;
    bool add;        /* the product is added to y: several calls make one sum */
    bool bias, relu; /* y = relu(a b + bias), a bias for each column */
    bool sums;       /* also computed; never with a bias */
    bool mask;       /* with relu: the mask is also written, for the relu's gradient */
    int undoes;      /* 1 + number of the row whose mask sets numbers of y to 0; 0: no mask */
    bool factors_half, half; /* stored in two bytes: a and b; y and the bias */
    int align;               /* the address of each operand is a multiple of this many bytes */
} RtProduct;

/* Opens cuBLASLt and selects an algorithm for each row.  Dies and names the layer if there is none.
 * Factors stored as f32: RT_TF32 rounds them to 10 fraction bits for tensor cores, RT_BF16 to 7,
 * RT_F16 to the 10 of f16; RT_EXACT does not round.  RT_BF16 and RT_F16 are also the type of
 * factors that are stored in two bytes. */
void rt_products_open(const RtProduct *p, int n, RtRounding rounding, int64_t workspace);

/* Runs row `which` in the program's stream; can be recorded.  beside: the bias, or where the sums
 * go; NULL if the row has neither.  workspace: as many bytes as rt_products_open got. */
void rt_product(int which, void *y, const void *a, const void *b, const void *beside,
                void *workspace);

/* The same for a row with `mask` or `undoes`.  Returns false if the library has no algorithm for
 * the two rows: then no mask is written, and y is computed without a mask. */
bool rt_product_masked(int which, void *y, const void *a, const void *b, const void *beside,
                       void *mask, void *workspace);

#ifdef __cplusplus
}
#endif
#endif
