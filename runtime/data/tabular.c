/* tabular.c -- tables with a header: columns by name, as numbers, categories and classes.
 *
 *   age,town,price          ->   a row of 1 + 3 numbers and a target, with three towns:
 *   41,Ulm,250                   (41 - mean) / deviation, 0, 0, 1   and 250
 *
 * A column of an input gives one number, or one for each category; in an input of tokens, it gives
 * one token.  The columns of the recipe fill the inputs in order.  Everything behind the data sees
 * rows of samples, as with arrays.
 */
#include "base/error.h"
#include "base/memory.h"
#include "base/near.h"
#include "data/columns.h"
#include "data/data.h"
#include "data/sheet.h"
#include <float.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Where a column of an input lies. */
typedef struct Place {
    int input;
    int64_t at, count; /* its numbers there */
    int64_t first;     /* tokens: the token of its first category */
} Place;

typedef struct Tabular {
    const RtProgram *p;
    const RtTable *recipe;
    Data *d;
    Sheet sheet;
    Columns columns;
    Place *place; /* [columns.ninput] */
    bool targets; /* the sheet has the columns of the targets, too */
} Tabular;

/* ---- the inputs and targets of the program */

static int input_count(const RtProgram *p)
{
    return p->ninput > 0 ? p->ninput : 1;
}

static int64_t numbers_of_input(const RtProgram *p, int i)
{
    return p->ninput > 0 ? data_count(&p->input[i]) : data_features(p);
}

static bool input_is_tokens(const RtProgram *p, int i)
{
    return p->ninput > 0 ? p->input[i].tokens : p->vocab > 0;
}

/* The columns of target k: one for a class, and one for each number. */
static int64_t columns_of_target(const RtProgram *p, int k)
{
    const int kind = p->ntarget > 0 ? p->targets[k].kind : p->target_kind;
    return kind == RT_TARGET_CLASS   ? 1
           : kind == RT_TARGET_INPUT ? 0
           : p->ntarget > 0          ? target_count(&p->targets[k])
                                     : data_targets(p);
}

static int target_number(const RtProgram *p)
{
    return p->ntarget > 0 ? p->ntarget : 1;
}

static bool target_is_class(const RtProgram *p, int k)
{
    return (p->ntarget > 0 ? p->targets[k].kind : p->target_kind) == RT_TARGET_CLASS;
}

/* ---- the names of the columns */

static bool names_hold(const RtNames *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->name[i], name) == 0)
            return true;
    return false;
}

/* Every column that is no target. */
static void use_other_columns(Sheet *s, const RtTable *r)
{
    for (int64_t k = 0; k < s->columns; k++) {
        if (names_hold(&r->target, s->name[k]))
            continue;
        if (!*s->name[k])
            rt_die("%s: column %lld has no name, and would be an input: give it a name, or list "
                   "the inputs: csv(..., input = [\"%s\", ...])",
                   s->path, (long long)k + 1, s->name[s->columns - 1]);
        sheet_use(s, s->name[k]);
    }
}

static void use_inputs(Tabular *t)
{
    const Columns *known = columns_now();
    Sheet *s = &t->sheet;
    for (int64_t k = 0; known && k < known->ninput; k++)
        sheet_use(s, known->at[k].name);
    if (!known && t->recipe->input.n == 0 && t->p->ninput == 0)
        use_other_columns(s, t->recipe);
    for (int k = 0; !known && t->recipe->input.n == 0 && k < t->p->ninput; k++)
        sheet_use(s, t->p->input[k].name);
    for (int k = 0; !known && k < t->recipe->input.n; k++)
        sheet_use(s, t->recipe->input.name[k]);
    if (s->used == 0)
        rt_die("%s has no column for the input of %s: all are targets", s->path, t->p->model);
}

static void use_targets(Tabular *t)
{
    for (int k = 0; k < t->recipe->target.n; k++)
        sheet_use(&t->sheet, t->recipe->target.name[k]);
}

