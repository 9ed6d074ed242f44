/* table.c -- what a table holds: the numbers of a row, and the kind of the column to learn.
 *
 * Programs and this file read tables with the same code, runtime/data/sheet.h.  A fault of the
 * table ends `tenon new` with the same message as a program.  This file finds what a model depends
 * on: names, kinds of columns, categories.
 */
#include "base/quote.h"
#include "front/map.h"
#include "runtime/data/sheet.h"
#include "tool/sample.h"
#include <math.h>
#include <string.h>

static const Span nowhere;
enum { SEED = 1 }; /* of a recipe that gives none */

/* A column; its texts belong to the sheet. */
typedef struct TableColumn {
    const char *name;
    Map values;    /* the different texts of training rows */
    int different; /* their number */
    Map tested;    /* texts of test rows that are no numbers, with their lines */
    int64_t numbers, texts, gaps, commas; /* commas: texts that are numbers with commas */
    int64_t trained;                      /* values in training rows */
    const char *odd; /* the first text that is a number with commas, or one that is not finite */
    const char *odd_place;
    double sum, squares; /* of its numbers in training rows */
    bool whole;          /* all numbers are integers */
} TableColumn;

typedef struct Contents {
    Arena *arena;
    Diag *d;
    Sheet sheet;         /* all rows, or those for training if `own` holds the test split */
    Sheet own;           /* path NULL: there is none */
    TableColumn *column; /* the columns with names; the last one is the target */
    int columns;
    const char *learn; /* the name of the target; NULL: the last column of the file */
    double test;       /* share of the test split; 0: it has a file of its own */
} Contents;

/* Keeps the different texts.  Three different numbers are enough to see that the column does not
 * hold two classes. */
static void keep_value(TableColumn *c, const char *text, bool number)
{
    enum { ENOUGH = 3 };
    if (map_get(&c->values, text) || (number && c->different >= ENOUGH))
        return;
    map_set(&c->values, text, c);
    c->different++;
}

static void count_value(Contents *t, TableColumn *c, const Sheet *s, int64_t row, int64_t k,
                        bool trains)
{
    double v;
    const char *text = sheet_cell(s, row, k);
    const bool whole = csv_number(text, &v), number = whole && isfinite(v),
               comma = !whole && csv_has_comma(text);
    if (csv_is_missing(text)) {
        c->gaps++;
        return;
    }
    if (!c->odd && (comma || whole > number)) {
        c->odd = text;
        c->odd_place = arena_printf(t->arena, "%s:%lld", s->path, (long long)s->line[row]);
    }
    c->commas += comma;
    c->numbers += number;
    c->texts += !number;
    c->whole &= number && v == floor(v);
    if (trains) {
        keep_value(c, text, number);
        c->trained++;
        c->sum += number ? v : 0;
        c->squares += number ? v * v : 0;
    } else if (!number && !map_get(&c->tested, text)) {
        map_set(&c->tested, text, &s->line[row]);
    }
}

/* The line of a category that only test rows have; 0: there is none.  *name: this category. */
static int64_t unknown_line(const TableColumn *c, const char **name)
{
    int n;
    int64_t first = 0;
    const char **key = map_keys(&c->tested, &n);
    for (int i = 0; i < n; i++) {
        const int64_t line = *(const int64_t *)map_get(&c->tested, key[i]);
        if (!map_get(&c->values, key[i]) && (!first || line < first)) {
            first = line;
            *name = key[i];
        }
    }
    return first;
}

/* Whether a model file can hold this name in a string. */
static bool is_writable(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < ' ' || *name == 127)
            return false;
    return true;
}

/* Opens a table.  false: it has no columns that a model can name. */
static bool open_table(Contents *t, Sheet *s, const char *path)
{
    sheet_open(s, path);
    if (s->columns < 2 || (!t->learn && !*s->name[s->columns - 1])) {
        diag_error(t->d, nowhere, "%s needs two columns with names: an input, and the target%s",
                   path, t->learn ? "" : " as the last one");
        if (s->columns == 1)
            diag_help(t->d, "commas, semicolons or tabs separate columns");
        return false;
    }
    for (int64_t k = 0; k < s->columns; k++)
        if (!is_writable(s->name[k])) {
            diag_error(t->d, nowhere,
                       "%s:%lld: the name of column %lld cannot be written in a model file", path,
                       (long long)s->csv.line, (long long)k + 1);
            diag_help(t->d, "rename it: a name has no control characters");
            return false;
        }
    return true;
}

