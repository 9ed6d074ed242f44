/* csv.h -- rows of a text file whose fields are separated by commas, semicolons or tabs, with the
 * rules of the programs (runtime/data/csv.h). */
#ifndef TOOL_CSV_H
#define TOOL_CSV_H
#include "base/diag.h"
#include "base/text.h"

typedef struct Csv {
    Arena *arena;
    Diag *d;
    const char *path, *at;
    int line, next; /* of the current row, its first line; of the next row */
    char separator;
    Text *field; /* of the current row; the next row uses their memory again */
    int n, room;
} Csv;

typedef enum { CSV_TAKEN, CSV_END, CSV_FAULTY } CsvRow;

/* Reads a file into the arena.  false after an error: it cannot be read, or is no text in UTF-8. */
bool csv_open(Csv *c, Arena *a, const char *path, Diag *d);

/* Splits the next row that is not blank into c->field. */
CsvRow csv_next(Csv *c);

/* Reports a fault of the current row, and what to do if `help` is not NULL; returns false. */
bool csv_fails(const Csv *c, const char *what, const char *help);

#endif
