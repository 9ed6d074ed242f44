/* cublas.h -- products through cuBLASLt: a row for each call of a step, prepared when the program starts.
 *
 *   y (count, rows, columns) = a b + bias            row-major; each number of y a sum of `depth` products
 *   a (count, rows, depth)   b (count, depth, columns)   turned: a (count, depth, rows), b (count, columns, depth)
 *   sums (rows), of a count of one: each row of a added up, in f32
 *   mask, of a count of one: behind a relu a bit a number of y, whether it is above 0, in the library's own order, rows of a multiple of 128 bits
 *
 * Numbers are reals, or bf16 or f16, whichever the program is built for, where a row says so.  The library is opened when the first row is prepared, and no other program needs it.
 */
#ifndef CUDA_CUBLAS_H
#define CUDA_CUBLAS_H
#include "rt.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum RtRounding { RT_EXACT, RT_TF32, RT_BF16, RT_F16 } RtRounding; /* of factors, f32 in memory */

typedef struct RtProduct {
    const char *layer; /* "dense1 (lenet.tn:10)", for messages */
    int count, rows, columns, depth;
    bool turn_a, turn_b;
    bool add;        /* to what y holds: several calls make one sum */
    bool bias, relu; /* y = relu(a b + bias), a bias a column */
    bool sums;       /* written besides y; never with a bias */
    bool mask;       /* with relu: written besides y, for the row that undoes it */
    int undoes;      /* y is 0 where the mask of that row, from 1, says so; 0: of none */
    bool factors_half, half; /* in memory in two bytes: a and b; y and the bias */
    int align;       /* every operand's address is a multiple of so many bytes */
} RtProduct;

/* Opens cuBLASLt and settles on an algorithm for each row; what cannot be had ends the program, by the layer's name.
 * RT_TF32: factors are rounded to 10 bits behind the point and multiplied on tensor cores; RT_BF16, RT_F16: to 7 and to f16's 10, of rows whose
 * factors are f32 in memory, and this is the type of those that are not; RT_EXACT: f32 is exact. */
void rt_products_open(const RtProduct *p, int n, RtRounding rounding, int64_t workspace);

/* Row `which`, in the one stream; may be recorded.  beside: the bias, or where the sums go; NULL where the row has neither.
 * workspace: as many bytes as were promised. */
void rt_product(int which, void *y, const void *a, const void *b, const void *beside,
                void *workspace);

/* The same of a row with `mask` or `undoes`.  False where the library has no algorithm for the pair of them: then no mask is written, and y is
 * as if nothing were to be undone. */
bool rt_product_masked(int which, void *y, const void *a, const void *b, const void *beside,
                       void *mask, void *workspace);

#ifdef __cplusplus
}
#endif
#endif
