/* schedule.c -- cuts the batch, and decides which phase computes each node and where each value
 * lives.
 *
 * Units of work are constants of the program: slices of the batch, panels of weights, ranges of
 * parameters.  The number of threads or ranks never changes what is computed, or the order of
 * additions (docs/explain/step.md).
 */
#include "passes/schedule.h"
#include "ir/readers.h"
#include "ir/step.h"
#include "ir/target.h"
#include "ops/conv_price.h"
#include "ops/dense_price.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/buckets.h"
#include "passes/levels.h"
#include "passes/pass.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sums over samples */

/* Whether n is a sum over samples, or an addition of two such sums that nothing else reads.  All
 * terms of such an addition are added in the same memory.  The test of `add` is by name, because
 * only terms of an addition can share memory in this way. */
static bool is_sum(const Readers *r, const Node *n)
{
    if (n->op->flags & OP_SUM && !n->shape.batched && n->in[0]->shape.batched)
        return true;
    return node_is(n, "add") && !n->shape.batched && n->nin == 2 && n->in[0] != n->in[1] &&
           is_sum(r, n->in[0]) && is_sum(r, n->in[1]) && readers_uses(r, n->in[0]) == 1 &&
           readers_uses(r, n->in[1]) == 1 && shape_same(&n->in[0]->shape, &n->in[1]->shape);
}

static void join_terms(Node *n, Node *root)
{
    if (n != root)
        n->alias = root;
    if (n->op->flags & OP_SUM)
        return;
    join_terms(n->in[0], root);
    join_terms(n->in[1], root);
}

/* The update that reads the sum `root`, directly or through a node that gathers the sums of all
 * shards (OP_KNOWN).  Sets *total if such a node or a total (OP_TOTAL) reads the sum.  NULL: no
 * update reads the sum, or other nodes read it, too. */
static Node *update_of(const Readers *r, const Node *root, bool *total)
{
    Node *update = NULL;
    int others = 0;
    for (int i = 0; i < readers_count(r, root); i++) {
        Node *u = readers_at(r, root, i);
        Node *after = u->op->flags & OP_KNOWN ? update_of(r, u, total) : NULL;
        if (u->op->flags & OP_KNOWN)
            *total = true, update = update ? update : after;
        else if (u->op->flags & OP_TOTAL)
            *total = true;
        else if (u->op->flags & OP_UPDATE && u->in[1] == root && !update)
            update = u;
        else
            others++;
    }
    return others ? NULL : update;
}

/* The node that owns the bytes of n: follows views, frames, and values that share memory. */
static Node *base_of(Node *n)
{
    while (n->within || n->op->flags & OP_VIEW || scan_in_place(n) || (n->alias && n->alias != n))
        n = n->within                                    ? n->within
            : n->op->flags & OP_VIEW || scan_in_place(n) ? n->in[0]
                                                         : n->alias;
    return n;
}

/* The gradient of the first dense layer can read the stored samples again, in place of the values
 * of the input (runtime/cpu/dense_input.h has the measured gain).  The samples must have the order
 * of the weights, and at most a factor may change them.  The number of outputs is limited, because
 * the sums of all outputs are on the stack of the thread. */
enum { STORED_OUTPUTS = 512 };

static bool reads_stored(const Graph *g, const Node *root)
{
    const Recipe *q = &g->recipe;
    const Node *x = op_computes(root, PRODUCT_DENSE, ROLE_DW) ? base_of(root->in[0]) : NULL;
    const Shape *in = x ? &x->shape : NULL;

    return x && x->op->leaf == LEAF_INPUT && x->nin == 0 && g->ninput == 1 && x->dtype == DT_REAL &&
           dense_rows(root) == 1 && shape_count(in) == root->shape.dim[1] &&
           root->shape.dim[0] <= STORED_OUTPUTS &&
           (x->layout != LAYOUT_LAST || in->rank < 3 || in->dim[0] == 1) && !q->augment.given &&
           !q->resize && q->normalize.kind == NORM_NONE;
}

/* Whether a gradient of weights is computed by panels.  The gradient of a dense layer is computed
 * from x and dy of all shards, by panels of outputs; if the layer reads sequences, only if the sums
 * of all slices need more memory than x and dy.  The gradient of large filters of small images is
 * computed by blocks of filters.  All other sums are computed by slices. */
