/* show.c -- what `tenon show` prints: the layers and their cost, and the memory plan.
 *
 * FLOPs are the textbook count: two for each multiply-add, with every tap.  A bias belongs to the
 * row of its layer.
 */
#include "tool/show.h"
#include "base/text.h"
#include "emit/emit.h"
#include "ops/op.h"
#include <stdio.h>
#include <string.h>

static const Span nowhere;

/* ---- layers */

static bool is_layer_node(const Node *n)
{
    return n->op->leaf == LEAF_NONE;
}

static bool is_bias(const Node *n)
{
    return n->op->epilogue == EPILOGUE_BIAS;
}

static bool multiplies(const Node *n)
{
    return (n->op->layer || op_transposed(n)) && !is_bias(n);
}

/* The bias that the layer n adds: conv2d and dense make a bias node after themselves, under the
 * same path. */
static const Node *bias_of_layer(const Graph *g, const Node *n)
{
    if (!multiplies(n))
        return NULL;
    for (int i = 0; i < g->nnode; i++) {
        const Node *b = g->node[i];
        if (is_bias(b) && b->in[0] == n && b->span.line == n->span.line &&
            b->span.col == n->span.col)
            return b;
    }
    return NULL;
}

static bool is_prelu(const Node *n)
{
    return node_is(n, "prelu_y");
}

/* The node that repeats the slopes of the prelu n over the pixels; NULL: n reads the slope itself.
 */
static const Node *slopes_of(const Node *n)
{
    return is_prelu(n) && is_bias(n->in[1]) ? n->in[1] : NULL;
}

static bool is_slopes(const Graph *g, const Node *n)
{
    for (int i = 0; is_bias(n) && i < g->nnode; i++)
        if (slopes_of(g->node[i]) == n)
            return true;
    return false;
}

/* Whether the row of another node, a layer or a prelu, contains n. */
static bool is_own_bias(const Graph *g, const Node *n)
{
    return is_bias(n) && (bias_of_layer(g, n->in[0]) == n || is_slopes(g, n));
}

/* Number of parameters that n reads, except those of earlier rows. */
static int64_t new_parameters(Graph *g, const Node *n)
{
    int64_t sum = 0;
    for (int i = 0; n && i < n->nin; i++) {
        Node *p = n->in[i];
        if (p->op->leaf != LEAF_PARAM || p->mark)
            continue;
        p->mark = 1;
        sum += p->param->average ? 0 : shape_count(&p->param->file);
    }
    const Node *bias = !n ? NULL : is_prelu(n) ? slopes_of(n) : bias_of_layer(g, n);
    return sum + (bias ? new_parameters(g, bias) : 0);
}

typedef struct Row {
    const char *name, *op, *shape, *place;
    const Source *file; /* the file of the line, if it is not the model file */
    int64_t parameters;
    Cost cost;
    double macs;
} Row;

/* The cost of an op without a rule: reads its inputs once and writes its output once, with 4 bytes
 * per number.  A view moves nothing. */
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

/* "a" for the first imported file, "z" for file 26, then "aa", "ab" and so on: IMPORTS_MAX files
 * need at most two letters. */
static const char *letters(Arena *a, int order)
{
    const int at = order - 1;
    return at < 26 ? arena_printf(a, "%c", 'a' + at)
                   : arena_printf(a, "%c%c", 'a' + at / 26 - 1, 'a' + at % 26);
}

const char *show_place(Arena *a, const Node *n)
{
    const Source *s = n ? n->span.source : NULL;
    if (!s)
        return "";
    return s->order ? arena_printf(a, "%d%s", n->span.line, letters(a, s->order))
                    : arena_printf(a, "%d", n->span.line);
}

/* The operation as the model file calls it. */
static const char *row_op(const Node *n)
{
    return is_prelu(n) ? "prelu" : op_transposed(n) ? op_in_language(n) : n->op->name;
}

static Row layer_row(Arena *a, Graph *g, const Node *n)
{
    Row r = {.name = n->name ? n->name : "",
             .op = row_op(n),
             .shape = shape_text(a, &n->shape),
             .place = ""};
    r.parameters = new_parameters(g, n);
    r.cost = n->op->cost ? n->op->cost(n) : plain_cost(n);
    r.cost.flops *= (double)node_steps(n), r.cost.bytes *= (double)node_steps(n);
    if (multiplies(n))
        r.macs = r.cost.flops / 2;
    r.place = show_place(a, n);
    r.file = n->span.source && n->span.source->order ? n->span.source : NULL;
    return r;
}

static const char *count_text(Arena *a, double v)
{
    return v ? text_commas(a, (int64_t)v) : "";
}

static void print_row(Arena *a, const Row *r, int width, bool cost)
{
    printf("%4s  %-*s %-22s %-18s %12s %14s %14s", r->place, width, r->name, r->op, r->shape,
           count_text(a, (double)r->parameters), count_text(a, r->macs),
           count_text(a, r->cost.flops));
    if (cost)
        printf(" %12s %8s", count_text(a, r->cost.bytes),
               r->cost.flops > 0 ? arena_printf(a, "%.1f", r->cost.flops / r->cost.bytes) : "");
    putchar('\n');
}

