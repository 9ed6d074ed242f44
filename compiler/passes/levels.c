/* levels.c -- decides which phase computes each node, as a part of pass schedule.
 *
 * A level is a slice phase with the prepare phases before it.  A node has the first level at which
 * all its inputs are complete.  A node gets a later level if a bucket of gradients must be complete
 * first, or if the node must wait for the update of a bucket.
 */
#include "passes/levels.h"
#include "ops/op.h"
#include "passes/buckets.h"

/* Whether n has a phase of its own, with all samples at once (pass wide). */
bool levels_wide(const Node *n)
{
    return node_attr(n, "wide") != NULL;
}

bool levels_in_slice(const Node *n)
{
    return n->mark == SLICE ||
           (n->mark == SUMMED && n->place == PLACE_PARTIAL && n->op->flags & OP_SUM);
}

/* Level of n: the first one at which all inputs of n are complete.  Units share prepared values, so
 * a value that is prepared from another one comes after a barrier.  The total of a shard comes
 * after the barrier that follows the last sample of its sum.  A wide layer is between two
 * barriers. */
static int level_of(const Node *n, const int *level, const int *least)
{
    int l = least[n->id];
    for (int i = 0; i < n->nin; i++) {
        const Node *x = n->in[i];
        if (n->mark == PREPARE && x->mark == PREPARE && l <= level[x->id])
            l = level[x->id] + 1;
        if (x->mark < SLICE || x->mark > TOTAL || l > level[x->id])
            continue;
        const bool total = n->mark == TOTAL && (x->mark == SUMMED || x->mark == KNOWN);
        l = level[x->id] + (total || levels_wide(n) || levels_wide(x));
    }
    /* set by pass recompute: n runs at this level or later */
    const Attr *again = node_attr(n, "again");
    return again && l < again->i ? (int)again->i : l;
}

/* A loop over time runs in one phase: all its nodes have the level of the last one.  They stand
 * next to each other in the list, from index `at` on.  Returns their number. */
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

/* Ranks update the parameters of a bucket when the forward pass of the next step reads them
 * (runtime/step/on_host.c).  The last bucket, with the first layers, is updated first.  Nodes that
 * read the parameters of another bucket get a later phase, so that ranks can update this bucket
 * while the first layers run. */
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

/* Moves samples and labels to the level of their first reader. */
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

/* Nodes that only later buckets need wait until the sums of a bucket are complete. */
int *levels_find(const Graph *g, const Step *s)
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

/* The first slice level that reads parameters of the bucket, or values that are prepared from
 * them. */
static int first_reader(const Graph *g, const Step *s, int bucket, const int *level)
{
    const bool *reads = buckets_read(g, s, bucket);
    int first = -1;
    for (int i = 0; i < g->nnode; i++)
        if (reads[g->node[i]->id] && levels_in_slice(g->node[i]) &&
            (first < 0 || level[g->node[i]->id] < first))
            first = level[g->node[i]->id];
    return first < 0 ? 0 : first;
}

/* By id of a prepared node: the level before which the node is made.  0 if the forward pass reads
 * it. */
static int *backward_levels(const Graph *g, const Readers *r, const int *level)
{
    int *by = arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof *by);
    for (int i = g->nnode - 1; i >= 0; i--) {
        const Node *n = g->node[i];
        int first = -1;
        for (int k = 0; n->mark == PREPARE && k < readers_count(r, n); k++) {
            const Node *u = readers_at(r, n, k);
            const int l = u->mark == PREPARE                  ? by[u->id]
                          : levels_in_slice(u) && u->backward ? level[u->id]
                                                              : 0;
            first = first < 0 || l < first ? l : first;
        }
        by[n->id] = first < 0 ? 0 : first;
    }
    return by;
}

/* The level before which running averages are updated: before the first level that overwrites the
 * statistics of all ranks. */
static int first_known(const Step *s, int bucket, const int *level, int due)
{
    const Bucket *b = &s->bucket[bucket];
    for (int i = b->first; i < b->first + b->sums; i++) {
        const Sum *m = &s->sum[i];
        if (m->known && level[m->update->in[1]->id] < due)
            due = level[m->update->in[1]->id];
    }
    return due;
}

/* Sets due[bucket]: the slice level before which its parameters are updated.  Returns by id: the
 * level before which a node that is prepared from parameters is made. */
int *levels_due(const Graph *g, const Step *s, const Readers *r, const int *level, int *due)
{
    int *by = s->late ? backward_levels(g, r, level)
                      : arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof *by);
    for (int b = 0; b < s->nbucket && s->late; b++) {
        const bool *reads = buckets_read(g, s, b);
        due[b] = first_known(s, b, level, first_reader(g, s, b, level));
        for (int i = 0; i < g->nnode; i++)
            if (reads[g->node[i]->id] && by[g->node[i]->id] < due[b])
                by[g->node[i]->id] = due[b];
    }
    return by;
}
