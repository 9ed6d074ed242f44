/* answers.c -- list, show, table, export: the content of the store, for people and for other programs. */
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