static void add_row(Row *sum, const Row *r)
{
    sum->parameters += r->parameters;
    sum->macs += r->macs;
    sum->cost.flops += r->cost.flops;
    sum->cost.bytes += r->cost.bytes;
}

/* The lstm, gru or rnn to which n belongs, because n is in its loop or uses its weights; NULL:
 * none. */
static const Node *recurrent(Arena *a, const Graph *g, const Node *n)
{
    if (n->loop)
        return n->loop->call;
    for (int i = 0; i < n->nin; i++)
        for (int k = 0; n->in[i]->param && k < g->nloop; k++) {
            const Node *call = g->loop[k]->call;
            if (call && strcmp(param_layer(a, n->in[i]->param), call->name) == 0)
                return call;
        }
    return NULL;
}

/* The block instance whose row contains n: the instance around n that is nested `depth` deep, or
 * the innermost instance if the nesting is less deep; NULL: n has a row of its own. */
static const char *folded(Arena *a, const Node *n, int depth)
{
    const char *block = node_block(n), *end = block;
    for (int i = 0; end && i < depth; i++) {
        end = strchr(end, '.');
        end += end && i + 1 < depth;
    }
    return !depth || !block ? NULL : end ? arena_strndup(a, block, (size_t)(end - block)) : block;
}

typedef struct Table {
    Arena *arena;
    Graph *graph;
    int depth; /* depth of folded instances; 0: every node has a row, also hidden ones */
    Row *row;
    int nrow, width; /* width of the longest name */
    bool folds;      /* a row has more than one node */
} Table;

/* Adds r to the last row, which is the row of the block instance or of the recurrent layer
 * `call`. */
static void grow_row(Table *t, const Row *r, const char *block, const Node *call, int layers)
{
    Row *sum = &t->row[t->nrow - 1];
    add_row(sum, r);
    sum->shape = r->shape;
    sum->name = block;
    if (call)
        return;
    sum->place = "";
    sum->op = arena_printf(t->arena, "%d layer%s", layers, layers == 1 ? "" : "s");
}

/* Makes the rows in the order of calls in the model.  The nodes of an instance share a row if they
 * stand next to each other. */
static void fill_table(Table *t)
{
    Graph *g = t->graph;
    const char *last = NULL;
    int layers = 0;
    t->nrow = 0, t->width = 0;
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->mark = 0;
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        const bool hidden = n->op->flags & OP_HIDDEN && !is_prelu(n) && !op_transposed(n);
        if (!is_layer_node(n) || is_own_bias(g, n) || (t->depth && hidden))
            continue;
        const Node *call = t->depth && !node_block(n) ? recurrent(t->arena, g, n) : NULL;
        const char *block = call ? call->name : folded(t->arena, n, t->depth);
        Row r = layer_row(t->arena, g, n);
        if (call)
            r.name = call->name, r.op = call->op->name, t->folds = true;
        const bool more = block && last && strcmp(block, last) == 0;
        layers = (more ? layers : 0) + multiplies(n);
        if (more)
            grow_row(t, &r, block, call, layers);
        else
            ARENA_PUSH(t->arena, t->row, t->nrow, r);
        last = block;
        const size_t width = strlen(t->row[t->nrow - 1].name);
        t->width = width > (size_t)t->width ? (int)width : t->width;
    }
}

static void print_frozen(Arena *a, const Graph *g)
{
    int64_t numbers = 0;
    int count = 0;
    for (int i = 0; i < g->nparam; i++)
        if (g->param[i]->frozen)
            numbers += shape_count(&g->param[i]->file), count++;
    if (count)
        printf("      %s of the parameters are frozen, in %d tensor%s\n", text_commas(a, numbers),
               count, count == 1 ? "" : "s");
}

/* Folds as few blocks as possible so that the table fits on one screen; if it never fits, folds as
 * many as possible. */
static void fold_blocks(Table *t, bool all)
{
    enum { SCREEN = 40, DEEP = 4 };
    for (t->depth = all ? 0 : DEEP; fill_table(t), t->depth > 1 && t->nrow > SCREEN;)
        t->depth--;
}

/* Prints the files that the letters of the table stand for. */
static void print_files(const Table *t)
{
    for (int order = 1; order <= IMPORTS_MAX; order++)
        for (int i = 0; i < t->nrow; i++) {
            const Row *r = &t->row[i];
            if (!r->file || !*r->place || r->file->order != order)
                continue;
            printf("      lines with %s are in %s\n", letters(t->arena, order), r->file->name);
            break;
        }
}

/* Prints the metrics that the recipe writes. */
static void print_measures(const Recipe *r)
{
    static const char *const better[] = {[BETTER_LARGER] = " (larger is better)",
                                         [BETTER_SMALLER] = " (smaller is better)",
                                         [BETTER_NEITHER] = ""};
    for (int i = 0; i < r->nmeasure; i++)
        printf("%s%s%s%s",
               i ? ", " : "metrics of the recipe, in evaluations only: ", r->measure[i].name,
               better[r->measure[i].better], i + 1 == r->nmeasure ? "\n" : "");
}

