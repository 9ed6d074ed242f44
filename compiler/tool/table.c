/* table.c -- what a table holds: the numbers of a row, and what its last column is.
 *
 * The runtime reads tables completely and checks them (runtime/data); this file reads what a model
 * depends on: names, kinds of columns, categories.
 */
#include "base/text.h"
#include "front/map.h"
#include "tool/csv.h"
#include "tool/sample.h"
#include "tool/share.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const Span nowhere;

typedef struct TableColumn {
    const char *name;
    Map values;                           /* the different texts of training rows */
    int different;                        /* their number */
    Map tested;                           /* texts of test rows that are no numbers; their lines */
    int64_t numbers, texts, gaps, commas; /* commas: texts that are numbers with commas */
    int64_t trained;                      /* values in training rows */
    const char *odd; /* the first text that is a number with commas, or one that is not finite */
    int odd_line;
    double sum, squares; /* of its numbers in training rows */
    bool whole;          /* all numbers are integers */
} TableColumn;

typedef struct Table {
    Csv csv;
    TableColumn *column;
    int columns;
    double test; /* share of the test split; 0: it has a file of its own */
} Table;

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
    map_set(&c->values, arena_strdup(t->csv.arena, text), c);
    c->different++;
}

/* A number with a decimal comma, or with commas between thousands: as csv_has_comma of
 * runtime/data/csv.c. */
static bool has_comma(const char *text)
{
    static const char digit[] = "0123456789";
    const size_t n = strlen(text), sign = strspn(text, "+-");
    return n > sign && strchr(text, ',') && strchr(digit, text[sign]) &&
           strchr(digit, text[n - 1]) && sign + strspn(text + sign, "0123456789.,") == n;
}

static void count_value(Table *t, TableColumn *c, const char *text, bool trains)
{
    char *end;
    const double v = strtod(text, &end);
    const bool whole = end != text && !*end, number = whole && isfinite(v),
               comma = !whole && has_comma(text);
    if (is_gap(text)) {
        c->gaps++;
        return;
    }
    if (!c->odd && (comma || whole > number)) {
        c->odd = arena_strdup(t->csv.arena, text);
        c->odd_line = t->csv.line;
    }
    c->commas += comma;
    c->numbers += number;
    c->texts += !number;
    c->whole &= number && v == floor(v);
    if (trains) {
        keep_value(t, c, text, number);
        c->trained++;
        c->sum += number ? v : 0;
        c->squares += number ? v * v : 0;
    } else if (!number && !map_get(&c->tested, text)) {
        int *line = arena_alloc(t->csv.arena, sizeof *line);
        *line = t->csv.line;
        map_set(&c->tested, arena_strdup(t->csv.arena, text), line);
    }
}

