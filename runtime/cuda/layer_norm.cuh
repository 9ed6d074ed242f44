/* layer_norm.cuh -- layer_norm and rms_norm: a warp for each row of K numbers (formulas:
 * runtime/cpu/layer_norm.h).
 *
 *   x, y, dy, dx (rows, K)   w, b, dw (K); b may be nullptr
 *
 * The gradient of w sums over rows: a block takes 32 columns, its warps divide the rows, and each
 * warp computes mean and deviation of a row again.  This reads x once for every 32 columns, from
 * the L2 cache, and needs no memory besides the sum.  There are few blocks, so a warp computes
 * several rows at the same time.
 */
#ifndef CUDA_LAYER_NORM_CUH
#define CUDA_LAYER_NORM_CUH

struct LayerNorm {
    int rows, k;
    bool center;
    double epsilon;
};

struct RowMoments {
    real mean, r; /* r: 1 / sqrt(variance + epsilon) */
};

/* warp_sum of N numbers: the exchanges do not wait for each other. */
template <int N> DEVICE void warp_sum_each(real (&x)[N])
{
    RT_UNROLL
    for (int lanes = WARP / 2; lanes > 0; lanes /= 2) {
        RT_UNROLL
        for (int n = 0; n < N; n++)
            x[n] += __shfl_xor_sync(0xffffffffu, x[n], lanes);
    }
}

/* Computes mean and r of N rows, in all lanes of the warp. */
template <int N>
DEVICE void rows_moments(RowMoments (&m)[N], const real *const (&x)[N], LayerNorm l)
{
    real sum[N] = {}, squares[N] = {};
    for (int j = threadIdx.x % WARP; j < l.k && l.center; j += WARP) {
        RT_UNROLL
        for (int n = 0; n < N; n++)
            sum[n] += x[n][j];
    }
    warp_sum_each(sum);
    RT_UNROLL
    for (int n = 0; n < N; n++)
        m[n].mean = sum[n] / (real)l.k;
    for (int j = threadIdx.x % WARP; j < l.k; j += WARP) {
        RT_UNROLL
        for (int n = 0; n < N; n++)
            squares[n] = s_fma(x[n][j] - m[n].mean, x[n][j] - m[n].mean, squares[n]);
    }
    warp_sum_each(squares);
    RT_UNROLL
    for (int n = 0; n < N; n++)
        m[n].r = 1 / s_sqrt(squares[n] / (real)l.k + (real)l.epsilon);
}
DEVICE RowMoments row_moments(const real *x, LayerNorm l)
{
    const real *const rows[] = {x};
    RowMoments m[1];
    rows_moments(m, rows, l);
    return m[0];
}

SIZE int layer_norm_blocks(LayerNorm l)
{
    return ceil_div(l.rows, WARPS);
}
/* w and b can be one number for all features; b can be nullptr. */
template <class B> DEVICE real layer_norm_shift(B b, int j)
{
    return b[j];
}
DEVICE real layer_norm_shift(decltype(nullptr), int)
{
    return 0;
}
template <class W, class B> DEVICE void layer_norm(real *y, const real *x, W w, B b, LayerNorm l)
{
    FOR_ROWS(row, l.rows) {
        const int64_t at = row * l.k;
        const RowMoments m = row_moments(x + at, l);
        for (int j = threadIdx.x % WARP; j < l.k; j += WARP)
            y[at + j] = (x[at + j] - m.mean) * m.r * w[j] + layer_norm_shift(b, j);
    }
}

SIZE int layer_norm_dx_blocks(LayerNorm l)
{
    return layer_norm_blocks(l);
}
template <class W>
DEVICE void layer_norm_dx(real *dx, const real *dy, const real *x, W w, LayerNorm l)
{
    FOR_ROWS(row, l.rows) {
        const int64_t at = row * l.k;
        const RowMoments m = row_moments(x + at, l);
        real sum = 0, dot = 0;
        for (int j = threadIdx.x % WARP; j < l.k; j += WARP) {
            const real g = dy[at + j] * w[j];
            sum += g;
            dot = s_fma(g, (x[at + j] - m.mean) * m.r, dot);
        }
        sum = l.center ? warp_sum(sum) / (real)l.k : 0;
        dot = warp_sum(dot) / (real)l.k;
        for (int j = threadIdx.x % WARP; j < l.k; j += WARP)
            dx[at + j] = m.r * (dy[at + j] * w[j] - sum - (x[at + j] - m.mean) * m.r * dot);
    }
}

struct ColumnSums {
    real of_warp[WARPS][WARP];
};

SIZE int layer_norm_dw_blocks(LayerNorm l)
{
    return ceil_div(l.k, WARP);
}
DEVICE void layer_norm_dw_part(unsigned block, real *dw, const real *dy, const real *x, LayerNorm l,
                               bool write)
{
    SHARED(ColumnSums, sums);
    constexpr int N = 4; /* rows at the same time */
    const int lane = threadIdx.x % WARP, column = block * WARP + lane,
              at = column < l.k ? column : 0;
    real sum = 0;
    for (int row = threadIdx.x / WARP; row < l.rows; row += N * WARPS) {
        const real *of[N];
        RowMoments m[N];
        real d[N];
        RT_UNROLL
        for (int n = 0; n < N; n++) { /* instead of rows after the last one: this row */
            const int64_t from = (int64_t)(l.rows - row > n * WARPS ? row + n * WARPS : row) * l.k;
            of[n] = x + from, d[n] = dy[from + at];
        }
        rows_moments(m, of, l);
        RT_UNROLL
        for (int n = 0; n < N; n++)
            if (l.rows - row > n * WARPS)
                sum = s_fma(d[n], (of[n][at] - m[n].mean) * m[n].r, sum);
    }
    sums.of_warp[threadIdx.x / WARP][lane] = sum;
    block_sync(); /* the sums of all warps are complete */
    sum = 0;
    for (int i = 0; i < WARPS; i++)
        sum += sums.of_warp[i][lane];
    if (threadIdx.x < WARP && column < l.k)
        dw[column] = (write ? 0 : dw[column]) + sum;
    block_sync(); /* all threads have read them */
}
DEVICE void layer_norm_dw(real *dw, const real *dy, const real *x, LayerNorm l, bool write)
{
    FOR_BLOCKS(block, layer_norm_dw_blocks(l))
        layer_norm_dw_part(block, dw, dy, x, l, write);
}

#endif
