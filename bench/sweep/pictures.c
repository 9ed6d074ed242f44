/* pictures.c -- the report's charts. */
#include "sweep/framework.h"
#include "sweep/report.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool of_model(const Group *g, const char *model)
{
    return strcmp(g->first->model, model) == 0;
}

static int64_t lanes(const Run *r)
{
    return r->threads * r->ranks;
}

/* "pytorch, "; "tenon, " only if there are other frameworks. */
static const char *who(const Report *report, const Run *r)
{
    bool others = false;
    for (int i = 0; i < report->n; i++)
        others = others || framework_find(report->group[i].first->framework)->to;
    return others ? arena_printf(report->arena, "%s, ", r->framework) : "";
}

/* The name of a line of a chart: all settings but the batch. */
static const char *line_name(const Report *report, const Run *r)
{
    Text t = text_new(report->arena);
    text_add(&t, who(report, r));
    if (r->ranks > 1)
        text_printf(&t, "%" PRId64 " ranks, ", r->ranks);
    text_printf(&t, "%" PRId64 " thread%s%s%s", r->threads, r->threads == 1 ? "" : "s",
                r->build && *r->build ? ", " : "", r->build ? r->build : "");
    if (r->steps)
        text_add(&t, ", steps alone");
    return t.s;
}

/* The series with that name; makes it if it is missing. */
static Series *series_named(Arena *a, Chart *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->series[i].name, name) == 0)
            return &c->series[i];
    const Series s = {.name = name,
                      .line = true,
                      .dots = true,
                      .colour = c->n % CHART_COLOURS,
                      .dashed = c->n % 2 == 1};
    ARENA_PUSH(a, c->series, c->n, s);
    return &c->series[c->n - 1];
}

static void add_point(Arena *a, Series *s, Point p)
{
    ARENA_PUSH(a, s->point, s->n, p);
}

/* ---- throughput */

static void throughput(Report *r, const char *model)
{
    Arena *a = r->arena;
    Chart c = {.title = model,
               .x = "batch",
               .y = "samples/s, median and spread",
               .log_x = true,
               .base_x = 2,
               .from_zero = true};
    for (int i = 0; i < r->n; i++) {
        const Group *g = &r->group[i];
        if (!of_model(g, model))
            continue;
        add_point(a, series_named(a, &c, line_name(r, g->first)),
                  (Point){(double)g->first->batch, g->median, g->least, g->most,
                          arena_printf(a, "batch %" PRId64 ", %s: %s samples/s, %d runs",
                                       g->first->batch, line_name(r, g->first),
                                       text_commas(a, llround(g->median)), g->n)});
    }
    chart_draw(r->out, &c);
}

void report_throughput(Report *r)
{
    report_begin(r, "throughput", "Samples a second");
    text_add(r->out, "<div class=charts>\n");
    for (int i = 0; i < r->nmodel; i++)
        throughput(r, r->model[i]);
    text_add(r->out, "</div>\n");
    report_end(r);
}

/* ---- scaling */

/* The group with the same settings on one processor. */
static const Group *alone(const Report *r, const Group *g)
{
    for (int i = 0; i < r->n; i++) {
        const Run *x = r->group[i].first, *y = g->first;
        if (of_model(&r->group[i], y->model) && lanes(x) == 1 && x->batch == y->batch &&
            x->steps == y->steps && x->epochs == y->epochs && strcmp(x->build, y->build) == 0 &&
            strcmp(x->framework, y->framework) == 0)
            return &r->group[i];
    }
    return NULL;
}

