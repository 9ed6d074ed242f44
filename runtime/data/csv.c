/* csv.c -- samples as text: a row for each sample, its numbers separated by commas, semicolons or
 * tabs.
 *
 * The first row decides the separator: a semicolon if it has one, else a comma, else a tab. A
 * number can have quotes and blanks around it. A row can end in CR LF. A byte order mark and empty
 * rows are skipped. A first row is skipped if all its fields are names: a name is not empty, does
 * not begin with a digit, sign or point, and is no word for a missing number. Any other field that
 * is no number is an error; the message has row and column.
 *
 * Source: RFC 4180, and files that spreadsheets write.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/data.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct Csv {
    const char *path;
    int64_t row;    /* of the file, from 1 */
    char separator; /* 0: not yet known */
} Csv;

/* The text between two separators, without quotes and surrounding blanks. */
typedef struct Field {
    const char *text;
    int length;
    bool quoted, number;
    double value;
} Field;

static bool is_end(char c)
{
    return c == 0 || c == '\n';
}

static bool is_blank(const Csv *c, char at)
{
    return at == ' ' || at == '\r' || (at == '\t' && c->separator != '\t');
}

/* The separator of the file: a semicolon if the line has one outside of quotes, else a comma, else
 * a tab. */
static char find_separator(const char *line)
{
    bool quoted = false, comma = false, tab = false;
    for (const char *at = line; !is_end(*at); at++) {
        quoted ^= *at == '"';
        if (!quoted && *at == ';')
            return ';';
        comma |= !quoted && *at == ',';
        tab |= !quoted && *at == '\t';
    }
    return tab && !comma ? '\t' : ',';
}

/* Returns the position after the closing quote.  Two quotes together are one quote of the text. */
static const char *end_of_quoted(const Csv *c, const char *at, int64_t column)
{
    for (; !is_end(*at); at++)
        if (*at == '"' && *++at != '"')
            return at;
    rt_die("%s:%lld: the quote in column %lld is not closed in its row", c->path, (long long)c->row,
           (long long)column);
}

/* The field at *at; advances *at to the separator or the end of the row. */
static Field take_field(const Csv *c, const char **at, int64_t column)
{
    const char *begin = *at, *end;
    while (is_blank(c, *begin))
        begin++;
    Field f = {.text = begin, .quoted = *begin == '"'};
    if (f.quoted) {
        end = end_of_quoted(c, ++f.text, column);
        f.length = (int)(end - 1 - f.text);
        while (is_blank(c, *end))
            end++;
        if (!is_end(*end) && *end != c->separator)
            rt_die("%s:%lld: column %lld has text after its closing quote", c->path,
                   (long long)c->row, (long long)column);
    } else {
        for (end = begin; !is_end(*end) && *end != c->separator;)
            end++;
        f.length = (int)(end - begin);
        while (f.length > 0 && is_blank(c, begin[f.length - 1]))
            f.length--;
    }
    char *stop;
    f.value = f.length > 0 ? strtod(f.text, &stop) : 0;
    f.number = f.length > 0 && stop == f.text + f.length;
    *at = end;
    return f;
}

static bool says_missing(const Field *f)
{
    static const char *const word[] = {"na", "n/a", "#n/a", "null", "none", "?"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strlen(word[i]) == (size_t)f->length &&
            strncasecmp(word[i], f->text, strlen(word[i])) == 0)
            return true;
    return false;
}

static bool is_name(const Field *f)
{
    return f->length > 0 && !f->number && !strchr("0123456789+-.", *f->text) && !says_missing(f);
}

/* Whether the line is a first row of names. The name of the first column can be empty: some
 * programs write a column of row numbers without a name. */
static bool is_header(const Csv *c, const char *line)
{
    for (int64_t column = 1;; column++, line++) {
        const Field f = take_field(c, &line, column);
        if (!is_name(&f) && !(column == 1 && f.length == 0 && *line == c->separator))
            return false;
        if (is_end(*line))
            return true;
    }
}

static void __attribute__((noreturn)) no_number(const Csv *c, const Field *f, int64_t column)
{
    const bool comma = memchr(f->text, ',', (size_t)f->length) != NULL;
    if (f->length == 0)
        rt_die("%s:%lld: column %lld is empty, not a number", c->path, (long long)c->row,
               (long long)column);
    rt_die("%s:%lld: column %lld is '%.*s', not a number%s", c->path, (long long)c->row,
           (long long)column, f->length < 40 ? f->length : 40, f->text,
           comma ? ": write it with a point, and without a comma between thousands" : "");
}

/* Reads the numbers of a line into row[0 .. n-1]; returns their count. */
static int64_t read_row(const Csv *c, const char *line, double *row, int64_t n)
{
    for (int64_t column = 1;; column++, line++) {
        const Field f = take_field(c, &line, column);
        if (!f.number)
            no_number(c, &f, column);
        if (column <= n)
            row[column - 1] = f.value;
        if (is_end(*line))
            return column;
    }
}

static bool blank(const char *line)
{
    return line[strspn(line, " \t\r\n")] == 0;
}

/* Skips a byte order mark of UTF-8; other encodings have other marks. */
static const char *skip_bom(const Csv *c, const char *line)
{
    if (strncmp(line, "\xFF\xFE", 2) == 0 || strncmp(line, "\xFE\xFF", 2) == 0)
        rt_die("%s is in UTF-16: save it as UTF-8", c->path);
    return line + (strncmp(line, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0);
}

static void grow_rows(Data *d, int64_t *room)
{
    *room = *room ? 2 * *room : 256;
    d->x = realloc(d->x, (size_t)(*room * d->stride) + MEMORY_SLACK);
    if (!d->x)
        rt_die("out of memory for %lld samples", (long long)*room);
}

/* One line of the file; `room`: samples that d has room for. */
static void take_line(Csv *c, const RtProgram *p, const char *line, Data *d, int64_t *room)
{
    const int64_t features = data_features(p);
    const bool first = c->separator == 0;
    if (blank(line))
        return;
    if (first)
        c->separator = find_separator(line);
    if (first && is_header(c, line))
        return;
    if (d->n == *room)
        grow_rows(d, room);
    const int64_t found = read_row(c, line, (double *)(d->x + d->n * d->stride), features);
    if (found != features)
        rt_die("%s:%lld: %lld number%s where a sample of %s has %lld", c->path, (long long)c->row,
               (long long)found, found == 1 ? "" : "s", p->model, (long long)features);
    d->n++;
}

void csv_open_input(const RtProgram *p, const char *path, Data *d)
{
    FILE *f = fopen(path, "re");
    if (!f)
        rt_die("%s cannot be opened: %s", path, strerror(errno));
    Csv c = {.path = path};
    char *line = NULL;
    size_t size = 0;
    int64_t room = 0;
    ssize_t length;
    d->type = RT_F64;
    d->stride = data_features(p) * (int64_t)sizeof(double);
    while ((length = getline(&line, &size, f)) >= 0) {
        c.row++;
        const char *text = c.row == 1 ? skip_bom(&c, line) : line;
        if (strlen(line) < (size_t)length)
            rt_die("%s:%lld: the row holds a byte of 0: this is not a text file", path,
                   (long long)c.row);
        take_line(&c, p, text, d, &room);
    }
    if (ferror(f))
        rt_die("%s cannot be read: %s", path, strerror(errno));
    free(line);
    fclose(f);
    if (d->n == 0)
        rt_die("%s holds no sample", path);
}
