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
    const char *learned; /* table: the column that the network learns */
} Sample;

/* Finds out what `data` holds: the name of a data set that a model can be written for, a directory,
 * or a text file.  learn: the column of a table that the network learns; NULL: the last one.  false
 * after an error. */
bool sample_find(Arena *a, const char *data, const char *learn, Sample *out, Diag *d);
/* A table of `sample_find`. */
typedef struct TableFile {
    const char *file, *path; /* path: its name in the recipe */
    const char *tested;      /* the file of its test split; NULL: its rows are divided */
    const char *learn;       /* the column that the network learns; NULL: the last one */
} TableFile;
/* The same for a table. */
bool sample_table(Arena *a, const TableFile *table, Sample *out, Diag *d);
/* Adds the names of these data sets to a list. */
void sample_names(Arena *a, const char ***name, int *n);

#endif
