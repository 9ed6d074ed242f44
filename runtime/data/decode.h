/* decode.h -- PNG and JPEG behind one function.
 *
 * A program whose data are folders of images names rt_decode_images (RtProgram.decode): no other is linked with libpng and
 * libturbojpeg.
 */
#ifndef DECODE_H
#define DECODE_H
#include "rt.h"

typedef struct Pixels {
    uint8_t *rgb;                                     /* (height, width, 3) */
    int      height, width;
    bool     alone;                                   /* it is so large that others of its size wait for its end */
} Pixels;

enum { DECODE_WHY = 200 };
enum { DECODE_PIXELS = 178956970 };                   /* of an image at most, the limit of Pillow */
struct RtDecode {
    /* The image in a file of `bytes` bytes; false: `why` says what is wrong with it. */
    bool (*image)(const uint8_t *file, size_t bytes, Pixels *out, char why[DECODE_WHY]);
    void (*done)(Pixels *p);                          /* after image() was true: gives its memory back */
};

#endif
