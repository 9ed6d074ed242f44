/* sheet.c -- see sheet.h.  The file stays in memory; a kept text is a pointer into it. */
#include "data/sheet.h"
#include "base/error.h"
#include "base/json.h"
#include "base/near.h"
#include <stdlib.h>
#include <string.h>

static void *grown(const Sheet *s, void *old, int64_t bytes)
{
    void *p = realloc(old, (size_t)bytes);
    if (!p)
        rt_die("out of memory for the rows of %s", s->path);
    return p;
}

/* "age, income, town, ..." */
static const char *list_names(const Sheet *s)
{
    enum { SHOWN = 12 };
    const char *all = "";
    for (int64_t k = 0; k < s->columns && k < SHOWN; k++)
        all = rt_format("%s%s%s", all, k ? ", " : "", csv_shown(s->name[k]));
    return s->columns > SHOWN ? rt_format("%s, ...", all) : all;
}

/* Dies if all names are numbers: then the first row is likely a row of values. */
static void check_names(const Sheet *s)
{
    int64_t numbers = 0;
    for (int64_t k = 0; k < s->columns; k++) {
        double v;
        numbers += csv_number(s->name[k], &v);
    }
    if (s->columns <= 2 && strncmp(s->name[0], "sep=", 4) == 0)
        rt_die("%s:%lld: the line '%s' is for a spreadsheet: remove it, so that the first row "
               "holds the names of the columns",
               s->path, (long long)s->csv.line, csv_shown(s->name[0]));
    if (numbers == s->columns)
        rt_die("%s:%lld: the first row must hold the names of the columns, and it holds numbers: "
               "%s",
               s->path, (long long)s->csv.line, list_names(s));
}

/* Numbers the names.  Columns without a name cannot be used. */
static void index_names(Sheet *s)
{
    int64_t *column = rt_alloc(sizeof *column * (size_t)s->columns);
    for (int64_t k = 0; k < s->columns; k++) {
        const int32_t known = s->index.n, i = *s->name[k] ? table_add(&s->index, s->name[k],
                                                                      (int32_t)strlen(s->name[k]))
                                                          : known;
        if (*s->name[k] && i < known)
            rt_die("%s:%lld: columns %lld and %lld are both called '%s': rename one of them",
                   s->path, (long long)s->csv.line, (long long)column[i] + 1, (long long)k + 1,
                   csv_shown(s->name[k]));
        column[i] = k;
    }
    s->column = column;
}

/* Dies if the file is no UTF-8: categories and names are compared by their bytes. */
static void check_text(const Csv *c)
{
    int64_t line = c->next;
    for (const char *at = c->at; *at;) {
        const int n = (unsigned char)*at < 0x80 ? 1 : json_character(at);
        if (n == 0)
            rt_die("%s:%lld: the byte 0x%02X is not UTF-8: save the table as UTF-8, or convert it: "
                   "iconv -f LATIN1 -t UTF-8",
                   c->path, (long long)line, (unsigned char)*at);
        line += *at == '\n';
        at += n;
    }
}

void sheet_open(Sheet *s, const char *path)
{
    *s = (Sheet){.path = path};
    csv_open(&s->csv, path);
    check_text(&s->csv);
    s->csv.lines = true;
    if (!csv_next(&s->csv, true))
        rt_die("%s is empty: its first row must hold the names of the columns", path);
    s->columns = s->csv.n;
    s->name = rt_alloc(sizeof *s->name * (size_t)s->columns);
    s->use = rt_alloc(sizeof *s->use * (size_t)s->columns);
    s->taken = rt_alloc(sizeof *s->taken * (size_t)s->columns);
    for (int64_t k = 0; k < s->columns; k++)
        s->name[k] = s->csv.field[k];
    check_names(s);
    index_names(s);
}

int64_t sheet_find(const Sheet *s, const char *name)
{
    const int32_t i = *name ? table_find(&s->index, name, (int32_t)strlen(name)) : -1;
    return i < 0 ? -1 : s->column[i];
}

static void __attribute__((noreturn))
no_column(const Sheet *s, const char *name, const char *way_out)
{
    int best = near_most(strlen(name)), nearest = -1;
    for (int64_t k = 0; k < s->columns; k++) {
        const int d = near_distance(name, s->name[k]);
        if (d < best && d < (int)strlen(name)) /* any letter is near another one */
            best = d, nearest = (int)k;
    }
    if (nearest >= 0 && s->columns > 1)
        rt_die("%s has no column '%s', did you mean '%s'?", s->path, csv_shown(name),
               csv_shown(s->name[nearest]));
    rt_die("%s has no column '%s': its first row has %s%s%s", s->path, csv_shown(name),
           list_names(s),
           s->columns == 1 ? ", without a comma, semicolon or tab between columns" : "", way_out);
}

int64_t sheet_need(const Sheet *s, const char *name, const char *way_out)
{
    const int64_t k = sheet_find(s, name);
    if (k < 0)
        no_column(s, name, way_out);
    return k;
}

void sheet_use_or(Sheet *s, const char *name, const char *way_out)
{
    const int64_t k = sheet_need(s, name, way_out);
    if (s->taken[k])
        rt_die("the column '%s' of %s is used twice: use it once, as an input or as a target",
               csv_shown(name), s->path);
    s->taken[k] = true;
    s->use[s->used++] = k;
}

void sheet_use(Sheet *s, const char *name)
{
    sheet_use_or(s, name, "");
}

static void keep_row(Sheet *s)
{
    const Csv *c = &s->csv;
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 256;
        s->cell = grown(s, s->cell, s->room * s->used * (int64_t)sizeof *s->cell);
        s->line = grown(s, s->line, s->room * (int64_t)sizeof *s->line);
    }
    for (int64_t k = 0; k < s->used; k++)
        s->cell[s->n * s->used + k] = c->field[s->use[k]];
    s->line[s->n++] = c->line;
}

void sheet_read(Sheet *s, const Split *split)
{
    while (csv_next(&s->csv, false)) {
        if (s->csv.n != s->columns)
            rt_die("%s:%lld: %lld field%s where the first row has %lld names%s", s->path,
                   (long long)s->csv.line, (long long)s->csv.n, s->csv.n == 1 ? "" : "s",
                   (long long)s->columns,
                   s->csv.n > s->columns ? ": put texts that hold a separator in quotes" : "");
        if (!split || split_takes(split, (uint64_t)s->all))
            keep_row(s);
        s->all++;
    }
}

void sheet_close(Sheet *s)
{
    csv_close(&s->csv);
    free(s->name);
    free(s->use);
    free(s->taken);
    free(s->column);
    table_free(&s->index);
    free(s->cell);
    free(s->line);
}

const char *sheet_cell(const Sheet *s, int64_t row, int64_t k)
{
    return s->cell[row * s->used + k];
}

const char *sheet_name(const Sheet *s, int64_t k)
{
    return s->name[s->use[k]];
}

const char *sheet_shown(const Sheet *s, int64_t row, int64_t k)
{
    const char *text = sheet_cell(s, row, k);
    return rt_format("%s:%lld: column '%s' is %s", s->path, (long long)s->line[row],
                     csv_shown(sheet_name(s, k)),
                     *text ? rt_format("'%s'", csv_shown(text)) : "empty");
}
