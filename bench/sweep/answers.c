/* answers.c -- list, show, table, best, export: the content of the store, for people and for other programs. */
#include "sweep/results.h"
#include "sweep/stats.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Span nowhere;

/* ---- list */

static const char *rate_text(Arena *a, double rate)
{
    return isnan(rate)  ? "-"
           : rate < 100 ? arena_printf(a, "%.1f", rate)
                        : text_commas(a, llround(rate));
}

static const char *real_text(Arena *a, double v, const char *format)
{
    char text[64];
    if (isnan(v))
        return "-";
    snprintf(text, sizeof text, format, v);
    return arena_strdup(a, text);
}

/* Columns are as wide as their longest text, because builds differ at the ends of their names. */
static int wider(int column, const char *text)
{
    const int n = (int)strlen(text);
    return n > column ? n : column;
}

int results_list(Results *r)
{
    Text t = text_new(r->arena);
    int label = 14, what = 44;
    for (int i = 0; i < r->nrun; i++) {
        label = wider(label, r->run[i].label);
        what = wider(what, group_name(r->arena, &r->run[i]));
    }
    text_printf(&t, "%4s  %-20s  %-*s  %-*s %-4s %12s  %8s  %s\n", "id", "started", label, "label", what,
                "what", "run", "samples/s", "accuracy", "");
    for (int i = 0; i < r->nrun; i++) {
        const Run *run = &r->run[i];
        text_printf(&t, "%4" PRId64 "  %-20s  %-*s  %-*s %2" PRId64 "%s ", run->id,
                    run->started, label, run->label, what, group_name(r->arena, run), run->repeat,
                    run->attempt > 1 ? arena_printf(r->arena, ".%-" PRId64, run->attempt) : "  ");
        if (strcmp(run->status, "done") == 0)
            text_printf(&t, "%12s  %8s  %s%s\n", rate_text(r->arena, run->samples_per_s),
                        real_text(r->arena, run->accuracy, "%.4f"),
                        run->disturbed ? "disturbed: " : "", run->disturbed ? run->disturbed : "");
        else
            text_printf(&t, "%12s  %8s  failed: %.*s\n", "-", "-", (int)strcspn(run->message, "\n"),
                        run->message);
    }
    return results_write(r, &t);
}

/* ---- show */

static void long_text(Text *t, const char *title, const char *body)
{
    if (!body)
        return;
    text_printf(t, "\n%s\n", title);
    while (*body) {
        const size_t n = strcspn(body, "\n");
        text_printf(t, "  %.*s\n", (int)n, body);
        body += n + (body[n] == '\n');
    }
}

static void fields(Text *t, const Run *run)
{
    for (const Field *f = run_field; f->name; f++) {
        const char *p = (const char *)run + f->at;
        const char *text = f->kind == FIELD_TEXT ? *(const char *const *)p : NULL;
        if (f->kind == FIELD_TEXT && text && strcmp(f->name, "message") != 0 && *text)
            text_printf(t, "%-18s %s\n", f->name, text);
        if (f->kind == FIELD_COUNT && *(const int64_t *)p)
            text_printf(t, "%-18s %" PRId64 "\n", f->name, *(const int64_t *)p);
        if (f->kind == FIELD_REAL && !isnan(*(const double *)p))
            text_printf(t, "%-18s %.6g\n", f->name, *(const double *)p);
    }
}

static void epochs(Arena *a, Text *t, const Run *run)
{
    if (run->nepoch)
        text_printf(t, "\n%5s %10s %12s %11s %11s %11s %11s  %s\n", "epoch", "seconds", "samples/s",
                    "train loss", "accuracy", "test loss", "accuracy", "weights");
    for (int i = 0; i < run->nepoch; i++) {
        const Epoch *e = &run->epoch[i];
        text_printf(t, "%5" PRId64 " %10.3f %12s %11s %11s %11s %11s  %s\n", e->epoch, e->seconds,
                    rate_text(a, e->samples_per_s), real_text(a, e->train_loss, "%.4f"),
                    real_text(a, e->train_accuracy, "%.4f"), real_text(a, e->test_loss, "%.4f"),
                    real_text(a, e->test_accuracy, "%.4f"), e->weights_hash);
    }
}

static void layers(Arena *a, Text *t, const Run *run)
{
    if (run->nlayer)
        text_printf(t, "\n%10s %10s %9s  %-26s %-26s %-16s %s\n", "ms a step", "predicted",
                    "GFLOP/s", "layer", "kernel", "place", "algorithm");
    for (int i = 0; i < run->nlayer; i++) {
        const Layer *l = &run->layer[i];
        text_printf(t, "%10.3f %10s %9s  %-26s %-26s %-16s %s\n", l->ms,
                    real_text(a, l->predicted_ms, "%.3f"),
                    l->gflops > 0 ? real_text(a, l->gflops, "%.1f") : "-", l->layer,
                    l->kernel ? l->kernel : "", l->place ? l->place : "",
                    l->algorithm ? l->algorithm : "");
    }
}

