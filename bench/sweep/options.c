/* options.c -- the command line of `tenon sweep`. */
#include "sweep/framework.h"
#include "sweep/setting.h"
#include "sweep/sweep.h"
#include "sweep/words.h"
#include "tool/file.h"
#include "tool/option.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Span nowhere;

static void help(void)
{
    char option[64], text[300];
    puts("tenon sweep MODEL.tn ... | FILE.sweep [options]\n"
         "build models at several settings, run each program several times, keep every run in a store\n\n"
         "  tenon sweep models/lenet.tn --batch 64,128 --threads 1,all\n"
         "  tenon sweep models/lenet.tn --build \"\" --build \"--fast\" --steps 100\n"
         "  tenon sweep models/lenet.tn --set optimizer.lr=0.1,0.01 --set seed=1,2,3\n\n"
         "What to measure. After a FILE.sweep these options replace its settings. LIST: 64,128,256\n"
         "The last value counts if a setting is given twice; each --build is one more build, each --set one more key.");
    setting_help();
    puts("\nHow to measure:");
    for (const SweepOption *o = sweep_option_table; o->name; o++) {
        snprintf(option, sizeof option, "--%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        snprintf(text, sizeof text, "%s%s%s%s", o->help, o->fallback ? " (default: " : "", o->fallback ? o->fallback : "",
                 o->fallback ? ")" : "");
        help_row(option, 28, text);
    }
    puts("\nStored runs are not made again: the same command continues a stopped sweep.\n"
         "Exit code: 0 done, 1 error or failed runs, 75 stopped on request.");
}

static const SweepOption *find(const char *name)
{
    for (const SweepOption *o = sweep_option_table; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

static bool unknown(Sweep *s, const char *name)
{
    const char **known = NULL;
    int n = setting_names(s->arena, &known);
    for (const SweepOption *o = sweep_option_table; o->name; o++)
        ARENA_PUSH(s->arena, known, n, o->name);
    diag_error(s->diag, nowhere, "tenon sweep has no option '--%s'", name);
    if (text_nearest(name, known, n))
        diag_suggest(s->diag, name, known, n);
    else
        diag_help(s->diag, "tenon sweep --help lists them");
    return false;
}

/* PROGRAM or FRAMEWORK=PROGRAM, where FRAMEWORK is a name of a framework or a common beginning of several names: keras. */
static bool take_python(Sweep *s, const char *value)
{
    const char *equals = strchr(value, '=');
    const size_t n = equals ? (size_t)(equals - value) : 0;
    if (!equals || memchr(value, '/', n)) {
        s->python = value;
        return true;
    }
    for (int i = 0; framework_known[i]; i++)
        if (strncmp(framework_known[i], value, n) == 0 && strchr("-", framework_known[i][n])) {
            const struct Python p = {arena_strndup(s->arena, value, n), equals + 1};
            ARENA_PUSH(s->arena, s->pythons, s->npython, p);
            return true;
        }
    diag_error(s->diag, nowhere, "--python: unknown framework '%.*s'", (int)n, value);
    diag_help(s->diag, "--python PROGRAM, or --python mxnet=PROGRAM");
    return false;
}

static bool take(Sweep *s, const SweepOption *o, const char *value)
{
    char *field = (char *)s + o->field, *end;
    if (o->kind == SWEEP_PYTHON)
        return take_python(s, value);
    if (o->kind == SWEEP_TEXT)
        *(const char **)field = value;
    if (o->kind == SWEEP_TRUE)
        *(bool *)field = true;
    if (o->kind != SWEEP_NUMBER)
        return true;
    errno = 0;
    const long long v = strtoll(value, &end, 10);
    if (end == value || *end || errno || v < o->least || v > 1000000000) {
        diag_error(s->diag, nowhere, "--%s needs a whole number from %d, not '%s'", o->name,
                   o->least, value);
        return false;
    }
    *(int64_t *)field = v;
    return true;
}

/* Reads a setting of the command line into `m`, and notes it, so that it can replace the settings of a file. */
typedef struct Given {
    Matrix m;
    const Setting *setting[64];
    int n;
    const char **file;
    int nfile;
} Given;

/* Several builds, and keys of --set, are combined; for another setting, the last one counts. */
static bool take_setting(Sweep *s, Given *g, const Setting *t, const char *value)
{
    bool again = false;
    for (int i = 0; i < g->n; i++)
        again |= g->setting[i] == t;
    if (!again)
        g->setting[g->n++] = t;
    return setting_option(s->arena, &g->m, t, value, again, s->diag);
}

static bool option(Sweep *s, Given *g, const char *name, const char *equals, int *i, int argc,
                   char **argv)
{
    const SweepOption *o = find(name);
    const Setting *t = o ? NULL : setting_find(name);
    const char *value = equals ? equals + 1 : NULL;
    if (!o && !t)
        return unknown(s, name);
    const bool wants = t || o->value;
    if (wants && !value && *i + 1 < argc)
        value = argv[++*i];
    if (wants != (value != NULL)) {
        diag_error(s->diag, nowhere, wants ? "--%s needs a value" : "--%s takes no value", name);
        return false;
    }
    if (o)
        return take(s, o, value);
    return take_setting(s, g, t, value);
}

static bool read_words(Sweep *s, Given *g, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
            return help(), false;
        if (strncmp(word, "--", 2) == 0 && word[2]) {
            const char *equals = strchr(word, '=');
            const char *name = arena_strndup(s->arena, word + 2, strcspn(word + 2, "="));
            if (!option(s, g, name, equals, &i, argc, argv))
                return false;
        } else if (*word == '-')
            return unknown(s, word + 1);
        else
            ARENA_PUSH(s->arena, g->file, g->nfile, word);
    }
    return true;
}

static bool ends(const char *s, const char *with)
{
    const size_t n = strlen(s), m = strlen(with);
    return n >= m && strcmp(s + n - m, with) == 0;
}

/* Keeps the files that fit --only; false when none is left. */
static bool keep_only(Sweep *s)
{
    int left = 0;
    for (int i = 0; i < s->plan.nmatrix; i++) {
        Words *w = &s->plan.matrix[i].file;
        const char **file = NULL;
        int n = 0;
        for (int k = 0; k < w->n; k++)
            if (!s->only || text_glob(s->only, path_stem(s->arena, w->v[k])))
                ARENA_PUSH(s->arena, file, n, w->v[k]);
        *w = (Words){.v = file, .n = n};
        left += n;
    }
    if (!left)
        diag_error(s->diag, nowhere, "--only: no model's name matches '%s'", s->only);
    return left;
}

bool sweep_options(Sweep *s, int argc, char **argv)
{
    Given g = {0};
    matrix_default(&g.m);
    if (!read_words(s, &g, argc, argv))
        return false;
    int sweeps = 0;
    for (int i = 0; i < g.nfile; i++) {
        sweeps += ends(g.file[i], ".sweep");
        if (!file_exists(g.file[i]))
            diag_error(s->diag, nowhere,
                       dir_exists(g.file[i]) ? "%s is a directory" : "there is no file %s",
                       g.file[i]);
        else if (!ends(g.file[i], ".sweep") && !ends(g.file[i], ".tn"))
            diag_error(s->diag, nowhere, "%s is neither a model (.tn) nor a sweep file (.sweep)",
                       g.file[i]);
    }
    if (!g.nfile || (sweeps && g.nfile > 1)) {
        diag_error(s->diag, nowhere,
                   g.nfile ? "a sweep file comes alone"
                           : "tenon sweep needs a model file or a sweep file");
        diag_help(s->diag, "tenon sweep MODEL.tn ... | FILE.sweep [options]");
    }
    if (diag_errors(s->diag))
        return false;
    if (sweeps) {
        if (!sweep_file_read(s->arena, g.file[0], &s->plan, s->diag))
            return false;
        for (int i = 0; i < s->plan.nmatrix; i++)
            for (int k = 0; k < g.n; k++)
                setting_copy(&s->plan.matrix[i], &g.m, g.setting[k]);
    } else {
        g.m.file = (Words){.v = g.file, .n = g.nfile};
        ARENA_PUSH(s->arena, s->plan.matrix, s->plan.nmatrix, g.m);
    }
    return keep_only(s);
}
