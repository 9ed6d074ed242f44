/* columns.h -- what a program knows of the columns of a table: their order, means and deviations,
 * and their categories.
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
    double mean, deviation; /* numbers: the input is (v - mean) / deviation; v if it is 0 */
    Table value;            /* categories, in order, with their numbers of training rows */
} Column;

typedef struct Columns {
    Column *at; /* the inputs, then the targets */
    int64_t ninput, n;
    char *text; /* the saved form */
    int64_t text_bytes;
} Columns;

struct Sheet;

/* learn.c: the columns of a training split, whose first `ninput` used columns are inputs.  class:
 * for each other one, whether it holds classes.  columns_number: whether the text is a finite
 * number. */
void columns_learn(const RtTable *r, const struct Sheet *s, int64_t ninput, const bool *class,
                   Columns *out);
bool columns_number(const char *text, double *value);

const Columns *columns_now(void); /* those of this run; NULL: none */

/* Makes these the columns of the run. */
void columns_take(const Columns *c);

/* Takes the columns of this saved form; false if it is damaged. */
bool columns_read(const char *text, int64_t bytes);

/* Takes the columns that a file of weights holds; false if it holds none. */
bool columns_of_weights(const RtProgram *p, const char *path);

/* Whether a list of the recipe has this name. */
bool columns_list_holds(const RtNames *list, const char *name);

/* The category of this text; -1: it is not one. */
int32_t columns_find(const Column *c, const char *text);

#endif