static bool by_panels(const Step *s, const Node *root, int64_t real)
{
    if (op_computes(root, PRODUCT_CONV, ROLE_DW))
        return op_reads_half(root)
                   ? conv_half_in_blocks(root, s->shards, s->shard, s->slices, s->chunk)
                   : conv_in_blocks(root, s->shards, s->shard, real);
    const int64_t rows = s->shard * dense_rows(root), o = root->shape.dim[0],
                  k = root->shape.dim[1];
    /* by rows of the table, if most rows belong to no token of a shard */
    if (root->op->product == PRODUCT_TABLE)
        return k <= 1024 && s->shard * shape_count(&root->in[0]->shape) < o;
    return rows == s->shard || s->slices * o * k > rows * (o + k);
}

/* Adds a sum over samples to the step, with its update and its place in the gradient buffer. */
static void add_sum(Graph *g, Step *s, Node *root, const Readers *r, const Options *o)
{
    Sum sum = {.root = root};

    sum.update = update_of(r, root, &sum.total);
    if (sum.update)
        sum.param = sum.update->param;
    sum.known = sum.update && sum.update->in[1] != root;
    const int64_t real = dtype_bytes(g->recipe.dtype);
    const bool product = op_computes(root, PRODUCT_DENSE, ROLE_DW) ||
                         op_computes(root, PRODUCT_TABLE, ROLE_DW) ||
                         (op_computes(root, PRODUCT_CONV, ROLE_DW) && sum.param);
    sum.panels = target_of(o).panels && product && sum.update && by_panels(s, root, real);
    sum.stored = sum.panels && reads_stored(g, root);
    sum.count = sum.param ? sum.param->count_memory : shape_count(&root->shape);
    sum.offset = s->grad_bytes;
    if (!sum.known)
        s->grad_bytes += (sum.count * real + 63) / 64 * 64;
    ARENA_PUSH(g->arena, s->sum, s->nsum, sum);
    root->alias = NULL;
    join_terms(root, root);
}

/* ---- phases */

/* What computes n: see levels.h. */
static int kind_of(const Readers *r, const Node *n)
{
    if (n->nin == 0)
        return n->shape.batched && n->op->leaf != LEAF_CONST ? SLICE : LEAF;
    if (n->shape.batched)
        return SLICE;
    if (is_sum(r, n))
        return SUMMED;
    if (n->op->flags & OP_UPDATE)
        return UPDATE;
    if (n->op->flags & OP_TOTAL)
        return TOTAL;
    if (n->op->flags & OP_KNOWN)
        return KNOWN;
    return PREPARE; /* it reads parameters: sums have no other readers than those above */
}

/* Moves each scan_next to the end of its loop, so that all readers of the state come before it: the
 * new value takes the memory of the state.  The order of all other nodes stays. */
static void carry_last(Graph *g)
{
    Node **late = arena_alloc(g->arena, (size_t)(g->nnode + 1) * sizeof *late);
    for (int i = 0; i < g->nnode;) {
        const Loop *l = g->node[i]->loop;
        int to = i, nlate = 0;
        for (; i < g->nnode && g->node[i]->loop == l; i++)
            if (g->node[i]->op->scan == SCAN_NEXT)
                late[nlate++] = g->node[i];
            else
                g->node[to++] = g->node[i];
        memcpy(g->node + to, late, (size_t)nlate * sizeof *late);
    }
}

/* Gives the value for the next step the memory of the state. */
static void join_carried(const Graph *g)
{
    for (int i = 0; i < g->nloop; i++)
        for (int k = 0; k < g->loop[i]->ncarry; k++)
            g->loop[i]->carry[k].next->alias = g->loop[i]->carry[k].state;
}

static void push(Graph *g, Phase *p, Node *n)
{
    ARENA_PUSH(g->arena, p->node, p->nnode, n);
}

