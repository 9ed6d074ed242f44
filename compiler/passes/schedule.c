/* schedule.c -- cut the batch, decide what runs in which phase, and where each value lives.
 *
 * The units of work are constants of the program: slices of the batch, panels of a weight, ranges
 * of parameters.  The number of threads or ranks never changes what is computed or in which order
 * it is added (ARCHITECTURE.md, "The step program").
 */
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
#include "passes/schedule.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------- sums over
 * samples */

/* s is a sum over samples, or an add of such sums that nothing else reads: all its terms go to
 * one place. */
static bool is_sum(const Readers *r, const Node *n)
{
    if (n->op->flags & OP_SUM && !n->shape.batched && n->in[0]->shape.batched)
        return true;
    return node_is(n, "add") && !n->shape.batched && n->nin == 2 && n->in[0] != n->in[1] &&
           is_sum(r, n->in[0]) && is_sum(r, n->in[1]) && readers_uses(r, n->in[0]) == 1 &&
           readers_uses(r, n->in[1]) == 1 && shape_same(&n->in[0]->shape, &n->in[1]->shape);
}

static void join(Node *n, Node *root)
{
    if (n != root)
        n->alias = root;
    if (n->op->flags & OP_SUM)
        return;
    join(n->in[0], root);
    join(n->in[1], root);
}

/* The update that a sum goes to, or what all shards have of it, when everything else that reads it is a total. */
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

static Node *base_of(Node *n)
{
    while (n->within || n->op->flags & OP_VIEW || scan_in_place(n) || (n->alias && n->alias != n))
        n = n->within                                    ? n->within
            : n->op->flags & OP_VIEW || scan_in_place(n) ? n->in[0]
                                                         : n->alias;
    return n;
}

/* A first dense layer's gradient reads the samples a second time where they are stored: numbers in the order of its weights,
 * which nothing but a scale has changed (what that gains: runtime/cpu/dense_input.h).  Its sums, of all outputs, wait on
 * the thread's stack. */
enum { STORED_OUTPUTS = 512 };

static bool reads_stored(const Graph *g, const Node *root)
{
    const Recipe *q = &g->recipe;
    const Node *x = node_is(root, "dense_dw") ? base_of(root->in[0]) : NULL;
    const Shape *in = x ? &x->shape : NULL;

    return x && node_is(x, "input") && x->nin == 0 && x->dtype == DT_REAL &&
           dense_rows(root) == 1 && shape_count(in) == root->shape.dim[1] &&
           root->shape.dim[0] <= STORED_OUTPUTS &&
           (x->layout != LAYOUT_LAST || in->rank < 3 || in->dim[0] == 1) && !q->augment.given &&
           !q->resize && q->normalize.kind == NORM_NONE;
}

/* A dense layer's gradient by output panels, over what all shards have kept of x and dy; or in slices like any other sum,
 * where the weights take less memory than that: in sequences.  That of large filters of small images in squares. */
static bool by_panels(const Step *s, const Node *root, int64_t real)
{
    if (node_is(root, "conv2d_dw"))
        return conv_in_squares(root, s->shards, s->shard, real);
    const int64_t rows = s->shard * dense_rows(root), o = root->shape.dim[0],
                  k = root->shape.dim[1];
    if (node_is(root, "embedding_dw")) /* by rows of the table, where most of them have no token */
        return k <= 1024 && s->shard * shape_count(&root->in[0]->shape) < o;
    return rows == s->shard || s->slices * o * k > rows * (o + k);
}

static void add_sum(Graph *g, Step *s, Node *root, const Readers *r, const Options *o)
{
    Sum sum = {.root = root};

    sum.update = update_of(r, root, &sum.total);
    if (sum.update && node_is(sum.update, "update"))
        sum.param = sum.update->in[0]->param;
    sum.known = sum.update && sum.update->in[1] != root;
    const int64_t real = dtype_bytes(g->recipe.dtype);
    const bool product = node_is(root, "dense_dw") || node_is(root, "embedding_dw") || (node_is(root, "conv2d_dw") && sum.param);
    sum.panels = target_of(o).panels && product && sum.update && by_panels(s, root, real);
    sum.stored = sum.panels && reads_stored(g, root);
    sum.count = sum.param ? sum.param->count_memory : shape_count(&root->shape);
    sum.offset = s->grad_bytes;
    if (!sum.known)
        s->grad_bytes += (sum.count * real + 63) / 64 * 64;
    ARENA_PUSH(g->arena, s->sum, s->nsum, sum);
    root->alias = NULL;
    join(root, root);
}

/* ------------------------------------------------------------------------------- phases */

static int kind_of(const Readers *r, const Node *n)
{
    int k = PREPARE;

    if (n->nin == 0)
        return n->shape.batched && !node_is(n, "const") ? SLICE : LEAF;
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
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->mark == SUMMED || n->in[i]->mark == UPDATE)
            k = UPDATE;
    return k;
}

/* What a step of a loop hands on takes the state's place when nothing reads that any more: at the end of the step.
 * The order of all else stays. */
static void hand_on_last(Graph *g)
{
    Node **late = arena_alloc(g->arena, (size_t)(g->nnode + 1) * sizeof *late);
    for (int i = 0; i < g->nnode;) {
        const Loop *l = g->node[i]->loop;
        int to = i, nlate = 0;
        for (; i < g->nnode && g->node[i]->loop == l; i++)
            if (node_is(g->node[i], "scan_next"))
                late[nlate++] = g->node[i];
            else
                g->node[to++] = g->node[i];
        memcpy(g->node + to, late, (size_t)nlate * sizeof *late);
    }
}

/* It lies where the state lies. */
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

