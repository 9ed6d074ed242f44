/* review_sheet.c -- the images of the worst samples as one PNG file (review.h).
 *
 * Under each image stand its rank in worst.csv and, for classes, "true>predicted".  PNG: W3C, third
 * edition; the pixels are compressed by zlib, which is in every program.
 */
#include "base/error.h"
#include "commands/review.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    COLUMNS = 5,
    TILE = 112, /* pixels of an image's longer side, about */
    GAP = 8,
    DOT = 2, /* pixels of a dot of a letter */
    CAPTION = 5 * DOT + GAP
};

/* ---- pixels */

typedef struct Sheet {
    int width, height;
    uint8_t *rgb; /* (height, width, 3) */
} Sheet;

static void fill(Sheet *s, int x, int y, int width, int height, const uint8_t rgb[3])
{
    for (int i = y; i < y + height && i < s->height; i++)
        for (int k = x; k < x + width && k < s->width; k++)
            memcpy(s->rgb + ((int64_t)i * s->width + k) * 3, rgb, 3);
}

/* Letters of 3 x 5 dots, a digit of base 8 for each row; "-" stands for no predicted class. */
static void put_letters(Sheet *s, int x, int y, const char *text)
{
    static const char letters[] = "0123456789>.-";
    static const int dots[] = {075557, 026227, 071747, 071717, 055711, 074717, 074757,
                               071222, 075757, 075717, 042124, 000002, 000700};
    static const uint8_t ink[3] = {40, 40, 40};
    for (; *text; text++, x += 4 * DOT) {
        const char *at = strchr(letters, *text);
        for (int i = 0; at && i < 15; i++)
            if (dots[at - letters] >> (14 - i) & 1)
                fill(s, x + i % 3 * DOT, y + i / 3 * DOT, DOT, DOT, ink);
    }
}

/* ---- samples */

typedef struct Picture {
    const void *x; /* (channels, height, width), as stored */
    int type;
    int64_t channels, height, width;
    double low, high; /* of numbers that are no bytes: black and white */
} Picture;

static double pixel(const Picture *p, int64_t channel, int64_t y, int64_t x)
{
    const int64_t i = (channel * p->height + y) * p->width + x;
    switch (p->type) {
    case RT_U8:
        return ((const uint8_t *)p->x)[i];
    case RT_F64:
        return ((const double *)p->x)[i];
    default:
        return ((const float *)p->x)[i];
    }
}

/* Why the samples are no images that are drawn; NULL: they are. */
static const char *no_picture(const Review *r)
{
    const Data *d = r->d;
    const bool known = d->type == RT_U8 || d->type == RT_F32 || d->type == RT_F64;
    if (r->p->ninput > 0)
        return "are drawn for programs with one input";
    if (r->p->vocab > 0 || !known || d->height <= 0 || d->width <= 0 ||
        d->features % (d->height * d->width) != 0)
        return "are drawn for inputs of channels, height and width";
    const int64_t channels = d->features / (d->height * d->width);
    return channels == 1 || channels == 3 ? NULL : "are for images of one or three channels";
}

/* The stored image of sample i. */
static void picture_of(const Review *r, int64_t i, char *made, Picture *p)
{
    const Data *d = r->d;
    *p = (Picture){.type = d->type, .height = d->height, .width = d->width, .high = 255};
    p->channels = d->features / (d->height * d->width);
    p->x = d->synthetic ? made : d->x + i * d->stride;
    if (d->synthetic) {
        int32_t *label = rt_alloc(sizeof *label * (size_t)(d->labels + 1));
        synthetic_sample(d, made, label, d->first + i);
        free(label);
    }
    if (p->type == RT_U8)
        return;
    p->low = INFINITY, p->high = -INFINITY;
    for (int64_t k = 0; k < d->features; k++) {
        const double v = pixel(p, 0, 0, k);
        p->low = fmin(p->low, v), p->high = fmax(p->high, v);
    }
}

static uint8_t level(const Picture *p, int64_t channel, int64_t y, int64_t x)
{
    const double share = (pixel(p, channel, y, x) - p->low) / (p->high - p->low);
    return share > 0 ? (uint8_t)(fmin(share, 1) * 255 + 0.5) : 0; /* also of NaN */
}