/* Sets the region of n. */
static void place(const Step *s, Node *n)
{
    if (n->op->leaf == LEAF_CONST || (n->op->flags & OP_UPDATE) || node_attr(n, "inline"))
        n->place = PLACE_NONE;
    else if (n->op->flags & OP_VIEW || n->within || scan_in_place(n))
        n->place = PLACE_VIEW;
    else if (n->mark == SUMMED)
        n->place = PLACE_PARTIAL;
    else if (n->shape.batched || n->mark == TOTAL)
        n->place = PLACE_LOCAL;
    else
        n->place = PLACE_FIXED;
    /* panels update the weights or write to the gradient buffer: such a sum is never stored */
    for (int i = 0; n->place == PLACE_PARTIAL && i < s->nsum; i++)
        if (s->sum[i].root == n && s->sum[i].panels)
            n->place = PLACE_NONE;
}

/* Called for n, which is computed at `level`: keeps each value that n reads and that another phase
 * computes. */
static void read_at(const Node *n, int level, const int *made)
{
    for (int i = 0; i < n->nin; i++) {
        Node *x = base_of(n->in[i]);
        if (node_attr(n->in[i], "inline"))
            read_at(n->in[i], level, made);
        else if (x->place == PLACE_LOCAL && x->shape.batched && made[x->id] != level)
            x->place = PLACE_BATCH;
    }
}

/* Moves values that a later phase reads to the shard region. */
static void keep(Graph *g, const Step *s, const int *level)
{
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        Node *frame = base_of(g->node[i]);
        if (!node_attr(n, "inline") && (n->mark == SLICE || n->mark == SUMMED))
            read_at(n, level[n->id], level);
        if (n->within && frame->place == PLACE_LOCAL && level[n->id] != level[frame->id])
            frame->place = PLACE_BATCH; /* several phases write its parts */
    }
    for (int i = 0; i < s->nsum; i++)
        for (int k = s->sum[i].stored; k < 2 && s->sum[i].panels; k++) {
            Node *x = base_of(s->sum[i].root->in[k]);
            if (x->place == PLACE_LOCAL)
                x->place = PLACE_BATCH;
        }
}

static Phase *add_phase(Graph *g, Step *s, PhaseKind kind, int level)
{
    ARENA_PUSH(g->arena, s->phase, s->nphase, ((Phase){.kind = kind, .level = level}));
    return &s->phase[s->nphase - 1];
}

static void close_phase(Step *s)
{
    const Phase *p = &s->phase[s->nphase - 1];
    for (int i = 0; i < p->nnode; i++)
        if (p->node[i]->phase < 0)
            p->node[i]->phase = s->nphase - 1;
    for (int i = 0; i < p->nknown; i++)
        p->known[i]->phase = s->nphase - 1;
    s->nphase -= p->nnode == 0;
}

/* The nodes, sorted by a number that each node has, such as its level.  Nodes with the same number
 * keep the order of the graph.  Nodes with a negative number are left out. */
typedef struct Listed {
    Node **node;
    int *first, numbers; /* first: [numbers + 1] */
} Listed;

static Listed list_nodes(const Graph *g, const int *number)
{
    Listed x = {.node = arena_alloc(g->arena, (size_t)(g->nnode + 1) * sizeof *x.node)};
    for (int i = 0; i < g->nnode; i++)
        if (x.numbers <= number[g->node[i]->id])
            x.numbers = number[g->node[i]->id] + 1;
    x.first = arena_alloc(g->arena, (size_t)(x.numbers + 2) * sizeof *x.first);
    for (int i = 0; i < g->nnode; i++)
        if (number[g->node[i]->id] >= 0)
            x.first[number[g->node[i]->id] + 2]++;
    for (int k = 2; k <= x.numbers; k++)
        x.first[k] += x.first[k - 1];
    for (int i = 0; i < g->nnode; i++) /* first[k + 1] counts up from the first node of k */
        if (number[g->node[i]->id] >= 0)
            x.node[x.first[number[g->node[i]->id] + 1]++] = g->node[i];
    return x;
}

static int listed_count(const Listed *x, int k)
{
    return k < x->numbers ? x->first[k + 1] - x->first[k] : 0;
}

static Node *listed_at(const Listed *x, int k, int i)
{
    return x->node[x->first[k] + i];
}

