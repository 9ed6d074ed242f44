/* plan.c -- gives each value an offset in a region of the step, from the lifetimes of the values.
 *
 * A buffer lives from the call that writes it to the last call that reads it.  Two buffers may
 * share bytes if their lifetimes do not overlap.  Offsets come from the best of three greedy orders
 * (Pisarchyk & Lee 2020, "Efficient memory management for deep neural net inference", greedy by
 * size).  The bytes of the largest live set are a lower bound; tables print it beside the result.
 */
#include "base/round.h"
#include "ir/step.h"
#include "ir/target.h"
#include "ops/op.h"
#include "ops/scan.h"
#include "passes/pass.h"
#include "runtime/constants.h"
#include <stdlib.h>
#include <string.h>

enum { SLACK = RT_ALIGN }; /* vectors may read, but never write, one line past a buffer */

static int64_t align(int64_t n)
{
    return round_up(n, RT_ALIGN);
}

int step_regions(const Step *s, int threads)
{
    const int64_t slices = s->shards * s->slices;
    return threads < slices ? threads : (int)slices;
}

int64_t step_thread_bytes(const Step *s, int threads, int regions)
{
    return regions * s->thread_bytes + (threads > regions ? threads * s->scratch_bytes : 0);
}

static int64_t other_bytes(const Step *s)
{
    return s->fixed_bytes + s->average_bytes + s->kept_bytes + s->shards * s->shard_bytes +
           (s->fused_update ? 0 : s->grad_bytes);
}

int step_regions_of(const Step *s, int threads, const RtTeamCost *phase, int n)
{
    return rt_regions(other_bytes(s), s->thread_bytes, s->scratch_bytes,
                      (int)(s->shards * s->slices), threads, phase, n);
}

int64_t step_bytes_of(const Step *s, int threads, int regions)
{
    return other_bytes(s) + step_thread_bytes(s, threads, regions);
}

int64_t step_bytes(const Step *s, int threads)
{
    return step_bytes_of(s, threads, step_regions(s, threads));
}

/* ---- sizes and lifetimes */

/* Bytes of the buffer of n: of a chunk, a shard or the whole value, by its place. */
static int64_t bytes_of(const Graph *g, const Node *n)
{
    const Step *s = g->step;
    int64_t count = node_reals(n);

    if (n->place == PLACE_PARTIAL) {
        for (int i = 0; i < s->nsum; i++)
            if (s->sum[i].root == n)
                count = s->sum[i].count;
    } else if (n->place == PLACE_BATCH)
        count *= s->shard;
    else if (n->place == PLACE_LOCAL && n->shape.batched)
        count *= s->chunk;
    else if (n->op->flags & OP_KNOWN)
        count *= s->shards;
    return align(count * node_number_bytes(n, dtype_bytes(g->recipe.dtype)) + SLACK);
}

/* Lifetime of a value: first write and last read.  Calls are numbered through all phases of the
 * step. */
typedef struct Life {
    int first_call, last_call, first_phase, last_phase; /* first_call -1: never */
} Life;

typedef struct Lives {
    const Graph *g;
    Life *life;   /* by id of node_root */
    int *call;    /* by id: the number of the node's call */
    int64_t late; /* values of at most this size live longer: see late_bytes */
} Lives;

static void touch(Lives *l, Node *n, int call, int phase)
{
    Life *f = &l->life[node_root(n)->id];
    if (f->first_call < 0)
        *f = (Life){call, call, phase, phase};
    f->first_call = call < f->first_call ? call : f->first_call;
    f->last_call = call > f->last_call ? call : f->last_call;
    f->first_phase = phase < f->first_phase ? phase : f->first_phase;
    f->last_phase = phase > f->last_phase ? phase : f->last_phase;
}

/* The loop that computes n also computes inlined nodes, so their inputs live until the call of
 * n. */
static void touch_inputs(Lives *l, const Node *n, int call, int phase)
{
    for (int i = 0; i < n->nin; i++) {
        touch(l, n->in[i], call, phase);
        if (node_attr(n->in[i], "inline"))
            touch_inputs(l, n->in[i], call, phase);
    }
}

