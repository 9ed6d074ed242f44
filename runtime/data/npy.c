/* npy.c -- .npy files, versions 1 to 3 of the format.
 *
 * Source: NumPy Enhancement Proposal 1, "A simple file format for NumPy arrays".
 */
#include "data/npy.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/data.h"
#include "files/params.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Maps a file; NULL: it does not exist. */
static char *map_file(const char *path, int64_t *bytes)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return NULL;
    if (fd < 0 || fstat(fd, &info) != 0)
        rt_die("%s cannot be opened: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        rt_die("%s is not a file", path);
    *bytes = info.st_size;
    char *at = memory_map_file(fd, *bytes, false, path);
    close(fd);
    return at;
}

/* The text after 'key': in the header, which is a dictionary; dies if there is none. */
static const char *npy_value(const char *head, const char *key, const char *path)
{
    const char *at = strstr(head, key);
    if (!at)
        rt_die("%s is not a .npy file: its header has no %s", path, key);
    at += strlen(key);
    return at + strspn(at, ": ");
}

static void __attribute__((noreturn)) unusable(const Npy *a, const char *text)
{
    const bool quoted = text[0] == '\'';
    const int n = quoted ? (int)strcspn(text + 1, "'") : 0;
    if (!quoted)
        rt_die("%s holds records of several fields: save an array of plain numbers", a->path);
    rt_die("%s holds elements of type '%.*s', which cannot be used here: save plain numbers, with "
           "x.astype('float32')",
           a->path, n < 40 ? n : 40, text + 1);
}

static void read_type(Npy *a, const char *text)
{
    if (text[0] != '\'' || !text[1] || !strchr("<|=>", text[1]) || !text[2] ||
        !strchr("uifb", text[2]))
        unusable(a, text);
    a->kind = text[2];
    a->size = text[3] - '0'; /* nothing is read after the header's end */
    if (!text[3] || text[4] != '\'')
        unusable(a, text);
    if (text[1] == '>' && a->size > 1)
        rt_die("%s is big-endian: save it with x.astype(x.dtype.newbyteorder('<'))", a->path);
    if (a->size != 1 && a->size != 2 && a->size != 4 && a->size != 8)
        unusable(a, text);
}

static void __attribute__((noreturn)) unusable_shape(const Npy *a, const char *shape)
{
    const int n = (int)strcspn(shape, ")}\n"), most = 60;
    rt_die("%s has a shape that cannot be used: %.*s%s: an array has at most 8 dimensions and "
           "fewer than 2^63 numbers",
           a->path, n < most ? n : most, shape, n < most ? ")" : "...");
}

static int64_t npy_shape(Npy *a, const char *text)
{
    const char *shape = text;
    int64_t count = 1;
    if (*text++ != '(')
        rt_die("%s is not a .npy file: its shape is missing", a->path);
    for (;;) {
        text += strspn(text, " ,");
        if (*text == ')')
            return count;
        char *end;
        const int64_t n = strtoll(text, &end, 10);
        if (end == text || n < 0 || a->rank == 8 || __builtin_mul_overflow(count, n, &count))
            unusable_shape(a, shape);
        a->dim[a->rank++] = n;
        text = end;
    }
}

const char *npy_prefix(const char *split)
{
    return *split ? rt_format("%s_", split) : "";
}

bool npy_map(Npy *a, const char *path)
{
    int64_t bytes, wanted;
    *a = (Npy){.path = path};
    const char *file = map_file(path, &bytes);
    if (!file)
        return false;
    const unsigned char *u = (const unsigned char *)file;
    if (bytes < 12 || memcmp(file, "\x93NUMPY", 6) != 0 || u[6] < 1 || u[6] > 3)
        rt_die("%s is not a .npy file: it does not begin like one", path);
    const int64_t start = u[6] == 1 ? 10 : 12;
    int64_t length = u[8] | u[9] << 8;
    if (u[6] > 1)
        length |= (int64_t)u[10] << 16 | (int64_t)u[11] << 24;
    if (start + length > bytes || length > 65536)
        rt_die("%s is truncated: it ends inside its header", path);
    char *head = rt_format("%.*s", (int)length, file + start);
    read_type(a, npy_value(head, "'descr'", path));
    if (strncmp(npy_value(head, "'fortran_order'", path), "False", 5) != 0)
        rt_die("%s is in Fortran order: save numpy.ascontiguousarray(x)", path);
    const int64_t count = npy_shape(a, npy_value(head, "'shape'", path));
    free(head);
    const int64_t held = bytes - start - length;
    if (__builtin_mul_overflow(count, a->size, &wanted))
        rt_die("%s is truncated: it holds %lld bytes of data where its shape needs more than 2^63",
               path, (long long)held);
    if (wanted != held)
        rt_die("%s %s: it holds %lld bytes of data where its shape needs %lld%s", path,
               held < wanted ? "is truncated" : "is longer than its array", (long long)held,
               (long long)wanted, held < wanted ? "" : ": save the array again, alone in its file");
    a->data = file + start + length;
    return true;
}

