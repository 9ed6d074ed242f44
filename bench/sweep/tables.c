/* tables.c -- the sections of the report that are text and tables. */
#include "sweep/compare.h"
#include "sweep/report.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *rate(Arena *a, double v)
{
    return isnan(v) ? "–" : v < 100 ? arena_printf(a, "%.1f", v) : text_commas(a, llround(v));
}

static const char *real(Arena *a, double v, int digits)
{
    return isnan(v) ? "–" : arena_printf(a, "%.*f", digits, v);
}

static void cell(Text *t, const char *s)
{
    text_add(t, "<td>");
    html_add(t, s);
    text_add(t, "</td>");
}

static void number(Text *t, const char *s)
{
    text_add(t, "<td class=n>");
    html_add(t, s);
    text_add(t, "</td>");
}

static double share_of_peak(const Group *g)
{
    return 1e-9 * g->median * group_median(g, offsetof(Run, flops_per_sample)) /
           group_median(g, offsetof(Run, peak_before));
}

/* ---- summary */

const Group *report_fastest(const Report *r, const char *model, bool layers)
{
    const Group *best = NULL;
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->group[i].first->model, model) == 0 &&
            (!layers || r->group[i].first->nlayer) && (!best || r->group[i].median > best->median))
            best = &r->group[i];
    return best;
}

/* "2026-11-21T19:58:31Z" -> "2026-11-21 19:58" */
static const char *moment(Arena *a, const char *iso)
{
    return strlen(iso) < 16 ? iso : arena_printf(a, "%.10s %.5s", iso, iso + 11);
}

static void counts(Report *r)
{
    const Results *s = r->results;
    int failed = 0, disturbed = 0, runs = 0;
    for (int i = 0; i < s->ngroup; i++) {
        runs += s->group[i].n;
        failed += s->group[i].failed;
        disturbed += s->group[i].disturbed;
    }
    const Run *first = &s->run[0], *last = &s->run[s->nrun - 1];
    text_printf(r->out, "<p>%d run%s of %d configuration%s between %s and %s UTC", runs,
                runs == 1 ? "" : "s", s->ngroup, s->ngroup == 1 ? "" : "s",
                moment(r->arena, first->started), moment(r->arena, last->started));
    text_add(r->out, " on ");
    html_add(r->out, last->infrastructure);
    text_add(r->out, ", ");
    html_add(r->out, last->compiler);
    text_add(r->out, ". Shown is the version <b>");
    html_add(r->out, r->label);
    text_add(r->out, "</b>.");
    if (failed)
        text_printf(r->out, " <span class=bad>%d run%s failed.</span>", failed,
                    failed == 1 ? "" : "s");
    if (disturbed)
        text_printf(r->out,
                    " <span class=bad>In %d run%s other work disturbed the machine</span>, even in "
                    "the last attempt: read "
                    "their figures as lower bounds.",
                    disturbed, disturbed == 1 ? "" : "s");
    text_add(r->out, "</p>\n");
}

void report_summary(Report *r)
{
    Arena *a = r->arena;
    Text *t = r->out;
    report_begin(r, "summary", "Summary");
    counts(r);
    text_add(t, "<div class=scroll><table><tr><th>model<th class=n>fastest, samples/s<th>at<th "
                "class=n>share of FMA peak<th class=n>s/epoch"
                "<th class=n>accuracy</tr>\n");
    for (int i = 0; i < r->nmodel; i++) {
        const Group *g = report_fastest(r, r->model[i], false);
        const double share = share_of_peak(g);
        text_add(t, "<tr>");
        cell(t, r->model[i]);
        number(t, rate(a, g->median));
        cell(t, group_where(a, g->first));
        number(t, isnan(share) ? "–" : arena_printf(a, "%.0f %%", 100 * share));
        number(t, real(a, group_median(g, offsetof(Run, epoch_s)), 3));
        number(t, real(a, group_median(g, offsetof(Run, accuracy)), 4));
        text_add(t, "</tr>\n");
    }
    text_add(t, "</table></div>\n");
    report_end(r);
}

/* ---- all figures */

