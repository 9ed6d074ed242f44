/* plot.c -- samples/s in the terminal: a bar for each configuration, full up to the slowest run, light up to the fastest. */
#include "sweep/results.h"
#include "sweep/screen.h"
#include <math.h>
#include <string.h>

static void bar(Text *t, const Group *g, double most, int width, bool utf8)
{
    const int full = (int)lround(g->least / most * width),
              end = (int)fmax(1, round(g->most / most * width));
    const int middle = (int)lround(g->median / most * width);
    for (int i = 0; i < end; i++)
        text_add(t, i < full     ? (utf8 ? "█" : "#")
                    : i < middle ? (utf8 ? "▓" : "=")
                                 : (utf8 ? "░" : "-"));
}

static double most_of(const Results *r, const char *model)
{
    double most = 0;
    for (int i = 0; i < r->ngroup; i++)
        if (strcmp(r->group[i].first->model, model) == 0)
            most = fmax(most, r->group[i].most);
    return most;
}

int results_plot(Results *r)
{
    if (r->output)
        return results_picture(r);
    Text t = text_new(r->arena);
    const Screen s = screen_of_stdout(false);
    size_t name = 0;
    for (int i = 0; i < r->ngroup; i++) {
        const size_t n =
            strlen(group_where(r->arena, r->group[i].first)) + strlen(r->group[i].first->label) + 2;
        name = n > name ? n : name;
    }
    const int room = s.columns - (int)name - 14, width = room > 10 ? room : 10;
    const char *model = "";
    for (int i = 0; i < r->ngroup; i++) {
        const Group *g = &r->group[i];
        if (!g->n)
            continue;
        if (strcmp(g->first->model, model) != 0)
            text_printf(&t, "%s%s, samples/s\n", *model ? "\n" : "", g->first->model);
        model = g->first->model;
        text_printf(&t, "%-*s %10s ", (int)name,
                    arena_printf(r->arena, "%s  %s", group_where(r->arena, g->first),
                                 g->first->label),
                    text_commas(r->arena, llround(g->median)));
        bar(&t, g, most_of(r, model), width, s.utf8);
        text_add(&t, "\n");
    }
    return results_write(r, &t);
}