/* ---- whether the columns fit the program */

/* "area 1, town 12, age 1": the numbers that each column gives. */
static const char *counts_text(const Tabular *t)
{
    enum { SHOWN = 12 };
    const char *all = "";
    for (int64_t k = 0; k < t->columns.ninput && k < SHOWN; k++)
        all = rt_format("%s%s%s %lld", all, k ? ", " : "", t->columns.at[k].name,
                        (long long)t->place[k].count);
    return t->columns.ninput > SHOWN ? rt_format("%s, ...", all) : all;
}

static void __attribute__((noreturn)) wrong_size(const Tabular *t)
{
    const RtProgram *p = t->p;
    const char *inputs = "";
    int64_t all = 0;
    for (int64_t k = 0; k < t->columns.ninput; k++)
        all += t->place[k].count;
    if (p->ninput == 0)
        rt_die("the columns of %s give %lld %s (%s), but the input of %s takes %lld: declare it "
               "with %lld, or choose columns with csv(..., input = [...])",
               t->sheet.path, (long long)all, p->vocab ? "tokens" : "numbers", counts_text(t),
               p->model, (long long)data_features(p), (long long)all);
    for (int i = 0; i < p->ninput; i++)
        inputs = rt_format("%s%s%s %lld", inputs, i ? ", " : "", p->input[i].name,
                           (long long)data_count(&p->input[i]));
    rt_die("the columns of %s (%s) do not fill the inputs of %s in order (%s): declare the inputs "
           "with the sizes of their columns",
           t->sheet.path, counts_text(t), p->model, inputs);
}

static void check_tokens(const Tabular *t, const Column *c, const Place *at)
{
    if (!c->category)
        rt_die("the column '%s' of %s holds numbers, and an input of tokens takes categories: name "
               "it in categories = [\"%s\"], or declare the input as f32",
               c->name, t->sheet.path, c->name);
    if (at->first + c->value.n > t->p->vocab)
        rt_die("the columns of %s have %lld categories up to '%s', but data.vocab is %lld: build "
               "with --set data.vocab=%lld",
               t->sheet.path, (long long)(at->first + c->value.n), c->name, (long long)t->p->vocab,
               (long long)(at->first + c->value.n));
}

/* Finds the places of the columns: they fill the inputs in order. */
static void place_columns(Tabular *t)
{
    const RtProgram *p = t->p;
    int64_t used = 0, tokens = 0;
    int i = 0;
    bool fits = true;
    t->place = rt_alloc(sizeof *t->place * (size_t)t->columns.ninput);
    for (int64_t k = 0; k < t->columns.ninput; k++) {
        const Column *c = &t->columns.at[k];
        if (used >= numbers_of_input(p, i) && i + 1 < input_count(p))
            i++, used = tokens = 0;
        const bool token = input_is_tokens(p, i);
        t->place[k] = (Place){i, used, token || !c->category ? 1 : c->value.n, tokens};
        used += t->place[k].count;
        fits &= used <= numbers_of_input(p, i);
        if (token)
            check_tokens(t, c, &t->place[k]);
        tokens += token ? c->value.n : 0;
    }
    if (!fits || i + 1 < input_count(p) || used < numbers_of_input(p, i))
        wrong_size(t);
}

/* "benign, malignant, ..." */
static const char *values_text(const Column *c)
{
    enum { SHOWN = 8 };
    const char *all = "";
    for (int32_t i = 0; i < c->value.n && i < SHOWN; i++)
        all = rt_format("%s%s%.*s", all, i ? ", " : "", (int)c->value.piece[i].length,
                        c->value.piece[i].bytes);
    return c->value.n > SHOWN ? rt_format("%s, ...", all) : all;
}

