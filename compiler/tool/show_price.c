/* show_price.c -- the table of `tenon show --cost`: each call of the step, with its predicted
 * time. */
#include "base/text.h"
#include "ops/step_price.h"
#include "tool/show.h"
#include <stdio.h>

/* A part of the table of prices. */
typedef struct Part {
    const char *heading; /* above its calls */
    const char *total;   /* the row of its sum, below "all" */
} Part;
static const Part part_prepare = {"prepare", "prepare"}, part_forward = {"forward", "forward"},
                  part_backward = {"backward", "backward"},
                  part_sums = {"sums over samples", "sums"},
                  part_sums_update = {"sums over samples, update", "sums, update"},
                  part_update = {"update", "update"};

typedef struct PriceTable {
    Arena *arena;
    const Graph *graph;
    const Options *options;
    Market market;
    Price total;
    const Part *part; /* the part that the last heading names */
    struct {
        const Part *part;
        Price price;
    } sum[8]; /* sums of each part */
    int nsum;
} PriceTable;

static double milliseconds(const PriceTable *b, const Price *p)
{
    return 1e3 * market_seconds(&b->market, p->cycles);
}

static const char *count_or_dash(Arena *a, double v)
{
    return v >= .5 ? text_commas(a, (int64_t)(v + .5)) : "-";
}

static void print_price(PriceTable *b, const char *place, const char *name, const char *op,
                        const char *words, const Price *p)
{
    Arena *a = b->arena;
    const double peak = 1e6 * core_peak_gflops(b->market.core, b->market.real) * milliseconds(b, p);
    printf("%4s  %-20s %-24s %13s %13s %12s %12s %10.4f ms %6s  %s\n", place, name, op,
           count_or_dash(a, p->textbook), count_or_dash(a, p->executed),
           count_or_dash(a, p->weights), count_or_dash(a, p->values), milliseconds(b, p),
           p->textbook > 0 && peak > 0 ? arena_printf(a, "%.0f %%", 100 * p->textbook / peak) : "",
           words);
}

static void add_price(Price *sum, const Price *p)
{
    sum->textbook += p->textbook, sum->executed += p->executed, sum->weights += p->weights,
        sum->values += p->values, sum->cycles += p->cycles;
}

/* Adds p to the sum of a part.  A network with batch_norm has many forward and backward phases,
 * which share one heading and one sum. */
static void add_to_part(PriceTable *b, const Part *part, const Price *p)
{
    if (b->part != part)
        printf("%s\n", part->heading);
    b->part = part;
    int i = 0;
    while (i < b->nsum && b->sum[i].part != part)
        i++;
    if (i == b->nsum)
        b->sum[b->nsum++].part = part;
    add_price(&b->sum[i].price, p);
}

/* Prints the row of a call; n is its node, or NULL. */
static void add_call(PriceTable *b, const Part *part, const Node *n, const char *name,
                     const char *op, Price p)
{
    add_to_part(b, part, &p);
    print_price(b, show_place(b->arena, n), name, op, n ? step_price_words(b->arena, n, &p) : "",
                &p);
    add_price(&b->total, &p);
}

/* Whether a phase begins with calls of the backward pass. */
static bool begins_backward(const Phase *p)
{
    int i = 0;
    while (i < p->nnode && !emit_is_call(p->node[i]))
        i++;
    return i < p->nnode && p->node[i]->backward;
}

/* Prints the calls of a phase that belong to the forward pass, or to the backward pass. */
static void add_phase(PriceTable *b, const Part *part, int phase, bool backward)
{
    const Phase *p = &b->graph->step->phase[phase];
    const Price zero = step_price_zero(b->graph, phase, b->options);
    if (p->kind == PHASE_SLICE && backward == begins_backward(p) && zero.cycles > 0)
        add_call(b, part, NULL, "sums over samples", "memset", zero);
    for (int i = 0; i < p->nnode; i++) {
        const Node *n = p->node[i];
        if (emit_is_call(n) && n->backward == backward)
            add_call(b, part, n, node_serves(b->arena, n), n->op->name,
                     step_price(b->graph, n, b->options));
    }
    for (int i = 0; i < p->nknown; i++)
        if (p->known[i]->backward == backward)
            add_call(b, part, p->known[i], node_serves(b->arena, p->known[i]),
                     p->known[i]->op->name, step_price(b->graph, p->known[i], b->options));
}

static void add_sums(PriceTable *b, const Part *part, bool from_grad)
{
    const Step *s = b->graph->step;
    for (int i = 0; i < s->nsum; i++) {
        const Sum *m = &s->sum[i];
        const char *op = from_grad         ? "update"
                         : m->panels       ? arena_printf(b->arena, "%s, update", m->root->op->name)
                         : s->fused_update ? "sum, update"
                                           : "sum";
        if (!from_grad || m->update)
            add_call(b, part, m->root, m->param ? m->param->name : "", op,
                     step_price_sum(b->graph, m, from_grad, b->options));
    }
}

void show_price(Arena *a, const Graph *g, const Options *o)
{
    const Step *s = g->step;
    PriceTable b = {.arena = a, .graph = g, .options = o, .market = market_of(g, o, s->chunk)};
    const Core *core = b.market.core;

    printf("\nprice of a step of %lld samples on one core: %s at %.1f GHz, FMA peak %.1f GFLOP/s\n",
           (long long)s->batch, core->like, core->ghz, core_peak_gflops(core, b.market.real));
    printf("%4s  %-20s %-24s %13s %13s %12s %12s %13s %6s  %s\n", "line", "name", "op", "FLOPs",
           "executed", "weights, B", "values, B", "predicted", "peak", "algorithm");
    for (int i = 0; i < s->nphase; i++) {
        const Phase *p = &s->phase[i];
        if (p->kind == PHASE_PREPARE)
            add_phase(&b, &part_prepare, i, false), add_phase(&b, &part_prepare, i, true);
        else if (p->kind == PHASE_SLICE || p->kind == PHASE_WIDE)
            add_phase(&b, &part_forward, i, false), add_phase(&b, &part_backward, i, true);
        else if (p->kind == PHASE_GRADIENT)
            add_sums(&b, s->fused_update ? &part_sums_update : &part_sums, false);
        else if (!s->fused_update)
            add_sums(&b, &part_update, true);
    }
    puts("all");
    for (int i = 0; i < b.nsum; i++)
        print_price(&b, "", b.sum[i].part->total, "", "", &b.sum[i].price);
    print_price(&b, "", "total", "", "", &b.total);
    printf("      %s samples/s on one core without waiting; executed: includes the padding of "
           "tiles, excludes known zeros\n"
           "      peak: textbook FLOPs per second, as a share of the FMA peak; above 100 %% where "
           "the algorithm executes fewer (Winograd, sparse)\n",
           text_commas(a, (int64_t)(1e3 * (double)s->batch / milliseconds(&b, &b.total))));
}
