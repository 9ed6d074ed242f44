/* setting.c -- the settings of a matrix, one row for each: the same for sweep files and the command line.
 *
 * A list may be written with brackets or, on the command line, without: [64, 128] or 64,128.
 */
#include "sweep/setting.h"
#include "sweep/axis.h"
#include "base/text.h"
#include "sweep/framework.h"
#include "sweep/words.h"
#include "tool/option.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(*a == '_' && *b == '-') && !(*a == '-' && *b == '_'))
            return false;
    return *a == *b;
}

const Setting *setting_find(const char *name)
{
    for (const Setting *s = setting_table; s->name; s++)
        if (same_name(s->name, name))
            return s;
    return NULL;
}

int setting_names(Arena *a, const char ***name)
{
    int n = 0;
    for (const Setting *s = setting_table; s->name; s++)
        ARENA_PUSH(a, *name, n, s->name);
    return n;
}

void setting_help(void)
{
    char name[64], option[80];
    for (const Setting *s = setting_table; s->name; s++) {
        snprintf(option, sizeof option, "%s %s", setting_option_name(name, s), s->value);
        help_row(option, 28, s->help);
    }
}

void matrix_default(Matrix *m)
{
    static const int64_t zero, one = 1;
    static const char *const tenon = "tenon", *const none = "";
    *m = (Matrix){.framework = {&tenon, 1, NULL},
                  .build = {&none, 1, NULL},
                  .batch = {&zero, 1},
                  .threads = {&zero, 1},
                  .ranks = {&one, 1},
                  .gpus = {&zero, 1},
                  .epochs = 3,
                  .repeat = 3,
                  .warm_steps = 20,
                  .timeout = 86400};
}

void setting_copy(Matrix *to, const Matrix *from, const Setting *s)
{
    static const size_t bytes[] =
        {[SETTING_COUNTS] = sizeof(Counts), [SETTING_WORDS] = sizeof(Words),
         [SETTING_TEXTS] = sizeof(Words),   [SETTING_AXES] = sizeof(Words),
         [SETTING_COUNT] = sizeof(int64_t), [SETTING_TEXT] = sizeof(char *),
         [SETTING_FLAG] = sizeof(bool)};
    memcpy((char *)to + s->field, (const char *)from + s->field, bytes[s->kind]);
    if (strcmp(s->name, "epochs") == 0) /* epochs and steps replace each other */
        to->steps = 0;
    if (strcmp(s->name, "steps") == 0)
        to->epochs = 0;
}

/* ---- values */

static bool read_count(Reader *r, const Setting *s, int64_t *v)
{
    const Token *t = &r->now;
    if (s->all && t->kind == TOKEN_WORD && strcmp(t->text, s->all) == 0)
        *v = 0;
    else if (t->kind == TOKEN_NUMBER && t->number >= s->least && t->number <= INT_MAX)
        *v = t->number;
    else if (t->kind == TOKEN_NUMBER) {
        diag_error(r->diag, t->at, "%s is a number from %d to %d, not %s", s->name, s->least,
                   INT_MAX, t->text);
        return false;
    } else
        return reader_expected(r, s->all ? "a whole number, or all," : "a whole number"), false;
    reader_next(r);
    return true;
}

static bool read_framework(Reader *r, const char **v)
{
    const Token *t = &r->now;
    int n = 0;
    if (t->kind != TOKEN_WORD && t->kind != TOKEN_TEXT)
        return reader_expected(r, "the name of a framework"), false;
    for (; framework_known[n]; n++)
        if (strcmp(framework_known[n], t->text) == 0) {
            *v = framework_known[n];
            reader_next(r);
            return true;
        }
    diag_error(r->diag, t->at, "unknown framework '%s'", t->text);
    if (text_nearest(t->text, framework_known, n))
        diag_suggest(r->diag, t->text, framework_known, n);
    else
        diag_help(r->diag, "there are tenon, pytorch, pytorch-compiled, keras-tensorflow, "
                           "keras-tensorflow-xla, keras-jax, keras-torch and mxnet");
    return false;
}

/* Options of tenon build or emit that neither a setting nor the sweep itself gives. */
static bool build_allowed(const Setting *s, const char *options, Span at, Diag *d)
{
    static const char *const own[][2] = {{"-o", "programs lie beside the store"},
                                         {"--batch", "write batch = [64, 128]"},
                                         {"--comm", "write ranks = [1, 2]"},
                                         {0}};
    for (const char *word = options; *(word += strspn(word, " ")); word += strcspn(word, " "))
        for (int i = 0; own[i][0]; i++) {
            const size_t n = strlen(own[i][0]);
            if (strncmp(word, own[i][0], n) != 0 || !strchr(" =", word[n]))
                continue;
            diag_error(d, at, "%s: a sweep gives %s itself", s->name, own[i][0]);
            diag_help(d, "%s", own[i][1]);
            return false;
        }
    return true;
}

/* before: the texts of the list so far */
static bool read_text(Reader *r, const Setting *s, const Words *before, const char **v)
{
    if (r->now.kind != TOKEN_TEXT && r->now.kind != TOKEN_WORD)
        return reader_expected(r, "a text in quotes"), false;
    if (s->kind == SETTING_TEXTS && !build_allowed(s, r->now.text, r->now.at, r->diag))
        return false;
    if (s->kind == SETTING_AXES &&
        !axis_allowed(r->arena, before, r->now.text, r->now.at, r->diag))
        return false;
    *v = r->now.text;
    reader_next(r);
    return true;
}