static void check_classes(const Tabular *t, int k, const Column *c)
{
    const RtProgram *p = t->p;
    const int64_t classes = p->ntarget > 0 ? p->targets[k].classes : p->classes;
    if (classes == 0 || c->value.n == classes || (c->value.n < classes && !p->softmax_output))
        return;
    rt_die("the column '%s' of %s has %d class%s (%s), but %s has %lld: give its last layer "
           "as many outputs",
           c->name, t->sheet.path, c->value.n, c->value.n == 1 ? "" : "es", values_text(c),
           p->model, (long long)classes);
}

/* Calls check_classes for each target that is a class. */
static void check_targets(const Tabular *t)
{
    int64_t column = t->columns.ninput;
    for (int k = 0; k < target_number(t->p); k++) {
        if (target_is_class(t->p, k))
            check_classes(t, k, &t->columns.at[column]);
        column += columns_of_target(t->p, k);
    }
}

/* ---- values */

static void __attribute__((noreturn))
refuse_gap(const Tabular *t, int64_t row, int64_t k, const char *way_out)
{
    const char *text = sheet_cell(&t->sheet, row, k);
    rt_die("%s: column '%s' is %s: %s", sheet_place(&t->sheet, row),
           csv_shown(sheet_name(&t->sheet, k)),
           *text ? rt_format("'%s', a missing value", csv_shown(text)) : "empty", way_out);
}

static const char fill_gap[] = "fill the gap, remove the row, or write csv(..., missing = mean)";
static const char fill_target[] = "fill the gap, or remove the row: a target has no other value";
static const char fill_token[] = "fill the gap, or remove the row: tokens have no mean";

/* The number in a cell of a column of numbers. */
static double number_at(const Tabular *t, int64_t row, int64_t k, bool target)
{
    const char *text = sheet_cell(&t->sheet, row, k);
    const double most = t->p->real_bytes == 8 ? DBL_MAX : FLT_MAX;
    double v;
    if (csv_is_missing(text)) {
        if (target || !t->recipe->mean)
            refuse_gap(t, row, k, target ? fill_target : fill_gap);
        return t->columns.at[k].mean;
    }
    if (!csv_number(text, &v))
        rt_die("%s: column '%s' is '%s', not a number%s", sheet_place(&t->sheet, row),
               csv_shown(sheet_name(&t->sheet, k)), csv_shown(text),
               strchr(text, ',') ? ": write it with a point, and without a comma between thousands"
                                 : "");
    if (!(fabs(v) <= most))
        rt_die("%s: column '%s' is '%s', %s", sheet_place(&t->sheet, row),
               csv_shown(sheet_name(&t->sheet, k)), csv_shown(text),
               isfinite(v) ? "too large for f32: build with --dtype f64" : "not a finite number");
    return v;
}

/* The category in a cell; -1: it is none of the training split, and the recipe allows it. */
static int32_t category_at(const Tabular *t, int64_t row, int64_t k, bool target)
{
    const Column *c = &t->columns.at[k];
    const char *text = sheet_cell(&t->sheet, row, k);
    if (target && csv_is_missing(text))
        refuse_gap(t, row, k, fill_target);
    const int32_t v = columns_find(c, text);
    if (v >= 0 || (!target && t->recipe->other))
        return v;
    int best = near_most(strlen(text)), nearest = -1;
    for (int32_t i = 0; i < c->value.n; i++) {
        const Piece *p = &c->value.piece[i];
        const int d = near_distance(text, rt_format("%.*s", (int)p->length, p->bytes));
        if (d < best)
            best = d, nearest = i;
    }
    rt_die("%s: column '%s' is '%s', which no row of the training split has%s%s: correct it, or "
           "%s",
           sheet_place(&t->sheet, row), csv_shown(sheet_name(&t->sheet, k)), csv_shown(text),
           nearest >= 0 ? ", did you mean " : ", whose values are ",
           nearest >= 0 ? rt_format("'%.*s'?", (int)c->value.piece[nearest].length,
                                    c->value.piece[nearest].bytes)
                        : values_text(c),
           target ? "remove the row" : "write csv(..., unknown = other)");
}

