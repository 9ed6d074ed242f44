/* table.c -- what a table holds: the numbers of a row, and what its last column is.
 *
 * The runtime reads tables completely and checks them (runtime/data); this file reads what a model
 * depends on: names, kinds of columns, categories.
 */
#include "base/text.h"
#include "front/map.h"
#include "tool/file.h"
#include "tool/sample.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const Span nowhere;

typedef struct TableColumn {
    const char *name;
    Map values;    /* the different texts */
    int different; /* their number */
    int64_t numbers, texts, gaps;
    double sum, squares; /* of its numbers */
    bool whole;          /* all numbers are integers */
} TableColumn;

typedef struct Table {
    Arena *arena;
    const char *at;
    char separator;
    Text *field; /* of the current row; the next row uses their memory again */
    int n, room;
    TableColumn *column;
    int columns;
} Table;

/* What the row has most, outside of quotes: semicolons, tabs or commas. */
static char find_separator(const char *row)
{
    int count[3] = {0};
    static const char separator[] = ";\t,";
    bool quoted = false;
    for (; *row && (quoted || *row != '\n'); row++) {
        quoted ^= *row == '"';
        const char *found = quoted ? NULL : strchr(separator, *row);
        if (found)
            count[found - separator]++;
    }
    if (count[0] && count[0] >= count[1] && count[0] >= count[2])
        return ';';
    return count[1] && count[1] >= count[2] ? '\t' : ',';
}

/* The empty text of the next field of a row. */
static Text *new_field(Table *t)
{
    if (t->n == t->room) {
        const Text empty = text_new(t->arena);
        ARENA_PUSH(t->arena, t->field, t->room, empty);
    }
    Text *field = &t->field[t->n++];
    field->len = 0;
    field->s[0] = 0;
    return field;
}

/* Takes a field from t->at; stops at the separator or the end of the row. */
static void take_field(Table *t)
{
    Text *field = new_field(t);
    const char blanks[] = {' ', '\r', t->separator == '\t' ? ' ' : '\t', 0};
    t->at += strspn(t->at, blanks);
    if (*t->at == '"') {
        for (t->at++; *t->at && (*t->at != '"' || t->at[1] == '"'); t->at++) {
            t->at += *t->at == '"';
            text_addn(field, t->at, 1);
        }
        t->at += *t->at == '"';
        while (*t->at && *t->at != '\n' && *t->at != t->separator)
            t->at++;
        return;
    }
    size_t n = 0;
    while (t->at[n] && t->at[n] != '\n' && t->at[n] != t->separator)
        n++;
    size_t kept = n;
    while (kept > 0 && strchr(blanks, t->at[kept - 1]))
        kept--;
    text_addn(field, t->at, kept);
    t->at += n;
}

/* Splits the next row that is not blank into t->field; false at the end. */
static bool next_row(Table *t)
{
    for (size_t n; n = strspn(t->at, " \t\r"), t->at[n] == '\n';)
        t->at += n + 1;
    if (!t->at[strspn(t->at, " \t\r")])
        return false;
    if (!t->separator)
        t->separator = find_separator(t->at);
    t->n = 0;
    for (bool more = true; more; t->at += *t->at != 0) {
        take_field(t);
        more = *t->at == t->separator;
    }
    return true;
}

/* The words of runtime/data/csv.c for a missing value. */
static bool is_gap(const char *text)
{
    static const char *const word[] = {"", "na", "n/a", "#n/a", "nan", "null", "?"};
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (strcasecmp(word[i], text) == 0)
            return true;
    return false;
}

/* Keeps the different texts.  Of numbers, three are enough to see that they are not two classes. */
static void keep_value(Table *t, TableColumn *c, const char *text, bool number)
{
    enum { ENOUGH = 3 };
    if (map_get(&c->values, text) || (number && c->different >= ENOUGH))
        return;
    map_set(&c->values, arena_strdup(t->arena, text), c);
    c->different++;
}

static void count_value(Table *t, TableColumn *c, const char *text)
{
    char *end;
    const double v = strtod(text, &end);
    const bool number = end != text && !*end && isfinite(v);
    if (is_gap(text)) {
        c->gaps++;
        return;
    }
    keep_value(t, c, text, number);
    c->numbers += number;
    c->texts += !number;
    c->sum += number ? v : 0;
    c->squares += number ? v * v : 0;
    c->whole &= number && v == floor(v);
}

