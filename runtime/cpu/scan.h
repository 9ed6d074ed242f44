/* scan.h -- loops over time: elements of sequences, and what one step hands to the next.
 *
 * A sequence is (N, T, size) as in the language: the elements of one step lie T x size reals apart.
 */
#ifndef CPU_SCAN_H
#define CPU_SCAN_H

typedef struct Scan {
    int n, steps, size; /* samples; steps of the sequence; reals of an element */
} Scan;

RT_INLINE void scan_copy(real *restrict y, const real *restrict x, int64_t count)
{
    RT_MAP(count, STORE(y, LOAD(x)));
}

/* y (N, size) = element `step` of x (N, T, size) */
RT_INLINE void scan_item(real *restrict y, const real *restrict x, int step, Scan s)
{
    for (int i = 0; i < s.n; i++)
        scan_copy(y + (int64_t)i * s.size, x + ((int64_t)i * s.steps + step) * s.size, s.size);
}

/* Element `step` of y (N, T, size) = x (N, size) */
RT_INLINE void scan_put(real *restrict y, const real *restrict x, int step, Scan s)
{
    for (int i = 0; i < s.n; i++)
        scan_copy(y + ((int64_t)i * s.steps + step) * s.size, x + (int64_t)i * s.size, s.size);
}

/* The first of every `every` steps, of which this is number `step`: element step / every of y = x. */
RT_INLINE void scan_save(real *restrict y, const real *restrict x, int step, Scan s, int every)
{
    if (step % every == 0)
        scan_put(y, x, step / every, s);
}

/* y (T, N, size) from x (N, T, size) */
RT_INLINE void time_from_row(real *restrict y, const real *restrict x, Scan s)
{
    for (int t = 0; t < s.steps; t++, y += (int64_t)s.n * s.size)
        scan_item(y, x, t, s);
}

#endif
