/* resample.c -- see resample.h: columns first, then rows; each target pixel is a weighted sum of a
 * few source pixels. */
#include "data/resample.h"
#include "base/error.h"
#include <math.h>
#include <stdlib.h>

/* For each target pixel in one dimension: the first source pixel, and `taps` weights with the sum
 * 1. */
typedef struct Axis {
    int n, taps;
    int *first;
    float *weight;
} Axis;

/* The weights of n target pixels over begin .. begin + length, a part of `size` source pixels. */
static Axis axis_new(int n, double begin, double length, int size)
{
    const double scale = length / n, reach = scale > 1 ? scale : 1;
    const int most = (int)ceil(2 * reach) + 1, taps = most < size ? most : size;
    Axis a = {n, taps, rt_alloc(sizeof *a.first * (size_t)n),
              rt_alloc(sizeof *a.weight * (size_t)n * (size_t)taps)};
    for (int i = 0; i < n; i++) {
        const double middle = begin + (i + .5) * scale;
        int first = (int)floor(middle - reach + .5);
        first = first < 0 ? 0 : first > size - taps ? size - taps : first;
        double sum = 0;
        for (int k = 0; k < taps; k++)
            sum += fmax(0, 1 - fabs(first + k + .5 - middle) / reach);
        for (int k = 0; k < taps; k++)
            a.weight[i * taps + k] =
                (float)(fmax(0, 1 - fabs(first + k + .5 - middle) / reach) / sum);
        a.first[i] = first;
    }
    return a;
}

static void axis_free(Axis *a)
{
    free(a->first);
    free(a->weight);
}

/* Resamples one row of src, (w, 3), to out, (width, 3). */
static void columns(float *out, const Axis *x, const uint8_t *row)
{
    for (int i = 0; i < x->n; i++)
        for (int c = 0; c < 3; c++) {
            const uint8_t *at = row + 3 * x->first[i] + c;
            float sum = 0;
            for (int k = 0; k < x->taps; k++)
                sum += x->weight[i * x->taps + k] * (float)at[3 * k];
            out[3 * i + c] = sum;
        }
}

static uint8_t byte(float v)
{
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : (int)(v + .5f));
}

/* Stores a pixel. Grey is computed as in PIL: ITU-R 601-2. */
static void put_pixel(uint8_t *dst, int channels, int64_t area, int64_t at, const float rgb[3])
{
    if (channels == 1)
        dst[at] = byte(.299f * rgb[0] + .587f * rgb[1] + .114f * rgb[2]);
    for (int c = 0; channels == 3 && c < 3; c++)
        dst[c * area + at] = byte(rgb[c]);
}

void resample(uint8_t *dst, int channels, int height, int width, const uint8_t *src, int h, int w,
              bool crop)
{
    const double scale = fmin((double)h / height, (double)w / width);
    const double rows = crop ? scale * height : h, cols = crop ? scale * width : w;
    Axis y = axis_new(height, (h - rows) / 2, rows, h),
         x = axis_new(width, (w - cols) / 2, cols, w);
    const int low = y.first[0], high = y.first[height - 1] + y.taps;
    const size_t row = 3 * (size_t)width;
    float *half = rt_alloc(sizeof *half * row * (size_t)(high - low));
    for (int r = low; r < high; r++)
        columns(half + (size_t)(r - low) * row, &x, src + (size_t)r * 3 * (size_t)w);
    for (int i = 0; i < height; i++)
        for (int j = 0; j < width; j++) {
            float rgb[3] = {0, 0, 0};
            for (int k = 0; k < y.taps; k++)
                for (int c = 0; c < 3; c++)
                    rgb[c] +=
                        y.weight[i * y.taps + k] *
                        half[(size_t)(y.first[i] + k - low) * row + 3 * (size_t)j + (size_t)c];
            put_pixel(dst, channels, (int64_t)height * width, (int64_t)i * width + j, rgb);
        }
    free(half);
    axis_free(&x);
    axis_free(&y);
}