static void place(const Step *s, Node *n)
{
    if (node_is(n, "const") || (n->op->flags & OP_UPDATE) || node_attr(n, "inline"))
        n->place = PLACE_NONE;
    else if (n->op->flags & OP_VIEW || n->within || scan_in_place(n))
        n->place = PLACE_VIEW;
    else if (n->mark == SUMMED)
        n->place = PLACE_PARTIAL;
    else if (n->shape.batched || n->mark == TOTAL)
        n->place = PLACE_LOCAL;
    else
        n->place = PLACE_FIXED;
    if (n->place == PLACE_PARTIAL)
        for (int i = 0; i < s->nsum; i++)
            if (s->sum[i].root == n && s->sum[i].panels)
                n->place =
                    PLACE_NONE; /* never stored: panels update, or go to the gradient buffer */
}

/* n, computed at `level`, reads x there: a sample's value that an earlier phase made must have been kept. */
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

/* Values that outlive the phase that makes them go to the shard's memory. */
static void keep(Graph *g, const Step *s, const int *level)
{
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        Node *frame = base_of(g->node[i]);
        if (!node_attr(n, "inline") && (n->mark == SLICE || n->mark == SUMMED))
            read_at(n, level[n->id], level);
        if (n->within && frame->place == PLACE_LOCAL && level[n->id] != level[frame->id])
            frame->place = PLACE_BATCH; /* parts are written in several phases */
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

/* A total is made anew at the head of each phase that reads it: every thread has its own. */
static void push_totals(Graph *g, Phase *p, const Readers *r, const int *level, int l)
{
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        bool read = false;
        for (int k = 0; n->mark == TOTAL && k < readers_count(r, n); k++)
            read |= levels_in_slice(readers_at(r, n, k)) && level[readers_at(r, n, k)->id] == l;
        if (read)
            push(g, p, n);
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

/* The last level of the nodes of a kind.  Of slices a sum may be alone in it: that of the last bucket. */
static int last_level(const Graph *g, bool (*kind)(const Node *), const int *level)
{
    int last = 0;
    for (int i = 0; i < g->nnode; i++)
        if (kind(g->node[i]) && last < level[g->node[i]->id])
            last = level[g->node[i]->id];
    return last;
}

static void push_level(Graph *g, Phase *p, bool (*kind)(const Node *), const int *level, int l)
{
    for (int i = 0; i < g->nnode; i++)
        if (kind(g->node[i]) && level[g->node[i]->id] == l)
            push(g, p, g->node[i]);
}

static void prepare_phases(Graph *g, Step *s, const int *level, const int *due, int l)
{
    for (int k = 0; k <= last_level(g, in_prepare, level); k++) {
        Phase *p = add_phase(g, s, PHASE_PREPARE, l);
        for (int i = 0; i < g->nnode; i++)
            if (in_prepare(g->node[i]) && level[g->node[i]->id] == k && due[g->node[i]->id] == l)
                push(g, p, g->node[i]);
        close_phase(s);
    }
}

static void slice_phases(Graph *g, Step *s, const Readers *r, const int *level, int l)
{
    Phase *p = add_phase(g, s, PHASE_WIDE, l);
    push_level(g, p, in_wide, level, l);
    close_phase(s);
    p = add_phase(g, s, PHASE_SLICE, l);
    push_totals(g, p, r, level, l);
    push_level(g, p, in_samples, level, l);
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->mark == KNOWN && level[g->node[i]->id] == l)
            ARENA_PUSH(g->arena, p->known, p->nknown, g->node[i]);
    close_phase(s);
}

static void phases(Graph *g, Step *s, const Readers *r, const int *level)
{
    int *due = arena_alloc(g->arena, (size_t)(s->nbucket + 1) * sizeof *due);
    const int *prepared = levels_due(g, s, r, level, due);
    for (int l = 0; l <= last_level(g, levels_in_slice, level); l++) {
        for (int b = 0; b < s->nbucket; b++)
            if (due[b] == l)
                s->bucket[b].due = s->nphase;
        prepare_phases(g, s, level, prepared, l);
        slice_phases(g, s, r, level, l);
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

/* What no phase computes would be added and trained with all the same, as what lies there. */
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
        if (node_is(readers_at(r, n, i), "side"))
            return true;
    return false;
}

/* A pooled convolution writes its indices also where nobody reads them: evaluation. */
static void add_sides(Graph *g)
{
    const Readers *r = readers_new(g);
    const int n = g->nnode;

    for (int i = 0; i < n; i++) {
        Node *c = g->node[i];
        if (!node_is(c, "conv2d") || !node_attr(c, "pool") || has_side(r, c))
            continue;
        Node *s = graph_add(g, op_find("side"), &c, 1, c->span);
        s->shape = c->shape, s->dtype = DT_U8, s->layout = c->layout;
        memcpy(s->flat, c->flat, sizeof s->flat);
    }
    graph_sort(g);
}

/* Gradients, then what only running averages and totals wait for: clipping looks at gradients. */
static void add_sums(Graph *g, Step *s, const Readers *r, const Options *o)
{
    for (int averages = 0; averages < 2; averages++) {
        for (int i = 0; i < g->nnode; i++) {
            Node *n = g->node[i], *u = readers_uses(r, n) == 1 ? readers_only(r, n) : NULL;
            bool total = false;
            if (n->mark != SUMMED || (u && u->mark == SUMMED))
                continue;
            const Node *update = update_of(r, n, &total);
            const bool gradient = update ? node_is(update, "update") : !total;
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
    hand_on_last(g);
    const Readers *r = readers_new(g);
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->alias = NULL, g->node[i]->phase = -1;
    join_carried(g);
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->mark = kind_of(r, g->node[i]);
    add_sums(g, s, r, o);
    buckets_cut(g, s, o);
    s->fused_update = g->recipe.clip_norm == 0 || t.finds_norm;
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
