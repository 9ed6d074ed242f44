/* memory.c -- the memory plan as SVG: offset and lifetime of each buffer.
 *
 * There is a panel for each region whose memory is reused: memory from top to bottom, the step from
 * left to right.  A box is a buffer, from the phase or call that writes it to the last one that
 * reads it.  Lifetimes are counted in phases for buffers of a shard, and in calls of one phase for
 * buffers of a thread.  White memory is unused.  A bar shows the memory that is always in use.
 */
#include "base/quote.h"
#include "ir/step.h"
#include "ops/op.h"
#include "pictures/pictures.h"
#include <string.h>

enum { WIDE = 1000, HIGH = 320, LEFT = 90, GAP = 56, TEXT = 11 };

typedef struct Panel {
    Text *out;
    const Step *step;
    bool thread;         /* true: thread region; false: shard region */
    int64_t bytes, used; /* size of the region; part that training uses */
    int first, last;     /* phases or calls */
    double top;
} Panel;

static bool panel_has(const Panel *p, const Buffer *b)
{
    return p->thread ? b->place == PLACE_LOCAL
                     : b->place == PLACE_BATCH || b->place == PLACE_PARTIAL;
}

static double x_of(const Panel *p, int when)
{
    return LEFT + (double)(when - p->first) * (WIDE - LEFT) / (p->last + 1 - p->first);
}

static double y_of(const Panel *p, int64_t at)
{
    return p->top + (double)at * HIGH / (double)p->bytes;
}

static const char *color(const Buffer *b)
{
    return b->node->backward                                                       ? "#e9a6a0"
           : b->place == PLACE_PARTIAL || b->node->op->flags & (OP_SUM | OP_TOTAL) ? "#d8cf96"
                                                                                   : "#9dbfe0";
}

static void draw_box(const Panel *p, const Buffer *b)
{
    const double x = x_of(p, b->first), y = y_of(p, b->offset), w = x_of(p, b->last + 1) - x,
                 h = y_of(p, b->offset + b->bytes) - y;
    Text *out = p->out;
    text_printf(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.2f\" fill=\"%s\" "
                "stroke=\"#555\" stroke-width=\"%s\"><title>",
                x, y, w, h, color(b), h > 3 ? "0.5" : "0.1");
    text_add(out, quote_xml(out->arena, b->name));
    text_printf(out, " %s, %s, %d to %d</title></rect>\n", shape_text(out->arena, &b->node->shape),
                text_bytes(out->arena, b->bytes), b->first, b->last);
    if (h < TEXT || w < 7.0 * (double)strlen(b->name))
        return;
    text_printf(out, "<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + h / 2 + 4);
    text_add(out, quote_xml(out->arena, b->name));
    text_add(out, "</text>\n");
}

static void measure_panel(Panel *p)
{
    p->first = INT32_MAX, p->last = 0, p->used = 0;
    for (int i = 0; i < p->step->nbuffer; i++) {
        const Buffer *b = &p->step->buffer[i];
        if (!panel_has(p, b))
            continue;
        p->first = b->first < p->first ? b->first : p->first;
        p->last = b->last > p->last ? b->last : p->last;
        p->used = b->offset + b->bytes > p->used ? b->offset + b->bytes : p->used;
    }
    p->bytes = p->thread ? p->step->thread_bytes : p->step->shard_bytes;
    p->bytes = p->used > p->bytes ? p->used : p->bytes;
}

/* Draws the scale of bytes: the largest offset is at the bottom, with four marks. */
static void draw_scale(const Panel *p, const char *title)
{
    Text *out = p->out;
    text_printf(out, "<text x=\"%d\" y=\"%.1f\" font-weight=\"bold\">%s: %s, %s %d to %d</text>\n",
                LEFT, p->top - 8, title, text_bytes(out->arena, p->bytes),
                p->thread ? "calls" : "phases", p->first, p->last);
    for (int i = 0; i <= 4; i++)
        text_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", LEFT - 6,
                    y_of(p, p->bytes * i / 4) + 4, text_bytes(out->arena, p->bytes * i / 4));
    text_printf(out,
                "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\" fill=\"white\" "
                "stroke=\"#aaa\"/>\n",
                LEFT, p->top, WIDE - LEFT, HIGH);
}