static bool scaling(Report *r, const char *model, Chart *c)
{
    Arena *a = r->arena;
    int64_t most = 1;
    for (int i = 0; i < r->n; i++) {
        const Group *g = &r->group[i], *one = of_model(g, model) ? alone(r, g) : NULL;
        if (!one)
            continue;
        const char *how = g->first->ranks > 1 ? " by ranks" : "";
        const double up = g->median / one->median;
        most = lanes(g->first) > most ? lanes(g->first) : most;
        if (lanes(g->first) == 1)
            continue;
        Series *s = series_named(a, c,
                                 arena_printf(a, "%sbatch %" PRId64 "%s%s%s", who(r, g->first),
                                              g->first->batch, how,
                                              g->first->build && *g->first->build ? ", " : "",
                                              g->first->build ? g->first->build : ""));
        if (!s->n)
            add_point(a, s, (Point){1, 1, 1, 1, NULL});
        add_point(a, s,
                  (Point){(double)lanes(g->first), up, g->least / one->median,
                          g->most / one->median,
                          arena_printf(a, "%" PRId64 " processors: %.2f times one, %.0f %% each",
                                       lanes(g->first), up, 100 * up / (double)lanes(g->first))});
    }
    if (!c->n)
        return false;
    Series *s = series_named(a, c, "each processor as fast as one alone");
    s->dots = false;
    s->dashed = true;
    s->colour = 7;
    add_point(a, s, (Point){1, 1, 1, 1, NULL});
    add_point(a, s, (Point){(double)most, (double)most, (double)most, (double)most, NULL});
    return true;
}

void report_scaling(Report *r)
{
    bool begun = false;
    for (int i = 0; i < r->nmodel; i++) {
        Chart c = {.title = r->model[i],
                   .x = "processors",
                   .y = "times as fast as one",
                   .log_x = true,
                   .base_x = 2,
                   .from_zero = true};
        if (!scaling(r, r->model[i], &c))
            continue;
        if (!begun) {
            report_begin(r, "scaling", "Scaling");
            text_add(r->out, "<div class=charts>\n");
        }
        begun = true;
        chart_draw(r->out, &c);
    }
    if (begun) {
        text_add(r->out, "</div>\n");
        report_end(r);
    }
}

/* ---- accuracy and loss */

/* One curve for each batch and framework: the first run on the most processors.  Other runs of Tenon have the same bits. */
static bool shown(const Report *r, const Group *g)
{
    for (int i = 0; i < r->n; i++) {
        const Run *x = r->group[i].first, *y = g->first;
        if (of_model(&r->group[i], y->model) && x->batch == y->batch &&
            strcmp(x->build, y->build) == 0 && strcmp(x->framework, y->framework) == 0 &&
            x->nepoch > 1 && (lanes(x) > lanes(y) || (lanes(x) == lanes(y) && x->ranks < y->ranks)))
            return false;
    }
    return g->first->nepoch > 1;
}

/* If there are more curves than colours, draws only those of the smallest and the largest batch. */
static bool crowded_out(const Report *r, const Group *g)
{
    int64_t least = INT64_MAX, most = 0;
    int curves = 0;
    for (int i = 0; i < r->n; i++) {
        const int64_t batch = r->group[i].first->batch;
        if (!of_model(&r->group[i], g->first->model) || !shown(r, &r->group[i]))
            continue;
        curves++;
        least = batch < least ? batch : least;
        most = batch > most ? batch : most;
    }
    return curves > CHART_COLOURS && g->first->batch != least && g->first->batch != most;
}

/* Draws a number of each epoch; false: no run of the model has it. */
static bool curve(Report *r, const char *model, const char *name, size_t field)
{
    Arena *a = r->arena;
    Chart c = {.title = model, .x = "epoch", .y = name, .whole_x = true};
    for (int i = 0; i < r->n; i++) {
        const Run *run = r->group[i].first;
        if (!of_model(&r->group[i], model) || !shown(r, &r->group[i]) ||
            crowded_out(r, &r->group[i]))
            continue;
        Series *s = series_named(a, &c,
                                 arena_printf(a, "%sbatch %" PRId64 "%s%s", who(r, run), run->batch,
                                              *run->build ? ", " : "", run->build));
        for (int k = 0; k < run->nepoch; k++) {
            const double v = *(const double *)((const char *)&run->epoch[k] + field);
            if (!isnan(v))
                add_point(a, s,
                          (Point){(double)run->epoch[k].epoch, v, v, v,
                                  arena_printf(a, "batch %" PRId64 ", epoch %" PRId64 ": %.4f",
                                               run->batch, run->epoch[k].epoch, v)});
        }
    }
    bool any = false;
    for (int i = 0; i < c.n; i++)
        any = any || c.series[i].n > 0;
    if (any)
        chart_draw(r->out, &c);
    return any;
}

