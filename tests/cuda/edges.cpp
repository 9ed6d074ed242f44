/* edges.cpp -- the rows of taps that a block of conv2d_dx adds (runtime/cuda/conv.cuh) contain each row that a pixel meets, and are
 * fewer near the edges of an image.
 *
 * Status 0 if so.
 */
#include <cstdio>
#include <vector>
#include "rt.h"
#include "cuda/kernels.cuh"

/* Whether a pixel of row y meets row r of taps at an output. */
static bool meets(Conv c, int y, int r)
{
    const int up = y + c.pad_h - r * c.dil_h;
    return up >= 0 && up % c.stride_h == 0 && up / c.stride_h < c.oh;
}

static int wrong(Conv c)
{
    int n = 0;
    for (int from = 0; from < c.h; from++)
        for (int to = from; to < c.h; to++) {
            const ConvTapRows rows = conv2d_dx_rows(c, from, to);
            n += rows.count < 1 || rows.first < 0 || rows.first + rows.count > c.r;
            for (int y = from; y <= to; y++)
                for (int r = 0; r < c.r; r++)
                    n += meets(c, y, r) && (r < rows.first || r >= rows.first + rows.count);
        }
    return n;
}

/* A pixel for each column, and each pixel once; the number of images whose columns stand together. */
static bool covers(Conv c, int images)
{
    std::vector<int> seen((size_t)(c.n * c.h * c.w));
    for (int at = 0; at < c.n * c.h * c.w; at++) {
        const ConvPixel p = conv2d_dx_pixel(c, at);
        seen[(size_t)((p.n * c.h + p.y) * c.w + p.x)]++;
    }
    for (int s : seen)
        if (s != 1)
            return false;
    return conv2d_dx_images(c) == images;
}

int main()
{
    int n = 0, all = 0;
    for (int r = 1; r < 6; r++)
        for (int stride = 1; stride < 3; stride++)
            for (int pad = 0; pad < r; pad++)
                for (int dilation = 1; dilation < 3; dilation++)
                    for (int h = (r - 1) * dilation + 1; h < 18; h++) {
                        const int oh = (h + 2 * pad - (r - 1) * dilation - 1) / stride + 1;
                        n += wrong(Conv{1, 1, h, h, 1, r, r, stride, stride, pad, pad, dilation, dilation, 1, oh, oh, false}), all++;
                    }
    /* LeNet's second convolution with 64 samples, the one of edges.tn, and one with 5 samples; one with padding skips too little */
    const Conv lenet = {64, 20, 12, 12, 50, 5, 5, 1, 1, 0, 0, 1, 1, 1, 8, 8, false}, edges = {16, 5, 16, 16, 6, 5, 5, 1, 1, 0, 0, 1, 1, 1, 12, 12, false},
               few = {5, 20, 12, 12, 50, 5, 5, 1, 1, 0, 0, 1, 1, 1, 8, 8, false}, padded = {64, 16, 12, 12, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 12, 12, false};
    const bool right = covers(lenet, 32) && covers(edges, 8) && covers(few, 1) && covers(padded, 1) && conv2d_dx_rows(lenet, 0, 0).count == 1 &&
                       conv2d_dx_rows(lenet, 6, 6).count == 5 && conv2d_dx_rows(lenet, 11, 11).first == 4;
    if (n || !right || all < 400)
        printf("%d rows of taps are missing in %d convolutions, or columns are wrong\n", n, all);
    return n || !right || all < 400;
}
