/* shape.h -- the shape of one sample, or of a tensor that all samples share.
 *
 * The batch is not a dimension: a value is batched (one per sample) or not (parameters,
 * gradients, statistics).  Each dimension has a letter (C H W T; O I for weights), or '.' for none.
 */
#ifndef SHAPE_H
#define SHAPE_H
#include "base/arena.h"
#include "base/limits.h"
#include <stdbool.h>
#include <stdint.h>

/* REAL is the type of the program (--dtype f32 or f64); classes are I32, stored images U8. */
typedef enum { DT_REAL, DT_U8, DT_I32 } DType;

/* Storage of reals in two bytes: the upper half of an f32 (bf16), or IEEE half precision (f16). */
typedef enum { HALF_NONE, HALF_BF16, HALF_F16 } Half;

typedef struct Shape {
    bool batched;
    int rank; /* 0: a scalar */
    int64_t dim[SHAPE_MAX];
    char axis[SHAPE_MAX + 1]; /* one letter for each dimension */
} Shape;

Shape shape_make(bool batched, const char *axes, const int64_t *dim, int rank);
int64_t shape_count(const Shape *s); /* elements of one sample; 1 for a scalar */
/* Compares batched, rank and dimensions, but not letters. */
bool shape_same(const Shape *a, const Shape *b);
/* "(N, 16, 5, 5)" if batched, "(500, 800)" if not, "()" for a scalar. */
const char *shape_text(Arena *a, const Shape *s);
/* Size of the dimension with this letter; 0 if there is none. */
int64_t shape_axis(const Shape *s, char letter);

#endif