void report_table(Report *r)
{
    Arena *a = r->arena;
    Text *t = r->out;
    report_begin(r, "all", "All figures");
    text_add(t, "<div class=scroll><table><tr><th>version<th>model<th>settings<th "
                "class=n>samples/s<th class=n>least<th class=n>most<th class=n>runs"
                "<th class=n>s/epoch<th class=n>accuracy<th class=n>FMA peak<th class=n>first "
                "step, ms<th class=n>compile, s<th class=n>energy, J</tr>\n");
    for (int i = 0; i < r->results->ngroup; i++) {
        const Group *g = &r->results->group[i];
        const double share = share_of_peak(g);
        if (!g->n)
            continue;
        text_add(t, "<tr>");
        cell(t, g->first->label);
        cell(t, g->first->model);
        cell(t, group_where(a, g->first));
        number(t, rate(a, g->median));
        number(t, rate(a, g->least));
        number(t, rate(a, g->most));
        number(t, arena_printf(a, g->disturbed ? "%d (%d disturbed)" : "%d", g->n, g->disturbed));
        number(t, real(a, group_median(g, offsetof(Run, epoch_s)), 3));
        number(t, real(a, group_median(g, offsetof(Run, accuracy)), 4));
        number(t, isnan(share) ? "–" : arena_printf(a, "%.0f %%", 100 * share));
        number(t, real(a, group_median(g, offsetof(Run, first_step_ms)), 1));
        number(t, real(a, group_median(g, offsetof(Run, compile_s)), 1));
        number(t, real(a, group_median(g, offsetof(Run, joules)), 0));
        text_add(t, "</tr>\n");
    }
    text_add(t, "</table></div>\n<p class=soft>A run's samples/s is the median of its epochs after "
                "the first; shown is the median of the runs. FMA peak: the "
                "textbook's operations over what the processors could do at most, measured just "
                "before. Compile: with what the cache held.</p>\n");
    report_end(r);
}

/* ---- memory */

static void bar(Text *t, double share, const char *class, const char *text)
{
    text_printf(t, "<div><span class=\"bar %s\" style=\"width:%.1f%%\"></span> <small>", class,
                70 * share);
    html_add(t, text);
    text_add(t, "</small></div>");
}

void report_memory(Report *r)
{
    Text *t = r->out;
    Arena *a = r->arena;
    int64_t most = 0;
    for (int i = 0; i < r->n; i++) {
        const Run *run = r->group[i].first;
        const int64_t m =
            run->peak_bytes > run->planned_bytes ? run->peak_bytes : run->planned_bytes;
        most = run->planned_bytes && m > most ? m : most;
    }
    if (!most)
        return;
    report_begin(r, "memory", "Memory, planned and measured");
    text_add(t, "<div class=scroll><table><tr><th>model<th>settings<th>planned, measured</tr>\n");
    for (int i = 0; i < r->n; i++) {
        const Run *run = r->group[i].first;
        if (!run->planned_bytes)
            continue;
        text_add(t, "<tr>");
        cell(t, run->model);
        cell(t, group_where(a, run));
        text_add(t, "<td class=bars>");
        bar(t, (double)run->planned_bytes / (double)most, "b0", text_bytes(a, run->planned_bytes));
        bar(t, (double)run->peak_bytes / (double)most, "b1",
            arena_printf(a, "%s measured", text_bytes(a, run->peak_bytes)));
        text_add(t, "</td></tr>\n");
    }
    text_add(t, "</table></div>\n<p class=soft>Planned: parameters, gradients and activations, to "
                "the byte, before the run. Measured: the most that the "
                "process had, its code, libraries and the data set included. With ranks: of one of "
                "them.</p>\n");
    report_end(r);
}

/* ---- the account of a step */

static void account(Report *r, const Group *g, bool open)
{
    enum { SMALL = 200 }; /* layers below 1 / SMALL of the step are shown as one row */
    Arena *a = r->arena;
    Text *t = r->out;
    LayerTime *l;
    const int n = group_layers(a, g, &l);
    double all = 0, rest = 0, most = 0;
    for (int i = 0; i < n; i++) {
        all += l[i].ms;
        most = fmax(most, l[i].ms);
    }
    text_add(t, open ? "<details open><summary>" : "<details><summary>");
    html_add(t, group_name(a, g->first));
    text_printf(t,
                ": %.3f ms a step</summary><div class=scroll><table><tr><th>layer<th>kernel<th "
                "class=n>ms<th class=n>%%<th class=n>GFLOP/s<th></tr>\n",
                all);
    for (int i = 0; i < n; i++) {
        const bool call = l[i].layer->kernel != NULL;
        if (l[i].ms < all / SMALL) {
            rest += l[i].ms;
            continue;
        }
        text_add(t, "<tr>");
        cell(t, l[i].layer->layer);
        cell(t, call ? l[i].layer->kernel : "");
        number(t, real(a, l[i].ms, 3));
        number(t, real(a, 100 * l[i].ms / all, 1));
        number(t, l[i].gflops > 0 ? real(a, l[i].gflops, 1) : "");
        text_printf(t,
                    "<td class=bars><span class=\"bar %s\" "
                    "style=\"width:%.1f%%\"></span></td></tr>\n",
                    call ? "b0" : "b7", 100 * l[i].ms / most);
    }
    text_printf(t,
                "<tr><td>the others<td><td class=n>%.3f<td "
                "class=n>%.1f<td><td></tr></table></div></details>\n",
                rest, 100 * rest / all);
}

