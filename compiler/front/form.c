/* form.c -- values that are written as a call: sgd(lr = 0.1), step(at = [10]), xavier("gaussian").
 *
 * A form is a row of fields with their ranges; one function reads all forms.
 */
#include "base/text.h"
#include "front/train.h"
#include <math.h>
#include <string.h>

const char *form_name(const Expr *e, Span *at)
{
    const Expr *name = e->kind == EX_CALL ? e->a : e;
    if (name->kind != EX_NAME)
        return NULL;
    *at = name->span;
    return name->s;
}

const Form *form_find(const Form *form, const char *name)
{
    while (form && form->name && strcmp(form->name, name) != 0)
        form++;
    return form && form->name ? form : NULL;
}

const Form *form_called(const Form *form, const char *name)
{
    const Form *named = name ? form_find(form, name) : NULL;
    return named ? named : form_find(form, "NAME");
}

static int field_count(const Form *f)
{
    int n = 0;
    while (n < FORM_FIELDS && f->field[n].name)
        n++;
    return n;
}

const char *form_range(Arena *a, const Field *f)
{
    if (isinf(f->high) && isinf(f->low))
        return NULL;
    if (isinf(f->high))
        return arena_printf(a, "at least %.10g", f->low);
    return arena_printf(a, f->open ? "at least %.10g and below %.10g" : "between %.10g and %.10g",
                        f->low, f->high);
}

bool form_number(Unit *u, Expr *e, const char *key, const Field *f, double *out)
{
    sem_expr(u, e, NULL, 0);
    const Value v = lower_const(u, e);
    const bool whole = f->want == WANT_INT;
    if (v.kind == V_POISON)
        return false;
    if (whole ? v.kind != V_INT : !value_number(v)) {
        diag_error(u->diag, e->span, "'%s' is %s, this is %s", key, whole ? "an int" : "a number",
                   value_kind(v));
        return false;
    }
    *out = value_real(v);
    if (*out >= f->low && *out <= f->high && !(f->open && *out == f->high))
        return true;
    diag_error(u->diag, e->span, "'%s' is %s, this is %s", key, form_range(u->arena, f),
               v.kind == V_INT ? arena_printf(u->arena, "%lld", (long long)v.i)
                               : arena_printf(u->arena, "%.10g", *out));
    return false;
}

void form_word(Unit *u, Expr *e, const Field *f, int *out)
{
    const char *word = e->kind == EX_STRING || e->kind == EX_NAME ? e->s : NULL;
    int n = 0, found = -1;
    for (; f->words[n]; n++)
        if (word && strcmp(word, f->words[n]) == 0)
            found = n;
    if (found >= 0) {
        *out = found;
    } else if (!e->bad) {
        if (word)
            diag_error(u->diag, e->span, "'%s' cannot be '%s'", f->name, word);
        else
            diag_error(u->diag, e->span, "'%s' is a word", f->name);
        suggest(u->diag, word ? word : "", f->words, n, "the choices");
    }
}

static void read_flag(Unit *u, Expr *e, const Field *f, bool *out)
{
    const Value v = lower_const(u, e);
    if (v.kind == V_BOOL)
        *out = v.i;
    else if (v.kind != V_POISON)
        diag_error(u->diag, e->span, "'%s' is true or false, this is %s", f->name, value_kind(v));
}

static void read_reals(Unit *u, Expr *e, const Field *f, char *target)
{
    double *out = (double *)(void *)(target + f->at);
    int *count = (int *)(void *)(target + f->count_at);
    if (e->kind != EX_LIST || e->list.n == 0 || e->list.n > REALS_MAX) {
        if (!e->bad)
            diag_error(u->diag, e->span, "'%s' is a list of 1 to %d numbers", f->name, REALS_MAX);
        return;
    }
    for (int i = 0; i < e->list.n; i++) {
        Expr *item = e->list.v[i];
        if (form_number(u, item, f->name, f, &out[i]) && f->want == WANT_RISING && i > 0 &&
            out[i] <= out[i - 1])
            diag_error(u->diag, item->span, "the numbers of '%s' grow, and %.10g comes after %.10g",
                       f->name, out[i], out[i - 1]);
    }
    *count = e->list.n;
}

