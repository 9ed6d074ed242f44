/* replay.c -- proves a plan of memory: runs the planned step symbolically, call by call, and
 * follows which value each byte holds.
 *
 * Each byte that a call reads must hold the expected value, made in this step, in this chunk and in
 * this step of a loop.  So no value is overwritten during its lifetime, and no value is read before
 * it is written.  The units of a phase run at the same time: no unit may touch bytes that another
 * unit writes in this phase, unless each unit touches only the rows of its own samples or slice.
 * The replay does not use lifetimes: it takes the offsets of pass plan, and the phases in which the
 * emitter sets sums to zero.
 *
 *   a step            its phases in order, with a barrier between two phases
 *   a slice           two chunks represent all: the second one starts with the values that the
 *                     first one has left
 *   a loop over time  two steps represent all; three steps if a stretch of another loop runs in it,
 *                     at the first and the third step
 *   one process       two steps, with an evaluation or a token between them, in the same arena
 *   ranks             the same; sums of buckets and updates run where ranks compute them
 *   a loss that is not finite: the forward pass again, to find the first value that is not finite
 */
#include "passes/replay.h"
#include "ir/target.h"
#include "ops/op.h"
#include "passes/pass.h"
#include <string.h>

/* ---- setting up */

static void follow(Replay *v, Track *t, const Graph *g)
{
    const size_t ids = (size_t)g->next_id + 1;
    const Step *s = g->step;
    *t = (Track){.graph = g,
                 .wrote = arena_alloc(v->arena, ids * sizeof *t->wrote),
                 .claimed = arena_alloc(v->arena, ids * sizeof *t->claimed),
                 .iteration = arena_alloc(v->arena, ((size_t)g->nloop + 1) * sizeof *t->iteration),
                 .count = arena_alloc(v->arena, ids * sizeof *t->count),
                 .row = arena_alloc(v->arena, ids * sizeof *t->row),
                 .side = arena_alloc(v->arena, ids * sizeof *t->side),
                 .parts = arena_alloc(v->arena, ids),
                 .stale = arena_alloc(v->arena, ids * sizeof *t->stale)};
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (n->op->flags & OP_SIDE)
            t->side[n->in[0]->id] = n;
        for (const Node *w = n->within; w && kernel_needed(n); w = w->within)
            t->parts[w->id] = true;
    }
    for (int i = 0; i < s->nsum; i++)
        t->count[s->sum[i].root->id] = s->sum[i].count;
    for (int i = 0; i < s->nbuffer; i++)
        t->row[s->buffer[i].node->id] = s->buffer[i].bytes / s->slices;
}

/* A node outside of any graph, for bytes that hold no value of a graph. */
static Node *outside_node(Replay *v, const Node *like, const char *name)
{
    Node *n = arena_alloc(v->arena, sizeof *n);
    *n = *like;
    n->name = name, n->param = NULL;
    return n;
}

/* Marks bytes that hold x throughout the program. */
static void put_forever(Replay *v, const Node *x, int64_t at, int64_t bytes)
{
    const Extent e = {REGION_FIXED, at, at + bytes, 0};
    const Region *r = &v->memory[REGION_FIXED];
    const int i = held_find(r, e.from);
    replay_inside(v, x, e);
    if (i < r->n && r->held[i].from < e.to)
        replay_fail(v, "%s and %s share %s", replay_value(v, x), replay_value(v, r->held[i].by),
                    replay_bytes(v, e));
    replay_put(v, x, e);
}

static void put_parameters(Steps *t)
{
    Replay *v = &t->v;
    const Graph *g = t->base;
    for (int i = 0; i < g->nparam; i++) {
        const Param *p = g->param[i];
        put_forever(v, p->node, p->offset, p->count_memory * v->real);
        for (int k = 0; k < 2; k++) {
            t->state[k][i] =
                outside_node(v, p->node, arena_printf(v->arena, "state %d of %s", k, p->name));
            if (p->offset_state[k] >= 0)
                put_forever(v, t->state[k][i], p->offset_state[k], p->count_memory * v->real);
        }
    }
    if (g->step->offset_scaling) {
        t->scale = outside_node(v, g->loss, "the scale of the loss");
        put_forever(v, t->scale, g->step->offset_scaling, (int64_t)sizeof(double));
    }
}

/* Begins a replay: all bytes are unknown, except for parameters and states. */
static void forget(Steps *t, bool ranks)
{
    static const char *const name[REGIONS] = {"the fixed region", "a shard's region",
                                              "a thread's region", "the gradient buffer"};
    Replay *v = &t->v;
    const Step *s = t->base->step;
    const int64_t bytes[REGIONS] = {s->fixed_bytes, s->shard_bytes, s->thread_bytes, s->grad_bytes};
    for (int i = 0; i < REGIONS; i++) {
        v->memory[i].arena = v->touched[i].arena = v->arena;
        v->memory[i].name = name[i], v->memory[i].bytes = bytes[i];
        held_clear(&v->memory[i]);
    }
    for (int k = 0; k < 2; k++)
        t->state[k] = arena_alloc(v->arena, ((size_t)t->base->nparam + 1) * sizeof(Node *));
    t->pending = arena_alloc(v->arena, (size_t)s->nsum + 1);
    t->added = arena_alloc(v->arena, ((size_t)s->nsum + 1) * sizeof *t->added);
    t->known = arena_alloc(v->arena, ((size_t)s->nsum + 1) * sizeof *t->known);
    memset(t->of[0].stale, 0, (size_t)t->base->next_id * sizeof *t->of[0].stale);
    t->ranks = ranks;
    v->graph = t->base, v->track = &t->of[0], v->at = 0;
    put_parameters(t);
}

