/* resample.h -- resizes an image to a given size. */
#ifndef RESAMPLE_H
#define RESAMPLE_H
#include "rt.h"

/* Resizes src (h, w, 3) bytes to dst (channels, height, width) bytes, channels 3 or 1.
 *
 * crop: takes the largest middle part of src with the proportions of dst; else all of src,
 * stretched. A target pixel is the weighted mean of the source pixels that it covers, with a
 * triangle that ends at the centres of its neighbours. This is bilinear where the image grows, and
 * without aliasing where it shrinks (as "bilinear" in PIL and torchvision). The arithmetic is in
 * float and in a fixed order: the same bytes on all machines. */
void resample(uint8_t *dst, int channels, int height, int width, const uint8_t *src, int h, int w,
              bool crop);

#endif