static void put_real(const Tabular *t, char *at, int64_t i, double v)
{
    if (t->p->real_bytes == 8)
        ((double *)(void *)at)[i] = v;
    else
        ((float *)(void *)at)[i] = (float)v;
}

/* One number for each category: 1 for that of the row.  A missing one has the shares of all rows to
 * train on; one that is not known has zeros. */
static void put_categories(const Tabular *t, int64_t row, int64_t k, char *at)
{
    const Column *c = &t->columns.at[k];
    const bool gap = csv_is_missing(sheet_cell(&t->sheet, row, k));
    int64_t all = 0;
    if (gap && !t->recipe->mean)
        refuse_gap(t, row, k, fill_gap);
    const int32_t v = gap ? -1 : category_at(t, row, k, false);
    for (int32_t i = 0; i < c->value.n; i++)
        all += c->value.count[i];
    for (int32_t i = 0; i < c->value.n; i++)
        put_real(t, at, t->place[k].at + i, gap ? (double)c->value.count[i] / (double)all : i == v);
}

static void put_token(const Tabular *t, int64_t row, int64_t k, char *at)
{
    if (csv_is_missing(sheet_cell(&t->sheet, row, k)))
        refuse_gap(t, row, k, fill_token);
    const int32_t v = category_at(t, row, k, false);
    ((int32_t *)(void *)at)[t->place[k].at] = v < 0 ? -1 : (int32_t)t->place[k].first + v;
}

static void put_inputs(const Tabular *t, int64_t row)
{
    for (int64_t k = 0; k < t->columns.ninput; k++) {
        const Column *c = &t->columns.at[k];
        const int i = t->place[k].input;
        char *at = t->d->x + row * t->d->stride + (t->p->ninput > 0 ? t->d->row_part[i].at : 0);
        if (input_is_tokens(t->p, i)) {
            put_token(t, row, k, at);
        } else if (c->category) {
            put_categories(t, row, k, at);
        } else {
            const double v = number_at(t, row, k, false);
            put_real(t, at, t->place[k].at, c->deviation > 0 ? (v - c->mean) / c->deviation : v);
        }
    }
}

