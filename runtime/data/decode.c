/* decode.c -- PNG by libpng, JPEG by libturbojpeg; linked only into programs that name
 * rt_decode_images.
 *
 * The format follows from the bytes of the file, not from its name. Pixels become those of Pillow's
 * convert("RGB"): transparency is dropped, grey becomes three equal channels, CMYK is inverted as
 * Adobe stores it, the higher eight of 16 bits remain, and a gamma in the file (gAMA) is ignored.
 * The exception is grey of 16 bits, where Pillow makes all values from 256 on white; TensorFlow and
 * OpenCV take the higher eight bits, too. A JPEG with some wrong bytes is accepted; a JPEG that
 * ends too early is an error. Without the libraries at build time, `tenon build` refuses such a
 * recipe.
 */
#include "data/decode.h"

#ifdef TENON_IMAGES
#include <png.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

/* An image with more pixels is decoded alone. With DECODE_PIXELS pixels, an image takes at most 537
 * MB (716 in CMYK), so the images of all threads together take at most this and 64 MB for each
 * thread. */
enum { LARGE = 1 << 24 };

static pthread_mutex_t one_large = PTHREAD_MUTEX_INITIALIZER;

static bool decode_refuse(char why[DECODE_WHY], const char *text)
{
    snprintf(why, DECODE_WHY, "%s", text);
    return false;
}

/* Allocates the memory of an image. Large images are decoded one at a time, so a folder of them
 * takes the memory of one. */
static bool pixels_room(Pixels *p, size_t channels, int64_t width, int64_t height,
                        char why[DECODE_WHY])
{
    if (width < 1 || height < 1 || width > DECODE_PIXELS / height) {
        snprintf(why, DECODE_WHY,
                 "it has %lld x %lld pixels, more than the %d that are read: make it smaller",
                 (long long)width, (long long)height, DECODE_PIXELS);
        return false;
    }
    p->height = (int)height;
    p->width = (int)width;
    p->alone = width * height > LARGE;
    if (p->alone)
        pthread_mutex_lock(&one_large);
    p->rgb = malloc((size_t)(width * height) * channels);
    return p->rgb || decode_refuse(why, "no memory is left for it");
}

static void pixels_done(Pixels *p)
{
    free(p->rgb);
    p->rgb = NULL;
    if (p->alone)
        pthread_mutex_unlock(&one_large);
    p->alone = false;
}

static bool decode_fail(Pixels *p, char why[DECODE_WHY], const char *text)
{
    pixels_done(p);
    return decode_refuse(why, text);
}

/* Reduces n pixels from four bytes to three, in place; CMYK is inverted: 255 is no ink. */
static void drop_fourth(uint8_t *at, int64_t n, bool cmyk)
{
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            at[3 * i + c] =
                cmyk ? (uint8_t)((at[4 * i + c] * at[4 * i + 3] + 127) / 255) : at[4 * i + c];
}

/* ---- PNG, by libpng's basic functions: its simplified ones treat 16 bits as linear light, and
 * apply gAMA */

typedef struct Png {
    png_structp png;
    png_infop info;
    const uint8_t *at, *end; /* of the file */
    Pixels *p;
    png_bytep *row;
    char *why;
} Png;

static void png_give(png_structp png, png_bytep to, size_t n)
{
    Png *r = png_get_io_ptr(png);
    if ((size_t)(r->end - r->at) < n)
        png_error(png, "it is truncated");
    memcpy(to, r->at, n);
    r->at += n;
}

static void png_refuse(png_structp png, png_const_charp text)
{
    const Png *r = png_get_error_ptr(png);
    decode_refuse(r->why, text);
    png_longjmp(png, 1);
}

