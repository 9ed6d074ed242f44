/* shape.c -- shapes of samples: making, counting, comparing, printing. */
#include "ir/shape.h"
#include "base/text.h"
#include "ir/recipe.h"
#include <string.h>

/* axes: one letter for each dimension, or NULL.  Drops the dimensions after SHAPE_MAX; callers have
 * reported this error before. */
Shape shape_make(bool batched, const char *axes, const int64_t *dim, int rank)
{
    Shape s = {.batched = batched, .rank = rank < SHAPE_MAX ? rank : SHAPE_MAX};
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = dim[i];
        s.axis[i] = axes && *axes ? *axes++ : '.';
    }
    return s;
}

/* On overflow, returns INT64_MAX, which is larger than all limits. */
int64_t shape_count(const Shape *s)
{
    int64_t count = 1;
    for (int i = 0; i < s->rank; i++)
        if (__builtin_mul_overflow(count, s->dim[i], &count))
            return INT64_MAX;
    return count;
}

bool shape_same(const Shape *a, const Shape *b)
{
    bool same = a->batched == b->batched && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

const char *shape_text(Arena *a, const Shape *s)
{
    Text t = text_new(a);
    text_add(&t, s->batched ? "(N" : "(");
    for (int i = 0; i < s->rank; i++)
        text_printf(&t, "%s%lld", i || s->batched ? ", " : "", (long long)s->dim[i]);
    text_add(&t, ")");
    return t.s;
}

int64_t shape_axis(const Shape *s, char letter)
{
    for (int i = 0; i < s->rank; i++)
        if (s->axis[i] == letter)
            return s->dim[i];
    return 0;
}

int dtype_bytes(const char *dtype)
{
    return dtype && !strcmp(dtype, "f64") ? 8 : 4;
}
