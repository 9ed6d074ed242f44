/* tabular.c -- tables with a header: columns by name, as numbers, categories and classes.
 *
 *   age,town,price          ->   a row of 1 + 3 numbers and a target, with three towns:
 *   41,Ulm,250                   (41 - mean) / deviation, 0, 0, 1   and 250
 *
 * A column of an input gives one number, or one for each category; in an input of tokens, it gives
 * one token.  The columns of the recipe fill the inputs in order.  All code after this sees rows of
 * samples, as with arrays.
 */
#include "data/tabular.h"
#include "base/error.h"
#include "base/memory.h"
#include <string.h>
#include <unistd.h>

/* ---- the names of the columns */

static bool is_input(const RtTable *r, const char *name)
{
    return !columns_list_holds(&r->target, name) && !columns_list_holds(&r->exclude, name);
}

/* "\"age\", ": the first column with a name that is no target, for a message. */
static const char *first_input(const Sheet *s, const RtTable *r)
{
    for (int64_t k = 0; k < s->columns; k++)
        if (*s->name[k] && is_input(r, s->name[k]))
            return rt_format("\"%s\", ", csv_shown(s->name[k]));
    return "";
}

/* Uses every column that is no target and not excluded. */
static void use_other_columns(Sheet *s, const RtTable *r)
{
    for (int k = 0; k < r->exclude.n; k++)
        sheet_need(s, r->exclude.name[k], "; exclude = [...] names columns of the table");
    for (int64_t k = 0; k < s->columns; k++) {
        if (!is_input(r, s->name[k]))
            continue;
        if (!*s->name[k])
            rt_die("%s: column %lld has no name, and would be an input: give it a name, or list "
                   "the inputs: csv(..., input = [%s...])",
                   s->path, (long long)k + 1, first_input(s, r));
        sheet_use(s, s->name[k]);
    }
}

/* "'price', 'rent'": the columns of the targets. */
static const char *targets_text(const Columns *c)
{
    const char *all = "";
    for (int64_t k = c->ninput; k < c->n; k++)
        all = rt_format("%s%s'%s'%s", all, k > c->ninput ? ", " : "", csv_shown(c->at[k].name),
                        c->at[k].category ? " (classes)" : "");
    return *all ? all : "no target";
}

/* Whether the training split determines a target that the weights know. */
static bool any_anew(const RtProgram *p, const Columns *known)
{
    bool any = false;
    for (int k = 0; k < number_of_targets(p); k++)
        any = any || known->anew[k];
    return any;
}

/* The column of weights for a column of the targets of the recipe; NULL: they have none. */
static const Column *known_target(const RtProgram *p, const Columns *known, int64_t column)
{
    const char *name = p->recipe.table.target.name[column];
    for (int64_t i = known->ninput; i < known->n; i++)
        if (strcmp(known->at[i].name, name) == 0)
            return &known->at[i];
    return NULL;
}

/* Dies if the weights have learned other columns than the targets of the recipe, or classes where
 * the recipe has numbers. */
static void check_known_targets(const RtProgram *p, const Columns *known)
{
    bool same = true, ordered = true;
    int64_t column = 0;
    if (p->trained) /* its outputs are compared with no column */
        return;
    for (int k = 0; k < number_of_targets(p); k++)
        for (int64_t i = columns_of_target(p, k); i > 0; i--, column++) {
            const Column *c = known_target(p, known, column);
            ordered = ordered && c == &known->at[known->ninput + column];
            same = same && (known->anew[k] || (c && c->category == target_is_class(p, k)));
        }
    if (!same || (!any_anew(p, known) && !(ordered && known->n - known->ninput == column)))
        rt_die("the weights have learned %s from a table, which are not the targets of %s: use "
               "weights that this program has saved",
               targets_text(known), p->model);
}

static void use_inputs(Tabular *t)
{
    const Columns *known = columns_now();
    const RtNames *listed = &t->recipe->input;
    Sheet *s = &t->sheet;
    if (known) {
        check_known_targets(t->p, known);
        for (int64_t k = 0; k < known->ninput; k++)
            sheet_use(s, known->at[k].name);
    } else if (listed->n > 0) {
        for (int k = 0; k < listed->n; k++)
            sheet_use(s, listed->name[k]);
    } else if (t->p->ninput > 0) {
        for (int k = 0; k < t->p->ninput; k++)
            sheet_use(s, t->p->input[k].name);
    } else {
        use_other_columns(s, t->recipe);
    }
    if (s->used == 0)
        rt_die("%s has no column for the input of %s: all are targets%s", s->path, t->p->model,
               listed->n == 0 && t->recipe->exclude.n > 0 ? " or excluded" : "");
}

static void use_targets(Tabular *t)
{
    for (int k = 0; k < t->recipe->target.n; k++)
        sheet_use_or(&t->sheet, t->recipe->target.name[k],
                     "; csv(..., target = \"COLUMN\") names the column of the target");
}

/* ---- the data */

/* Sets the types of the samples, and allocates their memory. */
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
    places_find(t);
    if (t->targets)
        places_check_targets(t);
    make_room(t, n);
    for (int64_t i = 0; i < n; i++) {
        cells_put_inputs(t, i);
        if (t->targets)
            cells_put_targets(t, i);
    }
}

