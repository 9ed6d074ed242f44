/* schedule.c -- cut the batch, decide what runs in which phase, and where each value lives.
 *
 * The units of work are constants of the program: slices of the batch, panels of a weight, ranges
 * of parameters.  The number of threads or ranks never changes what is computed or in which order
 * it is added (ARCHITECTURE.md, "The step program").
 */
#include "ir/readers.h"
#include "ir/step.h"
#include "ops/conv_price.h"
#include "ops/dense_price.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/buckets.h"
#include "passes/pass.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_MOST = 16,
    CHUNK_LEAST = 4,
    SLICES_MOST = 8,
    CHUNK_NUMBERS = 1 << 19, /* the largest value of a chunk: 2 MB of f32 */
    CHUNK_LARGE = 1 << 21,   /* the same of large images, down to one sample a chunk: 8 MB */
    CHUNK_ROWS = 512,        /* steps of all sequences of a chunk, under attention */
    SMALL_NET = 4 << 20,     /* parameters */
    SUM_NUMBERS = 1 << 26    /* of all slices' weight gradients: 256 MB of f32 */
};

/* ------------------------------------------------------------------------------- cutting the
 * batch */

/* The largest divisor of n in [least, most], or n itself when there is none. */
static int64_t divisor(int64_t n, int64_t least, int64_t most)
{
    for (int64_t d = most < n ? most : n; d >= least; d--)
        if (n % d == 0)
            return d;
    return n;
}

/* Statistics are a shard's own: by default, then, the batch is one shard. */
static bool has_statistics(const Graph *g)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], "batch_statistics") && !node_bool(g->node[i], "sync"))
            return true;
    return false;
}

/* Default G: the largest of 8, 4, 2, 1 that divides the batch and leaves at least 8 samples a
 * shard. */
static int64_t default_shards(const Graph *g)
{
    const int64_t batch = g->recipe.batch;
    if (has_statistics(g))
        return 1;
    for (int64_t n = 8; n > 1; n /= 2)
        if (batch % n == 0 && batch / n >= 8)
            return n;
    return 1;
}

static int64_t parameters(const Graph *g)
{
    int64_t count = 0;
    for (int i = 0; i < g->nparam; i++)
        count += shape_count(&g->param[i]->file);
    return count;
}

/* Numbers of the largest value of a sample. */
static int64_t largest(const Graph *g)
{
    int64_t most = 1;
    for (int i = 0; i < g->nnode; i++) {
        const int64_t count = shape_count(&g->node[i]->shape);
        most = g->node[i]->shape.batched && count > most ? count : most;
    }
    return most;
}

/* The steps of a sequence that attention goes over, or 0. */
static int64_t attention_steps(const Graph *g)
{
    int64_t most = 0;
    for (int i = 0; i < g->nnode; i++) {
        const Shape *x = &g->node[i]->shape;
        if (node_is(g->node[i], "attention") && x->dim[0] > most)
            most = x->dim[0];
    }
    return most;
}

/* A batch of one shard is for all threads: two chunks at least (resnet50 with 16 samples on two threads: 1.9 s a step instead of
 * 3.4), four where another copy of the weights' gradients is small.  Values of a chunk stay near the
 * processor: batch_norm reads what a convolution has just written.  Four samples fill a kernel's rows at the small end of a network;
 * of large images fewer do (ms a step on one thread: resnet50 at 224 3168 with four samples a chunk, 3046 with two, 3038 with one;
 * inception_v3 at 299 2300 with four, 2225 with one; mobilenet_v2 at 224 621 and 553). */
static int64_t chunk_of_one(const Graph *g, int64_t shard)
{
    const int64_t values = CHUNK_NUMBERS / largest(g), large = CHUNK_LARGE / largest(g);
    const int64_t fair = shard / (parameters(g) <= SMALL_NET ? 4 : 2);
    const int64_t most = values < fair ? values : fair;

    if (large < CHUNK_LEAST)
        return divisor(shard, 1, large < 1 ? 1 : large);
    return divisor(shard, CHUNK_LEAST,
                   most < CHUNK_LEAST  ? CHUNK_LEAST
                   : most > CHUNK_MOST ? CHUNK_MOST
                                       : most);
}