static bool read_flag(Reader *r, bool *v)
{
    const Token *t = &r->now;
    if (t->kind != TOKEN_WORD || (strcmp(t->text, "yes") != 0 && strcmp(t->text, "no") != 0))
        return reader_expected(r, "yes or no"), false;
    *v = strcmp(t->text, "yes") == 0;
    reader_next(r);
    return true;
}

static bool read_item(Reader *r, const Setting *s, const Words *before, int64_t *count,
                      const char **word)
{
    return s->kind == SETTING_COUNTS  ? read_count(r, s, count)
           : s->kind == SETTING_WORDS ? read_framework(r, word)
                                      : read_text(r, s, before, word);
}

/* Reads [a, b, c], or a, b, c up to the end if nothing else can follow. */
static bool read_list(Reader *r, const Setting *s, void *field, bool open)
{
    int64_t *count = NULL, c = 0;
    const char **word = NULL, *w = NULL;
    Span *place = NULL;
    int n = 0, m = 0, places = 0;
    const bool bracket = reader_sign(r, '[');
    do {
        const Span at = r->now.at;
        if (!read_item(r, s, &(Words){.v = word, .n = m}, &c, &w))
            return false;
        ARENA_PUSH(r->arena, place, places, at);
        ARENA_PUSH(r->arena, count, n, c);
        ARENA_PUSH(r->arena, word, m, w);
    } while ((bracket || open) && reader_sign(r, ','));
    if (bracket && !reader_sign(r, ']'))
        return reader_expected(r, "',' or ']'"), false;
    if (s->kind == SETTING_COUNTS)
        *(Counts *)field = (Counts){count, n};
    else
        *(Words *)field = (Words){word, n, place};
    return true;
}

static bool read_value(Reader *r, Matrix *m, const Setting *s, bool open)
{
    void *field = (char *)m + s->field;
    switch (s->kind) {
    case SETTING_COUNT:
        return read_count(r, s, field);
    case SETTING_TEXT:
        return read_text(r, s, NULL, field);
    case SETTING_FLAG:
        return read_flag(r, field);
    default:
        return read_list(r, s, field, open);
    }
}

bool setting_read(Reader *r, Matrix *m, const Setting *s)
{
    Matrix read = *m;
    if (!read_value(r, &read, s, false))
        return false;
    setting_copy(m, &read, s);
    return true;
}

/* Whether a text is a list in the form of sweep files, such as [..], "..", .. or --fast,--plain, and not options. */
static bool is_list(const char *value)
{
    const char *first = value + strspn(value, " ");
    if (*first && strchr("[\",", *first))
        return true;
    for (const char *c = value; (c = strchr(c, ',')); c++)
        if (strncmp(c + 1 + strspn(c + 1, " "), "--", 2) == 0)
            return true;
    return false;
}

/* Whether the options of one build can be added. */
static bool build_addable(const Words *before, const Setting *s, const char *value, Diag *d)
{
    if (is_list(value)) {
        diag_error(d, (Span){0}, "--%s takes the options of one build, not a list: %s", s->name,
                   value);
        diag_help(d, "give it again for each build: --%s \"\" --%s \"--fast\"", s->name, s->name);
        return false;
    }
    for (int i = 0; i < before->n; i++)
        if (strcmp(before->v[i], value) == 0) {
            diag_error(d, (Span){0}, "--%s \"%s\" is given twice", s->name, value);
            return false;
        }
    return build_allowed(s, value, (Span){0}, d);
}

/* Adds a build or an axis after those that were given before. */
static bool add_text(Arena *a, Words *w, const Setting *s, const char *value, bool again, Diag *d)
{
    const char **word = NULL;
    int n = 0;
    for (int i = 0; again && i < w->n; i++)
        ARENA_PUSH(a, word, n, w->v[i]);
    const Words before = {.v = word, .n = n};
    if (!(s->kind == SETTING_AXES ? axis_allowed(a, &before, value, (Span){0}, d)
                                  : build_addable(&before, s, value, d)))
        return false;
    ARENA_PUSH(a, word, n, value);
    *w = (Words){.v = word, .n = n};
    return true;
}

bool setting_option(Arena *a, Matrix *m, const Setting *s, const char *value, bool again, Diag *d)
{
    Matrix read = *m;
    if (s->kind == SETTING_TEXT) {
        *(const char **)((char *)&read + s->field) = value;
    } else if (s->kind == SETTING_TEXTS || s->kind == SETTING_AXES) {
        if (!add_text(a, (Words *)((char *)&read + s->field), s, value, again, d))
            return false;
    } else {
        Source *source = arena_alloc(a, sizeof *source);
        Reader r;
        *source =
            (Source){.name = arena_printf(a, "--%s", s->name), .text = value, .len = strlen(value)};
        source->path = source->name;
        reader_begin(&r, a, source, d);
        if (!read_value(&r, &read, s, true))
            return false;
        if (r.now.kind != TOKEN_END)
            return reader_expected(&r, "the end of the value"), false;
    }
    setting_copy(m, &read, s);
    return true;
}
