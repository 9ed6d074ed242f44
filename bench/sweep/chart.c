/* chart.c -- a chart as a few lines of SVG, see chart.h. */
#include "sweep/chart.h"
#include "base/quote.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 400, HEIGHT = 250, LEFT = 44, RIGHT = 10, TOP = 10, BOTTOM = 38, TICKS = 24 };

typedef struct Axis {
    double low, high;
    bool log;
    int from, to; /* units of the drawing */
    double tick[TICKS];
    int nticks;
} Axis;

void html_add(Text *t, const char *s)
{
    text_add(t, quote_xml(t->arena, s));
}

/* 15000 -> "15k" */
static const char *chart_number(Arena *a, double v)
{
    const double m = fabs(v);
    return m >= 1e9           ? arena_printf(a, "%.3gG", v / 1e9)
           : m >= 1e6         ? arena_printf(a, "%.3gM", v / 1e6)
           : m >= 10000       ? arena_printf(a, "%.3gk", v / 1e3)
           : m >= 1 || v == 0 ? arena_printf(a, "%.4g", v)
                              : arena_printf(a, "%.3g", v);
}

/* ---- axes */

static double place(const Axis *a, double v)
{
    const double u =
        a->log ? log(v / a->low) / log(a->high / a->low) : (v - a->low) / (a->high - a->low);
    return a->from + u * (a->to - a->from);
}

static void add_tick(Axis *a, double v)
{
    const double slack = a->log ? 1.0001 : 1e-9 * (a->high - a->low);
    const bool inside = a->log ? v >= a->low / slack && v <= a->high * slack
                               : v >= a->low - slack && v <= a->high + slack;
    if (inside && a->nticks < TICKS)
        a->tick[a->nticks++] = v;
}

/* Steps of 1, 2 or 5 times a power of ten, about five of them. */
static void linear_ticks(Axis *a, bool whole)
{
    const double rough = (a->high - a->low) / 5, power = pow(10, floor(log10(rough))),
                 m = rough / power;
    const double nice = power * (m < 1.5 ? 1 : m < 3.5 ? 2 : m < 7.5 ? 5 : 10);
    const double step = whole && nice < 1 ? 1 : nice;
    for (double v = ceil(a->low / step - 1e-9); v * step <= a->high + 1e-9 * step; v++)
        add_tick(a, v * step + 0.0); /* no -0 */
}

static void log_ticks(Axis *a, double base)
{
    for (double e = floor(log(a->low) / log(base)); e <= log(a->high) / log(base) + 1e-9; e++)
        add_tick(a, pow(base, e));
}

/* The ranges of all points; that of y includes the whiskers. */
static void range(const Chart *c, bool y, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < c->series[i].n; k++) {
            const Point *p = &c->series[i].point[k];
            *low = fmin(*low, y ? fmin(p->y, p->low) : p->x);
            *high = fmax(*high, y ? fmax(p->y, p->high) : p->x);
        }
}

static Axis x_axis(const Chart *c)
{
    Axis a = {.log = c->log_x, .from = LEFT, .to = WIDTH - RIGHT};
    range(c, false, &a.low, &a.high);
    if (a.log) {
        a.low /= 1.12;
        a.high *= 1.12;
        log_ticks(&a, c->base_x);
    } else {
        const double room = a.high > a.low ? 0.03 * (a.high - a.low) : 1;
        a.low -= room;
        a.high += room;
        linear_ticks(&a, c->whole_x);
    }
    return a;
}

static Axis y_axis(const Chart *c)
{
    Axis a = {.log = c->log_y, .from = HEIGHT - BOTTOM, .to = TOP};
    range(c, true, &a.low, &a.high);
    if (a.log) {
        a.low /= 1.5;
        a.high *= 1.5;
        log_ticks(&a, 10);
        return a;
    }
    a.high = c->most_y > 0 ? c->most_y : a.high;
    a.low = c->from_zero ? 0 : a.low;
    const double room = a.high > a.low ? 0.06 * (a.high - a.low) : fabs(a.high) + 1e-9;
    a.high += c->most_y > 0 ? 0 : room;
    a.low -= c->from_zero ? 0 : room;
    linear_ticks(&a, false);
    return a;
}

