/* buckets.c -- ranks add gradients during the backward pass: cuts the gradient buffer into buckets.
 *
 * Sums stand in the gradient buffer in the order of the backward pass: the last layer comes first.
 * A bucket consists of a few neighbouring sums.  Calls that only later buckets need go to a later
 * slice phase, so that ranks add a complete bucket while this phase runs.
 *
 * Size of a bucket: a sum of S bytes over ranks takes A + S B seconds.  k buckets cost k A seconds,
 * and nothing hides the last S / k bytes.  k A + B S / k is least if a bucket has sqrt(S A / B)
 * bytes.  B is the time of a byte for 16 ranks on 10 Gbit/s, which transfer 2 * 15/16 S bytes.  A
 * is the time that a processor spends on 2 log2 16 messages of 10 us each.  A message arrives after
 * 30 us; this latency is hidden, because several sums run at the same time.  On a network of twice
 * the speed, the best bucket has 1.4 times the bytes.
 *
 * A step ends before its sums are complete.  Ranks update a bucket when the forward pass of the
 * next step reaches the layers of this bucket; levels.c divides the forward pass into phases for
 * that.  This is impossible if another operation comes between sums and updates (clipping by norm).
 *
 * Without ranks there is one bucket.  No bit depends on the buckets; they change only the time.
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
            continue; /* sums for running averages belong to the bucket of the last gradients */
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
    for (int i = g->nnode - 1; i >= 0; i--) { /* readers come after their inputs */
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
    for (int i = 0; i < g->nnode; i++) { /* readers come after their inputs */
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
    /* ranks report metrics before the first sum */
    for (int i = 0; bucket == 0 && i < g->nmetric; i++)
        last = last < level[g->metric[i].node->id] ? level[g->metric[i].node->id] : last;
    for (int i = 0; i < b->sums; i++) {
        const int l = level[s->sum[b->first + i].root->id];
        last = last < l ? l : last;
    }
    return last;
}
