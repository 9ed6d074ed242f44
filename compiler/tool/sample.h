/* sample.h -- looks at files of data, so that `tenon new` writes a model that fits them. */
#ifndef SAMPLE_H
#define SAMPLE_H
#include "base/diag.h"

typedef enum {
    SAMPLE_IMAGE,    /* dim: channels, height, width */
    SAMPLE_SEQUENCE, /* dim: steps, features */
    SAMPLE_ROW,      /* dim: numbers */
    SAMPLE_TEXT,     /* one text; the network learns its next character */
    SAMPLE_TEXTS,    /* labelled texts */
    SAMPLE_TABLE     /* dim: numbers of a row */
} SampleKind;

typedef struct Sample {
    SampleKind kind;
    const char *data; /* the value of the key `data`, as it is written in a recipe */
    int dim[3];
    int classes, vocab;
    int targets;         /* numbers of a sample that the network learns; 0: it learns a class */
    double mean, spread; /* of these numbers: mean and standard deviation */
} Sample;

/* Finds out what `data` holds: the name of a data set that a model can be written for, a directory,
 * or a text file.  false after an error. */
bool sample_find(Arena *a, const char *data, Sample *out, Diag *d);
/* The same for a table: `file`, which the recipe calls `path`.  tested: the file of its test split;
 * NULL: its rows are divided. */
bool sample_table(Arena *a, const char *file, const char *tested, const char *path, Sample *out,
                  Diag *d);
/* Adds the names of these data sets to a list. */
void sample_names(Arena *a, const char ***name, int *n);

#endif
