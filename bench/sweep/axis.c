/* axis.c -- the setting `set`: a value of the model or the recipe, and the values that it takes.
 *
 *   --set optimizer.lr=0.1,0.01  and the builds "", "--fast"
 *   ->  "--set optimizer.lr=0.1", "--set optimizer.lr=0.01",
 *       "--fast --set optimizer.lr=0.1", "--fast --set optimizer.lr=0.01"
 *
 * A comma inside of parentheses, brackets or quotes belongs to a value.
 */
#include "sweep/axis.h"
#include <string.h>

/* Bytes up to the next comma between values, or to the end. */
static size_t value_length(const char *s)
{
    int depth = 0;
    bool quoted = false;
    const char *c = s;
    for (; *c && (*c != ',' || depth > 0 || quoted); c++) {
        quoted ^= *c == '"';
        if (!quoted)
            depth += strchr("([", *c) ? 1 : strchr(")]", *c) ? -1 : 0;
    }
    return (size_t)(c - s);
}

/* The values of an axis; 0: it is not of the form KEY=VALUE,VALUE. */
static int values(Arena *a, const char *axis, const char ***value)
{
    const char *s = strchr(axis, '=');
    int n = 0;
    if (!s || s == axis)
        return 0;
    do {
        const size_t length = value_length(++s);
        if (length == 0)
            return 0;
        ARENA_PUSH(a, *value, n, arena_strndup(a, s, length));
        s += length;
    } while (*s);
    return n;
}

static bool same_key(const char *a, const char *b)
{
    const size_t n = strcspn(a, "=");
    return n == strcspn(b, "=") && strncmp(a, b, n) == 0;
}

bool axis_allowed(Arena *a, const Words *before, const char *axis, Span at, Diag *d)
{
    const char **value = NULL;
    const char *blank = strpbrk(axis, " \t\n");
    if (values(a, axis, &value) == 0) {
        diag_error(d, at, "set: '%s' is not KEY=VALUE,VALUE", axis);
        diag_help(d, "write a key of the model or the recipe, and its values: "
                     "optimizer.lr=0.1,0.01");
        return false;
    }
    if (blank) {
        diag_error(d, at, "set: a blank after '%.*s'", (int)(blank - axis), axis);
        diag_help(d, "leave out blanks: data=synthetic(samples=64,classes=10)");
        return false;
    }
    for (int i = 0; i < before->n; i++)
        if (same_key(before->v[i], axis)) {
            diag_error(d, at, "set: %.*s is given twice", (int)strcspn(axis, "="), axis);
            diag_help(d, "write all values after one key: %s,...", before->v[i]);
            return false;
        }
    return true;
}

bool axes_free(const Matrix *m, Diag *d)
{
    const struct {
        const char *key, *help;
        bool given;
    } own[] = {
        {"epochs", "write --epochs N; each N needs a sweep of its own", true},
        {"batch", "write all sizes after --batch, and leave out --set batch", m->batch.v[0] > 0},
        {"seed", "leave out --seed or --set seed", m->seed > 0},
        {"data", "leave out --data or --set data", m->data != NULL},
    };
    for (int i = 0; i < m->set.n; i++)
        for (size_t k = 0; k < sizeof own / sizeof *own; k++)
            if (own[k].given && same_key(m->set.v[i], own[k].key)) {
                diag_error(d, m->set.at ? m->set.at[i] : (Span){0},
                           "set: the sweep's own setting '%s' replaces these values", own[k].key);
                diag_help(d, "%s", own[k].help);
                return false;
            }
    return true;
}

double axis_count(Arena *a, const Matrix *m)
{
    double n = m->build.n;
    for (int i = 0; i < m->set.n; i++) {
        const char **value = NULL;
        n *= values(a, m->set.v[i], &value);
    }
    return n;
}

static Words with_axis(Arena *a, Words build, const char *axis)
{
    const char **value = NULL, **word = NULL;
    int n = 0;
    const int nvalue = values(a, axis, &value);
    for (int i = 0; i < build.n; i++)
        for (int k = 0; k < nvalue; k++)
            ARENA_PUSH(a, word, n,
                       arena_printf(a, "%s%s--set %.*s=%s", build.v[i], *build.v[i] ? " " : "",
                                    (int)strcspn(axis, "="), axis, value[k]));
    return (Words){.v = word, .n = n};
}

Words axis_builds(Arena *a, const Matrix *m)
{
    Words all = m->build;
    for (int i = 0; i < m->set.n; i++)
        all = with_axis(a, all, m->set.v[i]);
    return all;
}