/* The index of the call that writes n: for a side, the call of in[0]. */
static int call_of(const Lives *l, const Node *n, int call)
{
    return n->op->flags & OP_SIDE ? l->call[n->in[0]->id] : call;
}

static void touch_results(Lives *l, int call, int phase)
{
    const Graph *g = l->g;
    Node *kept[2 + RT_METRICS] = {g->output, g->loss};
    int n = 2;
    for (int i = 0; i < g->nmetric; i++)
        kept[n++] = g->metric[i].node;
    for (int i = 0; i < n; i++) /* the program reads results after the last call of a chunk */
        if (kept[i] && kept[i]->phase == phase)
            touch(l, kept[i], call, phase);
}

/* Values that a loop over time reads from outside, its states and its sequences live as long as the
 * whole loop.  Beginning and end of a loop count as calls. */
static void touch_loop(Lives *l, const Phase *p, int from, int to, int call, int phase)
{
    for (int i = from; i < to; i++) {
        Node *n = p->node[i];
        if (scan_begins(n) || n->op->flags & OP_LEAVES)
            touch(l, n, call, phase);
        for (int k = 0; k < n->nin; k++)
            if (node_loop(n->in[k]) != n->loop)
                touch(l, n->in[k], call, phase);
    }
}

static void touch_call(Lives *l, const Phase *p, Node *n, int call, int phase)
{
    if (p->kind == PHASE_UPDATE)
        return;
    if (p->kind != PHASE_GRADIENT || n->place == PLACE_PARTIAL)
        touch(l, n, call_of(l, n, call), phase);
    if (p->kind != PHASE_GRADIENT || n->place == PLACE_NONE)
        touch_inputs(l, n, call, phase);
    l->call[n->id] = call;
}

static void touch_phase(Lives *l, const Phase *p, int phase, int *call)
{
    for (int i = 0; i < p->nnode;) {
        const int first = i, end = loop_end(p->node, p->nnode, i);
        if (end > first)
            touch_loop(l, p, first, end, (*call)++, phase);
        do
            touch_call(l, p, p->node[i], (*call)++, phase);
        while (++i < end);
        if (end > first)
            touch_loop(l, p, first, end, (*call)++, phase);
    }
    /* a total is computed once, before the chunks, and is read until the last chunk */
    for (int i = 0; p->kind == PHASE_SLICE && i < p->nnode; i++)
        if (p->node[i]->op->flags & OP_TOTAL)
            touch(l, p->node[i], *call, phase);
    for (int i = 0; i < p->nknown; i++)
        touch_call(l, p, p->known[i], *call, phase);
    touch_results(l, (*call)++, phase);
}

static Lives lives(const Graph *g, int64_t late)
{
    const size_t ids = (size_t)g->next_id + 1;
    Lives l = {g, arena_alloc(g->arena, ids * sizeof(Life)),
               arena_alloc(g->arena, ids * sizeof(int)), late};
    int call = 0;
    for (int i = 0; i < g->next_id; i++)
        l.life[i].first_call = -1;
    for (int i = 0; i < g->step->nphase; i++)
        touch_phase(&l, &g->step->phase[i], i, &call);
    return l;
}

/* Whether the call of n, which reads x, can overwrite x. */
static bool can_overwrite(const Lives *l, const Node *n, Node *x)
{
    const bool gradient = n->backward && !x->backward;
    if (gradient && bytes_of(l->g, x) <= l->late) /* the gradient of the weights reads x later */
        return false;
    return (x->place == PLACE_LOCAL || x->place == PLACE_BATCH) && x->place == n->place &&
           x->shape.batched && x->op->leaf != LEAF_INPUT &&
           l->life[x->id].last_call == l->call[n->id] && x->dtype == n->dtype &&
           x->half == n->half && shape_same(&x->shape, &n->shape);
}

/* Number of times that the call of n reads x, also through inlined nodes. */
static int uses(const Node *n, const Node *x)
{
    int count = 0;
    for (int i = 0; i < n->nin; i++)
        count += node_attr(n->in[i], "inline") ? uses(n->in[i], x) : node_root(n->in[i]) == x;
    return count;
}

/* An operand of n, or of a node that is inlined into n, whose bytes the call can overwrite; NULL:
 * none.  A view of another shape, such as a sum over a dimension of 1, is read in another order. */