/* The nodes in the order in which phases take them. */
typedef struct Levels {
    const int *level;        /* of a node, by id: levels_find */
    Listed by_level, by_due; /* by_due: by the level before which they are prepared (levels_due) */
    Node **total;            /* [ntotal] */
    int ntotal;
    int last, last_prepared; /* the largest levels of slice phases and of prepare phases */
} Levels;

/* Adds the totals that the phase reads: each thread computes them at the beginning of the phase. */
static void push_totals(Graph *g, Phase *p, const Readers *r, const Levels *x, int l)
{
    for (int i = 0; i < x->ntotal; i++) {
        bool read = false;
        for (int k = 0; k < readers_count(r, x->total[i]); k++) {
            const Node *reader = readers_at(r, x->total[i], k);
            read |= x->level[reader->id] == l && levels_in_slice(reader);
        }
        if (read)
            push(g, p, x->total[i]);
    }
}

static bool in_prepare(const Node *n)
{
    return n->mark == PREPARE;
}

static bool in_wide(const Node *n)
{
    return levels_wide(n);
}

static bool in_samples(const Node *n)
{
    return levels_in_slice(n) && !levels_wide(n);
}

/* The largest level of the nodes of a kind.  Sums count, too: the last slice phase can consist of
 * the sum of the last bucket. */
static int last_level(const Graph *g, bool (*kind)(const Node *), const int *level)
{
    int last = 0;
    for (int i = 0; i < g->nnode; i++)
        if (last < level[g->node[i]->id] && kind(g->node[i]))
            last = level[g->node[i]->id];
    return last;
}

static void push_level(Graph *g, Phase *p, bool (*kind)(const Node *), const Listed *by_level,
                       int l)
{
    for (int i = 0; i < listed_count(by_level, l); i++)
        if (kind(listed_at(by_level, l, i)))
            push(g, p, listed_at(by_level, l, i));
}

static void prepare_phases(Graph *g, Step *s, const Levels *x, int l)
{
    for (int k = 0; k <= x->last_prepared; k++) {
        Phase *p = add_phase(g, s, PHASE_PREPARE, l);
        for (int i = 0; i < listed_count(&x->by_due, l); i++) {
            Node *n = listed_at(&x->by_due, l, i);
            if (in_prepare(n) && x->level[n->id] == k)
                push(g, p, n);
        }
        close_phase(s);
    }
}

static void slice_phases(Graph *g, Step *s, const Readers *r, const Levels *x, int l)
{
    Phase *p = add_phase(g, s, PHASE_WIDE, l);
    push_level(g, p, in_wide, &x->by_level, l);
    close_phase(s);
    p = add_phase(g, s, PHASE_SLICE, l);
    push_totals(g, p, r, x, l);
    push_level(g, p, in_samples, &x->by_level, l);
    for (int i = 0; i < listed_count(&x->by_level, l); i++)
        if (listed_at(&x->by_level, l, i)->mark == KNOWN)
            ARENA_PUSH(g->arena, p->known, p->nknown, listed_at(&x->by_level, l, i));
    close_phase(s);
}

static Levels list_levels(Graph *g, const int *level, const int *prepared)
{
    Levels x = {.level = level,
                .by_level = list_nodes(g, level),
                .by_due = list_nodes(g, prepared),
                .last = last_level(g, levels_in_slice, level),
                .last_prepared = last_level(g, in_prepare, level)};
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->mark == TOTAL)
            ARENA_PUSH(g->arena, x.total, x.ntotal, g->node[i]);
    return x;
}

/* Makes the phases of the step: for each level prepare, wide and slice phases, then gradient and
 * update. */
static void phases(Graph *g, Step *s, const Readers *r, const int *level)
{
    int *due = arena_alloc(g->arena, (size_t)(s->nbucket + 1) * sizeof *due);
    const int *prepared = levels_due(g, s, r, level, due);
    const Levels x = list_levels(g, level, prepared);
    for (int l = 0; l <= x.last; l++) {
        for (int b = 0; b < s->nbucket; b++)
            if (due[b] == l)
                s->bucket[b].due = s->nphase;
        prepare_phases(g, s, &x, l);
        slice_phases(g, s, r, &x, l);
        for (int b = 0; b < s->nbucket; b++)
            if (buckets_level(g, s, b, level) >= l)
                s->bucket[b].ready = s->nphase - 1;
    }
    Phase *p = add_phase(g, s, PHASE_GRADIENT, 0);
    for (int i = 0; i < s->nsum; i++)
        if (s->sum[i].update || !s->sum[i].total)
            push(g, p, s->sum[i].root);
    close_phase(s);
    p = add_phase(g, s, PHASE_UPDATE, 0);
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->mark == UPDATE)
            push(g, p, g->node[i]);
    close_phase(s);
}

