/* results.c -- `tenon results`: its command line, and runs put into groups. */
#include "sweep/results.h"
#include "sweep/words.h"
#include "sweep/framework.h"
#include "sweep/stats.h"
#include "tool/file.h"
#include "tool/option.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Span nowhere;

static int (*const run[])(Results *) = {
    [RESULTS_LIST] = results_list,       [RESULTS_SHOW] = results_show,   [RESULTS_TABLE] = results_table, [RESULTS_BEST] = results_best,
    [RESULTS_EXPORT] = results_export,
    [RESULTS_COMPARE] = results_compare, [RESULTS_MERGE] = results_merge, [RESULTS_PLOT] = results_plot,   [RESULTS_REPORT] = results_report};

static void help(void)
{
    char usage[64], text[300];
    puts("tenon results COMMAND [options]\nread a store that tenon sweep has filled\n");
    for (const ResultsCommand *c = results_command_table; c->name; c++) {
        snprintf(usage, sizeof usage, "%s %s", c->name, c->words);
        help_row(usage, 22, c->help);
    }
    puts("");
    for (const ResultsOption *o = results_option_table; o->name; o++) {
        snprintf(usage, sizeof usage, "%s %s", o->name, o->value ? o->value : "");
        snprintf(text, sizeof text, "%s%s%s%s", o->help, o->fallback ? " (default: " : "", o->fallback ? o->fallback : "",
                 o->fallback ? ")" : "");
        help_row(usage, 22, text);
    }
}

static bool needs(Results *r, const char *option, const char *value)
{
    if (!value)
        diag_error(r->diag, nowhere, "%s needs a value", option);
    return value;
}

static bool take(Results *r, const char *option, const char *value, bool *took)
{
    const char *name = strcmp(option, "--output") == 0 ? "-o" : option;
    const ResultsOption *o = results_option_table;
    char *end, *field;
    while (o->name && strcmp(o->name, name) != 0)
        o++;
    *took = o->value != NULL;
    if (!o->name) {
        diag_error(r->diag, nowhere, "tenon results has no option '%s'", option);
        diag_help(r->diag, "tenon results --help lists them");
        return false;
    }
    field = (char *)r + o->field;
    if (o->kind == RESULTS_OPTION_TRUE)
        return *(bool *)field = true;
    if (o->kind == RESULTS_OPTION_TEXT) {
        *(const char **)field = value;
        return needs(r, option, value);
    }
    const double percent = value ? strtod(value, &end) / 100 : 0;
    *(double *)field = percent;
    if (value && *value && !*end && percent >= 0 && percent < 1)
        return true;
    diag_error(r->diag, nowhere, "%s needs a number of percent from 0 to 99", option);
    return false;
}

static const ResultsCommand *find(Results *r, const char *name)
{
    const char *known[16];
    int n = 0;
    for (const ResultsCommand *c = results_command_table; c->name; c++) {
        if (strcmp(c->name, name) == 0)
            return c;
        known[n++] = c->name;
    }
    diag_error(r->diag, nowhere, "tenon results has no command '%s'", name);
    if (text_nearest(name, known, n))
        diag_suggest(r->diag, name, known, n);
    else
        diag_help(r->diag, "tenon results --help lists them");
    return NULL;
}

static bool read_words(Results *r, const ResultsCommand *c, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *equals = strchr(word, '=');
        bool took;
        if (word[0] == '-' && word[1]) {
            const bool joined = word[1] == '-' && equals;
            const char *name =
                joined ? arena_strndup(r->arena, word, (size_t)(equals - word)) : word;
            if (!take(r, name, joined ? equals + 1 : i + 1 < argc ? argv[i + 1] : NULL, &took))
                return false;
            i += took && !joined;
        } else if (r->nword == c->most) {
            diag_error(r->diag, nowhere, "tenon results %s%s%s: unexpected word '%s'", c->name,
                       *c->words ? " " : "", c->words, word);
            return false;
        } else
            ARENA_PUSH(r->arena, r->word, r->nword, word);
    }
    if (r->nword < c->least)
        diag_error(r->diag, nowhere, "tenon results %s needs %s", c->name, c->words);
    return r->nword >= c->least;
}

/* ---- groups */

