/* image.c -- writes small images for tests, and the same pixels as numbers.
 *
 *   image FILE.png|FILE.jpg WIDTH HEIGHT RED GREEN BLUE SEED      a colour with a little noise
 *   image raw WIDTH HEIGHT RED GREEN BLUE SEED                    its (3, HEIGHT, WIDTH) bytes on the standard output
 *   image FILE.png wide SIDE RED GREEN BLUE SEED                  the same of SIDE x SIDE, between black stripes of SIDE / 2
 */
#include <png.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <turbojpeg.h>

static uint8_t *paint(int width, int height, const int color[3], unsigned seed)
{
    uint8_t *rgb = malloc((size_t)(width * height * 3));
    for (int i = 0; i < width * height * 3; i++) {
        seed = seed * 1664525u + 1013904223u;
        rgb[i] = (uint8_t)(color[i % 3] + (int)(seed >> 28));
    }
    return rgb;
}

static uint8_t *widen(const uint8_t *rgb, int side)
{
    uint8_t *wide = calloc((size_t)(side * side), 6);
    for (int y = 0; y < side; y++)
        memcpy(wide + 6 * side * y + 3 * (side / 2), rgb + 3 * side * y, (size_t)(3 * side));
    return wide;
}

static int write_jpeg(const char *path, const uint8_t *rgb, int width, int height)
{
    unsigned char *out = NULL;
    unsigned long bytes = 0;
    tjhandle h = tjInitCompress();
    FILE *f = fopen(path, "wb");
    const int ok =
        h && f &&
        tjCompress2(h, rgb, width, 0, height, TJPF_RGB, &out, &bytes, TJSAMP_444, 95, 0) == 0 &&
        fwrite(out, 1, bytes, f) == bytes;
    tjDestroy(h);
    return f && fclose(f) == 0 && ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    const int wide = strcmp(argv[2], "wide") == 0, height = atoi(argv[3]),
              width = wide ? height : atoi(argv[2]);
    const int color[3] = {atoi(argv[4]), atoi(argv[5]), atoi(argv[6])};
    uint8_t *rgb = paint(width, height, color, (unsigned)atoi(argv[7]));
    if (strcmp(argv[1], "raw") == 0) {
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < width * height; i++)
                putchar(rgb[3 * i + c]);
        return 0;
    }
    if (strstr(argv[1], ".jp"))
        return write_jpeg(argv[1], rgb, width, height);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (unsigned)(wide ? 2 * width : width),
                       .height = (unsigned)height,
                       .format = PNG_FORMAT_RGB};
    return !png_image_write_to_file(&image, argv[1], 0, wide ? widen(rgb, width) : rgb, 0, NULL);
}
