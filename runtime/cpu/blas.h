/* blas.h -- dense layers and convolutions through a BLAS library: --kernels=blas.
 *
 *   dense   y (n, o) = x (n, k) W' (k, o)                              W (o, k) as in files
 *   conv    y (o, OH OW) = W (o, c r s) columns (c r s, OH OW)         for each sample and group
 *
 * `columns` (im2col) holds the pixels of each tap as a row; the gradient of x is scattered back in
 * the same order (col2im).  Images are row-major (N, C, H, W).  These kernels are a second, simple
 * implementation and a reference for speed.  The library uses one thread, because the thread
 * pool divides the work.
 * Source: Chellapilla, Puri, Simard 2006, "High performance convolutional neural networks for
 * document processing".
 */
#ifndef CPU_BLAS_H
#define CPU_BLAS_H
#include "cpu/conv.h"
#include "cpu/dense.h"
#include "cpu/gemm.h"

#include <cblas.h>

void openblas_set_num_threads(int threads);

static void __attribute__((constructor, unused)) blas_begin(void)
{
    openblas_set_num_threads(1);
}

#ifdef RT_DOUBLE
#define BLAS_GEMM cblas_dgemm
#else
#define BLAS_GEMM cblas_sgemm
#endif

/* C (m, n) = A B + beta C, row-major; ta, tb: A or B is stored transposed. */
RT_INLINE void blas_product(real *c, const real *a, bool ta, const real *b, bool tb, int m, int n,
                            int k, real beta)
{
    BLAS_GEMM(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans, m, n,
              k, 1, a, ta ? m : k, b, tb ? k : n, beta, c, n);
}

RT_INLINE void dense_blas(real *y, const real *x, const real *w, Dense d)
{
    blas_product(y, x, false, w, true, d.n, d.o, d.k, 0);
}
RT_INLINE void dense_dx_blas(real *dx, const real *w, const real *dy, Dense d)
{
    blas_product(dx, dy, false, w, false, d.n, d.k, d.o, 0);
}
RT_INLINE void dense_dw_blas(real *dw, const real *x, const real *dy, Dense d)
{
    blas_product(dw, dy, true, x, false, d.o, d.k, d.n, 1);
}

RT_INLINE void matmul_blas(real *c, const real *a, const real *b, Gemm g)
{
    for (int s = 0; s < g.count; s++)
        blas_product(c + (int64_t)s * g.m * g.n, a + (int64_t)s * g.m * g.k, g.transpose_a,
                     b + (int64_t)s * g.k * g.n, g.transpose_b, g.m, g.n, g.k, 0);
}

/* ------------------------------------------------------------------------------- convolutions */

enum { BLAS_COLUMNS = 1024 * 1024 / sizeof(real) }; /* reals on the stack for some rows' columns */

/* Rows of the result whose columns fit BLAS_COLUMNS; 0: not even one row fits. */
RT_INLINE int blas_band(Conv c)
{
    const int64_t row = (int64_t)c.c / c.groups * c.r * c.s * c.ow;
    const int64_t rows = BLAS_COLUMNS / row;
    return rows > c.oh ? c.oh : (int)rows;
}

/* Stores the taps of output rows oy .. oy + rows - 1: columns[(i, r, s)][pixel].  back: columns are
 * added to x. */
RT_INLINE void blas_columns(real *columns, real *x, Conv c, int oy, int rows, bool back)
{
    for (int i = 0; i < c.c / c.groups; i++)
        for (int r = 0; r < c.r; r++)
            for (int s = 0; s < c.s; s++)
                for (int y = 0; y < rows; y++, columns += c.ow) {
                    const int iy = (oy + y) * c.stride_h - c.pad_h + r * c.dil_h;
                    real *line = x + ((int64_t)i * c.h + iy) * c.w;
                    for (int ox = 0; ox < c.ow; ox++) {
                        const int ix = ox * c.stride_w - c.pad_w + s * c.dil_w;
                        const bool inside = iy >= 0 && iy < c.h && ix >= 0 && ix < c.w;
                        if (!back)
                            columns[ox] = inside ? line[ix] : 0;
                        else if (inside)
                            line[ix] += columns[ox];
                    }
                }
}

/* Runs a body for each sample, group and band of rows, with pointers to its x, w and y.  The matrix
 * has `taps` rows and `pixels` columns. */
#define BLAS_EACH(c, ...)                                                                          \
    do {                                                                                           \
        real columns[BLAS_COLUMNS] __attribute__((aligned(64)));                                   \
        const int inputs = (c).c / (c).groups, outputs = (c).o / (c).groups;                       \
        const int taps = inputs * (c).r * (c).s, band = blas_band(c);                              \
        for (int at = 0; at < (c).n * (c).groups; at++)                                            \
            for (int oy = 0; oy < (c).oh; oy += band) {                                            \
                const int rows = (c).oh - oy < band ? (c).oh - oy : band;                          \
                const int pixels = rows * (c).ow;                                                  \
                const int64_t at_x = (int64_t)at * inputs * (c).h * (c).w;                         \
                const int64_t at_y = (int64_t)at * outputs * (c).oh * (c).ow + oy * (c).ow;        \
                const int64_t at_w = (int64_t)(at % (c).groups) * outputs * taps;                  \
                __VA_ARGS__                                                                        \
            }                                                                                      \
    } while (0)

/* Computes the product of one band; rows of y are OH OW apart. */
RT_INLINE void blas_band_product(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k,
                                 const real *a, int lda, const real *b, int ldb, real beta, real *c,
                                 int ldc)
{
    BLAS_GEMM(CblasRowMajor, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, ldc);
}

RT_INLINE void conv2d_blas(real *y, const real *x, const real *w, Conv c)
{
    if (!blas_band(c)) {
        conv2d_plain(y, x, w, c);
        return;
    }
    BLAS_EACH(c, {
        blas_columns(columns, (real *)x + at_x, c, oy, rows, false);
        blas_band_product(CblasNoTrans, CblasNoTrans, outputs, pixels, taps, w + at_w, taps,
                          columns, pixels, 0, y + at_y, c.oh * c.ow);
    });
}

RT_INLINE void conv2d_dx_blas(real *dx, const real *w, const real *dy, Conv c)
{
    if (!blas_band(c)) {
        conv2d_dx_plain(dx, w, dy, c);
        return;
    }
    memset(dx, 0, sizeof(real) * c.n * c.c * c.h * c.w);
    BLAS_EACH(c, {
        blas_band_product(CblasTrans, CblasNoTrans, taps, pixels, outputs, w + at_w, taps,
                          dy + at_y, c.oh * c.ow, 0, columns, pixels);
        blas_columns(columns, dx + at_x, c, oy, rows, true);
    });
}

RT_INLINE void conv2d_dw_blas(real *dw, const real *x, const real *dy, Conv c)
{
    if (!blas_band(c)) {
        conv2d_dw_plain(dw, x, dy, c);
        return;
    }
    BLAS_EACH(c, {
        blas_columns(columns, (real *)x + at_x, c, oy, rows, false);
        blas_band_product(CblasNoTrans, CblasTrans, outputs, taps, pixels, dy + at_y, c.oh * c.ow,
                          columns, pixels, 1, dw + at_w, taps);
    });
}

#endif
