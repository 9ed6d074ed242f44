/* scan.cuh -- loops over time: elements of sequences, and values that one time step passes to the
 * next.
 *
 * The host runs the loop: it launches the kernels of one time step after another, with the index of
 * the time step as `step`.  The loop is recorded with the rest of the training step, so it costs
 * the host nothing.  A sequence is (N, T, size) as in the language.
 */
#ifndef CUDA_SCAN_CUH
#define CUDA_SCAN_CUH

struct Scan {
    int n, steps, size; /* samples; steps of the sequence; reals of an element */
};

SIZE int scan_copy_blocks(int count)
{
    return each_blocks(count);
}
template <class X> DEVICE void scan_copy_at(int at, real *y, X x, int)
{
    y[at] = x[at];
}
template <class X> DEVICE void scan_copy(real *y, X x, int count)
{
    FOR_EACH(at, count)
        scan_copy_at(at, y, x, count);
}

/* y (N, size) = element `step` of x (N, T, size) */
SIZE int scan_item_blocks(Scan s)
{
    return each_blocks(s.n * s.size);
}
DEVICE void scan_item_at(int at, real *y, const real *x, int step, Scan s)
{
    y[at] = x[((int64_t)(at / s.size) * s.steps + step) * s.size + at % s.size];
}
DEVICE void scan_item(real *y, const real *x, int step, Scan s)
{
    FOR_EACH(at, s.n * s.size)
        scan_item_at(at, y, x, step, s);
}

/* scan_copy and scan_item for a stage that needs no barrier before it: walk(f) gives each thread
 * the numbers that it has computed (results.cuh). */
template <class X, class Walk> DEVICE void scan_copy_in_order(real *y, X x, int count, Walk walk)
{
    walk([=](unsigned at, int) { scan_copy_at(at, y, x, count); });
}
template <class Walk>
DEVICE void scan_item_in_order(real *y, const real *x, int step, Scan s, Walk walk)
{
    walk([=](unsigned at, int) { scan_item_at(at, y, x, step, s); });
}

/* Element `step` of y (N, T, size) = x (N, size) */
SIZE int scan_put_blocks(Scan s)
{
    return each_blocks(s.n * s.size);
}
template <class X> DEVICE void scan_put_at(int at, real *y, X x, int step, Scan s)
{
    y[((int64_t)(at / s.size) * s.steps + step) * s.size + at % s.size] = x[at];
}
template <class X> DEVICE void scan_put(real *y, X x, int step, Scan s)
{
    FOR_EACH(at, s.n * s.size)
        scan_put_at(at, y, x, step, s);
}

template <class X, class Walk>
DEVICE void scan_put_in_order(real *y, X x, int step, Scan s, Walk walk)
{
    walk([=](unsigned at, int) { scan_put_at(at, y, x, step, s); });
}

/* Element step / every of y = x, if step is a multiple of `every`; else nothing is stored. */
SIZE int scan_save_blocks(Scan s, int)
{
    return scan_put_blocks(s);
}
DEVICE void scan_save(real *y, const real *x, int step, Scan s, int every)
{
    if (step % every == 0)
        scan_put(y, x, step / every, s);
}

/* y (T, N, size) from x (N, T, size) */
SIZE int time_from_row_blocks(Scan s)
{
    return each_blocks(s.n * s.steps * s.size);
}
DEVICE void time_from_row(real *y, const real *x, Scan s)
{
    FOR_EACH(at, s.n * s.steps * s.size) {
        const int step = at / (s.n * s.size), i = at / s.size % s.n;
        y[at] = x[((int64_t)i * s.steps + step) * s.size + at % s.size];
    }
}

#endif
