/* transpose.h -- transposes V x V reals in registers; moves samples into lanes and back.
 *
 * log2 V stages; each interleaves row i with row i + V/2.  Afterwards lane j of row i is lane i of
 * row j.
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

/* Orders of lanes: V_LOW interleaves the lower halves of a and b, V_HIGH the upper halves. */
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

/* Transposes t[0 .. V-1] in place. */
RT_LEAF void v_transpose(vec *t)
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

typedef uint8_t bytes_memory __attribute__((vector_size(16), aligned(1), may_alias));

/* 16 adjacent rows of V bytes become V rows of 16 bytes: four stages, one for each bit of a row's
 * index. */
RT_LEAF void bytes_transpose(bytes *t)
{
    RT_UNROLL
    for (int stage = 0; stage < 4; stage++) {
        bytes u[V];
        RT_UNROLL
        for (int i = 0; i < V / 2; i++) {
            u[2 * i] = __builtin_shufflevector(t[i], t[i + V / 2], 0, 16, 1, 17, 2, 18, 3, 19, 4,
                                               20, 5, 21, 6, 22, 7, 23);
            u[2 * i + 1] = __builtin_shufflevector(t[i], t[i + V / 2], 8, 24, 9, 25, 10, 26, 11, 27,
                                                   12, 28, 13, 29, 14, 30, 15, 31);
        }
        RT_UNROLL
        for (int i = 0; i < V && V > 1; i++)
            t[i] = u[i];
    }
}

/* Copies t (count, V) from V rows x of `count` reals, `step` apart; the next function does the
 * reverse. */
RT_LEAF void lanes_from_rows(real *t, const real *x, int64_t step, int count)
{
    for (int i = 0; i < count; i += V) {
        const int lanes = count - i < V ? count - i : V;
        vec u[V];
        RT_UNROLL
        for (int k = 0; k < V; k++)
            u[k] = v_load_lanes(x + k * step + i, lanes);
        v_transpose(u);
        RT_UNROLL
        for (int k = 0; k < V; k++)
            if (k < lanes)
                v_store(t + (int64_t)(i + k) * V, u[k]);
    }
}
RT_LEAF void rows_from_lanes(real *x, const real *t, int64_t step, int count)
{
    for (int i = 0; i < count; i += V) {
        const int lanes = count - i < V ? count - i : V;
        vec u[V];
        RT_UNROLL
        for (int k = 0; k < V; k++)
            u[k] = v_load(t + (int64_t)(i + k) * V);
        v_transpose(u);
        RT_UNROLL
        for (int k = 0; k < V; k++)
            v_store_lanes(x + k * step + i, u[k], lanes);
    }
}

/* The same for bytes.  Reads t in full rows of 16 V, writes exactly `count` bytes a row. */
RT_LEAF void byte_rows_from_lanes(uint8_t *x, const uint8_t *t, int64_t step, int count)
{
    for (int i = 0; i < count; i += 16) {
        const int some = count - i < 16 ? count - i : 16;
        bytes u[V];
        RT_UNROLL
        for (int k = 0; k < V; k++)
            u[k] = *(const bytes_memory *)(t + (int64_t)i * V + 16 * k);
        bytes_transpose(u);
        RT_UNROLL
        for (int k = 0; k < V; k++)
            if (some == 16)
                *(bytes_memory *)(x + k * step + i) = u[k];
            else
                memcpy(x + k * step + i, &u[k], some);
    }
}

/* Stores x, or streams x past the caches (v_stream). */
RT_LEAF void pack_store(real *p, vec x, bool stream)
{
    if (stream)
        v_stream(p, x);
    else
        v_store(p, x);
}

/* Fills `to` (count, V), whose rows are P apart: column j is the `count` numbers at from + j step;
 * columns from `lanes` on are 0. */
RT_LEAF void pack_transposed(real *restrict to, const real *restrict from, int64_t step, int count,
                             int lanes, bool stream)
{
    for (int i = 0; i < count; i += V) {
        const int some = count - i < V ? count - i : V;
        vec x[V];
        RT_UNROLL
        for (int j = 0; j < V; j++)
            x[j] = j < lanes ? v_load_lanes(from + j * step + i, some) : v_set(0);
        v_transpose(x);
        RT_UNROLL
        for (int j = 0; j < V; j++)
            if (j < some)
                pack_store(to + (int64_t)(i + j) * P, x[j], stream);
    }
}

#endif