/* Replaces the inputs and the targets that weights determine. */
static void keep_known(const RtProgram *p, const Columns *known, Columns *c)
{
    int64_t column = 0;
    for (int64_t i = 0; i < known->ninput; i++)
        c->at[i] = known->at[i];
    for (int k = 0; k < number_of_targets(p); k++)
        for (int64_t i = columns_of_target(p, k); i > 0; i--, column++)
            if (!known->anew[k])
                c->at[c->ninput + column] = *known_target(p, known, column);
}

/* Sets the columns of the run: those of weights, or those that this split determines; or inputs and
 * some targets of weights, and the other targets of this split. */
static void learn(Tabular *t, const char *split)
{
    const RtProgram *p = t->p;
    const Columns *known = columns_now();
    t->trained = known && strcmp(split, "train") == 0;
    if (!known || any_anew(p, known)) {
        bool *class = rt_alloc(sizeof *class * (size_t)(t->recipe->target.n + 1));
        int64_t column = 0;
        if (strcmp(split, "train") != 0)
            rt_die("the weights hold no columns of a table, which %s needs: use weights that this "
                   "program has saved",
                   p->model);
        for (int k = 0; k < number_of_targets(p); k++)
            for (int64_t i = columns_of_target(p, k); i > 0; i--)
                class[column++] = target_is_class(p, k);
        columns_learn(t->recipe, &t->sheet, t->sheet.used - t->recipe->target.n, class,
                      &t->columns);
        if (known)
            keep_known(p, known, &t->columns);
        columns_take(&t->columns);
    }
    t->columns = *columns_now();
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

/* Whether both are one path, as in test/test.csv. */
static bool is_path(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* The file that holds the rows of a split.  *share: which of them; share->name NULL: all. */
static const char *find_split(const RtProgram *p, const char *found, const char *split,
                              Split *share)
{
    const char *own = NULL, *test = NULL, *validation = NULL, *whole = found;
    if (find_is_directory(found)) {
        const char *train = file_in(found, "train"), *named = file_in(found, last_name(found));
        test = file_in(found, "test");
        validation = file_in(found, "validation");
        whole = train ? train : is_path(named, test) || is_path(named, validation) ? NULL : named;
        own = strcmp(split, "test") == 0 ? test : strcmp(split, "train") == 0 ? NULL : validation;
    }
    *share = (Split){0};
    if (!whole && !own)
        rt_die("%s holds no table: neither train.csv and test.csv, nor %s.csv (or .tsv)", found,
               last_name(found));
    if (whole)
        shares_divide(p, found, split, test, validation, RT_TEST_SHARE, share);
    return own ? own : whole;
}

bool tabular_has_validation(const RtProgram *p, const char *name)
{
    const char *found = find_file(p, name);
    return p->recipe.validation > 0 || (find_is_directory(found) && file_in(found, "validation"));
}

static void keep_lines(const Sheet *s, Data *d)
{
    d->table = s->path;
    d->line = rt_alloc(sizeof *d->line * (size_t)d->n);
    memcpy(d->line, s->line, sizeof *d->line * (size_t)d->n);
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
    sheet_read(&t.sheet, share.name ? &share : NULL);
    if (t.sheet.n == 0)
        rt_die("the split '%s' of %s has no row: %s", split, path,
               t.sheet.all
                   ? rt_format("the %lld of the file are too few for %s%s", (long long)t.sheet.all,
                               strcmp(split, "train") == 0 ? "these shares" : "this share",
                               shares_advice())
                   : "the file has only the names of the columns");
    learn(&t, split);
    fill(&t, limit > 0 && limit < t.sheet.n ? limit : t.sheet.n);
    if (strcmp(split, "test") == 0)
        keep_lines(&t.sheet, d);
    sheet_close(&t.sheet);
    target_variances(d);
}

/* Makes the column `name` the identifiers of the samples.  It can be an input, too. */
static void keep_ids(Tabular *t, const char *name)
{
    const Sheet *s = &t->sheet;
    const int64_t column = sheet_find(s, name);
    int64_t k = 0;
    while (s->use[k] != column)
        k++;
    t->d->id = rt_alloc(sizeof *t->d->id * (size_t)s->n);
    for (int64_t i = 0; i < s->n; i++)
        t->d->id[i] = rt_format("%s", sheet_cell(s, i, k));
}

/* Says how many values of the inputs the recipe has replaced. */
static void note_replaced(const Tabular *t)
{
    const Replaced *m = &t->missing, *u = &t->unknown;
    if (m->n > 0)
        rt_note("%s:%lld: %lld missing value%s, taken as the mean of the column", t->sheet.path,
                (long long)m->line, (long long)m->n, m->n == 1 ? "" : "s");
    if (u->n > 0)
        rt_note("%s:%lld: %lld categor%s that the training split does not have, taken as `other`",
                t->sheet.path, (long long)u->line, (long long)u->n, u->n == 1 ? "y" : "ies");
}

void tabular_open_input(const RtProgram *p, const char *path, const char *id, Data *d)
{
    Tabular t = {.p = p, .recipe = &p->recipe.table, .d = d};
    if (!columns_now())
        rt_die("the weights hold no columns of a table, which predict needs: use weights that %s "
               "has saved",
               p->model);
    t.columns = *columns_now();
    sheet_open(&t.sheet, path);
    use_inputs(&t);
    if (id && !t.sheet.taken[sheet_need(&t.sheet, id, "")])
        sheet_use(&t.sheet, id);
    sheet_read(&t.sheet, NULL);
    if (t.sheet.n == 0)
        rt_die("%s holds no sample", path);
    if (id)
        keep_ids(&t, id);
    fill(&t, t.sheet.n);
    note_replaced(&t);
    sheet_close(&t.sheet);
}