void schedule_cut(const Graph *g, Step *s)
{
    const Graph *t = g->peer ? g->peer : g;
    const int64_t sums = SUM_NUMBERS / (parameters(t) + 1);
    int64_t slices = SLICES_MOST;

    s->batch = s->shards = s->shard = s->slices = s->slice = s->chunk = 1;
    if (g->token)
        return;
    s->batch = g->recipe.batch;
    s->shards = g->recipe.shards ? g->recipe.shards : default_shards(t);
    s->shard = s->batch / s->shards;
    s->chunk = divisor(s->shard, CHUNK_LEAST, CHUNK_MOST);
    if (s->shards == 1 && has_statistics(t)) {
        s->chunk = chunk_of_one(t, s->shard);
        slices = sums < 2 ? 2 : sums < slices ? sums : slices;
    }
    const int64_t steps = attention_steps(t);
    if (steps > 0) { /* long products need no more rows, and their values are large */
        const int64_t most = CHUNK_ROWS / steps, each = sums / s->shards;
        s->chunk = divisor(s->shard, 1, most < 1 ? 1 : most < CHUNK_MOST ? most : CHUNK_MOST);
        slices = each < 1 ? 1 : each < slices ? each : slices;
    }
    s->slices = divisor(s->shard / s->chunk, 1, slices);
    s->slice = s->shard / s->slices;
}

/* A kernel of a GPU takes all samples of a shard at once, and a batch is one shard unless the recipe says otherwise, or ranks share it. */
static void cut_for_device(const Graph *g, Step *s, const Options *o)
{
    s->shards = g->recipe.shards ? g->recipe.shards : o->overlap ? s->shards : 1;
    s->shard = s->batch / s->shards;
    s->chunk = s->slice = s->shard;
    s->slices = 1;
}

/* The mean of one number is that number: batch_norm's result would be its shift, whatever the
 * sample. */
static bool check_statistics(const Graph *g, const Step *s, Diag *d)
{
    const int before = diag_errors(d);

    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!node_is(n, "batch_norm"))
            continue;
        const bool sync = node_bool(n, "sync");
        if ((sync ? s->batch : s->shard) * (shape_count(&n->shape) / n->shape.dim[0]) > 1)
            continue;
        diag_error(d, n->span, "batch_norm has one number a channel to normalise");
        diag_note(d, "its input is %s, and a %s is one sample", shape_text(g->arena, &n->shape),
                  sync ? "batch" : "shard");
        if (s->batch == 1)
            diag_help(d, "use a larger batch");
        else
            diag_help(d, "use fewer shards than %lld, or sync = true", (long long)s->shards);
    }
    return diag_errors(d) == before;
}

/* Kernels count a chunk's numbers in an int. */
static bool check_counts(const Graph *g, const Step *s, Diag *d)
{
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!n->shape.batched || shape_count(&n->shape) <= INT32_MAX / s->chunk)
            continue;
        diag_error(d, n->span, "the result of %s, %s, has more than 2^31 - 1 numbers in a chunk",
                   n->op->name, shape_text(g->arena, &n->shape));
        diag_note(d, "a chunk is %lld sample%s of a batch of %lld", (long long)s->chunk,
                  s->chunk == 1 ? "" : "s", (long long)s->batch);
        diag_help(d, s->chunk == 1 ? "make it smaller" : "make it smaller, or use more shards");
        return false;
    }
    return true;
}

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
    const int64_t real = strcmp(g->recipe.dtype, "f64") ? 4 : 8;
    const bool product = node_is(root, "dense_dw") || node_is(root, "embedding_dw") || (node_is(root, "conv2d_dw") && sum.param);
    sum.panels = !o->plain && !o->blas && !o->cuda && product && sum.update && by_panels(s, root, real);
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

/* What computes a node: prepare, a slice phase as part of a sum or of a sample, what follows one for all ranks, the head of a
 * slice phase from a shard's sums, the update. */
enum { LEAF = -1, PREPARE, SLICE, SUMMED, KNOWN, TOTAL, UPDATE };

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

/* It has a phase of its own: all samples at once (pass wide). */
static bool is_wide(const Node *n)
{
    return node_attr(n, "wide") != NULL;
}