static void put_targets(const Tabular *t, int64_t row)
{
    int64_t column = t->columns.ninput;
    for (int k = 0; k < target_number(t->p); k++) {
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

/* ---- the data */

/* Types and memory of the samples. */
static void make_room(Tabular *t, int64_t n)
{
    const RtProgram *p = t->p;
    Data *d = t->d;
    const int number = p->real_bytes == 8 ? RT_F64 : RT_F32;
    d->n = n;
    for (int i = 0; i < p->ninput; i++)
        d->row_part[i].type = p->input[i].tokens ? RT_I32 : number;
    if (p->ninput > 0) {
        parts_place(p, d);
    } else {
        d->type = p->vocab ? RT_I32 : number;
        d->stride = data_bytes(d->features, d->type);
    }
    d->x = memory_map(n * d->stride, false, t->sheet.path);
    if (!t->targets || data_label_stride(d) == 0)
        return;
    char *labels = memory_map(n * data_label_stride(d), false, t->sheet.path);
    if (d->targets)
        d->numbers = labels;
    else
        d->label = (int32_t *)(void *)labels;
}

static void fill(Tabular *t, int64_t n)
{
    place_columns(t);
    if (t->targets)
        check_targets(t);
    make_room(t, n);
    for (int64_t i = 0; i < n; i++) {
        put_inputs(t, i);
        if (t->targets)
            put_targets(t, i);
    }
}

/* The columns of the run: those of weights, or those that this split determines. */
static void learn(Tabular *t, const char *split)
{
    const RtProgram *p = t->p;
    if (!columns_now()) {
        bool *class = rt_alloc(sizeof *class * (size_t)(t->recipe->target.n + 1));
        int64_t column = 0;
        if (strcmp(split, "train") != 0)
            rt_die("the weights hold no columns of a table, which %s needs: use weights that this "
                   "program has saved",
                   p->model);
        for (int k = 0; k < target_number(p); k++)
            for (int64_t i = columns_of_target(p, k); i > 0; i--)
                class[column++] = target_is_class(p, k);
        columns_learn(t->recipe, &t->sheet, t->sheet.used - t->recipe->target.n, class,
                      &t->columns);
        columns_take(&t->columns);
    }
    t->columns = *columns_now();
    if (t->columns.n != t->sheet.used)
        rt_die("the weights hold %lld columns of a table, and %s reads %lld: use weights that this "
               "program has saved",
               (long long)t->columns.n, p->model, (long long)t->sheet.used);
}

/* DIRECTORY/NAME.csv or NAME.tsv; NULL: there is none. */
static const char *file_in(const char *directory, const char *name)
{
    static const char *const ending[] = {"csv", "tsv"};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
        const char *path = rt_format("%s/%s.%s", directory, name, ending[i]);
        if (access(path, F_OK) == 0)
            return path;
    }
    return NULL;
}

static const char *last_name(const char *path)
{
    char *name = rt_format("%s", path);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--)
        name[n - 1] = 0;
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* The file that holds the rows of a split, and which of them. */
static const char *find_split(const RtProgram *p, const char *found, const char *name, Split *split)
{
    const double usual = 0.2; /* the share of the test split, if the recipe gives none */
    double test = p->recipe.test, validation = p->recipe.validation;
    if (!find_is_directory(found)) {
        *split = split_of(p, name, test > 0 ? test : usual, validation);
        return found;
    }
    const char *own = file_in(found, name), *train = file_in(found, "train"),
               *whole = file_in(found, last_name(found));
    if (train) {
        const char *tested = file_in(found, "test"), *validated = file_in(found, "validation");
        test = shares_given(p, found, "test", tested);
        validation = shares_given(p, found, "validation", validated);
        *split = split_of(p, name, tested || test > 0 ? test : usual, validation);
        if (own && strcmp(name, "train") != 0)
            *split = split_of(p, "train", 0, 0);
        return own ? own : train;
    }
    *split =
        own ? split_of(p, "train", 0, 0) : split_of(p, name, test > 0 ? test : usual, validation);
    if (!own && !whole)
        rt_die("%s holds no table: neither train.csv and test.csv, nor %s.csv (or .tsv)", found,
               last_name(found));
    return own ? own : whole;
}

bool tabular_has_validation(const RtProgram *p, const char *name)
{
    const char *found = find_file(p, name);
    return p->recipe.validation > 0 || (find_is_directory(found) && file_in(found, "validation"));
}

void tabular_open(const RtProgram *p, const char *name, const char *split, int64_t limit, Data *d)
{
    Tabular t = {.p = p, .recipe = &p->recipe.table, .d = d, .targets = true};
    Split share;
    const char *found = find_file(p, name), *path = find_split(p, found, split, &share);
    d->place = found;
    sheet_open(&t.sheet, path);
    use_inputs(&t);
    use_targets(&t);
    sheet_read(&t.sheet, &share);
    if (t.sheet.n == 0)
        rt_die("the split '%s' of %s has no row: the file has %lld", split, path,
               (long long)t.sheet.all);
    learn(&t, split);
    fill(&t, limit > 0 && limit < t.sheet.n ? limit : t.sheet.n);
    sheet_close(&t.sheet);
    target_variances(d);
}

void tabular_open_input(const RtProgram *p, const char *path, Data *d)
{
    Tabular t = {.p = p, .recipe = &p->recipe.table, .d = d};
    if (!columns_now())
        rt_die("the weights hold no columns of a table, which predict needs: use weights that %s "
               "has saved",
               p->model);
    t.columns = *columns_now();
    sheet_open(&t.sheet, path);
    use_inputs(&t);
    sheet_read(&t.sheet, NULL);
    if (t.sheet.n == 0)
        rt_die("%s holds no sample", path);
    fill(&t, t.sheet.n);
    sheet_close(&t.sheet);
}
