/* report.c -- `tenon results report`: one page without outside references.
 *
 * Charts show the newest label (version) in the store, or the one that --label names; differences are those to the label before.
 */
#include "sweep/report.h"
#include "sweep/stats.h"
#include <string.h>

int group_layers(Arena *a, const Group *g, LayerTime **layer)
{
    int n = 0;
    *layer = NULL;
    for (int k = 0; g->n && k < g->run[0]->nlayer; k++) {
        const Layer *l = &g->run[0]->layer[k];
        double ms[1024], work = 0;
        int m = 0;
        for (int i = 0; i < g->n && m < 1024; i++)
            if (k < g->run[i]->nlayer && strcmp(g->run[i]->layer[k].layer, l->layer) == 0)
                ms[m++] = g->run[i]->layer[k].ms;
        work = l->gflops > 0 ? 1e6 * l->gflops * l->ms : 0; /* FLOPs of a step */
        const double t = stats_median(ms, m);
        ARENA_PUSH(a, *layer, n,
                   ((LayerTime){l, t, t > 0 ? 1e-6 * work / t : 0, work,
                                l->bytes > 0 ? l->bytes : 0}));
    }
    return n;
}

void report_begin(Report *r, const char *id, const char *title)
{
    text_printf(r->out, "<section><h2 id=%s>", id);
    html_add(r->out, title);
    text_add(r->out, "</h2>\n");
}

void report_end(Report *r)
{
    text_add(r->out, "</section>\n");
}

/* Labels in the order of their first runs; the newest is the last. */
static void choose_labels(Report *r)
{
    const Results *s = r->results;
    const char **label = NULL;
    int n = 0;
    for (int i = 0; i < s->nrun; i++) {
        bool known = false;
        for (int k = 0; k < n; k++)
            known = known || strcmp(label[k], s->run[i].label) == 0;
        if (!known && strcmp(s->run[i].status, "done") == 0)
            ARENA_PUSH(r->arena, label, n, s->run[i].label);
    }
    r->label = n ? label[n - 1] : s->run[0].label;
    r->before = n > 1 ? label[n - 2] : NULL;
}

static void choose_groups(Report *r)
{
    const Results *s = r->results;
    for (int i = 0; i < s->ngroup; i++) {
        const Group *g = &s->group[i];
        if (!g->n || strcmp(g->first->label, r->label) != 0)
            continue;
        if (!r->n || strcmp(r->group[r->n - 1].first->model, g->first->model) != 0)
            ARENA_PUSH(r->arena, r->model, r->nmodel, g->first->model);
        ARENA_PUSH(r->arena, r->group, r->n, *g);
    }
}

static void head(Report *r)
{
    Text *t = r->out;
    text_add(t, "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
                "content=\"width=device-width,initial-scale=1\">"
                "<meta name=color-scheme content=\"light dark\"><title>Tenon: "
                "measurements</title>\n<style>\n");
    text_add(t, report_style);
    text_add(t, "</style></head><body>\n<h1>");
    for (int i = 0; i < r->nmodel; i++) {
        text_add(t, i ? ", " : "");
        html_add(t, r->model[i]);
    }
    text_add(t, r->nmodel ? ": how fast they train</h1>\n" : "Measurements</h1>\n");
    text_add(t, "<nav><a href=#summary>Summary</a> <a href=#throughput>Throughput</a><a "
                "href=#all>All figures</a> <a href=#memory>Memory</a>"
                "<a href=#account>Time of a step</a> <a href=#machine>Machine</a></nav>\n");
}

int results_report(Results *results)
{
    Text out = text_new(results->arena);
    Report r = {.results = results, .arena = results->arena, .out = &out};
    for (int i = 0; i < results->nrun; i++)
        store_details(results->store, &results->run[i]);
    choose_labels(&r);
    choose_groups(&r);
    head(&r);
    report_summary(&r);
    report_throughput(&r);
    report_scaling(&r);
    report_frameworks(&r);
    report_differences(&r);
    report_table(&r);
    report_curves(&r);
    report_memory(&r);
    report_roofline(&r);
    report_account(&r);
    report_failures(&r);
    report_machine(&r);
    text_add(&out, "<p class=soft>Made by <code>tenon results report</code>.</p></body></html>\n");
    return results_write(results, &out);
}
