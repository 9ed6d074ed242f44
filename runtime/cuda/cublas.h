/* cublas.h -- products through cuBLASLt: a row for each call of a step, prepared when the program starts.
 *
 *   y (count, rows, columns) = a b + bias            row-major; each number of y a sum of `depth` products
 *   a (count, rows, depth)   b (count, depth, columns)   turned: a (count, depth, rows), b (count, columns, depth)
 *
 * Numbers are reals.  The library is opened when the first row is prepared, and no other program needs it.
 */
#ifndef CUDA_CUBLAS_H
#define CUDA_CUBLAS_H
#include "rt.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct RtProduct {
    const char *layer; /* "dense1 (lenet.tn:10)", for messages */
    int count, rows, columns, depth;
    bool turn_a, turn_b;
    bool add;        /* to what y holds: several calls make one sum */
    bool bias, relu; /* y = relu(a b + bias), a bias a column */
    int align;       /* every operand's address is a multiple of so many bytes */
} RtProduct;

/* Opens cuBLASLt and settles on an algorithm for each row; what cannot be had ends the program, by the layer's name.
 * tf32: factors are rounded to 10 bits behind the point and multiplied on tensor cores; else f32 is exact. */
void rt_products_open(const RtProduct *p, int n, bool tf32, int64_t workspace);

/* Row `which`, in the one stream; may be recorded.  bias: NULL where the row has none.  workspace: as many bytes as were promised. */
void rt_product(int which, real *y, const real *a, const real *b, const real *bias,
                void *workspace);

#ifdef __cplusplus
}
#endif
#endif
