/* rows.c -- reads the samples of `predict` from a text: a row for each sample, with the numbers of
 * the input in their order.  Columns have no names.
 *
 * A first row is skipped if all its fields are names: a name is not empty, does not begin with a
 * digit, sign or point, and is no word for a missing number.  Any other field that is no number is
 * an error; the message has row and column.
 */
#include "base/error.h"
#include "base/memory.h"
#include "data/csv.h"
#include "data/data.h"
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_name(const char *text)
{
    double v;
    return *text && !csv_number(text, &v) && !strchr("0123456789+-.", *text) &&
           !csv_is_missing(text) && strcasecmp(text, "none") != 0;
}

/* Whether the row is a first row of names.  The name of the first column can be empty: some
 * programs write a column of row numbers without a name. */
static bool is_header(const Csv *c)
{
    for (int64_t k = 0; k < c->n; k++)
        if (!is_name(c->field[k]) && !(k == 0 && !*c->field[k] && c->n > 1))
            return false;
    return true;
}

static void __attribute__((noreturn)) no_number(const Csv *c, int64_t k)
{
    const char *text = c->field[k];
    if (!*text)
        rt_die("%s:%lld: column %lld is empty, not a number", c->path, (long long)c->line,
               (long long)k + 1);
    rt_die("%s:%lld: column %lld is '%s', not a number%s", c->path, (long long)c->line,
           (long long)k + 1, csv_shown(text), strchr(text, ',') ? ": " CSV_WRITE_POINT : "");
}

static void grow_rows(Data *d, int64_t *room)
{
    *room = *room ? 2 * *room : 256;
    d->x = realloc(d->x, (size_t)(*room * d->stride) + MEMORY_SLACK);
    if (!d->x)
        rt_die("out of memory for %lld samples", (long long)*room);
}

static void take_row(const RtProgram *p, const Csv *c, Data *d)
{
    const int64_t features = data_features(p);
    double *row = (double *)(void *)(d->x + d->n * d->stride);
    for (int64_t k = 0; k < c->n; k++) {
        double v;
        if (!csv_number(c->field[k], &v))
            no_number(c, k);
        if (k < features)
            row[k] = v;
    }
    if (c->n != features)
        rt_die("%s:%lld: %lld number%s where a sample of %s has %lld", c->path, (long long)c->line,
               (long long)c->n, c->n == 1 ? "" : "s", p->model, (long long)features);
    d->n++;
}

void csv_open_input(const RtProgram *p, const char *path, Data *d)
{
    Csv c;
    int64_t room = 0;
    csv_open(&c, path);
    d->type = RT_F64;
    d->stride = data_features(p) * (int64_t)sizeof(double);
    for (bool first = true; csv_next(&c, false); first = false) {
        if (first && is_header(&c))
            continue;
        if (d->n == room)
            grow_rows(d, &room);
        take_row(p, &c, d);
    }
    if (d->n == 0)
        rt_die("%s holds no sample", path);
    csv_close(&c);
}