/* Draws the part of the region that only evaluation uses. */
static void draw_rest(const Panel *p)
{
    const double y = y_of(p, p->used), h = y_of(p, p->bytes) - y;
    text_printf(p->out,
                "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.2f\" "
                "fill=\"#e8e8e8\"><title>evaluation, %s more</title></rect>\n",
                LEFT, y, WIDE - LEFT, h, text_bytes(p->out->arena, p->bytes - p->used));
    if (h >= TEXT)
        text_printf(p->out, "<text x=\"%d\" y=\"%.1f\">for evaluation: %s more</text>\n", LEFT + 3,
                    y + h / 2 + 4, text_bytes(p->out->arena, p->bytes - p->used));
}

/* Draws five ticks of phases or calls, and a line where the backward pass begins. */
static void draw_axis(const Panel *p)
{
    int back = INT32_MAX;
    for (int i = 0; i < p->step->nbuffer; i++) {
        const Buffer *b = &p->step->buffer[i];
        if (panel_has(p, b) && b->node->backward && b->first < back)
            back = b->first;
    }
    for (int i = 0; i <= 4; i++) {
        const int when = p->first + (int)((int64_t)(p->last - p->first) * i / 4);
        text_printf(p->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d</text>\n",
                    x_of(p, when), p->top + HIGH + TEXT + 2, when);
    }
    if (back > p->first && back <= p->last)
        text_printf(p->out,
                    "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#c0392b\" "
                    "stroke-dasharray=\"4 3\"/>\n"
                    "<text x=\"%.1f\" y=\"%.1f\" fill=\"#c0392b\">backward</text>\n",
                    x_of(p, back), p->top, x_of(p, back), p->top + HIGH, x_of(p, back) + 3,
                    p->top - 3.0);
}

static double draw_panel(Panel p, const char *title)
{
    measure_panel(&p);
    if (p.last < p.first || p.used == 0)
        return p.top;
    draw_scale(&p, title);
    if (p.bytes > p.used)
        draw_rest(&p);
    for (int i = 0; i < p.step->nbuffer; i++)
        if (panel_has(&p, &p.step->buffer[i]))
            draw_box(&p, &p.step->buffer[i]);
    draw_axis(&p);
    return p.top + HIGH + GAP;
}

/* Draws the memory in constant use as a bar: parameters, optimizer state, packed weights. */
static double draw_always(Text *out, const Step *s, double top)
{
    const struct {
        const char *name, *color;
        int64_t bytes;
    } part[] = {{"parameters", "#9dbfe0", s->parameter_bytes},
                {"optimizer state", "#b9d6b0", s->state_bytes},
                {"packed weights", "#d8cf96",
                 s->fixed_bytes - s->parameter_bytes - s->state_bytes}};
    double x = LEFT;
    text_printf(out, "<text x=\"%d\" y=\"%.1f\" font-weight=\"bold\">always: %s</text>\n", LEFT,
                top - 8, text_bytes(out->arena, s->fixed_bytes));
    for (int i = 0; i < 3; i++) {
        const double w = (double)part[i].bytes * (WIDE - LEFT) / (double)s->fixed_bytes;
        text_printf(out,
                    "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"24\" fill=\"%s\" "
                    "stroke=\"#555\" stroke-width=\"0.5\"/>\n",
                    x, top, w, part[i].color);
        if (w > 60)
            text_printf(out, "<text x=\"%.1f\" y=\"%.1f\">%s %s</text>\n", x + 4, top + 16,
                        part[i].name, text_bytes(out->arena, part[i].bytes));
        x += w;
    }
    return top + 24 + GAP;
}

void picture_memory(const Graph *g, Text *out)
{
    const Step *s = g->step;
    Text body = text_new(out->arena);
    double y = draw_always(&body, s, 56);
    y = draw_panel((Panel){.out = &body, .step = s, .top = y}, "a shard");
    y = draw_panel((Panel){.out = &body, .step = s, .thread = true, .top = y}, "a thread");
    text_printf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
                "font-family=\"Helvetica, sans-serif\" "
                "font-size=\"%d\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
                "<text x=\"%d\" y=\"18\" font-size=\"15\">%s: memory of a step of %lld sample%s, "
                "%lld shard%s   "
                "(blue: forward, red: backward, yellow: sums and statistics)</text>\n%s</svg>\n",
                WIDE + 20, y - GAP + 16, TEXT, LEFT, quote_xml(out->arena, g->name),
                (long long)s->batch, s->batch == 1 ? "" : "s", (long long)s->shards,
                s->shards == 1 ? "" : "s", body.s);
}
