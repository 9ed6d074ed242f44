/* csv2npy.c -- a table of numbers as a data set for Tenon: train_x.npy, train_y.npy, test_x.npy, test_y.npy.
 *
 *   cc -O2 -o csv2npy csv2npy.c
 *   ./csv2npy FILE.csv DIR             the last field of a row is the class
 *   ./csv2npy FILE.csv DIR number      the last field of a row is a number, the target
 *
 * A row of the table is a sample.  Its last field is the class, a name or a number, or the target; all fields before it are
 * numbers.  Fields are separated by semicolons, commas or tabs: the first row decides.  A first row whose first field is not a
 * number holds names of columns and is left out.  Classes are numbered from 0 in the order of their names; DIR/classes.txt
 * lists the names.  Every fifth row of each class, or of the table, is a test sample.
 *
 * It is no part of Tenon: change it to fit your file.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TEST_EVERY = 5 };

typedef struct Table {
    long   rows, room, columns;
    float *x;                                         /* [rows][columns] */
    char **class_of;                                  /* [rows] */
    char   separator[2];
} Table;

static void fail(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fprintf(stderr, "csv2npy: ");
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    exit(1);
}

static void *larger(void *p, size_t bytes)
{
    p = realloc(p, bytes);
    if (!p)
        fail("out of memory");
    return p;
}

/* Whether the field is a finite number, and nothing else. */
static int is_number(const char *field, float *value)
{
    char *end;
    *value = strtof(field, &end);
    return end > field && !end[strspn(end, " \t")] && isfinite(*value);
}

/* The names of columns: the first field of the line is not a number. */
static int is_header(const char *line, const char *separator)
{
    float value;
    char *first = strndup(line, strcspn(line, separator));
    const int header = !is_number(first, &value);
    free(first);
    return header;
}

/* One row: numbers, then the class.  `line` is changed. */
static void take_row(Table *t, char *line, const char *path, long number)
{
    char *last = strrchr(line, *t->separator);
    if (!last)
        fail("%s:%ld: a row is numbers and a class, separated by commas, semicolons or tabs", path, number);
    *last = '\0';
    long columns = 1;
    for (const char *c = line; *c; c++)
        columns += *c == *t->separator;
    if (t->rows == 0)
        t->columns = columns;
    if (columns != t->columns)
        fail("%s:%ld: %ld numbers, but the rows before have %ld", path, number, columns, t->columns);
    if (t->rows == t->room) {
        t->room = t->room ? 2 * t->room : 1024;
        t->x = larger(t->x, sizeof *t->x * (size_t)(t->room * columns));
        t->class_of = larger(t->class_of, sizeof *t->class_of * (size_t)t->room);
    }
    for (long k = 0; k < columns; k++) {
        const char *field = strsep(&line, t->separator);
        if (!is_number(field, &t->x[t->rows * columns + k]))
            fail("%s:%ld: column %ld is '%s', not a number", path, number, k + 1, field);
    }
    t->class_of[t->rows++] = strdup(last + 1);
}

static Table read_table(const char *path)
{
    Table t = {0};
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    if (!f)
        fail("%s cannot be opened", path);
    for (long number = 1; getline(&line, &size, f) >= 0; number++) {
        line[strcspn(line, "\r\n")] = '\0';
        if (*line && !*t.separator)
            *t.separator = strchr(line, ';') ? ';' : strchr(line, ',') ? ',' : '\t';
        if (*line && !(number == 1 && is_header(line, t.separator)))
            take_row(&t, line, path, number);
    }
    if (t.rows == 0)
        fail("%s holds no row", path);
    free(line);
    fclose(f);
    return t;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* DIR/NAME with the header of version 1.0 of NumPy's format: 10 bytes, then a text that ends at byte 128. */
static FILE *begin(const char *directory, const char *name, const char *type, const char *shape)
{
    char path[4096], text[118];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    if (!f)
        fail("%s cannot be written", path);
    snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f);
    fprintf(f, "%-117s\n", text);
    return f;
}

