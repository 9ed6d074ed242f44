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

bool npy_map(Npy *a, const char *path); /* false: no such file; dies when it is broken */

/* Writes the header of a (rows, columns) array of f32 or f64; returns its length, a multiple of 64,
 * at most 128. */
int npy_header(char head[128], int real_bytes, int64_t rows, int64_t columns);

#endif