int results_show(Results *r)
{
    char *end;
    const long long id = strtoll(r->word[0], &end, 10);
    Run *run = NULL;
    for (int i = 0; i < r->nrun && !*end; i++)
        run = r->run[i].id == id ? &r->run[i] : run;
    if (!run) {
        diag_error(r->diag, nowhere, "there is no run %s in %s", r->word[0], r->store_path);
        diag_help(r->diag, "tenon results list --store %s tells their numbers", r->store_path);
        return 1;
    }
    Text t = text_new(r->arena);
    store_details(r->store, run);
    text_printf(&t, "run %" PRId64 " of %s\n", run->id, r->store_path);
    fields(&t, run);
    epochs(r->arena, &t, run);
    layers(r->arena, &t, run);
    long_text(&t, "message", run->message);
    long_text(&t, "machine", store_text_of(r->store, run->machine));
    long_text(&t, "what the program reports about itself", store_text_of(r->store, run->info));
    long_text(&t, arena_printf(r->arena, "%s", run->file), store_text_of(r->store, run->source));
    return results_write(r, &t);
}

/* ---- table */

int results_table(Results *r)
{
    Arena *a = r->arena;
    Text t = text_new(a);
    int label = 14, what = 44;
    for (int i = 0; i < r->ngroup; i++) {
        label = wider(label, r->group[i].first->label);
        what = wider(what, group_name(a, r->group[i].first));
    }
    text_printf(&t, "%-*s %-*s %12s  %-21s %3s %9s %9s %6s %10s %10s\n", label, "label", what, "what",
                "samples/s", "least .. most", "n", "s/epoch", "accuracy", "peak", "planned",
                "measured");
    for (int i = 0; i < r->ngroup; i++) {
        const Group *g = &r->group[i];
        const Run *f = g->first;
        const double gflops = 1e-9 * g->median * group_median(g, offsetof(Run, flops_per_sample));
        text_printf(&t, "%-*s %-*s %12s  %-21s %3d %9s %9s %6s %10s %10s", label, f->label, what,
                    group_name(a, f), rate_text(a, g->median),
                    g->n
                        ? arena_printf(a, "%s .. %s", rate_text(a, g->least), rate_text(a, g->most))
                        : "-",
                    g->n, real_text(a, group_median(g, offsetof(Run, epoch_s)), "%.3f"),
                    real_text(a, group_median(g, offsetof(Run, accuracy)), "%.4f"),
                    real_text(a, 100 * gflops / group_median(g, offsetof(Run, peak_before)),
                              "%.0f %%"),
                    f->planned_bytes ? text_bytes(a, f->planned_bytes) : "-",
                    f->peak_bytes ? text_bytes(a, f->peak_bytes) : "-");
        if (g->disturbed)
            text_printf(&t, "  %d disturbed", g->disturbed);
        if (g->failed)
            text_printf(&t, "  %d failed", g->failed);
        text_add(&t, "\n");
    }
    text_add(&t, "samples/s: median of the runs, each the median of its epochs after the first; "
                 "peak: share of the machine's FMA peak,\n"
                 "textbook's operations; planned: bytes of the memory plan; measured: the "
                 "process's, with its code and data\n");
    return results_write(r, &t);
}

/* ---- best */

/* What a group has learned: the median test accuracy of its runs, else the test loss. */
typedef struct Learned {
    const Group *group;
    double accuracy, loss; /* NAN: the program has none */
} Learned;

/* The most accurate groups first, then the smallest losses; groups of one model and data set stand
 * together. */
static int better(const void *a, const void *b)
{
    const Learned *x = a, *y = b;
    const Run *f = x->group->first, *g = y->group->first;
    const int model = by_text(f->model, g->model), data = by_text(f->data, g->data);
    if (model || data)
        return model ? model : data;
    if (!isnan(x->accuracy) && !isnan(y->accuracy) && x->accuracy != y->accuracy)
        return x->accuracy < y->accuracy ? 1 : -1;
    if (isnan(x->accuracy) != isnan(y->accuracy))
        return isnan(x->accuracy) ? 1 : -1;
    return (x->loss > y->loss) - (x->loss < y->loss);
}

/* "0.9905 .. 0.9915": the range of a group's runs. */
static const char *range_text(Arena *a, const Group *g, size_t field)
{
    double *v = arena_alloc(a, sizeof *v * (size_t)g->n);
    for (int i = 0; i < g->n; i++)
        v[i] = *(const double *)((const char *)g->run[i] + field);
    return arena_printf(a, "%.4f .. %.4f", stats_least(v, g->n), stats_most(v, g->n));
}