/* Reports numbers that a program cannot read.  Without this error, the column would become
 * categories, or mix texts with numbers. */
static bool check_numbers(const Contents *t)
{
    for (int k = 0; k < t->columns; k++) {
        const TableColumn *c = &t->column[k];
        if (!c->odd || (c->numbers == 0 && c->commas < c->texts))
            continue;
        const bool comma = csv_has_comma(c->odd);
        diag_error(t->d, nowhere, "%s: column '%s' is '%s', %s", c->odd_place, c->name, c->odd,
                   comma ? "not a number" : "not a finite number");
        diag_help(t->d, comma ? CSV_WRITE_POINT : "correct it, or remove the row");
        return false;
    }
    return true;
}

static void add_column(Contents *t, const char *name)
{
    sheet_use(&t->sheet, name);
    t->column[t->columns++] = (TableColumn){.name = name,
                                            .values = map_new(t->arena),
                                            .tested = map_new(t->arena),
                                            .whole = true};
}

/* Reads the rows, and divides them if the test split has no file of its own. */
static bool read_rows(Contents *t)
{
    Sheet *s = &t->sheet;
    const Split train = split_of(SEED, "train", t->test, 0);
    int64_t trained = 0;
    t->column = arena_alloc(t->arena, sizeof *t->column * (size_t)s->columns);
    for (int64_t k = 0; k < s->columns; k++)
        if (*s->name[k] && !(t->learn && strcmp(s->name[k], t->learn) == 0))
            add_column(t, s->name[k]);
    if (t->learn)
        add_column(t, t->learn);
    sheet_read(s, NULL);
    for (int64_t i = 0; i < s->n; i++) {
        const bool trains = split_takes(&train, (uint64_t)i);
        trained += trains;
        for (int k = 0; k < t->columns; k++)
            count_value(t, &t->column[k], s, i, k, trains);
    }
    if (trained > 0)
        return check_numbers(t);
    if (s->n == 0)
        diag_error(t->d, nowhere, "%s has no row below its names", s->path);
    else
        diag_error(t->d, nowhere, "%s has %lld row%s, too few for a training and a test split",
                   s->path, (long long)s->n, s->n == 1 ? "" : "s");
    return false;
}

/* Whether the column can be an input: it has a value to train on. */
static bool is_input(const TableColumn *c)
{
    return c->trained > 0;
}

/* Counts the values of a test split that has a file of its own.  Its columns can have another
 * order. */
static bool read_test(Contents *t, const char *path)
{
    Sheet *s = &t->own;
    int used = 0;
    TableColumn **of = arena_alloc(t->arena, sizeof(TableColumn *) * (size_t)t->columns);
    if (!open_table(t, s, path))
        return false;
    for (int k = 0; k < t->columns; k++)
        if (is_input(&t->column[k]) || k + 1 == t->columns) {
            sheet_use(s, t->column[k].name);
            of[used++] = &t->column[k];
        }
    sheet_read(s, NULL);
    for (int64_t i = 0; i < s->n; i++)
        for (int k = 0; k < used; k++)
            count_value(t, of[k], s, i, k, false);
    return check_numbers(t);
}

/* csv("homes.csv", input = [...], target = "price", missing = mean, test = 0.2).  The inputs are
 * listed if a column has no value, or has no name: some programs write row numbers into a column
 * without a name. */
