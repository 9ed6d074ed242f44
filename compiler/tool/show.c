/* show.c -- what `tenon show` prints: the layers and their price, and the memory plan.
 *
 * FLOPs are the textbook's: two per multiply-add, every tap counted.  A layer's bias belongs to the layer.
 */
#define _GNU_SOURCE                                   /* sched_getaffinity */
#include "tool/show.h"
#include "base/text.h"
#include "emit/emit.h"
#include "ir/step.h"
#include "ops/op.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>

static const Span nowhere;

/* ---- layers */

static bool is_layer(const Node *n)
{
    return !node_is(n, "param") && !node_is(n, "input") && !node_is(n, "label") && !node_is(n, "const");
}

/* The bias that `n`'s own layer adds: conv2d and dense make one behind themselves, under the same path. */
static const Node *own_bias(const Graph *g, const Node *n)
{
    if (!n->op->layer || node_is(n, "bias"))
        return NULL;
    for (int i = 0; i < g->nnode; i++) {
        const Node *b = g->node[i];
        if (node_is(b, "bias") && b->in[0] == n && b->span.line == n->span.line && b->span.col == n->span.col)
            return b;
    }
    return NULL;
}

static bool is_own_bias(const Graph *g, const Node *n)
{
    return node_is(n, "bias") && own_bias(g, n->in[0]) == n;
}

/* Parameters that n reads and no earlier row has counted. */
static int64_t parameters(Graph *g, const Node *n)
{
    int64_t sum = 0;
    for (int i = 0; n && i < n->nin; i++) {
        Node *p = n->in[i];
        if (!node_is(p, "param") || p->mark)
            continue;
        p->mark = 1;
        sum += shape_count(&p->param->file);
    }
    const Node *bias = n ? own_bias(g, n) : NULL;
    return sum + (bias ? parameters(g, bias) : 0);
}

typedef struct Row {
    const char *name, *op, *shape, *place;
    int64_t     parameters;
    Cost        cost;
    double      macs;
} Row;

/* What an op without a rule of its own moves: its inputs and its output once, 4 bytes a number; a view moves nothing. */
static Cost plain_cost(const Node *n)
{
    Cost c = {0, 0};
    if (n->op->flags & OP_VIEW)
        return c;
    c.bytes = 4.0 * (double)shape_count(&n->shape);
    for (int i = 0; i < n->nin; i++)
        c.bytes += n->in[i]->shape.batched ? 4.0 * (double)shape_count(&n->in[i]->shape) : 0;
    return c;
}

static Row row_of(Arena *a, Graph *g, const Node *n)
{
    Row r = {.name = n->name ? n->name : "", .op = n->op->name, .shape = shape_text(a, &n->shape), .place = ""};
    r.parameters = parameters(g, n);
    r.cost = n->op->cost ? n->op->cost(n) : plain_cost(n);
    if (n->op->layer && !node_is(n, "bias"))
        r.macs = r.cost.flops / 2;
    if (n->span.source)
        r.place = arena_printf(a, "%d", n->span.line);
    return r;
}

static const char *count(Arena *a, double v)
{
    return v ? text_commas(a, (int64_t)v) : "";
}

static void print_row(Arena *a, const Row *r, bool cost)
{
    printf("%4s  %-20s %-22s %-18s %12s %14s %14s", r->place, r->name, r->op, r->shape, count(a, (double)r->parameters),
           count(a, r->macs), count(a, r->cost.flops));
    if (cost)
        printf(" %12s %8s", count(a, r->cost.bytes),
               r->cost.flops > 0 ? arena_printf(a, "%.1f", r->cost.flops / r->cost.bytes) : "");
    putchar('\n');
}

void show_layers(Arena *a, const Graph *graph, bool cost)
{
    Graph *g = (Graph *)graph;                        /* marks only */
    Row total = {.place = "", .name = "total", .op = "", .shape = ""};
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->mark = 0;
    printf("%4s  %-20s %-22s %-18s %12s %14s %14s", "line", "name", "op", "output", "parameters", "MACs", "FLOPs");
    printf(cost ? " %12s %8s\n" : "\n", "bytes", "FLOP/B");
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!is_layer(n) || is_own_bias(g, n))
            continue;
        const Row r = row_of(a, g, n);
        print_row(a, &r, cost);
        total.parameters += r.parameters;
        total.macs += r.macs;
        total.cost.flops += r.cost.flops;
        total.cost.bytes += r.cost.bytes;
    }
    print_row(a, &total, cost);
    puts("      MACs, FLOPs and bytes are a sample's, forward");
}

/* ---- memory */

static int threads_here(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

static void print_bytes(Arena *a, const char *what, int64_t bytes, const char *how)
{
    printf("  %-28s %12s   %s\n", what, text_bytes(a, bytes), how);
}

bool show_plan(Arena *a, const Graph *g, int64_t ranks, Diag *d)
{
    const Step *s = g->step;
    const int threads = threads_here();
    ranks = ranks ? ranks : 1;
    if (s->shards % ranks != 0) {
        diag_error(d, nowhere, "%lld ranks cannot share %lld shards equally", (long long)ranks, (long long)s->shards);
        diag_help(d, "use a number that divides %lld, or --shards", (long long)s->shards);
        return false;
    }
    Step mine = *s;
    mine.shards = s->shards / ranks;
    mine.fused_update = s->fused_update && ranks == 1;

    printf("\nbatch %lld = %lld shards of %lld samples, chunks of %lld; %s FLOPs a sample, forward and backward\n",
           (long long)s->batch, (long long)s->shards, (long long)s->shard, (long long)s->chunk,
           text_commas(a, (int64_t)emit_flops(g)));
    printf("memory%s, %d threads\n", ranks > 1 ? arena_printf(a, " of one of %lld ranks", (long long)ranks) : "", threads);
    print_bytes(a, "parameters", s->parameter_bytes, "one copy, as the kernels want it");
    print_bytes(a, "optimizer state", s->state_bytes, g->nstate ? arena_printf(a, "%d of each parameter", g->nstate) : "none");
    print_bytes(a, "packed weights", s->fixed_bytes - s->parameter_bytes - s->state_bytes, "made anew every step");
    print_bytes(a, "shards", mine.shards * s->shard_bytes,
                arena_printf(a, "%lld x %s; no plan is below %s", (long long)mine.shards, text_bytes(a, s->shard_bytes),
                             text_bytes(a, s->bound_shard)));
    print_bytes(a, "threads", threads * s->thread_bytes,
                arena_printf(a, "%d x %s; no plan is below %s", threads, text_bytes(a, s->thread_bytes),
                             text_bytes(a, s->bound_thread)));
    if (!mine.fused_update)
        print_bytes(a, "gradients", s->grad_bytes, "one copy, reduced before the update");
    print_bytes(a, "planned", step_bytes(&mine, threads), "plus at most 30 MB, plus the data as they are stored");
    return true;
}