void report_account(Report *r)
{
    bool any = false;
    for (int i = 0; i < r->n; i++)
        any = any || r->group[i].first->nlayer;
    if (!any)
        return;
    report_begin(r, "account", "Where the time of a step goes");
    text_add(r->out, "<p>Thread time of a step, divided by the threads; it adds up to the whole. "
                     "Grey: waiting. Medians of the runs.</p>\n");
    bool open = true;
    for (int i = 0; i < r->n; i++)
        if (r->group[i].first->nlayer) {
            account(r, &r->group[i], open);
            open = false;
        }
    report_end(r);
}

/* ---- differences */

static void difference(Report *r, const Change *c)
{
    static const char *const word[] = {[CHANGE_NONE] = "no change",
                                       [CHANGE_SLOWER] = "<span class=bad>slower</span>",
                                       [CHANGE_FASTER] = "<span class=good>faster</span>",
                                       [CHANGE_UNKNOWN] = "too few runs to say"};
    Text *t = r->out;
    Arena *a = r->arena;
    text_add(t, "<tr>");
    cell(t, group_name(a, c->a->first));
    number(t, rate(a, c->a->median));
    number(t, rate(a, c->b->median));
    number(t, arena_printf(a, "%.3f", c->ratio.value));
    number(t, arena_printf(a, "%.3f – %.3f", c->ratio.low, c->ratio.high));
    text_printf(t, "<td>%s</td><td class=wrap>", word[c->kind]);
    for (int i = 0; i < c->npart && i < 5; i++)
        html_add(t, arena_printf(a, "%s%s (%s) %+.0f %%", i ? ", " : "", c->part[i].layer->layer,
                                 c->part[i].layer->kernel ? c->part[i].layer->kernel : "waiting",
                                 100 * c->part[i].share));
    text_add(t, "</td></tr>\n");
}

void report_differences(Report *r)
{
    const Results *s = r->results;
    bool begun = false;
    for (int i = 0; i < s->ngroup && r->before; i++) {
        const Group *old = &s->group[i];
        const Group *now = strcmp(old->first->label, r->before) == 0 && old->n
                               ? compare_partner(r->group, r->n, old)
                               : NULL;
        Change c;
        if (!now)
            continue;
        if (!begun) {
            report_begin(r, "differences",
                         arena_printf(r->arena, "From %s to %s", r->before, r->label));
            text_add(r->out,
                     "<div class=scroll><table><tr><th>what<th class=n>before<th class=n>now<th "
                     "class=n>ratio<th class=n>99 % interval<th><th>layers</tr>\n");
        }
        begun = true;
        compare_groups(r->arena, old, now, s->floor, &c);
        difference(r, &c);
    }
    if (!begun)
        return;
    text_printf(r->out,
                "</table></div>\n<p class=soft>A change counts when its interval excludes 1 and it "
                "exceeds %.0f %%.</p>\n",
                100 * s->floor);
    report_end(r);
}

/* ---- failures, machine */

void report_failures(Report *r)
{
    const Results *s = r->results;
    bool begun = false;
    for (int i = 0; i < s->nrun; i++) {
        const Run *run = &s->run[i];
        if (strcmp(run->status, "done") == 0)
            continue;
        if (!begun)
            report_begin(r, "failed", "Failed runs");
        begun = true;
        text_printf(r->out, "<h3>%" PRId64 ": ", run->id);
        html_add(r->out, group_name(r->arena, run));
        text_add(r->out, "</h3><pre>");
        html_add(r->out, run->message);
        text_add(r->out, "</pre>\n");
    }
    if (begun)
        report_end(r);
}

void report_machine(Report *r)
{
    const Results *s = r->results;
    const char *seen = "";
    report_begin(r, "machine", "Machine");
    for (int i = s->nrun - 1; i >= 0; i--) {
        const char *hash = s->run[i].machine;
        if (!hash || strcmp(hash, seen) == 0)
            continue;
        seen = hash;
        text_add(r->out, "<pre>");
        html_add(r->out, store_text_of(s->store, hash));
        if (!isnan(s->run[i].peak_before))
            text_printf(r->out, "FMA peak: %.0f GFLOP/s of %" PRId64 " threads\n",
                        s->run[i].peak_before, s->run[i].threads * s->run[i].ranks);
        if (!isnan(s->run[i].mhz))
            text_printf(r->out, "clock before a run: %.0f MHz\n", s->run[i].mhz);
        text_add(r->out, "</pre>\n");
    }
    report_end(r);
}
