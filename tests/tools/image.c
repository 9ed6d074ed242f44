/* image.c -- writes small images for tests, and the same pixels as numbers.
 *
 *   image FILE.png|FILE.jpg WIDTH HEIGHT RED GREEN BLUE SEED     a colour with a little noise
 *   image raw WIDTH HEIGHT RED GREEN BLUE SEED            its (3, HEIGHT, WIDTH) bytes, to stdout
 *   image FILE.png wide SIDE RED GREEN BLUE SEED          the same image, SIDE x SIDE, between black
 *                                                         stripes of SIDE / 2
 *   image FILE.png deep SIDE RED GREEN BLUE SEED          the same in 16 bits, with noise in the
 *                                                         lower eight, and a gAMA of 1
 *   image FILE.png gamma SIDE RED GREEN BLUE SEED         the same in 8 bits with a gAMA of 1
 *   image FILE.png grey|grey16 SIDE RED GREEN BLUE SEED   its red channel as grey of 8 or 16 bits
 *   image FILE.png empty SIDE RED GREEN BLUE SEED         the head of a SIDE x SIDE image, no pixels
 */
#include <png.h>
#include <stdbool.h>
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

/* By libpng's calls one by one. */
static int write_png(const char *path, const char *kind, const uint8_t *rgb, int side, unsigned seed)
{
    const bool grey = strncmp(kind, "grey", 4) == 0,
               deep = strcmp(kind, "deep") == 0 || strcmp(kind, "grey16") == 0;
    const int n = grey ? 1 : 3, bytes = deep ? 2 : 1;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    uint8_t *row = malloc((size_t)(side * n * bytes));
    FILE *f = fopen(path, "wb");
    png_init_io(png, f);
    png_set_IHDR(png, info, (unsigned)side, (unsigned)side, 8 * bytes,
                 grey ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (!grey)
        png_set_gAMA(png, info, 1.0);
    png_write_info(png, info);
    if (strcmp(kind, "empty") == 0) {
        png_write_chunk(png, (png_const_bytep) "IDAT", (png_const_bytep) "", 0);
        return fclose(f);
    }
    for (int y = 0; y < side; y++) {
        for (int i = 0; i < side * n; i++) {
            row[bytes * i] = rgb[(y * side * n + i) * (grey ? 3 : 1)];
            if (deep)
                row[2 * i + 1] = (uint8_t)(seed = seed * 1664525u + 1013904223u, seed >> 24);
        }
        png_write_row(png, row);
    }
    png_write_end(png, NULL);
    return fclose(f);
}

int main(int argc, char **argv)
{
    if (argc != 8)
        return 2;
    const int wide = strcmp(argv[2], "wide") == 0, height = atoi(argv[3]), empty = strcmp(argv[2], "empty") == 0,
              width = atoi(argv[2]) > 0 ? atoi(argv[2]) : height;
    const int color[3] = {atoi(argv[4]), atoi(argv[5]), atoi(argv[6])};
    uint8_t *rgb = paint(empty ? 1 : width, empty ? 1 : height, color, (unsigned)atoi(argv[7]));
    if (!wide && atoi(argv[2]) == 0 && strcmp(argv[1], "raw") != 0)
        return write_png(argv[1], argv[2], rgb, height, (unsigned)atoi(argv[7]));
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
