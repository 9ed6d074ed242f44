/* sheet.h -- a table with a row of names: its columns by name, and the texts of its rows.
 *
 * Open the table, keep the columns that are needed, then read the rows.  A kept column has an index
 * k among the kept ones, in the order of sheet_use.  `tenon new` has these functions, too.
 */
#ifndef SHEET_H
#define SHEET_H
#include "data/csv.h"
#include "data/split.h"
#include "data/table.h"

typedef struct Sheet {
    Csv csv;
    const char *path;
    const char **name; /* [columns] texts of the first row */
    int64_t columns;
    Table index;     /* finds the number of a name */
    int64_t *column; /* index of the column, by the number of its name */
    int64_t *use;    /* [used] indices of the kept columns */
    int64_t used;
    bool *taken;       /* [columns] whether the column is kept */
    const char **cell; /* [n][used] texts of the kept rows and columns */
    int64_t *line;     /* [n] lines of the kept rows */
    int64_t n, room;   /* number of kept rows; rows that `cell` and `line` have room for */
    int64_t all;       /* number of rows in the file */
} Sheet;

/* Reads the names.  Dies if there are none, or if two columns have the same name. */
void sheet_open(Sheet *s, const char *path);

/* The index of the column with this name; -1: there is none. */
int64_t sheet_find(const Sheet *s, const char *name);

/* The index of the column with this name.  Dies if there is none; the message has the nearest name,
 * or ends with way_out. */
int64_t sheet_need(const Sheet *s, const char *name, const char *way_out);
/* Keeps the column with this name.  Dies if there is none; the message has the nearest name. */
void sheet_use(Sheet *s, const char *name);
/* The same; way_out ends the message if there is no such column. */
void sheet_use_or(Sheet *s, const char *name, const char *way_out);

/* Reads the file, and keeps the rows of a split; split NULL: all rows.  Dies if a row and the row
 * of names differ in their number of fields. */
void sheet_read(Sheet *s, const Split *split);

void sheet_close(Sheet *s);

const char *sheet_cell(const Sheet *s, int64_t row, int64_t k); /* the text of kept column k */
const char *sheet_name(const Sheet *s, int64_t k);              /* the name of kept column k */
/* For a message: "homes.csv:17: column 'age' is 'x'", or "... is empty". */
const char *sheet_shown(const Sheet *s, int64_t row, int64_t k);

#endif