/* ---- the order of steps */

static void enter(Steps *t, const Graph *g)
{
    t->v.graph = g, t->v.track = &t->of[g != t->base], t->v.at = 0;
    t->v.step = t->v.begun = ++t->v.now;
}

/* Runs all pending updates. */
static void settle(Steps *t)
{
    enter(t, t->base);
    replay_catch_up(t, t->base->step->nphase);
}

static void step(Steps *t)
{
    const Step *s = t->base->step;
    enter(t, t->base);
    for (int i = 0; i < s->nphase && !t->v.wrong; i++) {
        replay_catch_up(t, i);
        replay_phase_at(t, i);
    }
    if (t->ranks && !s->late)
        settle(t);
}

/* Runs the evaluation of a batch, or two tokens: the first token runs the prepare phases, the
 * second one uses their results. */
static void evaluate(Steps *t, const Graph *g)
{
    const Step *s = g->step;
    settle(t);
    enter(t, g);
    for (int i = 0; i < s->nphase && !t->v.wrong; i++)
        replay_phase_at(t, i);
    for (int i = 0; i < s->nphase && !t->v.wrong && g->token; i++)
        if (s->phase[i].kind == PHASE_SLICE)
            replay_phase_at(t, i);
}

static void run(Steps *t, const Graph *g, bool ranks)
{
    forget(t, ranks);
    if (t->v.wrong)
        return;
    step(t);
    if (g != t->base)
        evaluate(t, g);
    step(t);
}

/* Runs what a program does if the loss of a step is not finite: the forward pass again, to search
 * its values.  This follows the phase of the loss, or the last phase if the device reports the loss
 * only then. */
static void run_forward(Steps *t)
{
    const Graph *g = t->base;
    const int last = target_of(t->v.options).looks_last ? g->step->nphase - 1 : g->loss->phase;
    enter(t, g);
    for (int i = 0; i <= last && !t->v.wrong; i++)
        replay_phase_at(t, i);
    t->forward = true, t->v.begun = ++t->v.now;
    for (int i = 0; i < g->step->nphase && !t->v.wrong; i++)
        if (g->step->phase[i].kind == PHASE_SLICE &&
            replay_goes_forward(&g->step->phase[i], 0, g->step->phase[i].nnode))
            replay_phase_at(t, i);
    t->forward = false;
}

/* ---- tests without a replay */

static bool lies_in(const Node *n, const Node *whole)
{
    while (n && n != whole)
        n = n->within;
    return n != NULL;
}

/* Checks that parts of a frame that different calls write have no channel in common. */
static void check_parts(Replay *v)
{
    const Graph *g = v->graph;
    const Node **part = NULL;
    int n = 0;
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->within && kernel_needed(g->node[i]) &&
            !(g->node[i]->within->op->flags & OP_LEAVES))
            ARENA_PUSH(v->arena, part, n, g->node[i]);
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++) {
            int64_t a, b;
            if (node_frame(part[i], &a) == node_frame(part[k], &b) && !lies_in(part[i], part[k]) &&
                !replay_beside(part[i], part[k]))
                replay_fail(v, "%s and %s share channels of %s", replay_value(v, part[i]),
                            replay_value(v, part[k]), replay_value(v, node_frame(part[i], &a)));
        }
}

/* Checks that the scratch of kernels lies after all values of a thread. */
static void check_scratch(Replay *v)
{
    const Graph *g = v->graph;
    const Step *s = g->step;
    const int lanes = v->options->vector > 0 ? v->options->vector : 1;
    const bool scratch = target_of(v->options).scratch;
    for (int i = 0; i < g->nnode && scratch; i++) {
        const Node *n = g->node[i];
        const int64_t bytes = n->op->scratch ? n->op->scratch(n, lanes, (int)v->real) : 0;
        const Extent e = replay_extent(v, n);
        if (bytes > 0)
            replay_inside(v, n, (Extent){REGION_THREAD, s->scratch_at, s->scratch_at + bytes, 0});
        if (s->scratch_at && e.region == REGION_THREAD && node_root(n)->place == PLACE_LOCAL &&
            e.to > s->scratch_at)
            replay_fail(v, "%s, %s, reaches into the scratch of kernels at byte %lld",
                        replay_value(v, n), replay_bytes(v, e), (long long)s->scratch_at);
    }
}

/* Checks that the thread region is large enough for the norm of gradients, which a GPU computes in
 * it. */
static void check_norm(Replay *v)
{
    const Graph *g = v->graph;
    if (target_of(v->options).finds_norm && g->training &&
        (recipe_updates_last(&g->recipe) || target_of(v->options).scales_loss) &&
        g->step->thread_bytes < g->step->grad_bytes)
        replay_fail(v, "the gradients, %lld bytes, do not fit into the %lld bytes of scratch",
                    (long long)g->step->grad_bytes, (long long)g->step->thread_bytes);
}

const char *replay_verify(const Graph *g, const Options *o)
{
    const Graph *base = g->peer ? g->peer : g;
    Steps t = {.v = {.arena = g->arena, .options = o, .real = dtype_bytes(g->recipe.dtype)},
               .base = base};
    follow(&t.v, &t.of[0], base);
    if (g != base)
        follow(&t.v, &t.of[1], g);
    run(&t, g, false);
    if (base->step->nbucket > 1 || base->step->late)
        run(&t, g, true);
    if (g == base && g->training && g->loss) {
        forget(&t, false);
        run_forward(&t);
    }
    t.v.graph = g, t.v.track = &t.of[g != base];
    check_parts(&t.v);
    check_scratch(&t.v);
    check_norm(&t.v);
    return t.v.wrong;
}