void report_curves(Report *r)
{
    bool any = false;
    for (int i = 0; i < r->n; i++)
        any = any || r->group[i].first->nepoch > 1;
    if (!any)
        return;
    report_begin(r, "curves", "Accuracy and loss");
    text_add(r->out, "<div class=charts>\n");
    for (int i = 0; i < r->nmodel; i++) {
        if (!curve(r, r->model[i], "test accuracy", offsetof(Epoch, test_accuracy)))
            curve(r, r->model[i], "test loss", offsetof(Epoch, test_loss));
        curve(r, r->model[i], "training loss", offsetof(Epoch, train_loss));
    }
    text_add(r->out, "</div>\n");
    report_end(r);
}

/* ---- roofline */

static void roofline(Report *r, const Group *g)
{
    Arena *a = r->arena;
    LayerTime *l;
    const int n = group_layers(a, g, &l);
    const double peak = group_median(g, offsetof(Run, peak_before)),
                 band = group_median(g, offsetof(Run, bandwidth));
    double low = INFINITY, high = 0;
    Chart c = {.title = group_name(a, g->first),
               .x = "FLOP a byte moved (counted)",
               .y = "GFLOP/s, a dot a layer",
               .log_x = true,
               .log_y = true,
               .base_x = 10};
    Series dots = {.name = "layers", .dots = true},
           roof = {.name = "FMA peak, bandwidth of memory", .line = true, .colour = 7};
    for (int i = 0; i < n; i++) {
        if (!(l[i].flops > 0 && l[i].bytes > 0 && l[i].gflops > 0))
            continue;
        const double x = l[i].flops / l[i].bytes;
        low = fmin(low, x);
        high = fmax(high, x);
        add_point(a, &dots,
                  (Point){x, l[i].gflops, l[i].gflops, l[i].gflops,
                          arena_printf(a, "%s (%s): %.1f GFLOP/s, %.1f FLOP a byte, %.3f ms",
                                       l[i].layer->layer, l[i].layer->kernel, l[i].gflops, x,
                                       l[i].ms)});
    }
    if (!dots.n || isnan(peak) || isnan(band))
        return;
    const double ridge = peak / band, left = fmin(low, ridge) / 2, right = fmax(high, ridge) * 2;
    add_point(a, &roof, (Point){left, band * left, band * left, band * left, NULL});
    add_point(a, &roof, (Point){ridge, peak, peak, peak, NULL});
    add_point(a, &roof, (Point){right, peak, peak, peak, NULL});
    ARENA_PUSH(a, c.series, c.n, roof);
    ARENA_PUSH(a, c.series, c.n, dots);
    chart_draw(r->out, &c);
}

void report_roofline(Report *r)
{
    bool any = false;
    for (int i = 0; i < r->n; i++)
        for (int k = 0; k < r->group[i].first->nlayer; k++)
            any = any || r->group[i].first->layer[k].bytes > 0;
    if (!any)
        return;
    report_begin(r, "roofline", "Roofline");
    text_add(r->out,
             "<p>What a layer computes a second, over what it computes for each byte that it reads "
             "or writes. Both are counted, not measured: "
             "the textbook's operations, each operand once. Layers that need fewer operations than "
             "the textbook's may lie above the roof; those whose operands come from a cache lie "
             "above the "
             "slope. Of each model: its fastest configuration.</p>\n<div class=charts>\n");
    for (int i = 0; i < r->nmodel; i++) {
        const Group *g = report_fastest(r, r->model[i], true);
        if (g)
            roofline(r, g);
    }
    text_add(r->out, "</div>\n");
    report_end(r);
}
