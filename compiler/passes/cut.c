/* cut.c -- cuts the batch into shards, slices and chunks.  This is a part of pass schedule, but
 * prices need the sizes before that pass runs.
 *
 * Shards, slices and chunks are constants of the program: they never depend on the number of
 * threads or ranks.
 */
#include "ir/step.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "passes/schedule.h"

enum {
    CHUNK_MOST = 16,
    CHUNK_LEAST = 4,
    SLICES_MOST = 8,
    CHUNK_NUMBERS = 1 << 19, /* numbers of the largest value of a chunk: 2 MB of f32 */
    CHUNK_LARGE = 1 << 21,   /* the same for large images, whose chunks can have one sample: 8 MB */
    CHUNK_ROWS = 512,        /* steps of all sequences of a chunk, if the graph has attention */
    SMALL_NET = 4 << 20,     /* a network with at most this many parameters is small */
    SUM_NUMBERS = 1 << 26    /* numbers in the weight gradients of all slices: 256 MB of f32 */
};

/* The largest divisor of n in [least, most], or n itself when there is none. */
static int64_t divisor(int64_t n, int64_t least, int64_t most)
{
    for (int64_t d = most < n ? most : n; d >= least; d--)
        if (n % d == 0)
            return d;
    return n;
}

/* Whether the graph has statistics of a shard (batch_norm without sync): then the batch is one
 * shard by default. */
static bool has_statistics(const Graph *g)
{
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->op->flags & OP_TOTAL && !node_bool(g->node[i], "sync"))
            return true;
    return false;
}

/* Default number of shards: the largest of 8, 4, 2, 1 that divides the batch and leaves at least 8
 * samples for each shard. */
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

/* Numbers in the largest value of a sample; in a bf16 program, half of them. */
static int64_t largest(const Graph *g)
{
    int64_t most = 1;
    bool half = false;
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        const int64_t count = shape_count(&n->shape);
        most = n->shape.batched && count > most ? count : most;
        half = half || (n->half && n->shape.batched);
    }
    return half ? (most + 1) / 2 : most;
}

/* Steps of the longest sequence under attention; 0: no attention. */
static int64_t attention_steps(const Graph *g)
{
    int64_t most = 0;
    for (int i = 0; i < g->nnode; i++) {
        const Shape *x = &g->node[i]->shape;
        if (op_computes(g->node[i], PRODUCT_ATTENTION, ROLE_Y) && x->dim[0] > most)
            most = x->dim[0];
    }
    return most;
}

/* Number of samples in a chunk of a batch that is one shard.  All threads share the shard, so it is
 * divided into two chunks or more: a step of resnet50 with 16 samples on two threads then takes
 * 1.9 s, not 3.4 s.  A small network has four chunks or more, because further copies of its weight
 * gradients are small.  The values of a chunk stay in the cache of the processor: batch_norm reads
 * what a convolution has just written.  Four samples fill the rows of a kernel in the last layers,
 * where images are small.  For large images, fewer samples are faster.  Milliseconds of a step on
 * one thread, by the number of samples in a chunk:
 *
 *                            4      2      1
 *   resnet50 at 224       3168   3046   3038
 *   inception_v3 at 299   2300      -   2225
 *   mobilenet_v2 at 224    621      -    553 */
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
    if (steps > 0) { /* a sequence gives a product enough rows, and its values are large */
        const int64_t most = CHUNK_ROWS / steps, each = sums / s->shards;
        s->chunk = divisor(s->shard, 1, most < 1 ? 1 : most < CHUNK_MOST ? most : CHUNK_MOST);
        slices = each < 1 ? 1 : each < slices ? each : slices;
    }
    s->slices = divisor(s->shard / s->chunk, 1, slices);
    s->slice = s->shard / s->slices;
}

/* A kernel of a GPU takes all samples of a shard at once.  A batch is one shard unless the recipe
 * says otherwise or ranks share the batch. */
void schedule_cut_for_device(const Graph *g, Step *s, const Options *o)
{
    s->shards = g->recipe.shards ? g->recipe.shards : o->overlap ? s->shards : 1;
    s->shard = s->batch / s->shards;
    s->chunk = s->slice = s->shard;
    s->slices = 1;
}

/* Reports a batch_norm with one number in a channel: the mean would be this number, and the result
 * would be the shift for each sample.  The test is by name, because the message names the op. */
bool schedule_check_statistics(const Graph *g, const Step *s, Diag *d)
{
    const int before = diag_errors(d);

    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!node_is(n, "batch_norm"))
            continue;
        const bool sync = node_bool(n, "sync");
        if ((sync ? s->batch : s->shard) * (shape_count(&n->shape) / n->shape.dim[0]) > 1)
            continue;
        diag_error(d, n->span, "batch_norm has only one number in each channel to normalise");
        diag_note(d, "its input is %s, and a %s is one sample", shape_text(g->arena, &n->shape),
                  sync ? "batch" : "shard");
        if (s->batch == 1)
            diag_help(d, "use a larger batch");
        else
            diag_help(d, "use fewer shards than %lld, or sync = true", (long long)s->shards);
    }
    return diag_errors(d) == before;
}

/* Kernels count the numbers of a chunk in an int. */
bool schedule_check_counts(const Graph *g, const Step *s, Diag *d)
{
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!n->shape.batched || node_reals(n) <= CHUNK_MAX / s->chunk)
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

bool pass_check(const Graph *g, Diag *d)
{
    Step s = {0};

    schedule_cut(g, &s);
    return schedule_check_counts(g, &s, d) && schedule_check_statistics(g, &s, d);
}
