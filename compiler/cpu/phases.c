/* phases.c -- writes the functions of a step: each is a list of calls, one after another.
 *
 * The functions are made to be read: the comment above a call has its line of the model, shapes and
 * price.
 */
#include "cpu/parts.h"
#include "ops/dense_price.h"
#include "ops/step_price.h"
#include <string.h>

/* ------------------------------------------------------------------------------- phases */

static bool before_chunks(const Node *n)
{
    return n->op->flags & OP_TOTAL;
}

/* Counts a call of a slice phase, for the choice of teams (runtime/step/teams.c). */
static void count_call(Writer *w, const Node *n, const Price *cost, bool alone, bool barrier)
{
    const Step *s = w->g->step;
    const Market m = market_of(w->g, w->in->options, s->chunk);
    const double us = 1e6 * market_seconds(&m, cost->cycles);
    w->cpu->slice_us += us;
    w->cpu->alone_us += alone ? us : 0;
    if (barrier)
        w->cpu->barriers +=
            (double)(before_chunks(n) ? s->shards * s->slices : s->batch / s->chunk) *
            (n->op->scan == SCAN_STATE ? 1 : (double)node_steps(n));
}

/* Whether metrics or the output are reported after a chunk of the phase. */
static bool has_results(const Writer *w, const Phase *p)
{
    const int phase = (int)(p - w->g->step->phase);
    for (int i = 0; i < w->g->nmetric; i++)
        if (w->g->metric[i].node->phase == phase)
            return true;
    return !w->g->training && w->g->output->phase == phase;
}

void phase_call(Writer *w, const Node *n, int *line, const char *indent)
{
    Text *t = &w->body;
    const Statement s = kernel_needed(n) ? kernel_statement(w, n) : (Statement){0};

    if (!s.fn)
        return;
    const Price cost = step_price(w->g, n, w->in->options);
    const char *serves = node_serves(w->arena, n);
    const bool alone = w->cpu->teams && !s.parts,
               barrier = w->cpu->teams &&
                         !joint_goes_on(w, w->cpu->slice, n, &s, has_results(w, w->cpu->slice));
    if (w->cpu->teams)
        count_call(w, n, &cost, alone, barrier);
    text_add(t, statement_about(w, n, line, indent));
    statement_wrapped(t,
                      arena_printf(w->arena, "%s%s(%s)%s;%s%s", alone ? "ALONE(" : "", s.fn, s.args,
                                   alone ? ")" : "", barrier ? " TEAM_BARRIER;" : "",
                                   price_tick(w, *serves ? serves : n->op->name, s.fn, n->span,
                                              price_flops(n), step_price_words(w->arena, n, &cost),
                                              cost)),
                      indent);
}

void phase_prepare(Writer *w, const Phase *p, const char *fn)
{
    Text *t = &w->body;
    int line = 0;

    text_printf(t,
                "/* Once in each step: what depends only on parameters. */\n"
                "static void %s(const Rt *r, char *t, int unit)\n{\n    (void)t;\n",
                fn);
    for (int i = 0; i < p->nnode; i++)
        if (p->node[i]->op->flags & OP_PACK)
            phase_call(w, p->node[i], &line, "    ");
    bool rest = false;
    for (int i = 0; i < p->nnode; i++) {
        if (p->node[i]->op->flags & OP_PACK || !kernel_needed(p->node[i]))
            continue;
        text_add(t, rest ? "" : "    if (unit == 0) {\n");
        phase_call(w, p->node[i], &line, "        ");
        rest = true;
    }
    text_add(t, rest ? "    }\n" : "");
    text_add(t, "}\n\n");
}

static bool has_totals(const Phase *p)
{
    for (int i = 0; i < p->nnode; i++)
        if (before_chunks(p->node[i]) && kernel_needed(p->node[i]))
            return true;
    return false;
}

/* Clears the sums that begin in this phase; without `backward`, those of the forward pass only.  A
 * phase with totals gets no barrier here: its totals read sums of earlier phases, and a barrier
 * follows the totals. */
static void zero_partials(Writer *w, Text *t, int phase, bool backward)
{
    const Step *s = w->g->step;
    bool any = false;

    for (int i = 0; i < s->nbuffer; i++) {
        const Buffer *b = &s->buffer[i];
        if (b->place == PLACE_PARTIAL && b->first == phase && (backward || !b->node->backward) &&
            !step_writes_sum(w->g, b->node, w->in->options)) {
            text_printf(t,
                        w->cpu->teams ? "    rt_team_clear(%s, %lld);\n"
                                      : "    memset(%s, 0, %lld);\n",
                        pointer_to(w, b->node), (long long)(b->bytes / s->slices));
            any = true;
        }
    }
    if (any && w->cpu->teams && !has_totals(&s->phase[phase]))
        text_add(t, "    TEAM_BARRIER;\n");
    const Price p = step_price_zero(w->g, phase, w->in->options);
    if (p.cycles > 0 && w->g->training && backward)
        text_printf(t, "   %s\n",
                    price_tick(w, "sums over samples", "memset", (Span){0}, 0, "", p));
}

/* Whether there are several slice phases.  A function can then have unused variables, because not
 * every phase uses scratch or samples. */
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

static void call_in_chunk(Writer *w, const Node *n, int *line, const char *indent)
{
    if (!before_chunks(n))
        phase_call(w, n, line, indent);
}

/* Writes the calls that report metrics and the output of a chunk, before the next chunk overwrites
 * them. */