static int by_count(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Tenon before the other frameworks. */
static int by_framework(const char *a, const char *b)
{
    const int first = by_count(framework_find(a)->to != NULL, framework_find(b)->to != NULL);
    return first ? first : by_text(a, b);
}

/* The order of groups; 0 for runs of the same group. */
static int order(const Run *a, const Run *b)
{
    int c;
#define BY(how, field)                                                                             \
    if ((c = how(a->field, b->field)))                                                             \
    return c
    BY(by_text, model);
    BY(by_framework, framework);
    BY(by_text, build);
    BY(by_text, data);
    BY(by_count, gpus);
    BY(by_count, ranks);
    BY(by_count, threads);
    BY(by_count, batch);
    BY(by_count, steps);
    BY(by_count, epochs);
    BY(by_count, limit_samples);
    BY(by_text, label);
    BY(by_text, machine);
    BY(by_text, binary);
#undef BY
    return 0;
}

static int in_order(const void *a, const void *b)
{
    const Run *x = *(const Run *const *)a, *y = *(const Run *const *)b;
    const int c = order(x, y);
    return c                                ? c
           : by_count(x->repeat, y->repeat) ? by_count(x->repeat, y->repeat)
                                            : by_count(x->attempt, y->attempt);
}

/* Of the sorted attempts at one repeat: an undisturbed one, else the last one. */
static bool counts(const Run *const *run, int i, int end)
{
    if (strcmp(run[i]->status, "done") != 0)
        return false;
    for (int k = i + 1; k < end && run[k]->repeat == run[i]->repeat; k++)
        if (strcmp(run[k]->status, "done") == 0)
            return false;
    return true;
}

static void add_group(Arena *a, const Run *const *run, int from, int end, Group **group, int *n)
{
    Group g = {.first = run[from]};
    for (int i = from; i < end; i++) {
        g.failed += strcmp(run[i]->status, "done") != 0;
        if (!counts(run, i, end))
            continue;
        int k = g.n;
        ARENA_PUSH(a, g.run, g.n, run[i]);
        ARENA_PUSH(a, g.rate, k, run[i]->samples_per_s);
        g.disturbed += run[i]->disturbed != NULL;
    }
    g.first = g.n ? g.run[0] : g.first;
    g.median = stats_median(g.rate, g.n);
    g.least = stats_least(g.rate, g.n);
    g.most = stats_most(g.rate, g.n);
    ARENA_PUSH(a, *group, *n, g);
}

void results_group(Arena *a, Run *run, int n, Group **group, int *ngroup)
{
    const Run **sorted = arena_alloc(a, sizeof *sorted * (size_t)(n + 1));
    for (int i = 0; i < n; i++)
        sorted[i] = &run[i];
    qsort(sorted, (size_t)n, sizeof *sorted, in_order);
    for (int from = 0, end; from < n; from = end) {
        for (end = from + 1; end < n && order(sorted[from], sorted[end]) == 0; end++)
            ;
        add_group(a, sorted, from, end, group, ngroup);
    }
}

const char *group_where(Arena *a, const Run *r)
{
    Text t = text_new(a);
    text_printf(&t, "%sbatch %lld", framework_words(a, r->framework), (long long)r->batch);
    if (r->ranks > 1)
        text_printf(&t, ", %lld ranks", (long long)r->ranks);
    text_printf(&t, ", %lld thread%s", (long long)r->threads, r->threads == 1 ? "" : "s");
    if (r->build && *r->build)
        text_printf(&t, ", %s", r->build);
    return t.s;
}

const char *group_name(Arena *a, const Run *r)
{
    return arena_printf(a, "%s, %s", r->model, group_where(a, r));
}

double group_median(const Group *g, size_t field)
{
    double v[1024];
    int n = 0;
    for (int i = 0; i < g->n && n < 1024; i++) {
        const double x = *(const double *)((const char *)g->run[i] + field);
        if (!isnan(x))
            v[n++] = x;
    }
    return stats_median(v, n);
}

/* ---- the command */

int results_write(Results *r, const Text *t)
{
    if (!r->output)
        return fputs(t->s, stdout) == EOF;
    const int error = file_write(r->arena, r->output, t->s, t->len, 0666);
    if (error)
        diag_error(r->diag, nowhere, "cannot write %s: %s", r->output, strerror(error));
    return error != 0;
}

static bool wanted(const Results *r, const Run *run)
{
    return (!r->label || text_glob(r->label, run->label)) &&
           (!r->model || text_glob(r->model, run->model));
}

static bool load(Results *r)
{
    Run *all;
    int n = store_runs(r->store, NULL, &all);
    for (int i = 0; i < n; i++)
        if (wanted(r, &all[i]))
            ARENA_PUSH(r->arena, r->run, r->nrun, all[i]);
    if (store_failed(r->store))
        return false;
    if (!r->nrun) {
        diag_error(r->diag, nowhere,
                   n ? "no run in %s fits --label or --model" : "the store %s holds no run yet",
                   r->store_path);
        return false;
    }
    results_group(r->arena, r->run, r->nrun, &r->group, &r->ngroup);
    return true;
}

int results_main(Arena *a, Diag *d, int argc, char **argv)
{
    Results r = {.arena = a, .diag = d, .store_path = "results.db", .floor = 0.03};
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return help(), 0;
    if (argc < 1)
        return help(), 0;
    const ResultsCommand *c = find(&r, argv[0]);
    if (!c || !read_words(&r, c, argc - 1, argv + 1))
        return 1;
    const bool merge = c->kind == RESULTS_MERGE;
    r.store = merge ? store_open(a, r.store_path, d) : store_read(a, r.store_path, d);
    if (!r.store)
        return 1;
    const int code = merge || load(&r) ? run[c->kind](&r) : 1;
    store_close(r.store);
    return code || diag_errors(d);
}
