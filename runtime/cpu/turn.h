/* turn.h -- V vectors as a square of numbers, turned over its diagonal in registers.
 *
 * log2 V rounds of exchanges: round d swaps, in each pair of rows d apart, the halves that lie on
 * the wrong side.  Source: Eklundh 1972, "A fast computer method for matrix transposing".
 */
#ifndef CPU_TURN_H
#define CPU_TURN_H

#ifdef RT_SCALAR
RT_INLINE void v_turn(vec *x)
{
    (void)x;
}
#else
/* Lane i of the upper and of the lower row of a pair after round d; lanes from V on are the lower
 * row's. */
#define TURN_UPPER(d, i) ((i) & (d) ? (i) - (d) + V : (i))
#define TURN_LOWER(d, i) ((i) & (d) ? (i) + V : (i) + (d))

#define TURN_2(lane, d, i) lane(d, i), lane(d, i + 1)
#define TURN_4(lane, d, i) TURN_2(lane, d, i), TURN_2(lane, d, i + 2)
#define TURN_8(lane, d, i) TURN_4(lane, d, i), TURN_4(lane, d, i + 4)
#define TURN_16(lane, d)   TURN_8(lane, d, 0), TURN_8(lane, d, 8)
#ifdef RT_DOUBLE
#define TURN_BYTES 8
#else
#define TURN_BYTES 4
#endif
#if RT_VEC_BYTES / TURN_BYTES == 16
#define TURN_LANES(lane, d) TURN_16(lane, d)
#elif RT_VEC_BYTES / TURN_BYTES == 8
#define TURN_LANES(lane, d) TURN_8(lane, d, 0)
#elif RT_VEC_BYTES / TURN_BYTES == 4
#define TURN_LANES(lane, d) TURN_4(lane, d, 0)
#else
#define TURN_LANES(lane, d) TURN_2(lane, d, 0)
#endif

#define TURN_ROUND(d)                                                                              \
    RT_UNROLL                                                                                      \
    for (int i = 0; i < V; i++)                                                                    \
        if (!(i & (d))) {                                                                          \
            const vec a = x[i], b = x[i + (d)];                                                    \
            x[i] = __builtin_shufflevector(a, b, TURN_LANES(TURN_UPPER, d));                       \
            x[i + (d)] = __builtin_shufflevector(a, b, TURN_LANES(TURN_LOWER, d));                 \
        }

/* x[i][j] becomes x[j][i]. */
RT_INLINE void v_turn(vec *x)
{
#if RT_VEC_BYTES / TURN_BYTES > 8
    TURN_ROUND(8)
#endif
#if RT_VEC_BYTES / TURN_BYTES > 4
    TURN_ROUND(4)
#endif
#if RT_VEC_BYTES / TURN_BYTES > 2
    TURN_ROUND(2)
#endif
    TURN_ROUND(1)
}
#endif

#endif
