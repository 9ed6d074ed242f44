/* price.c -- predicted times of calls: in the comment above a call, and in the table of `bench
 * --layers`.  The index of a row of this table is the index of the clock after the call.
 */
#include "cpu/parts.h"
#include "ops/step_price.h"

const char *price_title(Arena *a, const Node *n)
{
    return n->place == PLACE_PARTIAL && n->name ? arena_printf(a, "%s: ", n->name) : "";
}

/* Predicted rate of the textbook FLOPs, as a share of the peak of a nominal core. */
static double expected_share(const Writer *w, const Price *p)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    return p->textbook / (1e9 * core_peak_gflops(m.core, m.real) * market_seconds(&m, p->cycles));
}

const char *price_cost(const Writer *w, const Node *n, double flops)
{
    const Price p = step_price(w->g, n, w->in->options);
    const char *words = step_price_words(w->arena, n, &p);

    if (flops < 1e3)
        return words;
    return arena_printf(w->arena, "%s%s%s a sample, %.0f %% of peak expected", words,
                        *words ? "   " : "", emit_flop_text(w->arena, flops),
                        100 * expected_share(w, &p));
}

double price_flops(const Node *n)
{
    return emit_counts_flops(n) ? n->op->cost(n).flops * (double)node_steps(n) : 0;
}

const char *price_tick(Writer *w, const char *what, const char *fn, Span at, double flops,
                       const char *algorithm, Price p)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    const char *place =
        at.source ? arena_printf(w->arena, "%s:%d", source_base(at.source), at.line) : "";

    if (!w->g->training)
        return "";
    text_printf(&w->calls, "    {%s, \"%s\", %s, %.17g, \"%s\", %.4g, %.4g, %.4g},\n",
                quote_c(w->arena, what), fn, quote_c(w->arena, place), flops, algorithm,
                p.executed / (double)w->g->step->batch, 1e6 * market_seconds(&m, p.cycles),
                p.weights + p.values);
    return arena_printf(w->arena, " TICK(%d);", w->cpu->ncall++);
}
