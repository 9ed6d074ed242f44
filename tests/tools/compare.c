/* compare.c -- the distance between two safetensors files.
 *
 *   compare A B BOUND [LEAST]    relative L2 distance |a - b| / |b| of each tensor of A to the tensor
 *                                of B with the same name; if |b| is smaller than LEAST (default 0),
 *                                |a - b| / LEAST
 *
 * A tensor of B with |b| < ZERO |largest| is zero but for the rounding of f64, such as the gradient of
 * a bias before a norm of its channel.  Its distance is |a - b| / (FLOOR |largest|), where |largest| is
 * the largest norm of B's tensors.
 *
 * Prints a line for each tensor above BOUND, then the largest distance.  The exit code is 1 if one
 * is above BOUND, if names or lengths differ, or if a file is not a safetensors file.  Types F32
 * and F64; the header must have the form that Tenon's runtime writes.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ZERO 1e-9
#define FLOOR 1e-2

typedef struct File { char *header; const char *data; uint64_t bytes; } File;
typedef struct Tensor { char name[256], dtype[8]; uint64_t from, to; } Tensor;

static void die(const char *what, const char *path)
{
    fprintf(stderr, "compare: %s: %s\n", path, what);
    exit(1);
}

static File load(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0)
        die("cannot read", path);
    const uint64_t size = (uint64_t)ftell(f);
    char *all = malloc(size + 1);
    uint64_t n;
    rewind(f);
    if (!all || size < 8 || fread(all, 1, size, f) != size)
        die("cannot read", path);
    fclose(f);
    memcpy(&n, all, 8);
    if (n > size - 8)
        die("no safetensors file", path);
    File r = {.header = calloc(1, n + 1), .data = all + 8 + n, .bytes = size - 8 - n};
    memcpy(r.header, all + 8, n);
    return r;
}

/* The next tensor at *s; the entry __metadata__ has no dtype and is passed over. */
static int next(const char **s, Tensor *t)
{
    const char *dtype;
    while ((dtype = strstr(*s, "\"dtype\":"))) {
        const char *end = dtype;
        while (end > *s && *end != '{')
            end--;
        while (end > *s && *end != '"')
            end--;
        const char *start = end - 1;
        while (start > *s && *start != '"')
            start--;
        const char *span = strstr(dtype, "\"data_offsets\":");
        unsigned long long from, to;
        if (!span || end - start >= (long)sizeof t->name || sscanf(span, "\"data_offsets\": [%llu , %llu", &from, &to) != 2 ||
            sscanf(dtype, "\"dtype\": \"%7[^\"]\"", t->dtype) != 1)
            return 0;
        snprintf(t->name, sizeof t->name, "%.*s", (int)(end - start - 1), start + 1);
        t->from = from, t->to = to;
        *s = span + 1;
        return 1;
    }
    return 0;
}

static int find(const File *f, const char *name, Tensor *t)
{
    const char *s = f->header;
    while (next(&s, t))
        if (strcmp(t->name, name) == 0)
            return 1;
    return 0;
}

static uint64_t count(const Tensor *t)
{
    return (t->to - t->from) / (strcmp(t->dtype, "F64") == 0 ? 8 : 4);
}

static double at(const File *f, const Tensor *t, uint64_t i)
{
    double d;
    float s;
    if (strcmp(t->dtype, "F64") == 0)
        return memcpy(&d, f->data + t->from + 8 * i, 8), d;
    return memcpy(&s, f->data + t->from + 4 * i, 4), s;
}

static double norm_of(const File *f, const Tensor *t)
{
    double norm = 0;
    for (uint64_t i = 0; i < count(t); i++)
        norm += at(f, t, i) * at(f, t, i);
    return sqrt(norm);
}

/* The largest norm of a tensor; 0 if a span is outside of the file, which is reported later. */
static double largest_norm(const File *f)
{
    Tensor t;
    double most = 0;
    for (const char *s = f->header; next(&s, &t);) {
        const double norm = t.to <= f->bytes ? norm_of(f, &t) : 0;
        most = norm > most ? norm : most;
    }
    return most;
}

static double distance(const File *a, const Tensor *x, const File *b, const Tensor *y, double least, double largest)
{
    double diff = 0, norm = norm_of(b, y);
    for (uint64_t i = 0; i < count(x); i++) {
        const double u = at(a, x, i), v = at(b, y, i);
        diff += (u - v) * (u - v);
    }
    norm = norm < ZERO * largest ? FLOOR * largest : norm;
    norm = norm < least ? least : norm;
    return diff == 0 ? 0 : sqrt(diff) / norm;         /* NaN and infinity stay what they are: above any bound */
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5)
        die("usage: compare A B BOUND [LEAST]", "arguments");
    const File a = load(argv[1]), b = load(argv[2]);
    const double bound = atof(argv[3]), least = argc > 4 ? atof(argv[4]) : 0,
                 largest = largest_norm(&b);
    const char *s = a.header;
    Tensor x, y;
    double most = 0;
    int n = 0, wrong = 0;
    for (; next(&s, &x); n++) {
        if (!find(&b, x.name, &y) || count(&x) != count(&y) || x.to > a.bytes || y.to > b.bytes) {
            printf("%s: not the same tensor in both files\n", x.name);
            wrong = 1;
            continue;
        }
        const double d = distance(&a, &x, &b, &y, least, largest);
        if (!(d <= bound)) {
            printf("%s: relative distance %.3g is above %.3g\n", x.name, d, bound);
            wrong = 1;
        }
        most = d > most ? d : most;
    }
    for (s = b.header; next(&s, &y);)
        if (!find(&a, y.name, &x)) {
            printf("%s: only in %s\n", y.name, argv[2]);
            wrong = 1;
        }
    printf("%d tensors, largest relative distance %.3g\n", n, most);
    return wrong || n == 0;
}