static const char *write_data(const Contents *t, const char *path)
{
    Text s = text_new(t->arena);
    const char *name;
    bool listed = t->columns < t->sheet.columns, gaps = false, unknown = false;
    for (int k = 0; k + 1 < t->columns; k++) {
        const TableColumn *c = &t->column[k];
        listed |= !is_input(c);
        gaps |= is_input(c) && c->gaps > 0;
        unknown |= is_input(c) && c->numbers == 0 && unknown_line(c, &name) > 0;
    }
    text_printf(&s, "csv(%s", path);
    for (int k = 0, n = 0; listed && k + 1 < t->columns; k++)
        if (is_input(&t->column[k]))
            text_printf(&s, "%s%s", n++ ? ", " : ", input = [",
                        quote_model(t->arena, t->column[k].name));
    text_printf(&s, "%starget = %s%s%s%s)", listed ? "], " : ", ",
                quote_model(t->arena, t->column[t->columns - 1].name),
                gaps ? ", missing = mean" : "", unknown ? ", unknown = other" : "",
                t->test > 0 ? ", test = 0.2" : "");
    return s.s;
}

/* Warns of columns whose texts almost all differ, such as names of persons, dates and "12 %". */
static void warn_of_texts(const Contents *t, const char *file)
{
    enum { FEW = 20 };
    for (int k = 0; k + 1 < t->columns; k++) {
        const TableColumn *c = &t->column[k];
        if (!is_input(c) || c->numbers > 0 || c->different <= FEW || 2 * c->different < c->trained)
            continue;
        diag_warn(t->d, nowhere,
                  "column '%s' of %s has %d different texts: each becomes a number of the input",
                  c->name, file, c->different);
        diag_help(t->d, "make numbers of the texts, or leave the column out with input = [...]");
    }
}

/* Finds what a model for these columns needs. */
static bool describe(const Contents *t, const char *path, Sample *out)
{
    const char *name, *file = t->sheet.path;
    const TableColumn *last = &t->column[t->columns - 1];
    const double n = (double)(last->numbers > 0 ? last->trained : 0),
                 mean = n > 0 ? last->sum / n : 0;
    const int values = last->different;
    const bool class = last->texts > 0 || (last->whole && values == 2);
    int inputs = 0;
    if (last->trained == 0) {
        diag_error(t->d, nowhere, "the column '%s' of %s has no value: there is nothing to learn",
                   last->name, file);
        diag_help(t->d, "learn another column: --learn COLUMN");
        return false;
    }
    for (int k = 0; k + 1 < t->columns; k++)
        inputs += is_input(&t->column[k]);
    if (inputs == 0) {
        diag_error(t->d, nowhere, "%s has no value in a column beside '%s'", file, last->name);
        diag_help(t->d, "'%s' is the target, and the other columns are the input", last->name);
        return false;
    }
    *out = (Sample){.kind = SAMPLE_TABLE, .data = write_data(t, path), .learned = last->name};
    for (int k = 0; k + 1 < t->columns; k++)
        if (is_input(&t->column[k]))
            out->dim[0] += t->column[k].numbers > 0 ? 1 : t->column[k].different;
    if (class && values < 2) {
        diag_error(t->d, nowhere, "the column '%s' of %s has one value: there is nothing to learn",
                   last->name, file);
        if (!t->learn)
            diag_help(t->d, "the last column is the target; --learn COLUMN names another one");
        return false;
    }
    if (class && unknown_line(last, &name)) {
        diag_error(t->d, nowhere,
                   "%s:%lld: column '%s' is '%s', which no row of the training split has",
                   t->own.path ? t->own.path : file, (long long)unknown_line(last, &name),
                   last->name, name);
        diag_help(t->d, "add rows of this class, remove the row, or learn another column: --learn "
                        "COLUMN");
        return false;
    }
    warn_of_texts(t, file);
    out->classes = class ? values : 0;
    out->targets = class ? 0 : 1;
    out->mean = mean;
    out->spread = n > 0 ? sqrt(fmax(last->squares / n - mean * mean, 0)) : 1;
    out->spread = out->spread > 0 ? out->spread : 1;
    return true;
}

bool sample_table(Arena *a, const TableFile *table, Sample *out, Diag *d)
{
    const char *tested = table->tested;
    Contents t = {.arena = a, .d = d, .test = tested ? 0 : 0.2, .learn = table->learn};
    const bool ok = open_table(&t, &t.sheet, table->file) && read_rows(&t) &&
                    (!tested || read_test(&t, tested)) && describe(&t, table->path, out);
    if (ok)
        out->learned = arena_strdup(a, out->learned); /* the sheet holds the name */
    sheet_close(&t.sheet);
    sheet_close(&t.own);
    return ok;
}