/* The rows of one split: those whose turn within their class says so.  label NULL: targets, not classes. */
static void write_split(const Table *t, const char *directory, int test, const int32_t *label, const float *target,
                        const char *in_test)
{
    const char *split = test ? "test" : "train";
    char shape[64], name[32];
    long n = 0;
    for (long i = 0; i < t->rows; i++)
        n += in_test[i] == test;
    snprintf(shape, sizeof shape, "%ld, %ld", n, t->columns);
    snprintf(name, sizeof name, "%s_x.npy", split);
    FILE *x = begin(directory, name, "<f4", shape);
    snprintf(shape, sizeof shape, "%ld,", n);
    snprintf(name, sizeof name, "%s_y.npy", split);
    FILE *y = begin(directory, name, label ? "<i4" : "<f4", shape);
    for (long i = 0; i < t->rows; i++)
        if (in_test[i] == test) {
            fwrite(t->x + i * t->columns, sizeof *t->x, (size_t)t->columns, x);
            fwrite(label ? (const void *)(label + i) : target + i, 4, 1, y);
        }
    if (fclose(x) != 0 || fclose(y) != 0)
        fail("%s: the %s split could not be written", directory, split);
    printf("%s: %ld %s samples of %ld numbers\n", directory, n, split, t->columns);
}

/* The last fields as numbers; every fifth row is a test sample. */
static void write_targets(const Table *t, const char *path, const char *directory)
{
    float *target = larger(NULL, sizeof *target * (size_t)t->rows);
    char *in_test = larger(NULL, (size_t)t->rows);
    for (long i = 0; i < t->rows; i++) {
        if (!is_number(t->class_of[i], &target[i]))
            fail("%s: the target of sample %ld is '%s', not a number", path, i + 1, t->class_of[i]);
        in_test[i] = (i + 1) % TEST_EVERY == 0;
    }
    write_split(t, directory, 0, NULL, target, in_test);
    write_split(t, directory, 1, NULL, target, in_test);
}

int main(int argc, char **argv)
{
    const int targets = argc == 4 && strcmp(argv[3], "number") == 0;
    if (argc != 3 && !targets)
        fail("usage: csv2npy FILE.csv DIR [number]");
    const Table t = read_table(argv[1]);
    mkdir(argv[2], 0777);
    if (targets) {
        write_targets(&t, argv[1], argv[2]);
        return 0;
    }
    char **name = larger(NULL, sizeof *name * (size_t)t.rows), *in_test = larger(NULL, (size_t)t.rows), path[4096];
    int32_t *label = larger(NULL, sizeof *label * (size_t)t.rows), classes = 0;
    memcpy(name, t.class_of, sizeof *name * (size_t)t.rows);
    qsort(name, (size_t)t.rows, sizeof *name, by_name);
    for (long i = 0; i < t.rows; i++)
        if (i == 0 || strcmp(name[i], name[classes - 1]) != 0)
            name[classes++] = name[i];
    long *seen = larger(NULL, sizeof *seen * (size_t)classes);
    memset(seen, 0, sizeof *seen * (size_t)classes);
    for (long i = 0; i < t.rows; i++) {
        label[i] = (int32_t)((char **)bsearch(&t.class_of[i], name, (size_t)classes, sizeof *name, by_name) - name);
        in_test[i] = ++seen[label[i]] % TEST_EVERY == 0;
    }
    snprintf(path, sizeof path, "%s/classes.txt", argv[2]);
    FILE *list = fopen(path, "w");
    if (!list)
        fail("%s cannot be written", path);
    for (int32_t c = 0; c < classes; c++)
        fprintf(list, "%s\n", name[c]);
    fclose(list);
    write_split(&t, argv[2], 0, label, NULL, in_test);
    write_split(&t, argv[2], 1, label, NULL, in_test);
    printf("%s: %d classes, named in classes.txt\n", argv[2], (int)classes);
    return 0;
}
