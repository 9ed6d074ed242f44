/* data.c -- the key `data`: what it names, and the columns of tables. */
#include "front/train.h"
#include <string.h>

/* Whether the data are cifar10, or a directory of this name: only programs for these data need
 * liblzma. */
static bool is_cifar10(const char *name)
{
    const char *slash = strrchr(name, '/');
    return strcmp(slash ? slash + 1 : name, "cifar10") == 0;
}

/* Reads text(...) or tsv(...).  The words of `unit` are those of TextUnit without the first one.
 * The vocabulary of bytes has at least 256 tokens. */
static void read_texts(Unit *u, DataSpec *d, Expr *e, bool table)
{
    form_fields(u, e, &data_forms[table ? DATA_TABLE : DATA_TEXT], d);
    d->unit++;
    d->table = table;
    d->span = e->span;
    d->name = d->name ? d->name : "";
    d->scale = 1;
    const int64_t least = d->unit == TEXT_WORD ? 4 : d->unit == TEXT_CHAR ? 1 : 256;
    if (d->vocab == 0 && d->unit == TEXT_BYTE)
        d->vocab = 256;
    if (d->vocab && d->vocab < least)
        diag_error(u->diag, e->span, "a vocabulary of this unit has at least %lld tokens, not %lld",
                   (long long)least, (long long)d->vocab);
}

static void check_shares(Unit *u, const DataSpec *d, Span at)
{
    if (d->test + d->validation >= 1)
        diag_error(u->diag, at, "test = %g and validation = %g leave no sample to train on",
                   d->test, d->validation);
}

/* Reads csv(...). */
static void read_columns(Unit *u, DataSpec *d, Expr *e)
{
    form_fields(u, e, &data_forms[DATA_COLUMNS], d);
    d->columns = true;
    d->span = e->span;
    d->name = d->name ? d->name : "";
    d->scale = 1;
    check_shares(u, d, e->span);
    if (d->exclude.n > 0 && d->input.n > 0) {
        diag_error(u->diag, e->span,
                   "csv names the columns of the inputs, so all others are left out: 'exclude' has "
                   "no meaning");
        diag_help(u->diag, "leave out exclude or input");
    }
}

void data_read(Unit *u, DataSpec *d, Expr *e)
{
    const Expr *head = e->kind == EX_CALL ? e->a : e; /* mnist, "dir", mnist(...), "dir"(...) */
    const char *name = head->kind == EX_STRING || head->kind == EX_NAME ? head->s : NULL;
    if (e->bad)
        return;
    if (!name || !*name) {
        diag_error(u->diag, e->span, "data must be a name or a directory");
        diag_help(u->diag, "write mnist, \"path/to/directory\" or synthetic(samples = 10000)");
        return;
    }
    if (head->kind == EX_NAME && (strcmp(name, "text") == 0 || strcmp(name, "tsv") == 0)) {
        read_texts(u, d, e, strcmp(name, "tsv") == 0);
        return;
    }
    if (head->kind == EX_NAME && strcmp(name, "csv") == 0) {
        read_columns(u, d, e);
        return;
    }
    d->images = strcmp(name, "imagefolder") == 0 && head->kind == EX_NAME;
    d->span = e->span;
    if (d->images) {
        form_fields(u, e, &data_forms[DATA_IMAGES], d);
        d->name = d->name ? d->name : "";
        check_shares(u, d, e->span);
        return;
    }
    Form form = data_forms[strcmp(name, "synthetic") == 0 && head->kind == EX_NAME ? DATA_SYNTHETIC
                                                                                   : DATA_NAMED];
    form.name = name;
    form_fields(u, e, &form, d);
    d->name = name;
    d->xz = is_cifar10(name);
    check_shares(u, d, e->span);
}

/* The columns of a target of a table: one for a class, and one for each number. */
static int64_t columns_of(const TargetSpec *t)
{
    int64_t n = t->kind == LEARN_INPUT ? 0 : 1;
    for (int i = 0; t->kind == LEARN_NUMBERS && i < t->rank; i++)
        n *= t->dim[i];
    return n;
}

/* Reports target k if a row has no place for it. */
static bool check_class(const Unit *u, const Graph *g, int k)
{
    const TargetSpec *t = &g->recipe.target[k];
    if (t->kind != LEARN_CLASS || g->targets[k]->shape.rank == 0)
        return true;
    diag_error(u->diag, g->recipe.data.span, "a table has one class a row, and '%s' is %s",
               target_name(t), shape_text(g->arena, &g->targets[k]->shape));
    return false;
}

/* Reports a target whose columns the recipe must name: only a single column can have the name of
 * its target. */
static bool has_name(const Unit *u, const DataSpec *data, const TargetSpec *t)
{
    const int64_t n = columns_of(t);
    if (n == 0 || (n == 1 && t->name))
        return true;
    diag_error(u->diag, data->span,
               n > 1 ? "the target '%s' is %lld numbers, and csv does not name their columns"
                     : "csv does not name the column of the %s",
               target_name(t), (long long)n);
    diag_help(u->diag, n > 1 ? "write csv(..., target = [\"x\", \"y\"])"
                             : "write csv(..., target = \"NAME\")");
    return false;
}

/* Reports an error if the number of named columns differs from that of the targets. */
static bool check_names(const Unit *u, const DataSpec *data, int64_t columns)
{
    if (data->target.n == columns)
        return true;
    diag_error(u->diag, data->span, "csv names %d column%s of targets, and the targets are %lld",
               data->target.n, data->target.n == 1 ? "" : "s", (long long)columns);
    diag_help(u->diag, "a class takes one column, and f32[3] takes three");
    return false;
}

bool data_name_columns(const Unit *u, Graph *g)
{
    DataSpec *data = &g->recipe.data;
    const TargetSpec *target = g->recipe.target;
    const int n = g->recipe.ntarget;
    int64_t columns = 0;
    bool ok = true;
    if (data->exclude.n > 0 && g->ninput > 1) {
        diag_error(u->diag, data->span,
                   "'exclude' is for models with one input: several inputs read the columns with "
                   "their names");
        diag_help(u->diag, "leave out exclude");
        return false;
    }
    for (int k = 0; k < n; k++) {
        columns += columns_of(&target[k]);
        if (!check_class(u, g, k))
            return false;
    }
    if (data->target.n > 0)
        return check_names(u, data, columns);
    for (int k = 0; k < n; k++)
        ok = has_name(u, data, &target[k]) && ok;
    if (!ok)
        return false;
    data->target.v = arena_alloc(g->arena, sizeof *data->target.v * (size_t)(n + 1));
    for (int k = 0; k < n; k++)
        if (columns_of(&target[k]) == 1)
            data->target.v[data->target.n++] = target_name(&target[k]);
    return true;
}
