/* frameworks.c -- the section of the report that compares Tenon with the other frameworks of the same sweep. */
#include "sweep/compare.h"
#include "sweep/framework.h"
#include "sweep/report.h"
#include <math.h>

static bool foreign(const Run *r)
{
    return r->framework && framework_find(r->framework)->to;
}

/* Tenon's group with the same training, or NULL. */
static const Group *ours(const Report *r, const Run *b)
{
    for (int i = 0; i < r->n; i++) {
        const Run *a = r->group[i].first;
        if (!foreign(a) && same_text(a->model, b->model) && same_text(a->data, b->data) &&
            same_text(a->build, b->build) && a->batch == b->batch && a->threads == b->threads &&
            a->ranks == b->ranks && a->gpus == b->gpus && a->epochs == b->epochs &&
            a->limit_samples == b->limit_samples)
            return &r->group[i];
    }
    return NULL;
}

static void number(Text *t, const char *text)
{
    text_printf(t, "<td class=n>%s</td>", text);
}

static const char *bytes(Arena *a, int64_t n)
{
    return n > 0 ? text_bytes(a, n) : "–";
}

static void row(Report *r, const Group *other, const Group *own)
{
    Arena *a = r->arena;
    Text *t = r->out;
    const double theirs = group_median(other, offsetof(Run, accuracy)),
                 mine = group_median(own, offsetof(Run, accuracy));
    Change c;
    compare_groups(a, other, own, 0, &c);
    text_add(t, "<tr><td>");
    html_add(t, group_name(a, other->first));
    text_add(t, "</td>");
    number(t, text_commas(a, llround(other->median)));
    number(t, text_commas(a, llround(own->median)));
    number(t, arena_printf(a, "%.2f", c.ratio.value));
    number(t, c.kind == CHANGE_UNKNOWN ? "too few runs"
                                       : arena_printf(a, "%.2f – %.2f", c.ratio.low, c.ratio.high));
    number(t, isnan(theirs) ? "–" : arena_printf(a, "%.4f", theirs));
    number(t, isnan(mine) ? "–" : arena_printf(a, "%.4f", mine));
    number(t, bytes(a, other->first->peak_bytes));
    number(t, bytes(a, own->first->peak_bytes));
    text_add(t, "</tr>\n");
}

void report_frameworks(Report *r)
{
    bool begun = false;
    for (int i = 0; i < r->n; i++) {
        const Group *other = &r->group[i];
        const Group *own = foreign(other->first) ? ours(r, other->first) : NULL;
        if (!own)
            continue;
        if (!begun) {
            report_begin(r, "frameworks", "Beside other frameworks");
            text_add(r->out, "<div class=scroll><table><tr><th>what<th class=n>its samples/s<th "
                             "class=n>Tenon's<th class=n>ratio<th class=n>99 % interval<th "
                             "class=n>its accuracy<th class=n>Tenon's<th class=n>its memory<th "
                             "class=n>Tenon's</tr>\n");
        }
        begun = true;
        row(r, other, own);
    }
    if (!begun)
        return;
    text_add(r->out, "</table></div>\n<p class=soft>The same network, data, recipe and number of "
                     "processors, in scripts that <code>tenon emit</code> wrote; accuracy on the "
                     "test set after the last epoch; memory: the most that the process had.</p>\n");
    report_end(r);
}
