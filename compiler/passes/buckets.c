/* buckets.c -- what ranks add while the backward pass goes on: the gradients, in the order in which it is done with them, in pieces.
 *
 * Sums stand in the order of the backward pass, the last layer's first, one after another in the gradient buffer; a bucket is a few
 * neighbours.  What only later buckets need waits until the sums of one bucket are complete: it goes to a later slice phase, and
 * ranks add the bucket meanwhile.
 *
 * How large: a sum over ranks takes A + S B seconds for S bytes.  k buckets cost k A, and the last S / k bytes hide behind nothing:
 * k A + B S / k is least where a bucket has sqrt(S A / B) bytes.  B is that of 16 ranks on 10 Gbit/s (2 * 15/16 S bytes), A what 2 log2 16 messages
 * cost a processor, 10 us each: that they take 30 us to arrive is hidden, with several sums under way. Both stand under a root: a network twice as fast
 * asks for 1.4 times the bytes.
 *
 * The step ends before its sums do: a bucket is updated when the next step's forward pass comes to its layers, which has phases for that
 * (schedule.c), unless something stands between sums and update (clipping by norm).
 *
 * Without ranks there is one bucket.  No bit depends on it: sums are what they were, only begun earlier.
 */
#include "passes/buckets.h"
#include "ir/target.h"
#include "ops/op.h"
#include <math.h>

/* A and B are properties of the target (ir/target.c). */
static int64_t best_size(const Step *s, const Target *t)
{
    return (int64_t)sqrt((double)s->grad_bytes * (t->message / t->byte));
}

void buckets_cut(Graph *g, Step *s, const Options *o)
{
    const Target t = target_of(o);
    const int64_t most = o->bucket ? o->bucket : o->overlap ? best_size(s, &t) : s->grad_bytes;
    Bucket b = {.first = 0};
    for (int i = 0; i < s->nsum; i++) {
        const int64_t end = i + 1 < s->nsum ? s->sum[i + 1].offset : s->grad_bytes;
        b.sums++;
        b.bytes = end - b.offset;
        if (i + 1 < s->nsum && (i + 1 >= s->ngradient || b.bytes < most))
            continue; /* the averages go with the last gradients */
        ARENA_PUSH(g->arena, s->bucket, s->nbucket, b);
        b = (Bucket){.first = i + 1, .offset = end};
    }
}

int *buckets_claim(const Graph *g, const Step *s)
{
    int *by = arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof *by);
    for (int id = 0; id <= g->next_id; id++)
        by[id] = s->nbucket;
    for (int b = s->nbucket - 1; b >= 0; b--)
        for (int i = 0; i < s->bucket[b].sums; i++)
            by[s->sum[s->bucket[b].first + i].root->id] = b;
    for (int i = g->nnode - 1; i >= 0; i--) { /* users stand behind what they use */
        const Node *n = g->node[i];
        for (int k = 0; k < n->nin && !(n->op->flags & OP_UPDATE); k++)
            if (by[n->in[k]->id] > by[n->id])
                by[n->in[k]->id] = by[n->id];
    }
    return by;
}

bool *buckets_read(const Graph *g, const Step *s, int bucket)
{
    bool *reads = arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof *reads);
    const Bucket *b = &s->bucket[bucket];
    for (int i = 0; i < b->sums; i++)
        if (s->sum[b->first + i].update)
            reads[s->sum[b->first + i].update->in[0]->id] = true;
    for (int i = 0; i < g->nnode; i++) { /* users stand behind what they use */
        const Node *n = g->node[i];
        for (int k = 0; k < n->nin && !(n->op->flags & OP_UPDATE); k++)
            if (reads[n->in[k]->id] && !n->in[k]->shape.batched)
                reads[n->id] = true;
    }
    return reads;
}

int buckets_level(const Graph *g, const Step *s, int bucket, const int *level)
{
    const Bucket *b = &s->bucket[bucket];
    int last = 0;
    for (int i = 0; bucket == 0 && i < g->nmetric; i++) /* ranks report them before the first sum */
        last = last < level[g->metric[i].node->id] ? level[g->metric[i].node->id] : last;
    for (int i = 0; i < b->sums; i++) {
        const int l = level[s->sum[b->first + i].root->id];
        last = last < l ? l : last;
    }
    return last;
}