int npy_header(char head[NPY_HEAD], int real_bytes, int64_t rows, int rank, const int64_t *dim)
{
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(head + 10, ' ', NPY_HEAD - 10);
    int n = 10 + snprintf(head + 10, NPY_HEAD - 10,
                          "{'descr': '<f%d', 'fortran_order': False, 'shape': (%lld", real_bytes,
                          (long long)rows);
    for (int i = 0; i < rank; i++)
        n += snprintf(head + n, (size_t)(NPY_HEAD - n), ", %lld", (long long)dim[i]);
    n += snprintf(head + n, (size_t)(NPY_HEAD - n), "), }");
    head[n] = ' ';
    head[NPY_HEAD - 1] = '\n';
    return NPY_HEAD;
}

/* Tokens can have any usual type of integers. */
int npy_token_type(const RtProgram *p, const Npy *a)
{
    if (a->kind == 'u' && a->size == 2 && p->vocab > UINT16_MAX)
        rt_die("%s holds u16, which has no room for %lld tokens and padding; save it with "
               "x.astype('int32')",
               a->path, (long long)p->vocab);
    if (a->kind == 'u' && a->size <= 2)
        return a->size == 1 ? RT_U8 : RT_U16;
    if (a->kind == 'i' && a->size >= 4)
        return a->size == 4 ? RT_I32 : RT_I64;
    rt_die("%s holds %c%d: tokens are u8, u16, i32 or i64; save it with x.astype('int32')", a->path,
           a->kind, 8 * a->size);
}

int npy_number_type(const Npy *a)
{
    const bool u8 = a->kind == 'u' && a->size == 1, f = a->kind == 'f' && a->size >= 4;
    if (!u8 && !f)
        rt_die("%s holds %c%d: samples are f32, f64 or u8; save it with x.astype('float32')",
               a->path, a->kind, 8 * a->size);
    return u8 ? RT_U8 : a->size == 4 ? RT_F32 : RT_F64;
}

/* Takes the array as samples, one for each index of the first axis: bytes, floats, doubles or
 * tokens. */
static void use_samples(const RtProgram *p, const Npy *a, int64_t limit, Data *d)
{
    if (a->rank < 1)
        rt_die("%s is a single number, not a list of samples", a->path);
    data_take_shape(d, p, a->path, a->rank - 1, a->dim + 1);
    d->type = p->vocab ? npy_token_type(p, a) : npy_number_type(a);
    d->x_path = a->path;
    d->n = limit > 0 && limit < a->dim[0] ? limit : a->dim[0];
    d->stride = d->features * a->size;
    d->x = (char *)a->data;
    if (d->n == 0)
        rt_die("%s holds no sample", a->path);
}

/* Checks an array with a class for each pixel. */
static void check_pixels(const RtProgram *p, const Npy *a)
{
    char have[128], want[128];
    if ((a->kind != 'i' && a->kind != 'u' && a->kind != 'b') || a->rank < 1)
        rt_die("%s should be integers, a class for each pixel", a->path);
    if (!data_shape_fits(a->rank - 1, a->dim + 1, p->label_rank, p->label_dim))
        rt_die("%s holds %s%s, but the target of %s has a class for each of %s pixels: save masks "
               "of this size, or change the line target of the recipe",
               a->path, a->rank > 1 ? "classes of shape " : "one class for each sample",
               a->rank > 1 ? data_shape_text(have, a->rank - 1, a->dim + 1) : "", p->model,
               data_shape_text(want, p->label_rank, p->label_dim));
}

void npy_check_classes(const Npy *a, int64_t labels)
{
    if ((a->kind != 'i' && a->kind != 'u' && a->kind != 'b') || a->rank < 1 || a->rank > 2 ||
        (a->rank == 2 ? a->dim[1] : 1) != labels)
        rt_die(labels > 1 ? "%s should be rows of %lld integer classes, one for each position"
                          : "%s should be a list of integer classes, %lld for each sample",
               a->path, (long long)labels);
}

/* Dies if the numbers cannot be targets. Bytes cannot, because they may be pixels, which have
 * another scale; but truths can be bytes, which are 0 and 1. */
void npy_check_numbers(const RtProgram *p, const Npy *a, const char *target, bool truths, int rank,
                       const int64_t *dim)
{
    const bool bytes = (a->kind == 'u' || a->kind == 'b') && a->size == 1;
    if (a->rank < 1)
        rt_die("%s is a single number, not a list of targets", a->path);
    if (!(a->kind == 'f' && a->size >= 4) && !(a->kind == 'i' && a->size >= 4) &&
        !(truths && bytes))
        rt_die("%s holds %c%d: targets are f32, f64, i32 or i64%s; save it with "
               "x.astype('float32'), and divide pixels by 255",
               a->path, a->kind, 8 * a->size, truths ? ", and masks also u8 or bool" : "");
    target_take_shape(p, a->path, target, a->rank - 1, a->dim + 1, rank, dim);
}

