/* cells.c -- the values of a table's rows: numbers, categories, tokens and classes (tabular.h). */
#include "base/error.h"
#include "base/near.h"
#include "data/tabular.h"
#include <float.h>
#include <math.h>
#include <string.h>

static void __attribute__((noreturn))
refuse_gap(const Tabular *t, int64_t row, int64_t k, const char *way_out)
{
    rt_die("%s%s: %s", sheet_shown(&t->sheet, row, k),
           *sheet_cell(&t->sheet, row, k) ? ", a missing value" : "", way_out);
}

static const char fill_gap[] =
    "fill the gap, remove the row, or build with csv(..., missing = mean): the weights stay valid";
static const char fill_target[] = "fill the gap, or remove the row: a target has no other value";
static const char fill_token[] = "fill the gap, or remove the row: tokens have no mean";

static bool fits_real(const Tabular *t, double v)
{
    return fabs(v) <= (t->p->real_bytes == 8 ? DBL_MAX : (double)FLT_MAX);
}

static void count_replaced(Replaced *r, const Tabular *t, int64_t row)
{
    if (r->n++ == 0)
        r->line = t->sheet.line[row];
}

/* The number in a cell of a column of numbers. */
static double number_at(Tabular *t, int64_t row, int64_t k, bool target)
{
    const char *text = sheet_cell(&t->sheet, row, k);
    double v;
    if (csv_is_missing(text)) {
        if (target || !t->recipe->mean)
            refuse_gap(t, row, k, target ? fill_target : fill_gap);
        count_replaced(&t->missing, t, row);
        return t->columns.at[k].mean;
    }
    if (!csv_number(text, &v))
        rt_die("%s, not a number%s", sheet_shown(&t->sheet, row, k),
               strchr(text, ',') ? ": " CSV_WRITE_POINT
               : target          ? ": correct it, or remove the row"
                                 : ": correct it, or leave it empty with csv(..., missing = mean)");
    if (!fits_real(t, v))
        rt_die("%s, %s", sheet_shown(&t->sheet, row, k),
               isfinite(v) ? "too large for f32: build with --dtype f64" : "not a finite number");
    return v;
}

/* The number in a cell of an input column of numbers, standardised.  A number far from all others
 * can be too large after the division by their deviation. */
static double standardized_at(Tabular *t, int64_t row, int64_t k)
{
    const Column *c = &t->columns.at[k];
    const double v = number_at(t, row, k, false),
                 z = c->deviation > 0 ? (v - c->mean) / c->deviation : v;
    if (!fits_real(t, z))
        rt_die("%s, %.3g standard deviations from the mean of the training split, which is too "
               "large: correct it, or write csv(..., standardize = false)",
               sheet_shown(&t->sheet, row, k), fabs(z));
    return z;
}

static void __attribute__((noreturn))
refuse_category(const Tabular *t, int64_t row, int64_t k, bool target)
{
    const Column *c = &t->columns.at[k];
    const char *text = sheet_cell(&t->sheet, row, k);
    int best = near_most(strlen(text)), nearest = -1;
    for (int32_t i = 0; i < c->value.n; i++) {
        const Piece *p = &c->value.piece[i];
        const int d = near_distance(text, rt_format("%.*s", (int)p->length, p->bytes));
        if (d < best)
            best = d, nearest = i;
    }
    rt_die("%s, which %s%s%s: correct it, or %s", sheet_shown(&t->sheet, row, k),
           t->trained ? "the weights do not know" : "no row of the training split has",
           nearest >= 0 ? ", did you mean " : ", whose values are ",
           nearest >= 0 ? rt_format("'%.*s'?", (int)c->value.piece[nearest].length,
                                    c->value.piece[nearest].bytes)
                        : places_values_text(c),
           !target      ? "write csv(..., unknown = other)"
           : t->trained ? "load the weights without the layer of this target: --except"
                        : "remove the row");
}

/* The category in a cell; -1: it is none of the training split, and the recipe allows it. */
static int32_t category_at(Tabular *t, int64_t row, int64_t k, bool target)
{
    const Column *c = &t->columns.at[k];
    const char *text = sheet_cell(&t->sheet, row, k);
    if (target && csv_is_missing(text))
        refuse_gap(t, row, k, fill_target);
    const int32_t v = columns_find(c, text);
    if (v < 0 && !target && t->recipe->other)
        count_replaced(&t->unknown, t, row);
    else if (v < 0)
        refuse_category(t, row, k, target);
    return v;
}

static void put_real(const Tabular *t, char *at, int64_t i, double v)
{
    if (t->p->real_bytes == 8)
        ((double *)(void *)at)[i] = v;
    else
        ((float *)(void *)at)[i] = (float)v;
}

/* Stores one number for each category: 1 for the category of the row.  A missing category gets the
 * shares of the categories in the training rows.  An unknown category gets zeros. */
static void put_categories(Tabular *t, int64_t row, int64_t k, char *at)
{
    const Column *c = &t->columns.at[k];
    const bool gap = csv_is_missing(sheet_cell(&t->sheet, row, k));
    int64_t all = 0;
    if (gap && !t->recipe->mean)
        refuse_gap(t, row, k, fill_gap);
    if (gap)
        count_replaced(&t->missing, t, row);
    const int32_t v = gap ? -1 : category_at(t, row, k, false);
    for (int32_t i = 0; gap && i < c->value.n; i++)
        all += c->value.count[i];
    for (int32_t i = 0; i < c->value.n; i++)
        put_real(t, at, t->place[k].at + i, gap ? (double)c->value.count[i] / (double)all : i == v);
}

static void put_token(Tabular *t, int64_t row, int64_t k, char *at)
{
    if (csv_is_missing(sheet_cell(&t->sheet, row, k)))
        refuse_gap(t, row, k, fill_token);
    const int32_t v = category_at(t, row, k, false);
    ((int32_t *)(void *)at)[t->place[k].at] = v < 0 ? -1 : (int32_t)t->place[k].first + v;
}

void cells_put_inputs(Tabular *t, int64_t row)
{
    for (int64_t k = 0; k < t->columns.ninput; k++) {
        const Column *c = &t->columns.at[k];
        const int i = t->place[k].input;
        char *at = t->d->x + row * t->d->stride + (t->p->ninput > 0 ? t->d->row_part[i].at : 0);
        if (input_is_tokens(t->p, i))
            put_token(t, row, k, at);
        else if (c->category)
            put_categories(t, row, k, at);
        else
            put_real(t, at, t->place[k].at, standardized_at(t, row, k));
    }
}

void cells_put_targets(Tabular *t, int64_t row)
{
    int64_t column = t->columns.ninput;
    for (int k = 0; k < number_of_targets(t->p); k++) {
        const int64_t n = columns_of_target(t->p, k);
        char *at = data_label(t->d, row);
        at += at && t->p->ntarget > 0 ? t->p->targets[k].at : 0;
        for (int64_t i = 0; i < n; i++, column++)
            if (target_is_class(t->p, k))
                *(int32_t *)(void *)at = category_at(t, row, column, true);
            else
                put_real(t, at, i, number_at(t, row, column, true));
    }
}
