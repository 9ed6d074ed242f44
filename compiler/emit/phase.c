/* phase.c -- writes the calls of a phase in order, and the loops over time around them. */
#include "emit/writer.h"
#include "ops/scan.h"
#include <string.h>

/* `indent` with `levels` more levels. */
static const char *inner(Writer *w, const char *indent, int levels)
{
    return arena_printf(w->arena, "%s%*s", indent, 4 * levels, "");
}

/* Writes code between two calls; on a GPU, this code is an element of the list of calls. */
static void put_line(Writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put_line(Writer *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(w->arena, fmt, ap);
    va_end(ap);
    if (w->put_line)
        w->put_line(w, text);
    else
        text_add(&w->body, text);
}

static void open_loop(Writer *w, const Loop *l, const char *indent)
{
    put_line(w,
             l->reversed ? "\n%sfor (int step = %lld; step >= 0; step--) {\n"
                         : "\n%sfor (int step = 0; step < %lld; step++) {\n",
             indent, (long long)(l->reversed ? l->steps - 1 : l->steps));
}

/* Opens the condition under which l runs a stretch of its steps (pass stretch).  l runs inside of a
 * loop in the other direction, at the last step of each stretch. */
static void open_stretch(Writer *w, const Loop *l, const char *indent)
{
    const long long last = l->steps - 1, k = l->every;
    put_line(w,
             l->reversed ? "%sif (step == 0 || (%lld - step) %% %lld == %lld) {\n"
                         : "%sif (step == %lld || step %% %lld == %lld) {\n",
             indent, last, k, k - 1);
}

static void open_stretch_steps(Writer *w, const Loop *l, const char *indent)
{
    const long long last = l->steps - 1, k = l->every;
    put_line(w, "%sconst int last = step;\n", indent);
    if (l->reversed)
        put_line(w,
                 "%sfor (int step = %lld - (%lld - last) / %lld * %lld; step >= last; step--) "
                 "{\n",
                 indent, last, last, k, k);
    else
        put_line(w, "%sfor (int step = last / %lld * %lld; step <= last; step++) {\n", indent, k,
                 k);
}

/* Writes the calls of a loop inside of another loop, from `first` on; returns the index of the
 * first call of the other loop. */
static int stretch_calls(Writer *w, const Phase *p, PhaseEach *each, int *line, int first,
                         const char *indent)
{
    const Loop *l = p->node[first]->loop;
    int end = first;
    open_stretch(w, l, indent);
    for (; end < p->nnode && p->node[end]->loop == l; end++)
        if (scan_begins(p->node[end]))
            each(w, p->node[end], line, inner(w, indent, 1));
    open_stretch_steps(w, l, inner(w, indent, 1));
    for (int i = first; i < end; i++)
        if (!scan_begins(p->node[i]))
            each(w, p->node[i], line, inner(w, indent, 2));
    put_line(w, "%s    }\n%s}\n", indent, indent);
    return end;
}

/* Writes the calls of a loop over time, from index `first` to index end - 1. */
static void loop_calls(Writer *w, const Phase *p, PhaseEach *each, int *line, int first, int end,
                       const char *indent)
{
    for (int i = first; i < end; i++)
        if (p->node[i]->op->scan == SCAN_STATE)
            each(w, p->node[i], line, indent);
    open_loop(w, loop_outer(p->node[first]->loop), indent);
    if (p->node[first]->loop->inside)
        first = stretch_calls(w, p, each, line, first, inner(w, indent, 1));
    for (int i = first; i < end; i++)
        if (p->node[i]->op->scan != SCAN_STATE)
            each(w, p->node[i], line, inner(w, indent, 1));
    put_line(w, "%s}\n", indent);
}

void phase_calls(Writer *w, const Phase *p, PhaseEach *each, int *line, bool forward,
                 const char *indent)
{
    for (int i = 0; i < p->nnode;) {
        const int end = loop_end(p->node, p->nnode, i);
        bool any = false;
        for (int k = i; k < end; k++)
            any |= !forward || !p->node[k]->backward;
        if (any)
            loop_calls(w, p, each, line, i, end, indent);
        else if (end == i)
            each(w, p->node[i], line, indent);
        i = end > i ? end : i + 1;
    }
}

static void known_function(Writer *w, int phase, const char *fn, PhaseEach *each)
{
    Text *t = &w->body;
    const Phase *p = &w->g->step->phase[phase];
    int line = 0;

    text_printf(t,
                "/* After this phase, for each shard: its row of the values that ranks "
                "exchange. */\n"
                "static void %s(const Rt *r, char *t, int unit)\n{\n"
                "    char *const shard = r->shard + unit * r->shard_bytes;\n"
                "    const int number = r->first_shard + unit;\n\n    (void)t;\n",
                fn);
    for (int i = 0; i < p->nknown; i++)
        each(w, p->known[i], &line, "    ");
    text_add(t, "}\n\n");
    text_printf(t, "static const RtKnown %s_rows[] = {\n", fn);
    for (int i = 0; i < p->nknown; i++)
        text_printf(t, "    {.offset = %s, .bytes = %lld * sizeof(real)},\n",
                    name_of(w, p->known[i]), (long long)shape_count(&p->known[i]->shape));
    text_add(t, "};\n\n");
}

const char *phase_known_fields(Writer *w, int phase, const char *word, int number, PhaseEach *each)
{
    const int rows = w->g->step->phase[phase].nknown;
    const char *name = arena_printf(w->arena, "%s_known_%d", word, number);

    if (rows == 0)
        return "";
    known_function(w, phase, name, each);
    return arena_printf(w->arena, ",\n     .known = %s, .row = %s_rows, .nrow = %d", name, name,
                        rows);
}

/* Adds the name and the line of a value to the table of checked values; a check returns an index in
 * this table. */
void phase_layer_name(Writer *w, const Node *n)
{
    const char *file = n->span.source ? source_base(n->span.source) : "made by the compiler";
    text_printf(&w->layers, "    %s,\n",
                quote_c(w->arena,
                        arena_printf(w->arena, "%s (%s:%d)", n->name ? n->name : n->op->name, file,
                                     n->span.line)));
    w->nlayer++;
}

/* Whether the phase has calls of the forward pass. */
bool phase_goes_forward(const Phase *p)
{
    for (int i = 0; i < p->nnode; i++)
        if (!p->node[i]->backward && kernel_needed(p->node[i]))
            return true;
    return false;
}
