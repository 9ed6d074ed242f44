/* decode.c -- PNG by libpng, JPEG by libturbojpeg; linked only into programs that name rt_decode_images.
 *
 * The bytes say which of the two a file is, not its name.  Transparency is dropped, grey becomes three equal channels, CMYK is
 * turned over as Adobe stores it: what PIL's convert("RGB") does.  A JPEG that merely has odd bytes in it is taken, one that
 * ends too early is not.  Without the libraries at build time `tenon build` refuses such a recipe.
 */
#include "data/decode.h"

#ifdef TENON_IMAGES
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

enum { LARGEST = 1 << 28 }; /* pixels of an image */

static bool refuse(char why[DECODE_WHY], const char *text)
{
    snprintf(why, DECODE_WHY, "%s", text);
    return false;
}

static bool room(Pixels *p, size_t channels, int64_t width, int64_t height, char why[DECODE_WHY])
{
    if (width < 1 || height < 1 || width > LARGEST / height)
        return refuse(why, "its size cannot be right");
    p->height = (int)height;
    p->width = (int)width;
    p->rgb = malloc((size_t)(width * height) * channels);
    return p->rgb || refuse(why, "no memory is left for it");
}

static bool fail(Pixels *p, char why[DECODE_WHY], const char *text)
{
    free(p->rgb);
    p->rgb = NULL;
    return refuse(why, text);
}

/* n pixels of four bytes become three, in place; CMYK is inverted: 255 is no ink. */
static void drop_fourth(uint8_t *at, int64_t n, bool cmyk)
{
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            at[3 * i + c] =
                cmyk ? (uint8_t)((at[4 * i + c] * at[4 * i + 3] + 127) / 255) : at[4 * i + c];
}

static bool png(const uint8_t *file, size_t bytes, Pixels *p, char why[DECODE_WHY])
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, file, bytes))
        return refuse(why, image.message);
    image.format = PNG_FORMAT_RGBA;
    if (!room(p, 4, image.width, image.height, why)) {
        png_image_free(&image);
        return false;
    }
    if (!png_image_finish_read(&image, NULL, p->rgb, 0, NULL))
        return fail(p, why, image.message);
    drop_fourth(p->rgb, (int64_t)p->width * p->height, false);
    return true;
}

static bool jpeg_with(tjhandle h, const uint8_t *file, size_t bytes, Pixels *p,
                      char why[DECODE_WHY])
{
    int width, height, sampling, colors;
    if (tjDecompressHeader3(h, file, bytes, &width, &height, &sampling, &colors) != 0)
        return refuse(why, tjGetErrorStr2(h));
    const bool cmyk = colors == TJCS_CMYK || colors == TJCS_YCCK;
    if (!room(p, cmyk ? 4 : 3, width, height, why))
        return false;
    if (tjDecompress2(h, file, bytes, p->rgb, width, 0, height, cmyk ? TJPF_CMYK : TJPF_RGB,
                      TJFLAG_ACCURATEDCT) != 0 &&
        (tjGetErrorCode(h) != TJERR_WARNING || strstr(tjGetErrorStr2(h), "Premature end")))
        return fail(p, why, tjGetErrorStr2(h));
    if (cmyk)
        drop_fourth(p->rgb, (int64_t)width * height, true);
    return true;
}

static bool jpeg(const uint8_t *file, size_t bytes, Pixels *p, char why[DECODE_WHY])
{
    tjhandle h = tjInitDecompress();
    if (!h)
        return refuse(why, "libturbojpeg does not start");
    const bool ok = jpeg_with(h, file, bytes, p, why);
    tjDestroy(h);
    return ok;
}

static bool image(const uint8_t *file, size_t bytes, Pixels *p, char why[DECODE_WHY])
{
    p->rgb = NULL;
    if (bytes == 0)
        return refuse(why, "it is empty");
    if (bytes > 8 && memcmp(file, "\x89PNG\r\n\x1a\n", 8) == 0)
        return png(file, bytes, p, why);
    if (bytes > 3 && memcmp(file, "\xff\xd8\xff", 3) == 0)
        return jpeg(file, bytes, p, why);
    return refuse(why, "it is neither PNG nor JPEG");
}
#else
#include <stdio.h>

static bool image(const uint8_t *file, size_t bytes, Pixels *p, char why[DECODE_WHY])
{
    (void)file, (void)bytes, (void)p;
    snprintf(why, DECODE_WHY, "this tenon was built without libpng and libturbojpeg");
    return false;
}
#endif

const RtDecode rt_decode_images = {image};