static void best_row(Arena *a, const Learned *l, int label, Text *t)
{
    const Group *g = l->group;
    const bool accuracy = !isnan(l->accuracy);
    text_printf(t, "%9s %9s  %-18s %3d %6lld %9s %12s  %-*s  %s\n",
                real_text(a, l->accuracy, "%.4f"), real_text(a, l->loss, "%.4f"),
                range_text(a, g, accuracy ? offsetof(Run, accuracy) : offsetof(Run, loss)), g->n,
                (long long)g->first->epochs,
                real_text(a, group_median(g, offsetof(Run, epoch_s)), "%.3f"),
                rate_text(a, g->median), label, g->first->label, group_where(a, g->first));
}

int results_best(Results *r)
{
    Arena *a = r->arena;
    Text t = text_new(a);
    Learned *all = NULL;
    int n = 0, label = 5;
    for (int i = 0; i < r->ngroup; i++) {
        const Group *g = &r->group[i];
        const Learned l = {g, group_median(g, offsetof(Run, accuracy)),
                           group_median(g, offsetof(Run, loss))};
        if (isnan(l.accuracy) && isnan(l.loss))
            continue;
        label = wider(label, g->first->label);
        ARENA_PUSH(a, all, n, l);
    }
    if (n == 0) {
        diag_error(r->diag, nowhere, "no run in %s has a test accuracy or a test loss",
                   r->store_path);
        diag_help(r->diag, "a sweep with --epochs trains; --steps measures the speed only");
        return 1;
    }
    qsort(all, (size_t)n, sizeof *all, better);
    for (int i = 0; i < n; i++) {
        const Run *f = all[i].group->first, *before = i ? all[i - 1].group->first : NULL;
        if (!before || !same_text(before->model, f->model) || !same_text(before->data, f->data))
            text_printf(&t, "%s%s%s%s\n%9s %9s  %-18s %3s %6s %9s %12s  %-*s  %s\n", i ? "\n" : "",
                        f->model, f->data ? ", " : "", f->data ? f->data : "", "accuracy", "loss",
                        "least .. most", "n", "epochs", "s/epoch", "samples/s", label, "label",
                        "what");
        best_row(a, &all[i], label, &t);
    }
    text_add(&t, "accuracy and loss: of the test split after the last epoch, median of the runs; "
                 "the best configuration of a model is first\n");
    return results_write(r, &t);
}

/* ---- export */

static void csv_text(Text *t, const char *s)
{
    if (!s || !s[strcspn(s, ",\"\n\r")]) {
        text_add(t, s ? s : "");
        return;
    }
    text_add(t, "\"");
    for (; *s; s++)
        text_printf(t, *s == '"' ? "\"\"" : "%c", *s);
    text_add(t, "\"");
}

static void csv_field(Text *t, const Run *run, const Field *f)
{
    const char *p = (const char *)run + f->at;
    if (f->kind == FIELD_TEXT)
        csv_text(t, *(const char *const *)p);
    else if (f->kind == FIELD_COUNT)
        text_printf(t, "%" PRId64, *(const int64_t *)p);
    else if (!isnan(*(const double *)p))
        text_printf(t, "%.9g", *(const double *)p);
}

/* The nine columns of the reports, with their names. */
static const struct Column {
    const char *title, *field;
} nine[] = {{"infrastructure", "infrastructure"},
            {"model", "model"},
            {"script", "framework"},
            {"batch_size", "batch"},
            {"gpus", "gpus"},
            {"accuracy", "accuracy"},
            {"epochs", "epochs"},
            {"time", "epoch_s"},
            {"samples_sec", "samples_per_s"}};
enum { NINE = sizeof nine / sizeof *nine };

static const Field *field_named(const char *name)
{
    const Field *f = run_field;
    while (f->name && strcmp(f->name, name) != 0)
        f++;
    return f;
}

static bool among_nine(const Field *f)
{
    for (int i = 0; i < NINE; i++)
        if (strcmp(nine[i].field, f->name) == 0)
            return true;
    return false;
}

int results_export(Results *r)
{
    Text t = text_new(r->arena);
    if (!r->csv) {
        diag_error(r->diag, nowhere, "tenon results export writes CSV only: add --csv");
        return 1;
    }
    for (int i = 0; i < NINE; i++)
        text_printf(&t, "%s%s", i ? "," : "", nine[i].title);
    for (const Field *f = run_field; f->name; f++)
        if (!among_nine(f))
            text_printf(&t, ",%s", f->name);
    text_add(&t, ",id\n");
    for (int i = 0; i < r->nrun; i++) {
        for (int k = 0; k < NINE; k++) {
            text_add(&t, k ? "," : "");
            csv_field(&t, &r->run[i], field_named(nine[k].field));
        }
        for (const Field *f = run_field; f->name; f++)
            if (!among_nine(f)) {
                text_add(&t, ",");
                csv_field(&t, &r->run[i], f);
            }
        text_printf(&t, ",%" PRId64 "\n", r->run[i].id);
    }
    return results_write(r, &t);
}