static Node *overwritten(const Lives *l, const Node *call, const Node *n)
{
    for (int i = 0; i < n->nin; i++) {
        Node *x = node_root(n->in[i]);
        if (node_attr(n->in[i], "inline"))
            x = overwritten(l, call, n->in[i]);
        else if (n->in[i]->within || uses(call, x) > 1 || !can_overwrite(l, call, x) ||
                 !shape_same(&n->in[i]->shape, &call->shape))
            x = NULL;
        if (x || !(n->op->flags & OP_ELEMENTWISE))
            return x;
    }
    return NULL;
}

/* Computes values in place: an output gets the bytes of an input that nothing reads later. */
static void overlay(const Lives *l)
{
    for (int i = 0; i < l->g->nnode; i++) {
        Node *n = l->g->node[i];
        if (n->op->flags & OP_INPLACE && !n->alias && !n->within && n->shape.batched &&
            !node_attr(n, "inline"))
            n->alias = overwritten(l, n, n);
    }
}

/* ---- packing */

static bool live_together(const Buffer *a, const Buffer *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest offset for b that overlaps no placed buffer with an overlapping lifetime.  The placed
 * buffers are in the order of their offsets. */
static int64_t lowest(Buffer *const *placed, int n, const Buffer *b)
{
    int64_t at = 0;

    for (int i = 0; i < n && placed[i]->offset < at + b->bytes; i++)
        if (live_together(placed[i], b) && at < placed[i]->offset + placed[i]->bytes)
            at = placed[i]->offset + placed[i]->bytes;
    return at;
}

static int by_size(const void *x, const void *y)
{
    const Buffer *a = *(Buffer *const *)x, *b = *(Buffer *const *)y;
    return a->bytes != b->bytes   ? (a->bytes < b->bytes ? 1 : -1)
           : a->first != b->first ? a->first - b->first
                                  : a->node->id - b->node->id;
}

static int by_start(const void *x, const void *y)
{
    const Buffer *a = *(Buffer *const *)x, *b = *(Buffer *const *)y;
    return a->first != b->first ? a->first - b->first : by_size(x, y);
}

static int by_life(const void *x, const void *y)
{
    const Buffer *a = *(Buffer *const *)x, *b = *(Buffer *const *)y;
    const int la = a->last - a->first, lb = b->last - b->first;
    return la != lb ? lb - la : by_size(x, y);
}

/* Places the buffers in this order, each at its lowest offset; returns the bytes of all.  Leaves
 * them in placed, in the order of their offsets. */
static int64_t pack(Buffer **list, Buffer **placed, int n, int (*order)(const void *, const void *))
{
    int64_t end = 0;

    qsort(list, (size_t)n, sizeof *list, order);
    for (int i = 0; i < n; i++) {
        Buffer *b = list[i];
        int at = i;
        b->offset = lowest(placed, i, b);
        for (; at > 0 && placed[at - 1]->offset > b->offset; at--)
            placed[at] = placed[at - 1];
        placed[at] = b;
        if (end < b->offset + b->bytes)
            end = b->offset + b->bytes;
    }
    return end;
}

/* Sets the offsets of the buffers of one region, and returns its bytes.  *bound gets the bytes of
 * the largest live set. */
static int64_t region(Arena *a, Buffer *all, int nall, bool (*mine)(const Buffer *), int64_t *bound)
{
    int (*const order[3])(const void *, const void *) = {by_size, by_start, by_life};
    Buffer **list = arena_alloc(a, (size_t)(nall + 1) * sizeof *list);
    Buffer **placed = arena_alloc(a, (size_t)(nall + 1) * sizeof *placed);
    int n = 0, best = 0;
    int64_t size[3];

    for (int i = 0; i < nall; i++)
        if (mine(&all[i]))
            list[n++] = &all[i];
    for (int i = 0; i < 3; i++) {
        size[i] = pack(list, placed, n, order[i]);
        if (size[i] < size[best])
            best = i;
    }
    *bound = 0;
    for (int i = 0; i < n; i++) {
        int64_t live = 0;
        for (int k = 0; k < n; k++)
            if (list[k]->first <= list[i]->first && list[i]->first <= list[k]->last)
                live += list[k]->bytes;
        if (*bound < live)
            *bound = live;
    }
    return best == 2 ? size[best] : pack(list, placed, n, order[best]);
}

static bool in_thread(const Buffer *b)
{
    return b->place == PLACE_LOCAL;
}
static bool in_shard(const Buffer *b)
{
    return b->place == PLACE_BATCH || b->place == PLACE_PARTIAL;
}

/* ---- the fixed region */

static void parameters(Graph *g, const Options *o)
{
    Step *s = g->step;
    const int64_t size = dtype_bytes(g->recipe.dtype);

    for (int i = 0; i < g->nparam; i++) {
        Param *p = g->param[i];
        p->offset = s->fixed_bytes;
        s->fixed_bytes += align(p->count_memory * size + SLACK);
    }
    s->parameter_bytes = s->fixed_bytes;
    s->kept_bytes = g->recipe.keep.result ? s->parameter_bytes : 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < g->nparam; i++) {
            Param *p = g->param[i];
            p->offset_state[k] = k < g->nstate && !p->average && !p->frozen ? s->fixed_bytes : -1;
            if (p->offset_state[k] >= 0)
                s->fixed_bytes += align(p->count_memory * size + SLACK);
        }
    if (target_of(o).scales_loss) {
        s->offset_scaling = s->fixed_bytes;
        s->fixed_bytes += RT_ALIGN; /* RtScaling */
    }
    if (g->recipe.average.kind == AVERAGE_EMA && target_of(o).averages) {
        s->average_offset = s->fixed_bytes;
        s->fixed_bytes += s->parameter_bytes;
    }
    s->average_bytes = g->recipe.average.kind && !s->average_offset ? s->parameter_bytes : 0;
    s->state_bytes = s->fixed_bytes - s->parameter_bytes;
}