static void write_results(Writer *w, int phase)
{
    const Graph *g = w->g;
    Text t = text_new(w->arena);

    for (int i = 0; i < g->nmetric; i++)
        if (g->metric[i].node->phase == phase)
            text_printf(&t, "        ALONE(rt_metric(r, unit, %d, first, CHUNK, %s)); /* %s */\n",
                        i, pointer_to(w, g->metric[i].node), g->metric[i].name);
    if (!g->training && g->output->phase == phase)
        text_printf(&t, "        ALONE(rt_output(r, first, CHUNK, %lld, %s));\n",
                    (long long)shape_count(&g->output->shape), pointer_to(w, g->output));
    if (t.len)
        text_printf(&w->body, "\n%s        TEAM_BARRIER;\n", t.s);
}

/* Writes the function of a slice phase.  A single slice phase has forward pass, loss and backward
 * pass.  A step has several slice phases if a layer needs a sum over the shard or the batch, if
 * there are wide phases, or if ranks add buckets of gradients during the step. */
void phase_slice(Writer *w, int phase, const char *fn, const char *about)
{
    Text *t = &w->body;
    const Graph *g = w->g;
    const Phase *p = &g->step->phase[phase];
    int line = 0;

    w->cpu->teams = true;
    w->cpu->slice_us = w->cpu->alone_us = w->cpu->barriers = 0;
    w->cpu->slice = p;
    joint_begin(w);
    open_slice(w, "RT_FLATTEN void", fn, about);
    zero_partials(w, t, phase, true);
    for (int i = 0; i < p->nnode; i++)
        if (before_chunks(p->node[i]))
            phase_call(w, p->node[i], &line, "    ");
    open_chunks(w);
    joint_begin_chunk(w);
    phase_calls(w, p, call_in_chunk, &line, false, "        ");
    write_results(w, phase);
    text_add(t, "    }\n}\n\n");
    w->cpu->teams = false;
}

static const char *wide_units(Writer *w, const Node *n)
{
    return op_computes(n, PRODUCT_DENSE, ROLE_Y)
               ? arena_printf(w->arena, "DENSE_WIDE_UNITS(%lld)", (long long)node_int(n, "units"))
               : arena_printf(w->arena, "DENSE_WIDE_UNITS_DX(%lld)",
                              (long long)node_attr(n, "x_shape")->list[0]);
}

/* Writes a wide phase.  It usually has one layer, because layers that depend on each other have
 * separate phases. */
const char *phase_wide(Writer *w, const Phase *p, const char *fn)
{
    Text *t = &w->body, all = text_new(w->arena);
    int line = 0;

    text_printf(t,
                "/* All samples at once.  A unit is a few panels of the weights; pointers point to "
                "the first sample of the first shard. */\n"
                "static void %s(const Rt *r, char *t, int unit)\n{\n"
                "    enum { row = 0 };\n    char *const shard = r->shard;\n\n    (void)t;\n",
                fn);
    for (int i = 0; i < p->nnode; i++) {
        const char *units = wide_units(w, p->node[i]);
        const bool last = i + 1 == p->nnode;
        text_printf(&all, "%s%s", i ? " + " : "", units);
        if (!last)
            text_printf(t, "    if (unit < %s) {\n", units);
        phase_call(w, p->node[i], &line, last ? "    " : "        ");
        if (!last)
            text_printf(t, "        return;\n    }\n    unit -= %s;\n", units);
    }
    text_add(t, "}\n\n");
    return all.s;
}

const EmitRange *phase_wide_ranges(Writer *w, const Phase *p, int *n)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    EmitRange *all = arena_alloc(w->arena, sizeof *all * (size_t)(p->nnode + 1));
    *n = 0;
    for (int i = 0; i < p->nnode; i++) {
        const Node *x = p->node[i];
        const Price price = step_price(w->g, x, w->in->options);
        all[(*n)++] = (EmitRange){op_computes(x, PRODUCT_DENSE, ROLE_Y)
                                      ? dense_units_wide(&m, node_int(x, "units"))
                                      : dense_units_wide_dx(&m, node_attr(x, "x_shape")->list[0]),
                                  1e6 * market_seconds(&m, price.cycles)};
    }
    return all;
}

/* ------------------------------------------------------------------------------- finite values */

static void check_value(Writer *w, const Node *n, const char *indent)
{
    Text *t = &w->body;

    if (n->dtype != DT_REAL || !n->shape.batched)
        return;
    text_printf(t, "%sif (!rt_finite(%s, CHUNK * %lld))\n%s    return %d;\n", indent,
                pointer_to(w, n), (long long)shape_count(&n->shape), indent, w->nlayer);
    phase_layer_name(w, n);
}

/* Repeats a call of the forward pass and checks its value. */
static void check_call(Writer *w, const Node *n, int *line, const char *indent)
{
    Text *t = &w->body;
    const bool again = !n->backward && kernel_needed(n);
    const Statement s = again ? kernel_statement(w, n) : (Statement){0};

    if (s.fn)
        text_printf(t, "%s%s(%s);\n", indent, s.fn, s.args);
    (void)line;
    if (!n->within && (s.fn || (node_is(n, "concat") && !n->backward)))
        check_value(w, n, indent); /* checks a concat as a whole, not its parts */
}

/* Checks the values of the wide phases before a slice phase; no call is repeated. */
static void check_wide(Writer *w, int phase, const char *indent)
{
    int first = phase;
    while (first > 0 && w->g->step->phase[first - 1].kind == PHASE_WIDE)
        first--;
    for (; first < phase; first++)
        for (int i = 0; i < w->g->step->phase[first].nnode; i++)
            if (!w->g->step->phase[first].node[i]->backward)
                check_value(w, w->g->step->phase[first].node[i], indent);
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