/* Aborts if no phase computes a node: its bytes would hold an old value. */
static void check_phases(const Graph *g)
{
    for (int i = 0; i < g->nnode; i++)
        if (levels_in_slice(g->node[i]) && g->node[i]->phase < 0) {
            fprintf(stderr, "tenon: internal error: no phase computes %%%d (%s)\n", g->node[i]->id,
                    g->node[i]->op->name);
            abort();
        }
}

static bool has_side(const Readers *r, const Node *n)
{
    for (int i = 0; i < readers_count(r, n); i++)
        if (readers_at(r, n, i)->op->flags & OP_SIDE)
            return true;
    return false;
}

/* A convolution with a fused pooling always writes the indices of its maxima, which are the value
 * of a node "side".  Adds this node where it is missing: evaluation does not read the indices. */
static void add_sides(Graph *g)
{
    const Readers *r = readers_new(g);
    const int n = g->nnode;

    for (int i = 0; i < n; i++) {
        Node *c = g->node[i];
        if (!(c->op->takes & EPILOGUE_POOL) || !node_attr(c, "pool") || has_side(r, c))
            continue;
        Node *s = graph_add(g, op_find("side"), &c, 1, c->span);
        s->shape = c->shape, s->dtype = DT_U8, s->layout = c->layout;
        memcpy(s->flat, c->flat, sizeof s->flat);
    }
    graph_sort(g);
}

/* Adds gradients first, then sums for running averages and totals: clipping reads the gradients
 * only.  Only an update of a trained parameter has Node.param. */
static void add_sums(Graph *g, Step *s, const Readers *r, const Options *o)
{
    for (int averages = 0; averages < 2; averages++) {
        for (int i = 0; i < g->nnode; i++) {
            Node *n = g->node[i], *u = readers_uses(r, n) == 1 ? readers_only(r, n) : NULL;
            bool total = false;
            if (n->mark != SUMMED || (u && u->mark == SUMMED))
                continue;
            const Node *update = update_of(r, n, &total);
            const bool gradient = update ? update->param != NULL : !total;
            if (gradient == !averages)
                add_sum(g, s, n, r, o);
        }
        s->ngradient = averages ? s->ngradient : s->nsum;
    }
}

void pass_schedule(Graph *g, const Options *o, Diag *d)
{
    const Target t = target_of(o);
    Step *s = g->step = arena_alloc(g->arena, sizeof *s);

    schedule_cut(g, s);
    if (t.whole_shards)
        schedule_cut_for_device(g, s, o);
    if (!schedule_check_counts(g, s, d) || !schedule_check_statistics(g, s, d))
        return;
    add_sides(g);
    carry_last(g);
    const Readers *r = readers_new(g);
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->alias = NULL, g->node[i]->phase = -1;
    join_carried(g);
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->mark = kind_of(r, g->node[i]);
    add_sums(g, s, r, o);
    buckets_cut(g, s, o);
    s->fused_update = !recipe_updates_last(&g->recipe) || t.finds_norm;
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->op->flags & OP_UPDATE && g->node[i]->in[1]->mark != SUMMED &&
            g->node[i]->in[1]->mark != KNOWN)
            s->fused_update = false;
    for (int i = 0; i < s->nsum; i++)
        if (!s->sum[i].update && !s->sum[i].total)
            s->fused_update = false;
    s->late = o->overlap && t.updates_late && s->fused_update;
    for (int i = 0; i < g->nnode; i++)
        place(s, g->node[i]);
    const int *level = levels_find(g, s);
    keep(g, s, level);
    phases(g, s, r, level);
    check_phases(g);
}
