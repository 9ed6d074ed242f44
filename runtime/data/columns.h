/* columns.h -- what a program knows of the columns of a table: their order, their means and
 * standard deviations, and their categories.
 *
 * The training split determines them, and the file of weights keeps them.  `test`, `predict` and a
 * training that begins with such weights use the same numbers.
 */
#ifndef COLUMNS_H
#define COLUMNS_H
#include "data/table.h"
#include "rt.h"

typedef struct Column {
    const char *name;
    bool category;
    double mean, deviation; /* numbers: the input is (v - mean) / deviation; deviation 0: v */
    Table value;            /* categories in order; count: training rows with the category */
} Column;

typedef struct Columns {
    Column *at; /* the inputs, then the targets */
    int64_t ninput, n;
    /* a part of weights is loaded: target k is determined anew by the training split */
    bool anew[RT_TARGETS];
    char *text; /* the saved form */
    int64_t text_bytes;
} Columns;

struct Sheet;

/* learn.c: determines the columns from a training split.  The first `ninput` kept columns are
 * inputs, the others are targets.  class: whether target k holds classes. */
void columns_learn(const RtTable *r, const struct Sheet *s, int64_t ninput, const bool *class,
                   Columns *out);

const Columns *columns_now(void); /* the columns of this run; NULL: none */

/* Makes these columns those of the run. */
void columns_take(const Columns *c);

/* Forgets target k of the run's columns, which come from weights of which a part is loaded: it can
 * be another target, or have other classes. */
void columns_forget_target(int k);

/* Makes the columns of a saved form those of the run; false if the form is damaged. */
bool columns_read(const char *text, int64_t bytes);

/* Makes the columns in a file of weights those of the run; false if the file has none. */
bool columns_of_weights(const RtProgram *p, const char *path);

/* Whether a list of the recipe has this name. */
bool columns_list_holds(const RtNames *list, const char *name);

/* The index of the category with this text; -1: there is none. */
int32_t columns_find(const Column *c, const char *text);

#endif