static void png_remark(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

/* Sets the output to three bytes for each pixel; of 16 bits, the higher eight remain, as in Pillow
 * for colours. */
static void png_want_rgb(png_structp png)
{
    png_set_expand(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    png_set_interlace_handling(png);
}

static bool png_read(Png *r)
{
    if (setjmp(png_jmpbuf(r->png)))
        return false;
    png_set_read_fn(r->png, r, png_give);
    png_read_info(r->png, r->info);
    png_want_rgb(r->png);
    png_read_update_info(r->png, r->info);
    const int64_t height = png_get_image_height(r->png, r->info);
    if (!pixels_room(r->p, 3, png_get_image_width(r->png, r->info), height, r->why))
        return false;
    const size_t bytes = png_get_rowbytes(r->png, r->info);
    r->row = malloc(sizeof *r->row * (size_t)height);
    if (bytes != 3 * (size_t)r->p->width || !r->row)
        png_error(r->png, r->row ? "its pixels are of no known kind" : "no memory is left for it");
    for (int64_t i = 0; i < height; i++)
        r->row[i] = r->p->rgb + (size_t)i * bytes;
    png_read_image(r->png, r->row);
    return true;
}

static bool png(const uint8_t *file, size_t bytes, Pixels *p, char why[DECODE_WHY])
{
    Png r = {.at = file, .end = file + bytes, .p = p, .why = why};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r, png_refuse, png_remark);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    const bool ok = r.info ? png_read(&r) : decode_refuse(why, "libpng cannot start");
    png_destroy_read_struct(&r.png, &r.info, NULL);
    free(r.row);
    if (!ok)
        pixels_done(p);
    return ok;
}

/* ---- JPEG */

static bool jpeg_with(tjhandle h, const uint8_t *file, size_t bytes, Pixels *p,
                      char why[DECODE_WHY])
{
    int width, height, sampling, colors;
    if (tjDecompressHeader3(h, file, bytes, &width, &height, &sampling, &colors) != 0)
        return decode_refuse(why, tjGetErrorStr2(h));
    const bool cmyk = colors == TJCS_CMYK || colors == TJCS_YCCK;
    if (!pixels_room(p, cmyk ? 4 : 3, width, height, why)) {
        pixels_done(p);
        return false;
    }
    if (tjDecompress2(h, file, bytes, p->rgb, width, 0, height, cmyk ? TJPF_CMYK : TJPF_RGB,
                      TJFLAG_ACCURATEDCT) != 0 &&
        (tjGetErrorCode(h) != TJERR_WARNING || strstr(tjGetErrorStr2(h), "Premature end")))
        return decode_fail(p, why, tjGetErrorStr2(h));
    if (cmyk)
        drop_fourth(p->rgb, (int64_t)width * height, true);
    return true;
}

static bool jpeg(const uint8_t *file, size_t bytes, Pixels *p, char why[DECODE_WHY])
{
    tjhandle h = tjInitDecompress();
    if (!h)
        return decode_refuse(why, "libturbojpeg cannot start");
    const bool ok = jpeg_with(h, file, bytes, p, why);
    tjDestroy(h);
    return ok;
}

static bool decode_image(const uint8_t *file, size_t bytes, Pixels *p, char why[DECODE_WHY])
{
    *p = (Pixels){0};
    if (bytes == 0)
        return decode_refuse(why, "it is empty");
    if (bytes > 8 && memcmp(file, "\x89PNG\r\n\x1a\n", 8) == 0)
        return png(file, bytes, p, why);
    if (bytes > 3 && memcmp(file, "\xff\xd8\xff", 3) == 0)
        return jpeg(file, bytes, p, why);
    return decode_refuse(why, "it is neither PNG nor JPEG");
}
#else
#include <stdio.h>

static void pixels_done(Pixels *p)
{
    (void)p;
}

static bool decode_image(const uint8_t *file, size_t bytes, Pixels *p, char why[DECODE_WHY])
{
    (void)file, (void)bytes, (void)p;
    snprintf(why, DECODE_WHY, "this tenon was built without libpng and libturbojpeg");
    return false;
}
#endif

const RtDecode rt_decode_images = {decode_image, pixels_done};