/* Gives evaluation the offsets of the parameters of training.  Its packed weights lie after the
 * states, in the bytes of the packed weights of training, which each step computes anew. */
static void parameters_of_peer(Graph *g)
{
    const Graph *t = g->peer;

    for (int i = 0; i < g->nparam; i++) {
        Param *p = g->param[i];
        const Param *q = graph_find_param(t, p->name);
        if (q) {
            p->offset = q->offset;
            memcpy(p->offset_state, q->offset_state, sizeof q->offset_state);
        }
    }
    g->step->parameter_bytes = t->step->parameter_bytes;
    g->step->state_bytes = t->step->state_bytes;
    g->step->fixed_bytes = t->step->parameter_bytes + t->step->state_bytes;
}

static void add_buffer(Graph *g, Step *s, Node *n, int first, int last)
{
    Buffer b = {.node = n,
                .name = n->name ? n->name : n->op->name,
                .place = n->place,
                .bytes = bytes_of(g, n)};

    if (b.place == PLACE_PARTIAL)
        b.bytes *= s->slices;
    b.first = first, b.last = last;
    ARENA_PUSH(g->arena, s->buffer, s->nbuffer, b);
}

static void largest(int64_t *to, int64_t from)
{
    *to = *to > from ? *to : from;
}

/* Makes the arena, which training and evaluation share, large enough for both.  The last bytes of a
 * thread region hold scratch and no value, neither of training nor of evaluation. */
static void widen(Step *training, const Step *s)
{
    int64_t values = training->thread_bytes - training->scratch_bytes;
    largest(&values, s->thread_bytes - s->scratch_bytes);
    largest(&training->scratch_bytes, s->scratch_bytes);
    training->thread_bytes = values + training->scratch_bytes;
    largest(&training->fixed_bytes, s->fixed_bytes);
    largest(&training->shard_bytes, s->shard_bytes);
    largest(&training->bound_shard, s->bound_shard);
    largest(&training->bound_thread, s->bound_thread);
}

/* Bytes of the norms of LARS and LAMB on a GPU: two doubles for each piece of a parameter, and a
 * ratio for each parameter (runtime/cuda/trust.cuh). */