/* The line of a category that only test rows have; 0: there is none.  *name: this category. */
static int unknown_line(const TableColumn *c, const char **name)
{
    int n, first = 0;
    const char **key = map_keys(&c->tested, &n);
    for (int i = 0; i < n; i++) {
        const int line = *(const int *)map_get(&c->tested, key[i]);
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
    const size_t len = strlen(name);
    for (size_t i = 0, bytes; i < len; i += bytes) {
        const unsigned char c = (unsigned char)name[i];
        bytes = (size_t)text_character(name + i, len - i);
        if (bytes == 0 || c < ' ' || c == 127)
            return false;
    }
    return true;
}

/* Reports a first row that holds no names; returns false. */
static bool check_names(const Table *t)
{
    Map seen = map_new(t->csv.arena);
    int numbers = 0;
    for (int k = 0; k < t->columns; k++) {
        char *end;
        const char *name = t->column[k].name;
        strtod(name, &end);
        numbers += end != name && !*end;
        if (!is_writable(name))
            return csv_fails(&t->csv,
                             arena_printf(t->csv.arena,
                                          "the name of column %d cannot be written in a model file",
                                          k + 1),
                             "rename it: a name has no control characters and is in UTF-8");
        if (*name && map_get(&seen, name))
            return csv_fails(&t->csv,
                             arena_printf(t->csv.arena, "two columns are called '%s'", name),
                             "rename one of them");
        map_set(&seen, name, t->column);
    }
    return numbers < t->columns ||
           csv_fails(&t->csv,
                     "the first row must hold the names of the columns, and it holds numbers",
                     "add a first row with names");
}

static bool read_names(Table *t)
{
    const CsvRow row = csv_next(&t->csv);
    if (row == CSV_END) {
        diag_error(t->csv.d, nowhere, "%s is empty", t->csv.path);
        diag_help(t->csv.d, "its first row must hold the names of the columns");
    }
    if (row != CSV_TAKEN)
        return false;
    t->columns = t->csv.n;
    t->column = arena_alloc(t->csv.arena, sizeof *t->column * (size_t)t->csv.n);
    for (int k = 0; k < t->csv.n; k++)
        t->column[k] = (TableColumn){.name = arena_strdup(t->csv.arena, t->csv.field[k].s),
                                     .values = map_new(t->csv.arena),
                                     .tested = map_new(t->csv.arena),
                                     .whole = true};
    if (t->csv.n < 2 || !*t->column[t->csv.n - 1].name) {
        diag_error(t->csv.d, nowhere,
                   "%s needs two columns with names: an input, and at last the target",
                   t->csv.path);
        if (t->csv.n == 1)
            diag_help(t->csv.d, "commas, semicolons or tabs separate columns");
        return false;
    }
    return check_names(t);
}

/* Reports numbers that a program cannot read.  They would be categories, or mix with numbers. */
static bool check_numbers(const Table *t)
{
    for (int k = 0; k < t->columns; k++) {
        const TableColumn *c = &t->column[k];
        if (!c->odd || (c->numbers == 0 && c->commas < c->texts) || !*c->name)
            continue;
        const bool comma = has_comma(c->odd);
        diag_error(t->csv.d, nowhere, "%s:%d: column '%s' is '%s', %s", t->csv.path, c->odd_line,
                   c->name, c->odd, comma ? "not a number" : "not a finite number");
        diag_help(t->csv.d, comma ? "write it with a point, and without a comma between thousands"
                                  : "correct it, or remove the row");
        return false;
    }
    return true;
}

/* The next row; reports one with another number of fields than there are names. */
static CsvRow next_row(Table *t)
{
    const CsvRow row = csv_next(&t->csv);
    if (row != CSV_TAKEN || t->csv.n == t->columns)
        return row;
    csv_fails(&t->csv,
              arena_printf(t->csv.arena, "%d field%s where the first row has %d names", t->csv.n,
                           t->csv.n == 1 ? "" : "s", t->columns),
              t->csv.n > t->columns ? "put texts that hold a separator in quotes" : NULL);
    return CSV_FAULTY;
}

static bool read_rows(Table *t)
{
    CsvRow row;
    int64_t rows = 0, trained = 0;
    for (; (row = next_row(t)) == CSV_TAKEN; rows++) {
        const bool trains = share_trains(rows, t->test);
        trained += trains;
        for (int k = 0; k < t->csv.n; k++)
            count_value(t, &t->column[k], t->csv.field[k].s, trains);
    }
    if (row == CSV_FAULTY)
        return false;
    if (trained > 0)
        return check_numbers(t);
    if (rows == 0)
        diag_error(t->csv.d, nowhere, "%s has no row below its names", t->csv.path);
    else
        diag_error(t->csv.d, nowhere, "%s has %lld row%s, too few for a training and a test split",
                   t->csv.path, (long long)rows, rows == 1 ? "" : "s");
    return false;
}

/* Counts the values of a test split that has a file of its own.  Its columns can have another
 * order.  The program reports a column that is not there. */
static bool read_test(Table *t, const char *path)
{
    CsvRow row;
    Table own = {.test = 0};
    if (!csv_open(&own.csv, t->csv.arena, path, t->csv.d) || !read_names(&own))
        return false;
    Map named = map_new(t->csv.arena);
    for (int k = 0; k < t->columns; k++)
        map_set(&named, t->column[k].name, &t->column[k]);
    while ((row = next_row(&own)) == CSV_TAKEN)
        for (int k = 0; k < own.columns; k++) {
            TableColumn *c = map_get(&named, own.column[k].name);
            if (c && *c->name)
                count_value(&own, c, own.csv.field[k].s, false);
        }
    t->csv = own.csv; /* the file of later messages */
    return row == CSV_END && check_numbers(t);
}

/* Whether the column can be an input: it has a name, and a value to train on. */
static bool is_input(const TableColumn *c)
{
    return *c->name && c->trained > 0;
}

static void add_string(Text *t, const char *s)
{
    text_add(t, "\"");
    for (; *s; s++)
        text_printf(t, "%s%c", *s == '"' || *s == '\\' ? "\\" : "", *s);
    text_add(t, "\"");
}

/* csv("homes.csv", input = [...], target = "price", missing = mean, test = 0.2).  The inputs are
 * listed if a column has no name, as programs write row numbers, or no value. */
static const char *write_data(const Table *t, const char *path)
{
    Text s = text_new(t->csv.arena);
    const char *name;
    bool listed = false, gaps = false, unknown = false;
    for (int k = 0; k + 1 < t->columns; k++) {
        const TableColumn *c = &t->column[k];
        listed |= !is_input(c);
        gaps |= is_input(c) && c->gaps > 0;
        unknown |= is_input(c) && c->numbers == 0 && unknown_line(c, &name) > 0;
    }
    text_printf(&s, "csv(%s", path);
    for (int k = 0, n = 0; listed && k + 1 < t->columns; k++)
        if (is_input(&t->column[k])) {
            text_add(&s, n++ ? ", " : ", input = [");
            add_string(&s, t->column[k].name);
        }
    text_add(&s, listed ? "], target = " : ", target = ");
    add_string(&s, t->column[t->columns - 1].name);
    text_printf(&s, "%s%s%s)", gaps ? ", missing = mean" : "", unknown ? ", unknown = other" : "",
                t->test > 0 ? ", test = 0.2" : "");
    return s.s;
}

/* Warns of columns whose texts almost all differ, such as names of persons, dates and "12 %". */
static void warn_of_texts(const Table *t, const char *file)
{
    enum { FEW = 20 };
    for (int k = 0; k + 1 < t->columns; k++) {
        const TableColumn *c = &t->column[k];
        if (!is_input(c) || c->numbers > 0 || c->different <= FEW || 2 * c->different < c->trained)
            continue;
        diag_warn(t->csv.d, nowhere,
                  "column '%s' of %s has %d different texts, and each one is a number of the input",
                  c->name, file, c->different);
        diag_help(t->csv.d,
                  "make numbers of the texts, or leave the column out with input = [...]");
    }
}

bool sample_table(Arena *a, const char *file, const char *tested, const char *path, Sample *out,
                  Diag *d)
{
    const char *name;
    Table t = {.test = tested ? 0 : 0.2};
    if (!csv_open(&t.csv, a, file, d) || !read_names(&t) || !read_rows(&t) ||
        (tested && !read_test(&t, tested)))
        return false;
    const TableColumn *last = &t.column[t.columns - 1];
    const double n = (double)(last->numbers > 0 ? last->trained : 0),
                 mean = n > 0 ? last->sum / n : 0;
    const int values = last->different;
    const bool class = last->texts > 0 || (last->whole && values == 2);
    int inputs = 0;
    for (int k = 0; k + 1 < t.columns; k++)
        inputs += is_input(&t.column[k]);
    if (inputs == 0) {
        diag_error(d, nowhere, "%s has no value in a column before the last one", file);
        diag_help(d, "the last column is the target, and the other ones are the input");
        return false;
    }
    *out = (Sample){.kind = SAMPLE_TABLE, .data = write_data(&t, path)};
    for (int k = 0; k + 1 < t.columns; k++)
        if (is_input(&t.column[k]))
            out->dim[0] += t.column[k].numbers > 0 ? 1 : t.column[k].different;
    if (class && values < 2) {
        diag_error(d, nowhere,
                   "the last column of %s, '%s', has one value: there is nothing to "
                   "learn",
                   file, last->name);
        return false;
    }
    if (class && unknown_line(last, &name)) {
        diag_error(d, nowhere, "%s:%d: column '%s' is '%s', which no row of the training split has",
                   t.csv.path, unknown_line(last, &name), last->name, name);
        diag_help(d, "add rows of this class, or remove the row");
        return false;
    }
    warn_of_texts(&t, file);
    out->classes = class ? values : 0;
    out->targets = class ? 0 : 1;
    out->mean = mean;
    out->spread = n > 0 ? sqrt(fmax(last->squares / n - mean * mean, 0)) : 1;
    out->spread = out->spread > 0 ? out->spread : 1;
    return true;
}
