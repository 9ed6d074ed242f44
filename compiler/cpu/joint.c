/* joint.c -- which calls of a slice phase follow each other in a team without a barrier.
 *
 * A call needs no barrier before it if no member reads or overwrites what another member has
 * written or read since the last barrier.  So the gradients of a convolution's weights and of its
 * input, which read the same values, share one barrier.
 *
 * Two operands of different calls, one of them written, are independent if they share no byte.
 * They are in order if each member reads and writes only its own samples (Access.samples), and both
 * operands hold the same numbers of each sample: they lie in one buffer, and have the same distance
 * from one sample to the next.  Small elementwise calls are divided by samples.  So the elementwise
 * part of a step of an LSTM has one barrier instead of eight.  All other operands need the barrier.
 *
 * No barrier is needed after the last call of a chunk if the calls at the beginning of the next
 * chunk, up to the first barrier there, are independent of it.  After the last chunk, the threads
 * of the pool wait for each other, or the team waits before its next slice
 * (runtime/step/on_host.c).
 */
#include "cpu/parts.h"
#include "emit/nest.h"
#include "ops/scan.h"

void joint_access(Writer *w, Accesses *to, Access o)
{
    ARENA_PUSH(w->arena, to->access, to->count, o);
}

void joint_begin(Writer *w)
{
    w->cpu->joint = arena_alloc(w->arena, sizeof *w->cpu->joint);
    w->cpu->in_head = false;
}

void joint_begin_chunk(Writer *w)
{
    joint_begin(w);
    w->cpu->head = arena_alloc(w->arena, sizeof *w->cpu->head);
    w->cpu->in_head = true;
}

/* The bytes of the buffer in the thread region. */
static int64_t local_bytes(const Graph *g, const Node *root)
{
    const Step *s = g->step;
    for (int i = 0; i < s->nbuffer; i++)
        if (s->buffer[i].node == root)
            return s->buffer[i].bytes;
    return INT64_MAX / 2; /* unknown size: overlaps all later offsets */
}

/* Whether a and b are different channels of one value (pass slices).  A value of one number, such
 * as a label, has no channels. */
static bool other_channels(const Node *a, const Node *b)
{
    int64_t at, other;
    const Node *x = node_frame(a, &at), *y = node_frame(b, &other);
    return x == y && a->shape.rank > 0 && b->shape.rank > 0 && (a->within || a == x) &&
           (b->within || b == y) &&
           (at + a->shape.dim[0] <= other || other + b->shape.dim[0] <= at);
}

static bool shares_bytes(const Graph *g, const Node *a, const Node *b)
{
    const Node *x = node_root(a), *y = node_root(b);
    if (x == y)
        return !other_channels(a, b);
    if (x->place != PLACE_LOCAL || y->place != PLACE_LOCAL)
        return false; /* regions are disjoint, and so are the other buffers of one phase */
    return x->offset < y->offset + local_bytes(g, y) && y->offset < x->offset + local_bytes(g, x);
}

static bool in_order(const Access *a, const Access *b)
{
    return a->samples && b->samples && node_root(a->node) == node_root(b->node) &&
           a->node->shape.batched && b->node->shape.batched &&
           nest_sample(a->node) == nest_sample(b->node);
}

/* Whether x and y, which belong to different chunks, touch different rows of a value of the
 * shard. */
static bool other_rows(const Access *x, const Access *y)
{
    return node_root(x->node) == node_root(y->node) && node_root(x->node)->place == PLACE_BATCH;
}

/* Whether b, which follows a, needs a barrier. chunks: b belongs to the chunk after that of a. */
static bool conflicts(const Graph *g, const Accesses *a, const Accesses *b, bool chunks)
{
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++) {
            const Access *x = &a->access[i], *y = &b->access[k];
            if ((x->written || y->written) && shares_bytes(g, x->node, y->node) &&
                !in_order(x, y) && !(chunks && other_rows(x, y)))
                return true;
        }
    return false;
}

/* The next call of the phase after that of n, if both are in the same loop over time or both
 * outside of loops.  If n is computed before the chunks, so is the next call.  fn NULL: there is no
 * such call, or a loop begins or ends before it. */
static Statement next_call(Writer *w, const Phase *p, const Node *n)
{
    const unsigned total = n->op->flags & OP_TOTAL;
    int i = 0;
    if (n->op->scan == SCAN_STATE || scan_begins(n) || (n->loop && n->loop->inside))
        return (Statement){0};
    while (i < p->nnode && p->node[i] != n)
        i++;
    for (i++; i < p->nnode; i++) {
        const Node *next = p->node[i];
        if ((next->op->flags & OP_TOTAL) != total || !kernel_needed(next))
            continue;
        if (next->loop != n->loop || next->op->scan == SCAN_STATE || scan_begins(next))
            break;
        const Statement s = kernel_statement(w, next);
        if (s.fn)
            return s;
    }
    return (Statement){0};
}

/* Whether n is in no loop over time, and no call follows it in its chunk. */
static bool ends_chunk(const Phase *p, const Node *n)
{
    for (int i = p->nnode - 1; i >= 0 && p->node[i] != n; i--)
        if (kernel_needed(p->node[i]) && !(p->node[i]->op->flags & OP_TOTAL))
            return false;
    return !n->loop && !(n->op->flags & OP_TOTAL);
}

static void add_all(Writer *w, Accesses *to, const Accesses *from)
{
    for (int i = 0; i < from->count; i++)
        joint_access(w, to, from->access[i]);
}

bool joint_goes_on(Writer *w, const Phase *p, const Node *n, const Statement *s, bool results)
{
    CpuState *c = w->cpu;
    const Statement next = next_call(w, p, n);
    add_all(w, c->joint, &s->all);
    if (c->in_head)
        add_all(w, c->head, &s->all);
    if (next.fn ? !conflicts(w->g, c->joint, &next.all, false)
                : ends_chunk(p, n) && !results && !conflicts(w->g, c->joint, c->head, true))
        return true;
    joint_begin(w);
    return false;
}
