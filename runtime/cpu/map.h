/* map.h -- loops over arrays by vectors, whose last vector can be incomplete; vec.h includes it. */
#ifndef CPU_MAP_H
#define CPU_MAP_H
#include "cpu/vec.h"

/* Elementwise loops of generated code.  The body reads LOAD(pointer) and writes STORE(pointer,
 * value), both at element AT:
 *     RT_MAP(16 * 500, vec y = LOAD(a); STORE(c, LOAD(b) * (1 - y * y)))
 * Whole vectors come first; then the body runs once more for the remaining lanes. */
#define LOAD(p)            v_load_lanes((p) + AT, rt_lanes)
#define STORE(p, x)        v_store_lanes((p) + AT, x, rt_lanes)
#define RT_MAP(count, ...) RT_MAP_FROM(0, (int64_t)(count), __VA_ARGS__)
/* The same for elements first to end - 1. */
#define RT_MAP_FROM(first, end, ...)                                                               \
    do {                                                                                           \
        int64_t AT = (first);                                                                      \
        for (const int rt_lanes = V; AT + V <= (end); AT += V) {                                   \
            (void)rt_lanes;                                                                        \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        for (const int rt_lanes = (int)((end)-AT); AT < (end); AT += V) {                          \
            (void)rt_lanes;                                                                        \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)
RT_LEAF vec v_load_lanes(const real *p, int lanes)
{
    return lanes == V ? v_load(p) : v_load_n(p, lanes);
}
RT_LEAF void v_store_lanes(real *p, vec x, int lanes)
{
    if (lanes == V)
        v_store(p, x);
    else
        v_store_n(p, x, lanes);
}

/* A word whose bit i is set if x[i] is not 0, for each i < count <= 64. */
RT_LEAF uint64_t v_nonzeros(const real *x, int count)
{
    uint64_t word = 0;
    for (int i = 0; i < count; i += V)
        word |= (uint64_t)v_nonzero(v_load_lanes(x + i, count - i < V ? count - i : V)) << i;
    return word;
}

/* In a bf16 program, each operand of a loop is real or bf16.  Generated code writes Bf16. */
#ifdef RT_BF16
#include "cpu/bf16.h"
typedef bf16 Bf16;
#undef LOAD
#undef STORE
#define LOAD(p)                                                                                    \
    _Generic((p), bf16 *                                                                           \
             : v_load_bf16_lanes, const bf16 *                                                     \
             : v_load_bf16_lanes, default                                                          \
             : v_load_lanes)((p) + AT, rt_lanes)
#define STORE(p, x)                                                                                \
    _Generic((p), bf16 * : v_store_bf16_lanes, default : v_store_lanes)((p) + AT, x, rt_lanes)
#endif

/* The numbers from index `at` on of an operand that is bf16 if `half`, else real. */
RT_LEAF vec v_load_number(const void *p, bool half, int64_t at, int lanes)
{
#ifdef RT_BF16
    if (half)
        return v_load_bf16_lanes((const bf16 *)p + at, lanes);
#endif
    (void)half;
    return v_load_lanes((const real *)p + at, lanes);
}
RT_LEAF void v_store_number(void *p, bool half, int64_t at, vec x, int lanes)
{
#ifdef RT_BF16
    if (half) {
        v_store_bf16_lanes((bf16 *)p + at, x, lanes);
        return;
    }
#endif
    (void)half;
    v_store_lanes((real *)p + at, x, lanes);
}

#endif
