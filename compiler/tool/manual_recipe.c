/* manual_recipe.c -- what a train block can say: its keys, and the forms of their values.
 *
 * A row of the list is written as in a model file: `optimizer = sgd(lr, momentum = 0, ...)`.
 */
#include "tool/manual_recipe.h"
#include "base/text.h"
#include "ops/op.h"
#include "tool/option.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { COLUMN = 48 }; /* where the explanations of the list start */

/* The text without the marks of Markdown: `code` and [text](link). */
static const char *plain(Arena *a, const char *text)
{
    Text t = text_new(a);
    bool code = false; /* keeps its brackets: `price: f32[1]` */
    for (const char *s = text; *s; s++) {
        code ^= *s == '`';
        if (code && *s != '`') {
            text_addn(&t, s, 1);
        } else if (s[0] == ']' && s[1] == '(') {
            while (*s != ')')
                s++;
        } else if (*s != '`' && !(*s == '[' && s[1] != ']')) {
            text_addn(&t, s, 1);
        }
    }
    return t.s;
}

/* Whether the user chooses a name in place of the name of the row, as for a data set. */
static bool named(const Form *f)
{
    return strcmp(f->name, "NAME") == 0;
}

static bool expects(const TrainKey *k) /* its words are results, not values */
{
    return strcmp(k->name, "expect") == 0;
}

static const char *better(const char *result)
{
    return expect_better(NULL, result) == BETTER_LARGER ? ">=" : "<=";
}

static const char *default_of(Arena *a, const TrainKey *k)
{
    return k->fallback ? plain(a, k->fallback) : form_number_text(a, k->field.fallback);
}

static void list_key(Arena *a, const TrainKey *k)
{
    help_row(arena_printf(a, "%s =", k->name), COLUMN, plain(a, k->about));
    for (int i = 0; k->losses && k->losses[i]; i++)
        help_row(arena_printf(a, "%s = %s", k->name, k->losses[i]), COLUMN,
                 op_find(k->losses[i])->brief);
    for (const Form *f = k->forms; f && f->name; f++)
        help_row(arena_printf(a, "%s = %s", k->name, form_signature(a, f, INT_MAX)), COLUMN,
                 plain(a, f->about));
    for (int i = 0; expects(k) && k->field.words[i]; i++)
        help_row(arena_printf(a, "%s = %s %s ...", k->name, k->field.words[i],
                              better(k->field.words[i])),
                 COLUMN, "a result of a run");
}

void manual_recipe_list(Arena *a)
{
    for (const TrainKey *k = train_key_table; k->name; k++)
        list_key(a, k);
}

/* ---- one name */

static void print_key(Arena *a, const TrainKey *k)
{
    printf("%s = ...  (a key of a train block)\n", k->name);
    help_text(plain(a, k->about), 0);
    puts("");
    if (k->field.name)
        help_row("values", COLUMN - 30,
                 expects(k) ? arena_printf(a, "a comparison with one of %s",
                                           form_words(a, k->field.words, ""))
                            : form_values(a, &k->field, ""));
    for (int i = 0; k->losses && k->losses[i]; i++)
        help_row(k->losses[i], COLUMN - 30, op_find(k->losses[i])->brief);
    for (const Form *f = k->forms; f && f->name; f++)
        help_row(form_signature(a, f, INT_MAX), COLUMN - 30, plain(a, f->about));
    help_row("default", COLUMN - 30,
             k->example ? arena_printf(a, "none: the key must be given, such as %s", k->example)
                        : default_of(a, k));
}

static void print_form(Arena *a, const TrainKey *k, const Form *form)
{
    printf("%s = %s\n", k->name, form_signature(a, form, INT_MAX));
    help_text(plain(a, form->about), 0);
    if (form->field[0].name)
        puts("");
    for (const Field *f = form->field; f < form->field + FORM_FIELDS && f->name; f++) {
        const char *v = form_fallback(a, f);
        const char *given = v                  ? arena_printf(a, "default: %s", v)
                            : form_required(f) ? "must be given"
                                               : "may be left out";
        help_row(f->name, COLUMN - 30,
                 plain(a, arena_printf(a, "%s: %s; %s", f->about, form_values(a, f, ""), given)));
    }
    if (form->formula)
        puts("\nFormula:\n");
    for (const char *s = form->formula; s && *s; s += strcspn(s, "\n"), s += *s == '\n')
        printf("  %.*s\n", (int)strcspn(s, "\n"), s);
}

bool manual_recipe_print(Arena *a, const char *name)
{
    int found = 0;
    for (const TrainKey *k = train_key_table; k->name; k++) {
        if (strcmp(k->name, name) == 0) {
            printf("%s", found++ ? "\n" : "");
            print_key(a, k);
        }
        for (const Form *f = k->forms; f && f->name; f++)
            if (!named(f) && strcmp(f->name, name) == 0) {
                printf("%s", found++ ? "\n" : "");
                print_form(a, k, f);
            }
        for (int i = 0; expects(k) && k->field.words[i]; i++)
            if (strcmp(k->field.words[i], name) == 0 && !found++)
                printf("%s = %s %s NUMBER\na result that a full run must reach; see tenon ops %s\n",
                       k->name, name, better(name), k->name);
    }
    return found > 0;
}

void manual_recipe_names(Arena *a, const char ***name, int *n)
{
    for (const TrainKey *k = train_key_table; k->name; k++) {
        ARENA_PUSH(a, *name, *n, k->name);
        for (const Form *f = k->forms; f && f->name; f++)
            if (!named(f))
                ARENA_PUSH(a, *name, *n, f->name);
        for (int i = 0; expects(k) && k->field.words[i]; i++)
            ARENA_PUSH(a, *name, *n, k->field.words[i]);
    }
}