/* Which prepare or slice phase: the first in which everything that n needs is there.  Units share what is prepared, so what
 * is prepared from it waits for a barrier; a shard's total is known one barrier after the last sample has joined the sum, and a
 * wide layer stands between two barriers. */
static int level_of(const Node *n, const int *level, const int *least)
{
    int l = least[n->id];
    for (int i = 0; i < n->nin; i++) {
        const Node *x = n->in[i];
        if (n->mark == PREPARE && x->mark == PREPARE && l <= level[x->id])
            l = level[x->id] + 1;
        const bool total = n->mark == TOTAL && (x->mark == SUMMED || x->mark == KNOWN);
        const int after = level[x->id] + (total || is_wide(n) || is_wide(x));
        if (x->mark >= SLICE && x->mark <= TOTAL && l < after)
            l = after;
    }
    const Attr *again = node_attr(n, "again"); /* by pass recompute: not before this one */
    return again && l < again->i ? (int)again->i : l;
}

/* A loop over time runs in one phase: all its nodes have the level of the last.  They stand together
 * in the list, from `at` on; returns how many. */
static int loop_level(const Graph *g, int at, int *level, const int *least)
{
    const int n = loop_end(g->node, g->nnode, at) - at;
    int last = 0;
    for (int i = 0; i < n; i++) {
        const Node *x = g->node[at + i];
        level[x->id] = level_of(x, level, least);
        last = last < level[x->id] ? level[x->id] : last;
    }
    for (int i = 0; i < n; i++)
        level[g->node[at + i]->id] = last;
    return n;
}

static void find_levels(const Graph *g, int *level, const int *least)
{
    for (int i = 0; i < g->nnode;)
        if (g->node[i]->loop)
            i += loop_level(g, i, level, least);
        else
            level[g->node[i]->id] = level_of(g->node[i], level, least), i++;
}

static bool reads_forward(const Node *n, const bool *reads)
{
    return n->mark >= SLICE && n->mark <= TOTAL && !n->backward && reads[n->id];
}

/* Ranks update a bucket's parameters no sooner than the next step's forward pass reads them (runtime/net.c), those of its first layers, the
 * last bucket, first: what reads another bucket's waits for a phase of its own, so that it can go on under the first layers. */
static void cut_forward(const Graph *g, const Step *s, int *level, int *least)
{
    for (int b = s->nbucket - 2; b >= 0; b--) {
        const bool *before = buckets_read(g, s, b + 1), *reads = buckets_read(g, s, b);
        int last = -1;
        for (int i = 0; i < g->nnode; i++)
            if (reads_forward(g->node[i], before) && !reads[g->node[i]->id] &&
                last < level[g->node[i]->id])
                last = level[g->node[i]->id];
        for (int i = 0; i < g->nnode; i++)
            if (reads_forward(g->node[i], reads) && least[g->node[i]->id] <= last)
                least[g->node[i]->id] = last + 1;
        find_levels(g, level, least);
    }
}

/* Samples and labels are fetched where they are read first. */
static void sink_leaves(const Graph *g, int *level)
{
    int *first = arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof *first);
    for (int id = 0; id <= g->next_id; id++)
        first[id] = -1;
    for (int i = 0; i < g->nnode; i++)
        for (int k = 0; k < g->node[i]->nin; k++) {
            const int leaf = g->node[i]->in[k]->id, l = level[g->node[i]->id];
            if (first[leaf] < 0 || l < first[leaf])
                first[leaf] = l;
        }
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->nin == 0 && g->node[i]->mark == SLICE && !g->node[i]->loop &&
            first[g->node[i]->id] >= 0)
            level[g->node[i]->id] = first[g->node[i]->id];
}

/* What only later buckets need waits until the sums of a bucket are complete. */
static int *levels(const Graph *g, const Step *s)
{
    int *level = arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof *level);
    int *least = arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof *least);
    const int *bucket = buckets_claim(g, s);
    find_levels(g, level, least);
    if (s->late)
        cut_forward(g, s, level, least);
    for (int b = 0; b + 1 < s->nbucket; b++) {
        const int next = buckets_level(g, s, b, level) + 1;
        for (int i = 0; i < g->nnode; i++) {
            const Node *n = g->node[i];
            if (n->backward && bucket[n->id] > b && bucket[n->id] < s->nbucket &&
                (n->mark == SLICE || n->mark == SUMMED))
                least[n->id] = next;
        }
        find_levels(g, level, least);
    }
    sink_leaves(g, level);
    return level;
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

