/* resample.h -- an image of any size onto one of a given size. */
#ifndef RESAMPLE_H
#define RESAMPLE_H
#include "rt.h"

/* src (h, w, 3) bytes onto dst (channels, height, width) bytes, channels 3 or 1.
 *
 * crop: the largest middle part of src with dst's proportions; else all of it, stretched.  A target pixel is the mean of what
 * it covers, weighted by a triangle that reaches to its neighbours' middles: bilinear where the image grows, free of aliasing
 * where it shrinks (PIL's and torchvision's "bilinear").  Plain float arithmetic in a fixed order: the same bytes everywhere. */
void resample(uint8_t *dst, int channels, int height, int width, const uint8_t *src, int h, int w, bool crop);

#endif
