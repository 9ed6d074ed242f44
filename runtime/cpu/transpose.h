/* transpose.h -- turns a square of V x V reals round in registers.
 *
 * log2 V stages; each interleaves row i with row i + V/2: afterwards lane j of row i has become lane
 * i of row j.
 */
#ifndef CPU_TRANSPOSE_H
#define CPU_TRANSPOSE_H

#if defined(RT_SCALAR)
#define V_INTERLEAVE 1
#elif defined(RT_DOUBLE)
#define V_INTERLEAVE (RT_VEC_BYTES / 8)
#else
#define V_INTERLEAVE (RT_VEC_BYTES / 4)
#endif

/* The lower halves of a and b lane by lane in turn; the upper ones. */
#if V_INTERLEAVE == 16
#define V_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define V_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif V_INTERLEAVE == 8
#define V_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define V_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#elif V_INTERLEAVE == 4
#define V_LOW  0, 4, 1, 5
#define V_HIGH 2, 6, 3, 7
#elif V_INTERLEAVE == 2
#define V_LOW  0, 2
#define V_HIGH 1, 3
#endif

/* t[0 .. V-1], in place. */
RT_INLINE void v_transpose(vec *t)
{
#ifdef V_LOW
    RT_UNROLL
    for (int stage = 1; stage < V; stage *= 2) {
        vec u[V];
        RT_UNROLL
        for (int i = 0; i < V / 2; i++) {
            u[2 * i] = __builtin_shufflevector(t[i], t[i + V / 2], V_LOW);
            u[2 * i + 1] = __builtin_shufflevector(t[i], t[i + V / 2], V_HIGH);
        }
        RT_UNROLL
        for (int i = 0; i < V; i++)
            t[i] = u[i];
    }
#else
    (void)t;
#endif
}

#endif