/* Reads a lower and an upper bound. */
static void read_bounds(Unit *u, Expr *e, const Field *f, double *out)
{
    double v[2];
    if (e->kind != EX_LIST || e->list.n != 2) {
        if (!e->bad)
            diag_error(u->diag, e->span, "'%s' is a list of two numbers, the smaller one first",
                       f->name);
        return;
    }
    for (int i = 0; i < 2; i++)
        if (!form_number(u, e->list.v[i], f->name, f, &v[i]))
            return;
    if (v[0] > v[1])
        diag_error(u->diag, e->span,
                   "the first number of '%s' is the smaller one, and %.10g is above %.10g", f->name,
                   v[0], v[1]);
    else if (v[1] == 0)
        diag_error(u->diag, e->span, "the second number of '%s' is above 0", f->name);
    out[0] = v[0], out[1] = v[1];
}

static void read_text(Unit *u, Expr *e, const Field *f, const char **out)
{
    if (e->kind == EX_STRING)
        *out = e->s;
    if (e->kind == EX_STRING ? !*e->s : !e->bad)
        diag_error(u->diag, e->span, "'%s' is a string%s", f->name,
                   e->kind == EX_STRING ? ", and this one is empty" : "");
}

/* Reads one string, or a list of different ones; names need no quotes. */
static void read_texts(Unit *u, Expr *e, const Field *f, Texts *out)
{
    const int n = e->kind == EX_LIST ? e->list.n : 1;
    const char **text = arena_alloc(u->arena, sizeof *text * (size_t)(n + 1));
    for (int i = 0; i < n; i++) {
        const Expr *one = e->kind == EX_LIST ? e->list.v[i] : e;
        text[i] = one->kind == EX_STRING || one->kind == EX_NAME ? one->s : NULL;
        if (!text[i] && !one->bad)
            diag_error(u->diag, one->span, "'%s' is a string, or a list of strings", f->name);
        if (text[i] && !*text[i])
            diag_error(u->diag, one->span, "'%s' has a name that is empty", f->name);
        for (int k = 0; k < i && text[i]; k++)
            if (text[k] && strcmp(text[k], text[i]) == 0)
                diag_error(u->diag, one->span, "'%s' has \"%s\" twice", f->name, text[i]);
    }
    *out = (Texts){text, n};
}

static void read_field(Unit *u, Expr *e, const Field *f, char *target)
{
    double v;
    switch (f->want) {
    case WANT_REAL:
        if (form_number(u, e, f->name, f, &v))
            *(double *)(void *)(target + f->at) = v;
        break;
    case WANT_INT:
        if (form_number(u, e, f->name, f, &v))
            *(int64_t *)(void *)(target + f->at) = (int64_t)v;
        break;
    case WANT_FLAG:
        read_flag(u, e, f, (bool *)(target + f->at));
        break;
    case WANT_WORD:
        form_word(u, e, f, (int *)(void *)(target + f->at));
        break;
    case WANT_REALS:
    case WANT_RISING:
        read_reals(u, e, f, target);
        break;
    case WANT_BOUNDS:
        read_bounds(u, e, f, (double *)(void *)(target + f->at));
        break;
    case WANT_TEXT:
        read_text(u, e, f, (const char **)(void *)(target + f->at));
        break;
    case WANT_TEXTS:
        read_texts(u, e, f, (Texts *)(void *)(target + f->at));
        break;
    case WANT_RESULT:
        watch_read(u, e, f, (const char **)(void *)(target + f->at));
        break;
    case WANT_METRIC: /* measures.c reads these forms */
        break;
    }
}

