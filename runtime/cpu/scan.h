/* scan.h -- loops over time: elements of sequences, and values that one time step passes to the
 * next.
 *
 * A sequence is (N, T, size) as in the language: the elements of one time step lie T x size reals
 * apart.  A "step" in this file is a time step.
 */
#ifndef CPU_SCAN_H
#define CPU_SCAN_H

typedef struct Scan {
    int n, steps, size; /* samples; steps of the sequence; reals of an element */
} Scan;

RT_INLINE void scan_copy(real *restrict y, const real *restrict x, int64_t count)
{
    TEAM_MAP(count, STORE(y, LOAD(x)));
}

/* y = x, `size` numbers of `each` bytes.  Copies the vectors of this member of a team. */
RT_INLINE void scan_move(char *restrict y, const char *restrict x, int64_t size, RtGrid part,
                         int64_t each)
{
    const TeamRange vectors = team_columns(part, (size + V - 1) / V);
    if (each == (int64_t)sizeof(real)) {
        real *const to = (real *)(void *)y;
        const real *const from = (const real *)(const void *)x;
        RT_MAP_PART(size, vectors, STORE(to, LOAD(from)));
        return;
    }
    const int64_t first = vectors.first * V, end = vectors.end * V < size ? vectors.end * V : size;
    if (first < end)
        memcpy(y + first * each, x + first * each, (size_t)((end - first) * each));
}

/* Copies the element of each sample: `size` numbers from x to y, whose samples are x_row and y_row
 * numbers apart. */
RT_INLINE void scan_rows(void *restrict y, int64_t y_row, const void *restrict x, int64_t x_row,
                         Scan s, int64_t each)
{
    const RtGrid part = team_grid(s.n, (s.size + V - 1) / V);
    const TeamRange samples = team_rows(part, s.n);
    for (int64_t i = samples.first; i < samples.end; i++)
        scan_move((char *)y + i * y_row * each, (const char *)x + i * x_row * each, s.size, part,
                  each);
}

/* y (N, size) = element `step` of x (N, T, size) */
RT_INLINE void scan_item(real *restrict y, const real *restrict x, int step, Scan s)
{
    scan_rows(y, s.size, x + (int64_t)step * s.size, (int64_t)s.steps * s.size, s, sizeof *y);
}

/* Element `step` of y (N, T, size) = x (N, size) */
RT_INLINE void scan_put(real *restrict y, const real *restrict x, int step, Scan s)
{
    scan_rows(y + (int64_t)step * s.size, (int64_t)s.steps * s.size, x, s.size, s, sizeof *y);
}

/* Saves step number `step`: element step / every of y = x if step is a multiple of `every`. */
RT_INLINE void scan_save(real *restrict y, const real *restrict x, int step, Scan s, int every)
{
    if (step % every == 0)
        scan_put(y, x, step / every, s);
}

/* Copies y (T, N, size) from x (N, T, size). */
RT_INLINE void time_from_row(real *restrict y, const real *restrict x, Scan s)
{
    for (int t = 0; t < s.steps; t++, y += (int64_t)s.n * s.size)
        scan_item(y, x, t, s);
}

/* The same for numbers in two bytes.  scan_fill_bf16: a state that begins with a constant. */
#ifdef RT_BF16
RT_INLINE void scan_copy_bf16(bf16 *restrict y, const bf16 *restrict x, int64_t count)
{
    TEAM_MAP(count, memcpy(y + AT, x + AT, sizeof *y * (size_t)rt_lanes));
}

RT_INLINE void scan_fill_bf16(bf16 *y, int64_t count, double value)
{
    TEAM_MAP(count, STORE(y, v_set((real)value)));
}

RT_INLINE void scan_item_bf16(bf16 *restrict y, const bf16 *restrict x, int step, Scan s)
{
    scan_rows(y, s.size, x + (int64_t)step * s.size, (int64_t)s.steps * s.size, s, sizeof *y);
}

RT_INLINE void scan_put_bf16(bf16 *restrict y, const bf16 *restrict x, int step, Scan s)
{
    scan_rows(y + (int64_t)step * s.size, (int64_t)s.steps * s.size, x, s.size, s, sizeof *y);
}

RT_INLINE void scan_save_bf16(bf16 *restrict y, const bf16 *restrict x, int step, Scan s, int every)
{
    if (step % every == 0)
        scan_put_bf16(y, x, step / every, s);
}

RT_INLINE void time_from_row_bf16(bf16 *restrict y, const bf16 *restrict x, Scan s)
{
    TEAM_FOR(n, s.n)
        for (int t = 0; t < s.steps; t++)
            memcpy(y + ((int64_t)t * s.n + n) * s.size, x + ((int64_t)n * s.steps + t) * s.size,
                   sizeof *y * (size_t)s.size);
}
#endif

#endif
