/* phases.c -- the functions of a step: each a straight list of calls.
 *
 * They are meant to be read: every call stands under the model's line that it comes from, with
 * shapes and price.
 */
#include "emit/cuda_call.h"
#include "ops/scan.h"
#include "ops/step_price.h"
#include <string.h>

/* ------------------------------------------------------------------------------- phases */

void phase_prepare(Writer *w, const Phase *p, const char *fn)
{
    Text *t = &w->body;
    int line = 0;

    text_printf(t,
                "/* Once in each step: what depends only on parameters. */\nstatic void %s(const Rt "
                "*r, char *t, int unit)\n{\n    (void)t;\n",
                fn);
    for (int i = 0; i < p->nnode; i++)
        if (p->node[i]->op->flags & OP_PACK)
            statement_write(w, t, p->node[i], &line, "    ");
    bool rest = false;
    for (int i = 0; i < p->nnode; i++) {
        if (p->node[i]->op->flags & OP_PACK || !kernel_needed(p->node[i]))
            continue;
        text_add(t, rest ? "" : "    if (unit == 0) {\n");
        statement_write(w, t, p->node[i], &line, "        ");
        rest = true;
    }
    text_add(t, rest ? "    }\n" : "");
    text_add(t, "}\n\n");
}

/* The sums that begin in this phase; those of the forward pass only, where it is run alone. */
static void zero_partials(Writer *w, Text *t, int phase, bool backward)
{
    const Step *s = w->g->step;

    for (int i = 0; i < s->nbuffer; i++) {
        const Buffer *b = &s->buffer[i];
        if (b->place == PLACE_PARTIAL && b->first == phase && (backward || !b->node->backward) &&
            !step_writes_sum(w->g, b->node, w->in->options))
            text_printf(t, "    memset(%s, 0, %lld);\n", pointer_to(w, b->node),
                        (long long)(b->bytes / s->slices));
    }
    const Price p = step_price_zero(w->g, phase, w->in->options);
    if (p.cycles > 0 && w->g->training && backward)
        text_printf(t, "   %s\n",
                    statement_tick(w, "sums over samples", "memset", (Span){0}, 0, "", p));
}

/* A part of what a slice does may need no scratch, or not know its samples. */
static bool in_parts(const Writer *w)
{
    const Step *s = w->g->step;
    int slices = 0;
    for (int i = 0; i < s->nphase; i++)
        slices += s->phase[i].kind == PHASE_SLICE;
    return slices > 1;
}

static void open_slice(Writer *w, const char *type, const char *fn, const char *about)
{
    Text *t = &w->body;

    text_printf(t, "/* %s */\nstatic %s %s(const Rt *r, char *t, int unit)\n{\n", about, type, fn);
    if (w->g->token)
        text_add(t, "    enum { CHUNK = 1, SLICE = 1, SLICES = 1, SHARD = 1 };\n");
    text_add(t, "    const int slice = unit % SLICES;\n    char *const shard = r->shard + unit / "
                "SLICES * r->shard_bytes;\n\n    (void)shard;\n");
    if (in_parts(w))
        text_add(t, "    (void)t;\n");
}

static void open_chunks(Writer *w)
{
    Text *t = &w->body;
    text_add(t, "    for (int row = slice * SLICE; row < (slice + 1) * SLICE; row += CHUNK) {\n"
                "        const int first = (r->first_shard + unit / SLICES) * SHARD + row;\n");
    if (in_parts(w))
        text_add(t, "        (void)first;\n");
}

static bool before_chunks(const Node *n)
{
    return n->op->flags & OP_TOTAL;
}

/* `indent` and so many levels. */
static const char *inner(Writer *w, const char *indent, int levels)
{
    return arena_printf(w->arena, "%s%*s", indent, 4 * levels, "");
}