/* Whether a model file can hold this name in a string. */
static bool is_writable(const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0, bytes; i < len; i += bytes) {
        bytes = (size_t)text_character(name + i, len - i);
        if (bytes == 0 || name[i] < ' ' || name[i] == 127)
            return (unsigned char)name[i] >= 128 && bytes > 0;
    }
    return true;
}

static bool read_names(Table *t, const char *path, Diag *d)
{
    if (!next_row(t)) {
        diag_error(d, nowhere, "%s is empty", path);
        diag_help(d, "its first row must hold the names of the columns");
        return false;
    }
    t->columns = t->n;
    t->column = arena_alloc(t->arena, sizeof *t->column * (size_t)t->n);
    for (int k = 0; k < t->n; k++) {
        t->column[k] = (TableColumn){.name = arena_strdup(t->arena, t->field[k].s),
                                     .values = map_new(t->arena),
                                     .whole = true};
        if (!is_writable(t->column[k].name)) {
            diag_error(d, nowhere, "%s: the name of column %d cannot be written in a model file",
                       path, k + 1);
            diag_help(d, "rename it: a name has no control characters and is in UTF-8");
            return false;
        }
    }
    if (t->n >= 2 && *t->column[t->n - 1].name)
        return true;
    diag_error(d, nowhere, "%s needs two columns with names: an input, and at last the target",
               path);
    return false;
}

static bool read_rows(Table *t, const char *path, Diag *d)
{
    while (next_row(t)) {
        if (t->n != t->columns) {
            diag_error(d, nowhere, "%s: a row has %d fields, and the first row has %d names", path,
                       t->n, t->columns);
            return false;
        }
        for (int k = 0; k < t->n; k++)
            count_value(t, &t->column[k], t->field[k].s);
    }
    if (t->column[0].numbers + t->column[0].texts + t->column[0].gaps > 0)
        return true;
    diag_error(d, nowhere, "%s has no row below its names", path);
    return false;
}

static void add_string(Text *t, const char *s)
{
    text_add(t, "\"");
    for (; *s; s++)
        text_printf(t, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
    text_add(t, "\"");
}

/* csv("homes.csv", input = [...], target = "price", missing = mean, test = 0.2).  The inputs are
 * listed if a column has no name: programs write row numbers so. */
static const char *write_data(const Table *t, const char *path)
{
    Text s = text_new(t->arena);
    bool unnamed = false, gaps = false;
    for (int k = 0; k + 1 < t->columns; k++) {
        unnamed |= !*t->column[k].name;
        gaps |= *t->column[k].name && t->column[k].gaps > 0;
    }
    text_printf(&s, "csv(%s", path);
    for (int k = 0, n = 0; unnamed && k + 1 < t->columns; k++)
        if (*t->column[k].name) {
            text_add(&s, n++ ? ", " : ", input = [");
            add_string(&s, t->column[k].name);
        }
    text_add(&s, unnamed ? "], target = " : ", target = ");
    add_string(&s, t->column[t->columns - 1].name);
    text_printf(&s, "%s, test = 0.2)", gaps ? ", missing = mean" : "");
    return s.s;
}

bool sample_table(Arena *a, const char *file, const char *path, Sample *out, Diag *d)
{
    size_t len = 0;
    Table t = {.arena = a, .at = file_read(a, file, &len)};
    if (!t.at) {
        diag_error(d, nowhere, "cannot read %s: %s", file, strerror(errno));
        return false;
    }
    t.at += strncmp(t.at, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    if (!read_names(&t, file, d) || !read_rows(&t, file, d))
        return false;
    const TableColumn *last = &t.column[t.columns - 1];
    const double n = (double)last->numbers, mean = n > 0 ? last->sum / n : 0;
    const int values = last->different;
    const bool class = last->texts > 0 || (last->whole && values == 2);
    *out = (Sample){.kind = SAMPLE_TABLE, .data = write_data(&t, path)};
    for (int k = 0; k + 1 < t.columns; k++)
        if (*t.column[k].name)
            out->dim[0] += t.column[k].numbers > 0 ? 1 : t.column[k].different;
    if (class && values < 2) {
        diag_error(d, nowhere,
                   "the last column of %s, '%s', has one value: there is nothing to "
                   "learn",
                   file, last->name);
        return false;
    }
    out->classes = class ? values : 0;
    out->targets = class ? 0 : 1;
    out->mean = mean;
    out->spread = n > 0 ? sqrt(fmax(last->squares / n - mean * mean, 0)) : 1;
    out->spread = out->spread > 0 ? out->spread : 1;
    return true;
}
