/* joint.c -- which calls of a slice phase follow each other in a team without a barrier.
 *
 * Small elementwise calls divide a chunk by samples: member i computes the same samples in each of
 * them.  A call then needs no barrier before it if, for each sample, it reads and overwrites only
 * what calls of the same member have written or read.  So the elementwise part of a step of an LSTM
 * has one barrier instead of eight.
 *
 * Two operands of different calls, one of them written, are in order if they are the same numbers
 * of the same sample: the same buffer with the same distance from one sample to the next.  They are
 * independent if they share no byte of the thread region.  All other operands need the barrier.
 */
#include "cpu/parts.h"
#include "emit/nest.h"
#include "ops/scan.h"

typedef struct JointOperand {
    const Node *node;
    bool written;
} JointOperand;

/* The bytes of the buffer in the thread region. */
static int64_t local_bytes(const Graph *g, const Node *root)
{
    const Step *s = g->step;
    for (int i = 0; i < s->nbuffer; i++)
        if (s->buffer[i].node == root)
            return s->buffer[i].bytes;
    return INT64_MAX / 2; /* unknown size: overlaps all later offsets */
}

static bool shares_bytes(const Graph *g, const Node *a, const Node *b)
{
    const Node *x = node_root(a), *y = node_root(b);
    if (x == y)
        return true;
    if (x->place != PLACE_LOCAL || y->place != PLACE_LOCAL)
        return false; /* regions are disjoint, and so are the other buffers of one phase */
    return x->offset < y->offset + local_bytes(g, y) && y->offset < x->offset + local_bytes(g, x);
}

static bool in_order(const Node *a, const Node *b)
{
    return node_root(a) == node_root(b) && a->shape.batched && b->shape.batched &&
           nest_sample(a) == nest_sample(b);
}

static bool conflicts(const Graph *g, const JointOperand *a, const JointOperand *b)
{
    return (a->written || b->written) && shares_bytes(g, a->node, b->node) &&
           !in_order(a->node, b->node);
}

/* The call after n in the same loop over time, or outside of loops if n is outside; NULL: there is
 * no such call, or a loop begins or ends before it. */
static const Node *next_call(const Phase *p, const Node *n)
{
    int i = 0;
    if (n->op->scan == SCAN_STATE || scan_begins(n) || (n->loop && n->loop->inside))
        return NULL;
    while (i < p->nnode && p->node[i] != n)
        i++;
    for (i++; i < p->nnode; i++) {
        const Node *next = p->node[i];
        if (next->loop != n->loop || next->op->scan == SCAN_STATE || scan_begins(next))
            return NULL;
        if (!(next->op->flags & OP_TOTAL) && kernel_needed(next))
            return next;
    }
    return NULL;
}

static const JointOperand *operands_of(Writer *w, const Statement *s)
{
    JointOperand *all = arena_alloc(w->arena, sizeof *all * (size_t)(s->noperand + 1));
    for (int i = 0; i < s->noperand; i++)
        all[i] = (JointOperand){s->operand[i], i == 0};
    return all;
}

bool joint_goes_on(Writer *w, const Phase *p, const Node *n, const Statement *s)
{
    const Node *next = s->noperand ? next_call(p, n) : NULL;
    const Statement after = next ? kernel_statement(w, next) : (Statement){0};
    const int before = w->cpu->njoint;
    w->cpu->njoint = 0;
    if (!after.noperand)
        return false;
    JointOperand *group = arena_alloc(w->arena, sizeof *group * (size_t)(before + s->noperand + 1));
    const JointOperand *own = operands_of(w, s), *others = operands_of(w, &after);
    for (int i = 0; i < before + s->noperand; i++) {
        group[i] = i < before ? w->cpu->joint[i] : own[i - before];
        for (int k = 0; k < after.noperand; k++)
            if (conflicts(w->g, &group[i], &others[k]))
                return false;
    }
    w->cpu->joint = group, w->cpu->njoint = before + s->noperand;
    return true;
}