/* An image at (left, top) in `size` columns, each pixel as often as fits. */
static void put_picture(Sheet *s, const Picture *p, int left, int top, int width, int height)
{
    for (int i = 0; i < height; i++)
        for (int k = 0; k < width; k++) {
            const int64_t y = i * p->height / height, x = k * p->width / width;
            uint8_t rgb[3];
            for (int c = 0; c < 3; c++)
                rgb[c] = level(p, p->channels == 3 ? c : 0, y, x);
            fill(s, left + k, top + i, 1, 1, rgb);
        }
}

static void put_caption(Sheet *s, const Review *r, const ReviewTarget *t, int rank, int x, int y)
{
    const double *row = review_row(r, t, t->worst[rank]);
    char text[48];
    if (t->is.kind == COMPARED_CLASS && t->is.count == 1)
        snprintf(text, sizeof text, "%d. %.0f>%s", rank + 1, row[REVIEW_TRUE],
                 row[REVIEW_FOUND] < 0 ? "-" : rt_format("%.0f", row[REVIEW_FOUND]));
    else
        snprintf(text, sizeof text, "%d.", rank + 1);
    put_letters(s, x, y, text);
}

/* ---- PNG */

static void put_word(uint8_t out[4], uint32_t v)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put_chunk(ReviewFolder *f, const char *type, const uint8_t *bytes, uint32_t n)
{
    uint8_t word[4];
    uLong crc = crc32(0, (const uint8_t *)type, 4);
    crc = n > 0 ? crc32(crc, bytes, n) : crc;
    put_word(word, n);
    review_bytes(f, word, 4);
    review_bytes(f, type, 4);
    review_bytes(f, bytes, n);
    put_word(word, (uint32_t)crc);
    review_bytes(f, word, 4);
}

static void write_png(Review *r, const char *name, const Sheet *s)
{
    const size_t row = 3 * (size_t)s->width, all = (row + 1) * (size_t)s->height;
    uint8_t *raw = rt_alloc(all), head[13] = {[8] = 8, [9] = 2}; /* 8 bits, RGB */
    uLongf packed = compressBound(all);
    uint8_t *out = rt_alloc(packed);
    for (int i = 0; i < s->height; i++) /* each row begins with 0: no filter */
        memcpy(raw + (size_t)i * (row + 1) + 1, s->rgb + (size_t)i * row, row);
    if (compress2(out, &packed, raw, all, 9) != Z_OK)
        rt_die("out of memory for the images of a report");
    put_word(head, (uint32_t)s->width);
    put_word(head + 4, (uint32_t)s->height);
    review_begin(r->folder, name);
    review_bytes(r->folder, "\x89PNG\r\n\x1a\n", 8);
    put_chunk(r->folder, "IHDR", head, sizeof head);
    put_chunk(r->folder, "IDAT", out, (uint32_t)packed);
    put_chunk(r->folder, "IEND", out, 0);
    review_finish(r->folder);
    free(raw);
    free(out);
}

void review_sheet(Review *r, const ReviewTarget *t)
{
    static const uint8_t paper[3] = {255, 255, 255};
    if (r->p->input_rank != 3 || t->nworst == 0)
        return;
    if (no_picture(r)) {
        rt_note("the report has no images of the worst samples: they %s", no_picture(r));
        return;
    }
    char *made = rt_alloc((size_t)r->d->stride + 1);
    Picture p;
    picture_of(r, t->worst[0], made, &p);
    const int64_t longer = p.height > p.width ? p.height : p.width;
    /* whole pixels of small images, so that they stay sharp */
    const double scale = longer <= TILE ? TILE / longer : (double)TILE / (double)longer;
    const int width = (int)fmax(1, (double)p.width * scale),
              height = (int)fmax(1, (double)p.height * scale), column = (int)fmax(width, 84),
              rows = (t->nworst + COLUMNS - 1) / COLUMNS;
    Sheet s = {.width = GAP + COLUMNS * (column + GAP),
               .height = GAP + rows * (height + GAP + CAPTION)};
    s.rgb = rt_alloc(3 * (size_t)s.width * (size_t)s.height);
    fill(&s, 0, 0, s.width, s.height, paper);
    for (int i = 0; i < t->nworst; i++) {
        const int x = GAP + i % COLUMNS * (column + GAP),
                  y = GAP + i / COLUMNS * (height + GAP + CAPTION);
        picture_of(r, t->worst[i], made, &p);
        put_picture(&s, &p, x, y, width, height);
        put_caption(&s, r, t, i, x, y + height + GAP / 2);
    }
    write_png(r, review_name(t, "worst.png"), &s);
    free(s.rgb);
    free(made);
}