/* Code between two calls; a GPU's program keeps it among them. */
static void put_line(Writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put_line(Writer *w, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = arena_vprintf(w->arena, fmt, ap);
    va_end(ap);
    if (w->list)
        cuda_line(w, text);
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

/* A stretch of the steps of a loop that runs inside of another, which goes the other way. */
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

/* The calls of a loop inside of another, from `first` on; returns where the other's begin. */
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

/* Writes the calls of a loop over time from `first` to `end`. */
static void loop_calls(Writer *w, const Phase *p, PhaseEach *each, int *line, int first, int end,
                       const char *indent)
{
    for (int i = first; i < end; i++)
        if (node_is(p->node[i], "scan_state"))
            each(w, p->node[i], line, indent);
    open_loop(w, loop_outer(p->node[first]->loop), indent);
    if (p->node[first]->loop->inside)
        first = stretch_calls(w, p, each, line, first, inner(w, indent, 1));
    for (int i = first; i < end; i++)
        if (!node_is(p->node[i], "scan_state"))
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

static void call_in_chunk(Writer *w, const Node *n, int *line, const char *indent)
{
    if (!before_chunks(n))
        statement_write(w, &w->body, n, line, indent);
}

/* What the slices do in phase number `phase`: all of forward, loss and backward, or the part of it between two sums that
 * everybody waits for. */
void phase_slice(Writer *w, int phase, const char *fn, const char *about)
{
    Text *t = &w->body;
    const Graph *g = w->g;
    const Phase *p = &g->step->phase[phase];
    int line = 0;

    open_slice(w, "void", fn, about);
    zero_partials(w, t, phase, true);
    for (int i = 0; i < p->nnode; i++)
        if (before_chunks(p->node[i]))
            statement_write(w, t, p->node[i], &line, "    ");
    open_chunks(w);
    phase_calls(w, p, call_in_chunk, &line, false, "        ");
    for (int i = 0; i < g->nmetric; i++)
        if (g->metric[i].node->phase == phase)
            text_printf(t, "%s        rt_metric(r, unit, %d, first, CHUNK, %s); /* %s */\n",
                        i ? "" : "\n", i, pointer_to(w, g->metric[i].node), g->metric[i].name);
    if (!g->training && g->output->phase == phase)
        text_printf(t, "        rt_output(r, first, CHUNK, %lld, %s);\n",
                    (long long)shape_count(&g->output->shape), pointer_to(w, g->output));
    text_add(t, "    }\n}\n\n");
}

static const char *wide_units(Writer *w, const Node *n)
{
    return node_is(n, "dense") ? arena_printf(w->arena, "DENSE_WIDE_UNITS(%lld)", (long long)node_int(n, "units"))
                               : arena_printf(w->arena, "DENSE_WIDE_UNITS_DX(%lld)", (long long)node_attr(n, "x_shape")->list[0]);
}

/* Layers that depend on one another have a phase each, so one is the rule. */
const char *phase_wide(Writer *w, const Phase *p, const char *fn)
{
    Text *t = &w->body, all = text_new(w->arena);
    int line = 0;

    text_printf(t,
                "/* All samples at once.  A unit is a few panels of the weights; pointers point to the first sample of the first shard. */\n"
                "static void %s(const Rt *r, char *t, int unit)\n{\n"
                "    enum { row = 0 };\n    char *const shard = r->shard;\n\n    (void)t;\n",
                fn);
    for (int i = 0; i < p->nnode; i++) {
        const char *units = wide_units(w, p->node[i]);
        const bool last = i + 1 == p->nnode;
        text_printf(&all, "%s%s", i ? " + " : "", units);
        if (!last)
            text_printf(t, "    if (unit < %s) {\n", units);
        statement_write(w, t, p->node[i], &line, last ? "    " : "        ");
        if (!last)
            text_printf(t, "        return;\n    }\n    unit -= %s;\n", units);
    }
    text_add(t, "}\n\n");
    return all.s;
}

static void known_function(Writer *w, int phase, const char *fn)
{
    Text *t = &w->body;
    const Phase *p = &w->g->step->phase[phase];
    int line = 0;

    text_printf(t,
                "/* After this phase, for each shard: its row of the values that ranks exchange. */\n"
                "static void %s(const Rt *r, char *t, int unit)\n{\n"
                "    char *const shard = r->shard + unit * r->shard_bytes;\n"
                "    const int number = r->first_shard + unit;\n\n    (void)t;\n",
                fn);
    for (int i = 0; i < p->nknown; i++)
        statement_write(w, t, p->known[i], &line, "    ");
    text_add(t, "}\n\n");
    text_printf(t, "static const RtKnown %s_rows[] = {\n", fn);
    for (int i = 0; i < p->nknown; i++)
        text_printf(t, "    {.offset = %s, .bytes = %lld * sizeof(real)},\n",
                    name_of(w, p->known[i]), (long long)shape_count(&p->known[i]->shape));
    text_add(t, "};\n\n");
}

const char *phase_known_fields(Writer *w, int phase, const char *word, int number)
{
    const int rows = w->g->step->phase[phase].nknown;
    const char *name = arena_printf(w->arena, "%s_known_%d", word, number);

    if (rows == 0)
        return "";
    known_function(w, phase, name);
    return arena_printf(w->arena, ",\n     .known = %s, .row = %s_rows, .nrow = %d", name, name, rows);
}

/* ------------------------------------------------------------------------------- the check for
 * non-finite values */

/* The name and place of a value whose check answers with its number. */
void phase_layer_name(Writer *w, const Node *n)
{
    const char *file = n->span.source ? source_base(n->span.source) : "made by the compiler";
    text_printf(&w->layers, "    %s,\n",
                quote_c(w->arena, arena_printf(w->arena, "%s (%s:%d)",
                                               n->name ? n->name : n->op->name, file, n->span.line)));
    w->nlayer++;
}

/* Is any of its calls part of the forward pass? */
bool phase_goes_forward(const Phase *p)
{
    for (int i = 0; i < p->nnode; i++)
        if (!p->node[i]->backward && kernel_needed(p->node[i]))
            return true;
    return false;
}

static void look_at(Writer *w, const Node *n, const char *indent)
{
    Text *t = &w->body;

    if (n->dtype != DT_REAL || !n->shape.batched)
        return;
    text_printf(t, "%sif (!rt_finite(%s, CHUNK * %lld))\n%s    return %d;\n", indent,
                pointer_to(w, n), (long long)shape_count(&n->shape), indent, w->nlayer);
    phase_layer_name(w, n);
}

/* One call of the forward pass again, and the look at what it made. */
static void check_call(Writer *w, const Node *n, int *line, const char *indent)
{
    Text *t = &w->body;
    const char *s = n->backward || !kernel_needed(n) ? "" : kernel_statement(w, n);

    if (*s)
        text_printf(t, "%s%s\n", indent, s);
    (void)line;
    if (!n->within && (*s || (node_is(n, "concat") && !n->backward)))
        look_at(w, n, indent); /* parts of a concat are looked at together */
}

/* The wide layers before a slice phase: what they made is still there. */
static void check_wide(Writer *w, int phase, const char *indent)
{
    int first = phase;
    while (first > 0 && w->g->step->phase[first - 1].kind == PHASE_WIDE)
        first--;
    for (; first < phase; first++)
        for (int i = 0; i < w->g->step->phase[first].nnode; i++)
            if (!w->g->step->phase[first].node[i]->backward)
                look_at(w, w->g->step->phase[first].node[i], indent);
}

static void check_in_chunk(Writer *w, const Node *n, int *line, const char *indent)
{
    if (!before_chunks(n))
        check_call(w, n, line, indent);
}

void phase_nonfinite(Writer *w, int phase)
{
    Text *t = &w->body;
    const Phase *p = &w->g->step->phase[phase];

    if (!phase_goes_forward(p))
        return;
    open_slice(w, "int", arena_printf(w->arena, "nonfinite_%d", w->nforward++),
               "After a loss that is not finite: the forward pass again, up to the first value "
               "that is not finite.");
    zero_partials(w, t, phase, false);
    for (int i = 0; i < p->nnode; i++)
        if (before_chunks(p->node[i]))
            check_call(w, p->node[i], NULL, "    ");
    open_chunks(w);
    check_wide(w, phase, "        ");
    phase_calls(w, p, check_in_chunk, NULL, true, "        ");
    text_add(t, "    }\n    return -1;\n}\n\n");
}
