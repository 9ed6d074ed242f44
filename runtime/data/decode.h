/* decode.h -- a function that decodes PNG and JPEG.
 *
 * Only programs with folders of images name rt_decode_images (RtProgram.decode), and only they are
 * linked with libpng and libturbojpeg.
 */
#ifndef DECODE_H
#define DECODE_H
#include "rt.h"

typedef struct Pixels {
    uint8_t *rgb; /* (height, width, 3) */
    int height, width;
    bool alone; /* a large image: other large images wait until it is done (decode.c) */
} Pixels;

enum { DECODE_WHY = 200 };
enum { DECODE_PIXELS = 178956970 }; /* of an image at most, the limit of Pillow */
struct RtDecode {
    /* Decodes the image in a file of `bytes` bytes; false: `why` is the reason. */
    bool (*image)(const uint8_t *file, size_t bytes, Pixels *out, char why[DECODE_WHY]);
    void (*done)(Pixels *p); /* after image() was true: frees the memory of the image */
};

#endif