static int64_t trust_bytes(const Graph *g, const Step *s)
{
    int64_t numbers = 0;
    for (int i = 0; i < s->nsum && optimizer_trusts(&g->recipe.optimizer); i++)
        numbers += 2 * ceil_div(s->sum[i].count, RT_UPDATE_EACH) + 1;
    return numbers * (int64_t)sizeof(double);
}

/* On a GPU, the norm of gradients (for clipping, and for the test that they are finite) is computed
 * in the thread region, whose values are no longer needed then.  The region must have room for the
 * sums, for the parts of their norm (runtime/cuda/clip.cuh), and for the norms of parameters. */
static void leave_room_for_norm(const Graph *g, const Options *o, Step *s)
{
    const int64_t room =
        s->grad_bytes + RT_THREADS * (int64_t)sizeof(double) /* CLIP_PARTS */ + trust_bytes(g, s);
    if ((recipe_updates_last(&g->recipe) || target_of(o).scales_loss) && s->thread_bytes < room)
        s->thread_bytes = room;
}

/* Values of at most this many bytes live some calls longer; -1: no value does.  On a GPU, calls
 * share a launch if none of them writes bytes that another one reads.  So the memory of a value is
 * reused only some calls later, and a gradient does not overwrite an activation.  Writing a larger
 * value takes longer than a launch, so the memory of such a value is reused at once.  In a
 * persistent program each reuse needs a barrier between blocks, so all values live longer. */
static int64_t late_bytes(const Graph *g, const Options *o)
{
    return g->training ? target_of(o).reuse_late : -1;
}

/* Scratch of kernels lies after the values of a thread.  A thread runs one kernel at a time, so all
 * kernels use the same bytes. */
static void leave_room_for_kernels(const Graph *g, const Options *o, Step *s)
{
    const int lanes = o->vector > 0 ? (int)o->vector : 1, real = dtype_bytes(g->recipe.dtype);
    int64_t most = 0;
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        const int64_t bytes = n->op->scratch ? n->op->scratch(n, lanes, real) : 0;
        most = bytes > most ? bytes : most;
    }
    if (!most)
        return;
    s->scratch_at = align(s->thread_bytes + 1); /* not 0, which means no scratch */
    s->scratch_bytes = align(most + SLACK);
    s->thread_bytes = s->scratch_at + s->scratch_bytes;
    s->bound_thread += s->scratch_bytes;
}

void pass_plan(Graph *g, const Options *o, Diag *d)
{
    /* number of calls that late_bytes adds to the lifetime of a value */
    enum { LATER = 4, LATER_IN_LOOP = 16 };
    Step *s = g->step;
    const int64_t late = late_bytes(g, o);
    Lives l = lives(g, late);

    (void)d;
    if (g->peer)
        parameters_of_peer(g);
    else
        parameters(g, o);
    overlay(&l);
    l = lives(g, late); /* lifetimes again, now with values in place */
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        const Life *f = &l.life[n->id];
        if (n->op->leaf == LEAF_PARAM) {
            n->offset = n->param->offset;
        } else if (n->place == PLACE_FIXED) {
            n->offset = s->fixed_bytes;
            s->fixed_bytes += bytes_of(g, n);
        } else if (node_root(n) == n && f->first_call >= 0) {
            if (n->place == PLACE_LOCAL)
                add_buffer(g, s, n, f->first_call,
                           f->last_call + (bytes_of(g, n) > late ? 0
                                           : n->loop             ? LATER_IN_LOOP
                                                                 : LATER));
            else if (n->place == PLACE_BATCH || n->place == PLACE_PARTIAL)
                add_buffer(g, s, n, f->first_phase, f->last_phase);
        }
    }
    s->thread_bytes = region(g->arena, s->buffer, s->nbuffer, in_thread, &s->bound_thread);
    s->shard_bytes = region(g->arena, s->buffer, s->nbuffer, in_shard, &s->bound_shard);
    if (target_of(o).finds_norm)
        leave_room_for_norm(g, o, s);
    if (target_of(o).scratch)
        leave_room_for_kernels(g, o, s);
    for (int i = 0; i < s->nbuffer; i++)
        ((Node *)s->buffer[i].node)->offset = s->buffer[i].offset;
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->offset = node_root(g->node[i])->offset;
    if (g->peer)
        widen(g->peer->step, s);
}
