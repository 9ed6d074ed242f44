/* learn.c -- what the training split of a table determines: which columns hold categories, and
 * these categories; means and deviations of numbers.
 *
 * A column of an input holds categories if none of its texts is a number, or if the recipe says so.
 * A column with both is an error, because a slip in one row must not make categories of numbers.
 * So is a column of numbers with decimal commas.
 */
#include "base/error.h"
#include "data/columns.h"
#include "data/sheet.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool read_number(const char *text, double *value)
{
    return csv_number(text, value) && isfinite(*value);
}

/* Reads the numbers of column k, so that each text is parsed once; NAN: the row has none. */
static void read_numbers(const Sheet *s, int64_t k, double *number)
{
    for (int64_t i = 0; i < s->n; i++)
        if (!read_number(sheet_cell(s, i, k), &number[i]))
            number[i] = NAN;
}

/* The first row whose text in column k is a number (`number`), or is not a number. */
static int64_t first_row(const Sheet *s, int64_t k, bool number)
{
    double v;
    int64_t i = 0;
    while (csv_is_missing(sheet_cell(s, i, k)) || read_number(sheet_cell(s, i, k), &v) != number)
        i++;
    return i;
}

/* Dies if the text is a number, but one that no table can hold. */
static void refuse_faulty_number(const Sheet *s, int64_t k, int64_t row)
{
    const char *text = sheet_cell(s, row, k);
    double v;
    if (csv_has_comma(text))
        rt_die("%s, not a number: " CSV_WRITE_POINT ", or name the column in categories = [\"%s\"]",
               sheet_shown(s, row, k), csv_shown(sheet_name(s, k)));
    if (csv_number(text, &v))
        rt_die("%s, not a finite number: correct it, or remove the row", sheet_shown(s, row, k));
}

static void __attribute__((noreturn)) refuse_mixture(const Sheet *s, int64_t k, bool number)
{
    const int64_t one = first_row(s, k, number), other = first_row(s, k, !number);
    refuse_faulty_number(s, k, number ? other : one);
    rt_die("%s, and '%s' in line %lld: a column holds numbers or categories: correct it, or name "
           "the column in categories = [\"%s\"]",
           sheet_shown(s, one, k), csv_shown(sheet_cell(s, other, k)), (long long)s->line[other],
           csv_shown(sheet_name(s, k)));
}

static bool holds_categories(const RtTable *r, const Sheet *s, int64_t k, const double *number)
{
    int64_t numbers = 0, texts = 0, commas = 0;
    if (columns_list_holds(&r->category, sheet_name(s, k)))
        return true;
    for (int64_t i = 0; i < s->n; i++)
        if (!isnan(number[i])) {
            numbers++;
        } else if (!csv_is_missing(sheet_cell(s, i, k))) {
            texts++;
            commas += csv_has_comma(sheet_cell(s, i, k));
        }
    if (numbers > 0 && texts > 0)
        refuse_mixture(s, k, numbers < texts); /* the kind of fewer rows is likely the mistake */
    if (numbers == 0 && texts == 0)
        rt_die("the column '%s' of %s has no value in the training split: leave it out",
               sheet_name(s, k), s->path);
    if (commas > 0 && commas == texts)
        refuse_faulty_number(s, k, first_row(s, k, false));
    return texts > 0;
}

static void learn_categories(const Sheet *s, int64_t k, Column *c)
{
    for (int64_t i = 0; i < s->n; i++) {
        const char *text = sheet_cell(s, i, k);
        if (csv_is_missing(text))
            continue;
        const int32_t v = table_add(&c->value, text, (int32_t)strlen(text));
        c->value.count[v]++; /* table_add can move `count` */
    }
    table_sort_values(&c->value);
    if (c->value.n == 0)
        rt_die("the column '%s' of %s has no value in the training split", c->name, s->path);
}

/* Computes mean and deviation in double and in the order of the rows, so each rank gets the same
 * bits.  A column of equal numbers becomes zeros: its mean is not computed, because ten times 0.1
 * is not 1. */
static void learn_numbers(const Sheet *s, const double *number, Column *c)
{
    double sum = 0, far = 0, lowest = INFINITY, highest = -INFINITY;
    int64_t n = 0;
    for (int64_t i = 0; i < s->n; i++)
        if (!isnan(number[i])) {
            sum += number[i];
            lowest = fmin(lowest, number[i]);
            highest = fmax(highest, number[i]);
            n++;
        }
    if (n == 0)
        return; /* the error in the first row is reported when it is read */
    c->mean = lowest == highest ? lowest : sum / (double)n;
    for (int64_t i = 0; i < s->n; i++)
        if (!isnan(number[i]))
            far += (number[i] - c->mean) * (number[i] - c->mean);
    c->deviation = far > 0 ? sqrt(far / (double)n) : 1;
    if (!isfinite(c->mean) || !isfinite(c->deviation))
        rt_die("the column '%s' of %s holds numbers that are too large to have a mean", c->name,
               s->path);
}

/* Dies if `categories` of the recipe names a column that no input uses. */
static void check_category(const Sheet *s, int64_t ninput, const char *name)
{
    const int64_t column = sheet_find(s, name);
    if (column < 0)
        rt_die("%s has no column '%s', which categories = [...] names", s->path, csv_shown(name));
    for (int64_t k = 0; k < ninput; k++)
        if (s->use[k] == column)
            return;
    rt_die("the column '%s' of %s is no input, and categories = [...] names columns of inputs: "
           "remove it there",
           csv_shown(name), s->path);
}

void columns_learn(const RtTable *r, const Sheet *s, int64_t ninput, const bool *class,
                   Columns *out)
{
    *out = (Columns){.at = rt_alloc(sizeof *out->at * (size_t)s->used),
                     .ninput = ninput,
                     .n = s->used};
    double *number = rt_alloc(sizeof *number * (size_t)s->n);
    for (int64_t k = 0; k < s->used; k++) {
        Column *c = &out->at[k];
        c->name = rt_format("%s", sheet_name(s, k));
        read_numbers(s, k, number);
        c->category = k < ninput ? holds_categories(r, s, k, number) : class[k - ninput];
        if (c->category)
            learn_categories(s, k, c);
        else
            learn_numbers(s, number, c);
        if (!r->standardize || k >= ninput)
            c->deviation = 0;
    }
    free(number);
    for (int i = 0; i < r->category.n; i++)
        check_category(s, ninput, r->category.name[i]);
}
