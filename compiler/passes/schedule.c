/* schedule.c -- cut the batch, decide what runs in which phase, and where each value lives.
 *
 * The units of work are constants of the program: slices of the batch, panels of a weight, ranges
 * of parameters.  The number of threads or ranks never changes what is computed or in which order
 * it is added (design.md, section 4).
 */
#include "ir/readers.h"
#include "ir/step.h"
#include "ops/op.h"
#include "passes/pass.h"
#include <string.h>

enum { CHUNK_MOST = 16, CHUNK_LEAST = 4, SLICES_MOST = 8 };

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

/* Default G: the largest of 8, 4, 2, 1 that divides the batch and leaves at least 8 samples a
 * shard. */
static int64_t default_shards(int64_t batch)
{
    for (int64_t g = 8; g > 1; g /= 2)
        if (batch % g == 0 && batch / g >= 8)
            return g;
    return 1;
}

static void cut(const Graph *g, Step *s)
{
    s->batch = g->recipe.batch;
    s->shards = g->recipe.shards ? g->recipe.shards : default_shards(s->batch);
    s->shard = s->batch / s->shards;
    s->chunk = divisor(s->shard, CHUNK_LEAST, CHUNK_MOST);
    const int64_t chunks = s->shard / s->chunk;
    s->slices = divisor(chunks, 1, SLICES_MOST);
    s->slice = s->shard / s->slices;
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

static void add_sum(Graph *g, Step *s, Node *root, Node *u, const Options *o)
{
    Sum sum = {.root = root};

    if (u && node_is(u, "update") && u->in[1] == root)
        sum.update = u, sum.param = u->in[0]->param;
    sum.panels = !o->plain && !o->blas && node_is(root, "dense_dw") && sum.update;
    sum.count = sum.param ? sum.param->count_memory : shape_count(&root->shape);
    sum.offset = s->grad_bytes;
    s->grad_bytes += (sum.count * (strcmp(g->recipe.dtype, "f64") ? 4 : 8) + 63) / 64 * 64;
    ARENA_PUSH(g->arena, s->sum, s->nsum, sum);
    root->alias = NULL;
    join(root, root);
}

/* ------------------------------------------------------------------------------- phases */

enum { LEAF = -1, PREPARE = 0, SLICE = 1, SUMMED = 2, UPDATE = 3 };

/* Which kind of phase computes n: by what it depends on. */
static int kind_of(const Readers *r, const Node *n)
{
    int k = PREPARE;

    if (n->nin == 0)
        return n->shape.batched && !node_is(n, "const") ? SLICE : LEAF;
    if (n->shape.batched)
        return SLICE;
    if (is_sum(r, n))
        return SUMMED;
    if (node_is(n, "update"))
        return UPDATE;
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->mark == SUMMED || n->in[i]->mark == UPDATE)
            k = UPDATE;
    return k;
}

static void push(Graph *g, Phase *p, Node *n)
{
    ARENA_PUSH(g->arena, p->node, p->nnode, n);
}

/* A value that a later phase reads, or that slices of one batch must all keep. */
static bool read_by_panels(const Step *s, const Node *n)
{
    for (int i = 0; i < s->nsum; i++)
        if (s->sum[i].panels && (s->sum[i].root->in[0] == n || s->sum[i].root->in[1] == n))
            return true;
    return false;
}

static Node *base_of(Node *n)
{
    while (n->op->flags & OP_VIEW || (n->alias && n->alias != n))
        n = n->op->flags & OP_VIEW ? n->in[0] : n->alias;
    return n;
}

static void place(const Step *s, Node *n)
{
    if (node_is(n, "const") || node_is(n, "update") || node_attr(n, "inline"))
        n->place = PLACE_NONE;
    else if (n->op->flags & OP_VIEW)
        n->place = PLACE_VIEW;
    else if (n->mark == SUMMED)
        n->place = PLACE_PARTIAL;
    else if (n->shape.batched)
        n->place = PLACE_LOCAL;
    else
        n->place = PLACE_FIXED;
    if (n->place == PLACE_PARTIAL)
        for (int i = 0; i < s->nsum; i++)
            if (s->sum[i].root == n && s->sum[i].panels)
                n->place =
                    PLACE_NONE; /* never stored: panels update, or go to the gradient buffer */
}

static void phases(Graph *g, Step *s)
{
    Phase p[4] = {{.kind = PHASE_PREPARE},
                  {.kind = PHASE_SLICE},
                  {.kind = PHASE_GRADIENT},
                  {.kind = PHASE_UPDATE}};

    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        if (n->mark == PREPARE)
            push(g, &p[0], n);
        else if (n->mark == SLICE ||
                 (n->mark == SUMMED && n->place == PLACE_PARTIAL && n->op->flags & OP_SUM))
            push(g, &p[1], n);
        else if (n->mark == UPDATE)
            push(g, &p[3], n);
    }
    for (int i = 0; i < s->nsum; i++)
        push(g, &p[2], s->sum[i].root);
    for (int i = 0; i < 4; i++)
        if (p[i].nnode) {
            for (int k = 0; k < p[i].nnode; k++)
                p[i].node[k]->phase = s->nphase;
            s->phase[s->nphase++] = p[i];
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

void pass_schedule(Graph *g, const Options *o, Diag *d)
{
    Step *s = g->step = arena_alloc(g->arena, sizeof *s);

    (void)d;
    add_sides(g);
    cut(g, s);
    const Readers *r = readers_new(g);
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->alias = NULL, g->node[i]->phase = -1;
    for (int i = 0; i < g->nnode; i++)
        g->node[i]->mark = kind_of(r, g->node[i]);
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i], *u = readers_uses(r, n) == 1 ? readers_only(r, n) : NULL;
        if (n->mark == SUMMED && !(u && u->mark == SUMMED))
            add_sum(g, s, n, u, o);
    }
    s->fused_update = g->recipe.clip_norm == 0;
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], "update") && !(g->node[i]->in[1]->mark == SUMMED))
            s->fused_update = false;
    for (int i = 0; i < s->nsum; i++)
        if (!s->sum[i].update)
            s->fused_update = false;
    for (int i = 0; i < g->nnode; i++)
        place(s, g->node[i]);
    for (int i = 0; i < g->nnode; i++)
        if (read_by_panels(s, g->node[i]) && base_of(g->node[i])->place == PLACE_LOCAL)
            base_of(g->node[i])->place = PLACE_BATCH;
    phases(g, s);
}
