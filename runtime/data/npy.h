/* npy.h -- the array file of NumPy, as far as data sets need it: C order, little-endian. */
#ifndef NPY_H
#define NPY_H
#include <stdbool.h>
#include <stdint.h>

typedef struct Npy {
    const char *path, *data; /* data: mapped read-only, readable 4096 bytes beyond its end */
    char kind;               /* 'u', 'i', 'f', 'b' */
    int size;                /* bytes an element */
    int rank;
    int64_t dim[8];
} Npy;

/* "train_", or "" for arrays without a split. */
const char *npy_prefix(const char *split);

bool npy_map(Npy *a, const char *path); /* false: no such file; dies when it is broken */

/* Writes the header of an array of f32 or f64 with `rows` rows of this shape; returns its length.
 * A row has at most 2^40 numbers. */
enum { NPY_HEAD = 128 };
int npy_header(char head[NPY_HEAD], int real_bytes, int64_t rows, int rank, const int64_t *dim);

#endif
