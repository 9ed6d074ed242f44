/* price.c -- counts and prices the calls of a step on a GPU, by a roofline (ir/gpu.h).
 *
 * A run of a call takes max(FLOPs / peak, bytes / bandwidth), and longer if its blocks leave
 * multiprocessors idle.  A launch takes the sum over its calls, and the gap before the launch. */
#include "cuda/price.h"
#include "cuda/recurrence.h"
#include "ops/op.h"
#include "runtime/constants.h"
#include <math.h>
#include <string.h>

/* ------------------------------------------------------------------------------- a call */

/* Whether the bytes of the operand count in a price: only those with known addresses in the memory
 * of the program.  Values for the host are small, and only ranks use the gradient buffer. */
static bool is_moved(const Operand *o)
{
    return o->to != INT64_MAX && o->memory != MEMORY_UNKNOWN && o->memory != MEMORY_METRIC &&
           o->memory != MEMORY_GRADIENT;
}

/* The number of runs of a call in a loop that share the operand: for a sequence, each run accesses
 * one element. */
static double runs_of_operand(const Node *call, const Node *n)
{
    const bool sequence = call && call->loop && n && n->shape.batched &&
                          (!n->loop || n->op->scan == SCAN_STACK || n->op->scan == SCAN_SAVE);
    return sequence ? (double)node_steps(call) : 1;
}

/* Bytes of the operand in one run.  A call that writes a parameter or a state also reads it. */
static double operand_bytes(const Writer *w, const Node *call, const Operand *o)
{
    if (!is_moved(o))
        return 0;
    const Node *n = o->node;
    const double all = (double)(o->to - o->from) / runs_of_operand(call, n),
                 own = n && node_root(n) != n ? (double)cuda_bytes(w, n) : all;
    return (own < all ? own : all) * (o->param && o->writes ? 2 : 1);
}

/* Blocks of a call without a known number of blocks, from the number of its results. */
static double estimated_blocks(const Node *n, double results)
{
    const bool sum = n && (node_is(n, "batch_moments") || node_is(n, "batch_norm_dw"));
    const double each = sum ? 1 : n && node_is(n, "conv2d_dw") ? 9 : RT_THREADS;
    const int64_t side = (int64_t)sqrt(results);
    if (n && emit_counts_flops(n) && !node_is(n, "conv2d_dw"))
        return (double)rt_tile_blocks(rt_tile(0, side, side), side, side);
    return results > each ? results / each : 1;
}

CallPrice call_price(const Writer *w, const CudaCall *c)
{
    const Gpu *g = gpu_of(w->in->options->arch);
    const bool counts = c->first && emit_counts_flops(c->node);
    CallPrice p = {.flops = counts ? c->node->op->cost(c->node).flops : 0, .peak = g->f32};
    double results = 1;

    p.flops *= (double)w->in->train->step->chunk;
    for (int i = 0; i < c->noperand; i++) {
        const bool kept = c->recurrence && recurrence_keeps(c->recurrence, &c->operand[i]);
        const double bytes = kept ? 0 : operand_bytes(w, c->node, &c->operand[i]);
        p.bytes += bytes;
        results = c->operand[i].writes && bytes / 4 > results ? bytes / 4 : results;
    }
    if (c->recurrence)
        p.blocks = (double)recurrence_blocks(c->recurrence);
    else if (c->library)
        p.peak = gpu_peak(g, gpu_products(w->in->options)), p.blocks = g->processors;
    else
        p.blocks = c->blocks.count ? (double)c->blocks.count : estimated_blocks(c->node, results);
    return p;
}

double price_seconds(const Gpu *g, const CallPrice *p, double most)
{
    const double work = p->flops / p->peak, move = p->bytes / g->bandwidth,
                 whole = work > move ? work : move, busy = p->blocks < most ? p->blocks : most;
    return whole * g->processors / busy;
}

/* ------------------------------------------------------------------------------- rows */

static const char *words_of(Arena *a, const CudaCall *c)
{
    const EmitPlan *p = c->graph;
    const char *own = c->first ? c->node->op->name : c->form;
    return p && *p->inside ? arena_printf(a, "%s + %s", own, p->inside) : own;
}

/* Appends to a text such as "conv2d + tanh", without equal neighbours, as long as the text fits
 * into the column. */
static void add_words(Arena *a, EmitLaunch *r, const char *words)
{
    enum { COLUMN = 38 };
    const bool same = r->last && !strcmp(words, r->last);

    if (!r->what)
        r->what = words;
    else if (!same && strlen(r->what) + strlen(words) <= COLUMN)
        r->what = arena_printf(a, "%s + %s", r->what, words);
    else if (!same && !r->more)
        r->what = arena_printf(a, "%s + ...", r->what), r->more = true;
    r->last = words;
}

void price_add(Arena *a, EmitLaunch *r, const CudaCall *c, const CallPrice *p, double seconds)
{
    if (!r->what)
        r->node = c->node, r->times = call_launches(c);
    add_words(a, r, words_of(a, c));
    r->from_library = c->library ? c->library : r->from_library;
    r->plan = c->graph ? c->graph : r->plan;
    r->blocks = p->blocks > (double)r->blocks ? (int64_t)(p->blocks + .5) : r->blocks;
    r->flops += (double)c->times * p->flops, r->bytes += (double)c->times * p->bytes;
    r->seconds += (double)c->times * seconds;
}

static void launch_rows(const Writer *w, const CudaCalls *l, EmitStep *e)
{
    const Gpu *g = gpu_of(w->in->options->arch);
    int last = -1;

    for (int i = 0; i < l->n; i++) {
        const CudaCall *c = l->call[i];
        if (c->kind == KIND_LINE || c->times == 0 || c->fallback)
            continue;
        if (c->launch != last) {
            ARENA_PUSH(w->arena, e->row, e->n,
                       (EmitLaunch){.seconds = (double)call_launches(c) * g->gap});
            last = c->launch;
        }
        const CallPrice p = call_price(w, c);
        price_add(w->arena, &e->row[e->n - 1], c, &p, price_seconds(g, &p, g->processors));
    }
}

void price_launches(const Writer *w, EmitStep *e)
{
    for (int i = 0; i < w->cuda->nfunction; i++)
        if (w->cuda->function[i]->graph == w->in->train && !w->cuda->function[i]->persistent)
            launch_rows(w, w->cuda->function[i], e);
    for (int i = 0; i < e->n; i++) {
        const EmitLaunch *r = &e->row[i];
        e->seconds += r->seconds, e->launches += r->times;
        e->external_calls += r->from_library ? r->times : 0;
    }
}
