/* sheet.h -- the columns of a table by name, and the texts in its rows. */
#ifndef SHEET_H
#define SHEET_H
#include "data/csv.h"
#include "data/split.h"
#include "data/table.h"

typedef struct Sheet {
    Csv csv;
    const char *path;
    const char **name; /* [columns] of the first row */
    int64_t columns;
    Table index;     /* the names, and ... */
    int64_t *column; /* ... their columns, by their numbers in it */
    int64_t *use;    /* [used] indices of the columns that are kept */
    int64_t used;
    bool *taken;       /* [columns] it is kept */
    const char **cell; /* [n][used] the texts of rows */
    int64_t *line;     /* [n] */
    int64_t n, room;
    int64_t all; /* rows of the file, also those of other splits */
} Sheet;

/* Reads the names.  Dies if there are none, or if two columns have one name. */
void sheet_open(Sheet *s, const char *path);

/* The index of a column; -1: there is none. */
int64_t sheet_find(const Sheet *s, const char *name);

/* Keeps this column, too; dies with the nearest name if there is none. */
void sheet_use(Sheet *s, const char *name);

/* Reads the rows of a split, or all rows if it is NULL.  Dies if a row has another number of fields
 * than the first one. */
void sheet_read(Sheet *s, const Split *split);

void sheet_close(Sheet *s);

/* The text in column k of the used ones; the name of this column; "homes.csv:17" for messages. */
const char *sheet_cell(const Sheet *s, int64_t row, int64_t k);
const char *sheet_name(const Sheet *s, int64_t k);
const char *sheet_place(const Sheet *s, int64_t row);

#endif