/* Opens y, the labels or targets beside `samples` samples of x. */
static void open_answers(const RtProgram *p, const char *x_path, const char *y_path,
                         int64_t samples, Data *d)
{
    Npy y;
    if (!npy_map(&y, y_path))
        rt_die("%s has no %s beside it: %s is missing", x_path, d->targets ? "targets" : "labels",
               y_path);
    if (d->targets)
        npy_check_numbers(p, &y, p->target_name, p->target_truths, p->target_rank, p->target_dim);
    else if (p->label_rank > 0)
        check_pixels(p, &y);
    else
        npy_check_classes(&y, d->labels);
    if (y.dim[0] != samples)
        rt_die("%s holds %lld samples, but %s %lld %s", x_path, (long long)samples, y_path,
               (long long)y.dim[0], d->targets ? "targets" : "labels");
    d->y_numbers = y.data;
    d->y_size = y.size;
    d->y_signed = y.kind == 'i';
    d->y_real = y.kind == 'f';
    d->y_path = y_path;
    char *memory = memory_map(d->n * data_label_stride(d), false, y_path);
    if (d->targets)
        d->numbers = memory;
    else
        d->label = (int32_t *)(void *)memory;
}

bool npy_open(const RtProgram *p, const char *directory, const char *split, int64_t limit, Data *d)
{
    Npy x;
    const char *prefix = npy_prefix(split), *x_path = rt_format("%s/%sx.npy", directory, prefix);
    int64_t samples;
    if (p->ninput > 0) {
        samples = parts_open(p, directory, split, limit, d);
        x_path = rt_format("%s/%s%s.npy", directory, prefix, p->input[0].name);
    } else if (npy_map(&x, x_path)) {
        use_samples(p, &x, limit, d);
        samples = x.dim[0];
    } else {
        return false;
    }
    if (d->ntarget > 0)
        targets_open(p, x_path, directory, split, samples, d);
    else if (p->target_kind != RT_TARGET_INPUT && (p->classes > 0 || d->targets))
        open_answers(p, x_path, rt_format("%s/%sy.npy", directory, prefix), samples, d);
    return true;
}

static int64_t integer(const char *at, int size, bool is_signed)
{
    uint64_t v = 0;
    memcpy(&v, at, (size_t)size);
    const int unused = 64 - 8 * size;
    return is_signed ? (int64_t)(v << unused) >> unused : (int64_t)v;
}

void npy_check_tokens(const char *path, const char *tokens, int type, int64_t n, int64_t each,
                      int64_t vocab)
{
    const int size = type == RT_U8 ? 1 : type == RT_U16 ? 2 : type == RT_I32 ? 4 : 8;
    for (int64_t i = 0; i < n; i++) {
        const int64_t token = integer(tokens + i * size, size, type != RT_U8 && type != RT_U16);
        const bool padding = token == -1 || (size == 2 && token == UINT16_MAX);
        if (!padding && (token < 0 || token >= vocab))
            rt_die("%s: token %lld of sample %lld is out of range: the vocabulary is 0 to %lld, "
                   "and -1 is padding",
                   path, (long long)token, (long long)(i / each), (long long)vocab - 1);
    }
}

static void check_tokens(const Data *d)
{
    npy_check_tokens(d->x_path, d->x, d->type, data_rows(d) * d->features, d->features, d->vocab);
}

int64_t npy_class_at(const Npy *a, int64_t i)
{
    return integer(a->data + i * a->size, a->size, a->kind == 'i');
}

double npy_number_at(const Npy *a, int64_t i)
{
    return a->kind == 'f' ? params_real(a->data, a->size, i)
                          : (double)integer(a->data + i * a->size, a->size, a->kind == 'i');
}

static void fill_numbers(Data *d)
{
    const Npy y = {.data = d->y_numbers,
                   .size = d->y_size,
                   .kind = d->y_real     ? 'f'
                           : d->y_signed ? 'i'
                                         : 'u'};
    for (int64_t i = 0; i < data_rows(d); i++)
        for (int64_t k = 0; k < d->targets; k++)
            target_put(d, d->y_path, d->truths, data_label(d, i), i, k,
                       npy_number_at(&y, i * d->targets + k));
    target_variances(d);
}

/* If there is a label for each position, a label can be -1, or the class that the loss ignores:
 * this position is not scored. */
void npy_fill(Data *d)
{
    if (d->vocab && !d->parts)
        check_tokens(d);
    if (d->targets)
        fill_numbers(d);
    if (d->arrays) {
        targets_fill(d);
        return;
    }
    for (int64_t i = 0; d->label && i < data_rows(d) * d->labels; i++) {
        int64_t label = integer(d->y_numbers + i * d->y_size, d->y_size, d->y_signed);
        if (d->ignored > 0 && label == d->ignored - 1)
            label = -1;
        if (d->labels == 1 || label != -1)
            data_check_label(d, d->y_path, i / d->labels, label);
        d->label[i] = (int32_t)label;
        d->scored += d->labels > 1 && label >= 0;
    }
}

void npy_open_input(const RtProgram *p, const char *path, Data *d)
{
    Npy x;
    if (!npy_map(&x, path))
        rt_die("%s does not exist", path);
    use_samples(p, &x, 0, d);
    if (d->vocab)
        check_tokens(d);
}
