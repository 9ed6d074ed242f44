/* idx.c -- MNIST's file format: a magic number with type and rank, dimensions as big-endian
 * words, then bytes.
 *
 * Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database", file formats at the end of the
 * page.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/data.h"
#include "data/stream.h"
#include <string.h>

enum { IDX_U8 = 8 };

static int64_t read_word(Stream *s, const char *what)
{
    uint8_t b[4];
    if (stream_read(s, b, 4) < 4)
        rt_die("%s is truncated: it ends inside its %s", stream_path(s), what);
    return (int64_t)b[0] << 24 | b[1] << 16 | b[2] << 8 | b[3];
}

/* Reads a header of unsigned bytes in `least` .. 4 dimensions; returns the rank. */
static int read_idx_header(Stream *s, int least, int64_t dim[4])
{
    const int64_t magic = read_word(s, "magic number"), rank = magic & 0xFF;
    if (magic >> 8 != IDX_U8 || rank < least || rank > 4)
        rt_die("%s is not the IDX file it should be: its magic number is 0x%08llx, not 0x%08x",
               stream_path(s), (unsigned long long)magic, IDX_U8 << 8 | (least == 1 ? 1 : 3));
    for (int i = 0; i < rank; i++)
        dim[i] = read_word(s, "header");
    int64_t bytes = 4 + 4 * rank, content = 1;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(content, dim[i], &content) || content > INT64_MAX / 2)
            content = INT64_MAX / 2; /* the header is added below */
    bytes += content;
    if (bytes > stream_room(s))
        rt_die("%s is truncated: its header promises %lld bytes, more than the %lld that a file of "
               "its size can hold; fetch it again, or unpack it if it is packed",
               stream_path(s), (long long)bytes, (long long)stream_room(s));
    return (int)rank;
}

static Stream *open_either(const RtProgram *p, const char *directory, const char *split,
                           const char *dashed, const char *dotted)
{
    const char *prefix = strcmp(split, "test") == 0 ? "t10k" : split;
    Stream *s = stream_open(p, directory, rt_format("%s-%s", prefix, dashed));
    return s ? s : stream_open(p, directory, rt_format("%s-%s", prefix, dotted));
}

bool idx_open(const RtProgram *p, const char *directory, const char *split, int64_t limit, Data *d)
{
    int64_t dim[4], labels[4];
    d->x_file = open_either(p, directory, split, "images-idx3-ubyte", "images.idx3-ubyte");
    if (!d->x_file)
        return false;
    d->y_file = open_either(p, directory, split, "labels-idx1-ubyte", "labels.idx1-ubyte");
    if (!d->y_file)
        rt_die("%s has no labels beside it: %s-labels-idx1-ubyte, or the same name with .gz",
               stream_path(d->x_file), strcmp(split, "test") == 0 ? "t10k" : split);
    const int rank = read_idx_header(d->x_file, 3, dim);
    if (read_idx_header(d->y_file, 1, labels) != 1)
        rt_die("%s should have one dimension", stream_path(d->y_file));
    if (dim[0] != labels[0])
        rt_die("%s holds %lld images, but %s %lld labels", stream_path(d->x_file),
               (long long)dim[0], stream_path(d->y_file), (long long)labels[0]);
    data_take_shape(d, p, stream_path(d->x_file), rank - 1, dim + 1);
    d->type = RT_U8;
    d->stride = d->features;
    d->n = limit > 0 && limit < dim[0] ? limit : dim[0];
    d->whole = dim[0];
    d->x = memory_map(d->n * d->stride, false, stream_path(d->x_file));
    d->label = memory_map(d->n * (int64_t)sizeof *d->label, false, stream_path(d->y_file));
    return true;
}

/* Reads the samples of the split, of `size` bytes each; checks that the file has as many samples as
 * its header says. */
static void read_samples(const Data *d, Stream *s, void *to, int64_t size)
{
    const int64_t whole = d->whole;
    int64_t bytes = stream_rows(s, to, size, d->row, d->n, 0);
    bytes += stream_end(s, whole * size - bytes);
    if (bytes < whole * size)
        rt_die("%s is truncated: %lld of its %lld samples are there", stream_path(s),
               (long long)(bytes / size), (long long)whole);
    if (bytes > whole * size)
        rt_die("%s holds more than the %lld samples of its header", stream_path(s),
               (long long)whole);
}

/* Reads the labels, one byte for each, into the last bytes of the array of labels, and then widens
 * them to 32 bits, the first one first. */
void idx_fill(Data *d)
{
    if (d->n == 0)
        rt_die("%s holds no sample", stream_path(d->x_file));
    read_samples(d, d->x_file, d->x, d->stride);
    const uint8_t *byte = (uint8_t *)d->label + 3 * d->n;
    read_samples(d, d->y_file, (uint8_t *)d->label + 3 * d->n, 1);
    for (int64_t i = 0; i < d->n; i++) {
        const int32_t label = byte[i];
        data_check_label(d, stream_path(d->y_file), d->row ? d->row[i] : i, label);
        d->label[i] = label;
    }
}