static void set_default(const Field *f, char *target)
{
    const double v = isnan(f->fallback) ? 0 : f->fallback;
    switch (f->want) {
    case WANT_REAL:
        *(double *)(void *)(target + f->at) = v;
        break;
    case WANT_INT:
        *(int64_t *)(void *)(target + f->at) = (int64_t)v;
        break;
    case WANT_FLAG:
        *(bool *)(target + f->at) = v != 0;
        break;
    case WANT_WORD:
        *(int *)(void *)(target + f->at) = (int)v;
        break;
    case WANT_REALS:
    case WANT_RISING:
        *(int *)(void *)(target + f->count_at) = 0;
        break;
    case WANT_BOUNDS:
        memset(target + f->at, 0, 2 * sizeof(double));
        break;
    case WANT_TEXT:
    case WANT_RESULT:
        *(const char **)(void *)(target + f->at) = NULL;
        break;
    case WANT_TEXTS:
        *(Texts *)(void *)(target + f->at) = (Texts){0};
        break;
    case WANT_METRIC:
        break;
    }
}

/* The index of the field for an argument; -1 after an error, which is reported. */
static int find_field(Unit *u, const Form *form, const Arg *a, int position)
{
    const int n = field_count(form);
    const char *name[FORM_FIELDS];
    for (int i = 0; i < n; i++) {
        name[i] = form->field[i].name;
        if (a->name && strcmp(a->name, name[i]) == 0)
            return i;
    }
    if (!a->name && position < n)
        return position;
    if (!a->name && n == 0) {
        diag_error(u->diag, a->value->span, "%s takes no arguments", form->name);
        return -1;
    }
    if (!a->name) {
        diag_error(u->diag, a->value->span, "%s takes %d argument%s, this is one more", form->name,
                   n, n == 1 ? "" : "s");
        return -1;
    }
    diag_error(u->diag, a->name_span, "%s has no argument '%s'", form->name, a->name);
    suggest(u->diag, a->name, name, n, "its arguments");
    return -1;
}

void form_fields(Unit *u, Expr *e, const Form *form, void *target)
{
    const Args args = e->kind == EX_CALL ? e->args : (Args){0};
    const Arg *given[FORM_FIELDS] = {0};
    int position = 0;
    bool named = false;
    for (int i = 0; i < args.n; i++) {
        const Arg *a = &args.v[i];
        const int at = find_field(u, form, a, position);
        if (!a->name && named)
            diag_error(u->diag, a->value->span, "a positional argument cannot follow a named one");
        named |= a->name != NULL;
        position += !a->name;
        if (at >= 0 && given[at] && !a->override)
            diag_error(u->diag, a->name ? a->name_span : a->value->span,
                       "argument '%s' of %s is given twice", form->field[at].name, form->name);
        else if (at >= 0)
            given[at] = a;
    }
    for (int i = 0; i < field_count(form); i++) {
        const Field *f = &form->field[i];
        set_default(f, target);
        if (given[i])
            read_field(u, given[i]->value, f, target);
        else if (isnan(f->fallback) && !e->bad)
            diag_error(u->diag, e->span, "%s is missing its argument '%s'", form->name, f->name);
    }
}

int form_names(const Form *form, const char *name[FORM_NAMES])
{
    int n = 0;
    for (; form[n].name; n++)
        name[n] = form[n].name;
    return n;
}

const Form *form_read(Unit *u, Expr *e, const char *what, const Form *form, void *target)
{
    const char *name[FORM_NAMES];
    const int n = form_names(form, name);
    Span at = e->span;
    const char *word = form_name(e, &at);
    const Form *found = word ? form_find(form, word) : NULL;
    if (e->bad)
        return NULL;
    if (found) {
        form_fields(u, e, found, target);
        return found;
    }
    if (word)
        diag_error(u->diag, at, "there is no %s '%s'", what, word);
    else
        diag_error(u->diag, at, "a word such as %s is expected here", name[0]);
    const char *bare = !word && e->kind == EX_STRING ? text_nearest(e->s, name, n) : NULL;
    if (bare) {
        diag_help(u->diag, "write it without quotes: %s", bare);
        diag_replace(u->diag, arena_printf(u->arena, "\"%s\"", e->s), bare);
    } else {
        suggest(u->diag, word ? word : "", name, n, form[1].name ? "the choices" : "the choice");
    }
    return NULL;
}