static bool in_slice(const Node *n)
{
    return n->mark == SLICE ||
           (n->mark == SUMMED && n->place == PLACE_PARTIAL && n->op->flags & OP_SUM);
}

/* A total is made anew at the head of each phase that reads it: every thread has its own. */
static void push_totals(Graph *g, Phase *p, const Readers *r, const int *level, int l)
{
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        bool read = false;
        for (int k = 0; n->mark == TOTAL && k < readers_count(r, n); k++)
            read |= in_slice(readers_at(r, n, k)) && level[readers_at(r, n, k)->id] == l;
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
    return is_wide(n);
}

static bool in_samples(const Node *n)
{
    return in_slice(n) && !is_wide(n);
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

/* The first level of slices that reads a bucket's parameters, or what is prepared from them. */
static int first_reader(const Graph *g, const Step *s, int bucket, const int *level)
{
    const bool *reads = buckets_read(g, s, bucket);
    int first = -1;
    for (int i = 0; i < g->nnode; i++)
        if (reads[g->node[i]->id] && in_slice(g->node[i]) &&
            (first < 0 || level[g->node[i]->id] < first))
            first = level[g->node[i]->id];
    return first < 0 ? 0 : first;
}

/* What is prepared for the backward pass alone: before which level; elsewhere 0. */
static int *backward_levels(const Graph *g, const Readers *r, const int *level)
{
    int *by = arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof *by);
    for (int i = g->nnode - 1; i >= 0; i--) {
        const Node *n = g->node[i];
        int first = -1;
        for (int k = 0; in_prepare(n) && k < readers_count(r, n); k++) {
            const Node *u = readers_at(r, n, k);
            const int l = in_prepare(u) ? by[u->id] : in_slice(u) && u->backward ? level[u->id] : 0;
            first = first < 0 || l < first ? l : first;
        }
        by[n->id] = first < 0 ? 0 : first;
    }
    return by;
}

/* Before which level of slices each bucket's parameters are updated at the latest; by[node]: and what is prepared from them is made. */
static int *due_levels(const Graph *g, const Step *s, const Readers *r, const int *level, int *due)
{
    int *by = s->late ? backward_levels(g, r, level)
                      : arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof *by);
    for (int b = 0; b < s->nbucket && s->late; b++) {
        const bool *reads = buckets_read(g, s, b);
        due[b] = first_reader(g, s, b, level);
        for (int i = 0; i < g->nnode; i++)
            if (reads[g->node[i]->id] && by[g->node[i]->id] < due[b])
                by[g->node[i]->id] = due[b];
    }
    return by;
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
    const int *prepared = due_levels(g, s, r, level, due);
    for (int l = 0; l <= last_level(g, in_slice, level); l++) {
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
        if (in_slice(g->node[i]) && g->node[i]->phase < 0) {
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
    Step *s = g->step = arena_alloc(g->arena, sizeof *s);

    schedule_cut(g, s);
    if (o->cuda)
        cut_for_device(g, s, o);
    if (!check_counts(g, s, d) || !check_statistics(g, s, d))
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
    s->fused_update = g->recipe.clip_norm == 0 || o->cuda; /* a GPU finds the norm by itself */
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->op->flags & OP_UPDATE && g->node[i]->in[1]->mark != SUMMED &&
            g->node[i]->in[1]->mark != KNOWN)
            s->fused_update = false;
    for (int i = 0; i < s->nsum; i++)
        if (!s->sum[i].update && !s->sum[i].total)
            s->fused_update = false;
    s->late = o->overlap && !o->cuda && s->fused_update;
    for (int i = 0; i < g->nnode; i++)
        place(s, g->node[i]);
    const int *level = levels(g, s);
    keep(g, s, level);
    phases(g, s, r, level);
    check_phases(g);
}