void show_layers(Arena *a, const Graph *graph, bool all, bool cost)
{
    Table t = {.arena = a, .graph = (Graph *)graph}; /* only Node.mark changes */
    Row total = {.place = "", .name = "total", .op = "", .shape = ""};
    fold_blocks(&t, all);
    const int width = t.width > 20 ? t.width : 20;
    printf("%4s  %-*s %-22s %-18s %12s %14s %14s", "line", width, "name", "op", "output",
           "parameters", "MACs", "FLOPs");
    printf(cost ? " %12s %8s\n" : "\n", "bytes", "FLOP/B");
    for (int i = 0; i < t.nrow; i++) {
        print_row(a, &t.row[i], width, cost);
        add_row(&total, &t.row[i]);
        t.folds |= !*t.row[i].place;
    }
    print_row(a, &total, width, cost);
    printf("      MACs, FLOPs and bytes of one sample, forward pass%s\n",
           t.folds ? "; --all unfolds the blocks" : "");
    print_files(&t);
    print_frozen(a, graph);
    print_measures(&graph->recipe);
}

/* ---- memory */

static void print_memory_row(Arena *a, const char *what, int64_t bytes, const char *how)
{
    printf("  %-28s %12s   %s\n", what, text_bytes(a, bytes), how);
}

bool show_plan(Arena *a, const Graph *g, int64_t ranks, int threads, const RtTeamCost *phase, int n,
               Diag *d)
{
    const Step *s = g->step;
    ranks = ranks ? ranks : 1;
    if (s->shards % ranks != 0) {
        diag_error(d, nowhere, "%lld ranks cannot share %lld shard%s equally", (long long)ranks,
                   (long long)s->shards, s->shards == 1 ? "" : "s");
        diag_help(d,
                  s->shards == 1 ? "divide the batch into more shards: --shards %lld"
                                 : "use a number that divides %lld, or --shards",
                  (long long)(s->shards == 1 ? ranks : s->shards));
        return false;
    }
    Step mine = *s;
    mine.shards = s->shards / ranks;
    mine.fused_update = s->fused_update && ranks == 1;

    printf("\nbatch %lld = %lld shard%s of %lld sample%s, chunks of %lld; %s FLOPs for each "
           "sample, forward%s\n",
           (long long)s->batch, (long long)s->shards, s->shards == 1 ? "" : "s",
           (long long)s->shard, s->shard == 1 ? "" : "s", (long long)s->chunk,
           text_commas(a, (int64_t)emit_flops(g)), g->training ? " and backward" : "");
    printf("memory%s, %d thread%s\n",
           ranks > 1 ? arena_printf(a, " of one of %lld ranks", (long long)ranks) : "", threads,
           threads == 1 ? "" : "s");
    print_memory_row(a, "parameters", s->parameter_bytes, "one copy, in the kernels' layout");
    print_memory_row(a, "optimizer state", s->state_bytes,
                     g->nstate ? arena_printf(a, "%d of each parameter", g->nstate) : "none");
    print_memory_row(a, "packed weights", s->fixed_bytes - s->parameter_bytes - s->state_bytes,
                     "packed again in every step");
    if (s->average_bytes > 0)
        print_memory_row(a, "averages", s->average_bytes, "of the parameters, for 'average'");
    if (s->kept_bytes > 0)
        print_memory_row(a, "best weights", s->kept_bytes, "a copy of the parameters, for 'keep'");
    print_memory_row(a, "shards", mine.shards * s->shard_bytes,
                     arena_printf(a, "%lld x %s; lower bound %s", (long long)mine.shards,
                                  text_bytes(a, s->shard_bytes), text_bytes(a, s->bound_shard)));
    const int regions = step_regions_of(&mine, threads, phase, n);
    print_memory_row(a, "threads", step_thread_bytes(&mine, threads, regions),
                     arena_printf(a, "%d x %s; lower bound %s%s", regions,
                                  text_bytes(a, s->thread_bytes), text_bytes(a, s->bound_thread),
                                  threads == regions || !s->scratch_bytes
                                      ? ""
                                      : arena_printf(a, "; %d x %s of scratch", threads,
                                                     text_bytes(a, s->scratch_bytes))));
    if (!mine.fused_update)
        print_memory_row(a, "gradients", s->grad_bytes, "one copy, reduced before the update");
    Step keeps = s->again ? *s->without : mine;
    keeps.shards = mine.shards, keeps.fused_update = mine.fused_update;
    if (s->again)
        print_memory_row(a, "recomputed",
                         step_bytes_of(&keeps, threads, regions) -
                             step_bytes_of(&mine, threads, regions),
                         arena_printf(a, "%d value%s, which the backward pass computes again",
                                      s->again, s->again == 1 ? "" : "s"));
    print_memory_row(a, "planned", step_bytes_of(&mine, threads, regions),
                     "plus at most 30 MB, plus the data set as it is stored");
    return true;
}