static void draw_axes(Text *t, const Chart *c, const Axis *x, const Axis *y)
{
    const int bottom = HEIGHT - BOTTOM;
    const int every = x->nticks > 8 ? 2 : 1; /* else the labels of ticks would touch */
    for (int i = 0; i < y->nticks; i++) {
        const double at = place(y, y->tick[i]);
        text_printf(t, "<path class=g d=\"M%d %.1fH%d\"/><text class=e x=%d y=%.1f>", LEFT, at,
                    WIDTH - RIGHT, LEFT - 5, at + 3.5);
        text_printf(t, "%s</text>", chart_number(t->arena, y->tick[i]));
    }
    for (int i = 0; i < x->nticks; i++) {
        const double at = place(x, x->tick[i]);
        text_printf(t, "<path class=a d=\"M%.1f %dv4\"/>", at, bottom);
        if (i % every == 0)
            text_printf(t, "<text class=m x=%.1f y=%d>%s</text>", at, bottom + 15,
                        chart_number(t->arena, x->tick[i]));
    }
    text_printf(t, "<path class=a d=\"M%d %dH%d\"/><text class=m x=%d y=%d>", LEFT, bottom,
                WIDTH - RIGHT, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5);
    html_add(t, c->x);
    text_add(t, "</text>");
}

/* ---- data */

static void draw_series(Text *t, const Series *s, const Axis *x, const Axis *y)
{
    if (s->line) {
        text_printf(t, "<path class=\"l c%d%s\" d=\"", s->colour, s->dashed ? " d" : "");
        for (int i = 0; i < s->n; i++)
            text_printf(t, "%c%.1f %.1f", i ? 'L' : 'M', place(x, s->point[i].x),
                        place(y, s->point[i].y));
        text_add(t, "\"/>");
    }
    for (int i = 0; i < s->n; i++) {
        const Point *p = &s->point[i];
        const double px = place(x, p->x), py = place(y, p->y);
        if (p->high > p->low)
            text_printf(t, "<path class=\"w c%d\" d=\"M%.1f %.1fV%.1fm-3 0h6M%.1f %.1fh6\"/>",
                        s->colour, px, place(y, p->low), place(y, p->high), px - 3,
                        place(y, p->low));
        if (s->dots) {
            text_printf(t, "<circle class=\"p c%d\" cx=%.1f cy=%.1f r=3.2>", s->colour, px, py);
            if (p->tip) {
                text_add(t, "<title>");
                html_add(t, p->tip);
                text_add(t, "</title>");
            }
            text_add(t, "</circle>");
        }
    }
}

static void legend(Text *t, const Chart *c)
{
    text_add(t, "<div class=legend>");
    for (int i = 0; i < c->n; i++) {
        if (!c->series[i].name)
            continue;
        text_printf(t,
                    "<span><svg viewBox=\"0 0 18 8\" aria-hidden=true><path class=\"l c%d%s\" "
                    "d=\"M0 4H18\"/></svg>",
                    c->series[i].colour, c->series[i].dashed ? " d" : "");
        html_add(t, c->series[i].name);
        text_add(t, "</span> ");
    }
    text_add(t, "</div>");
}

void chart_draw(Text *t, const Chart *c)
{
    const Axis x = x_axis(c), y = y_axis(c);
    text_add(t, "<figure><figcaption>");
    html_add(t, c->title);
    text_add(t, " <small>");
    html_add(t, c->y);
    text_printf(t,
                "</small></figcaption><svg class=chart viewBox=\"0 0 %d %d\" role=img "
                "aria-label=\"",
                WIDTH, HEIGHT);
    html_add(t, c->title);
    text_add(t, "\">");
    draw_axes(t, c, &x, &y);
    for (int i = 0; i < c->n; i++)
        draw_series(t, &c->series[i], &x, &y);
    text_add(t, "</svg>");
    legend(t, c);
    text_add(t, "</figure>\n");
}
