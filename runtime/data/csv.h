/* csv.h -- rows of a text file whose fields are separated by commas, semicolons or tabs. */
#ifndef CSV_H
#define CSV_H
#include <stdbool.h>
#include <stdint.h>

typedef struct Csv {
    const char *path;
    char *bytes, *at; /* the file, and its next row */
    int64_t line;     /* of the current row, from 1: its first line */
    int64_t next;     /* line of the next row */
    char separator;   /* 0: not yet known */
    bool lines;       /* quotes can hold the ends of lines (RFC 4180) */
    char **field;     /* texts of the current row, without quotes and surrounding blanks */
    int64_t n, room;
} Csv;

/* Reads the file into memory, and skips a byte order mark.  Dies if it cannot be read, is in UTF-16
 * or holds a byte of 0. */
void csv_open(Csv *c, const char *path);

/* Splits the next row into fields; false at the end of the file.  Skips rows that hold blanks only.
 * The first row decides the separator.  names: the row holds names, which can contain other
 * separators; the most frequent one counts.  If the row holds no names, its numbers can have
 * decimal commas: a semicolon counts before a comma, and a comma before a tab. */
bool csv_next(Csv *c, bool names);

/* Whether the whole text is a number as strtod reads it: it can be hexadecimal or not finite. */
bool csv_number(const char *text, double *value);

/* Whether the text is a number with a decimal comma, or with commas between thousands. */
bool csv_has_comma(const char *text);

/* What to do about such a number, for a message. */
#define CSV_WRITE_POINT "write it with a point, and without a comma between thousands"

/* Whether the text is empty or says that a value is missing: NA, N/A, NaN, null, ? */
bool csv_is_missing(const char *text);

void csv_close(Csv *c);

/* A text of the file for a message: whole characters of its first 60 bytes, and a question mark for
 * each control character. */
const char *csv_shown(const char *text);

#endif
