/* shape.h -- the shape of one sample, or of a tensor that all samples share.
 *
 * The batch is not a dimension: a value is batched (one per sample) or not (parameters, gradients,
 * statistics).  Dimensions carry their letter (C H W T; O I for weights) or '.' when they have none.
 */
#ifndef SHAPE_H
#define SHAPE_H
#include "base/arena.h"
#include "base/limits.h"
#include <stdbool.h>
#include <stdint.h>


/* REAL is the program's own type (--dtype f32 or f64); labels are I32, stored images U8. */
typedef enum { DT_REAL, DT_U8, DT_I32 } DType;

/* How reals of two bytes lie in memory: an f32's upper half, or IEEE's half. */
typedef enum { HALF_NONE, HALF_BF16, HALF_F16 } Half;

typedef struct Shape {
    bool    batched;
    int     rank;                                     /* 0: a scalar */
    int64_t dim[SHAPE_MAX];
    char    axis[SHAPE_MAX + 1];                      /* one letter a dimension */
} Shape;

Shape   shape_make(bool batched, const char *axes, const int64_t *dim, int rank);
int64_t shape_count(const Shape *s);                  /* elements of one sample; 1 for a scalar */
bool    shape_same(const Shape *a, const Shape *b);   /* batched, rank and dims; letters do not matter */
const char *shape_text(Arena *a, const Shape *s);     /* "(N, 16, 5, 5)" batched, "(500, 800)" not, "()" a scalar */
int64_t shape_axis(const Shape *s, char letter);      /* size of the dimension with that letter, 0 if none */

#endif
