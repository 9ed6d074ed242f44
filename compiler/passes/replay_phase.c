/* replay_phase.c -- replays the calls of a phase: chunks, loops over time, stretches. */
#include "ops/op.h"
#include "ops/scan.h"
#include "ops/step_price.h"
#include "passes/replay.h"

static void call(Steps *t, const Node *n)
{
    if (!t->forward || !n->backward)
        replay_call(&t->v, n);
}

/* Sets the states at the beginning of a step of a loop.  Calls before the loop have computed the
 * states of the first step.  The states of a later step are the values that the previous step has
 * written to the same bytes. */
static void begin_iteration(Steps *t, const Loop *l, bool first)
{
    Replay *v = &t->v;
    int64_t *wrote = v->track->wrote;
    for (int i = 0; i < l->ncarry && !v->wrong; i++) {
        const Carry *c = &l->carry[i];
        const Extent e = replay_extent(v, c->state);
        const bool made = wrote[first ? c->state->id : c->next->id] >=
                          (first ? v->chunk : v->track->iteration[l->id]);
        if ((t->forward && c->next->backward) || !made ||
            !replay_holds(v, c->state, first ? c->state : c->next, e))
            continue; /* a call that reads the missing state reports the fault */
        replay_put(v, c->state, e);
        wrote[c->state->id] = v->now + 1;
    }
    v->track->iteration[l->id] = ++v->now;
}

/* Runs a stretch of a loop that runs inside another one.  Its nodes begin at index `from`; returns
 * the index of the first node of the outer loop. */
static int run_stretch(Steps *t, const Phase *p, int from, bool runs)
{
    const Loop *l = p->node[from]->loop;
    int end = from;
    for (; end < p->nnode && p->node[end]->loop == l; end++)
        if (runs && scan_begins(p->node[end]))
            call(t, p->node[end]);
    for (int64_t step = 0; runs && step < 2 && step < l->every; step++) {
        begin_iteration(t, l, step == 0);
        for (int i = from; i < end; i++)
            if (!scan_begins(p->node[i]))
                call(t, p->node[i]);
    }
    t->v.track->iteration[l->id] = 0;
    return end;
}

/* Runs a loop over time with the nodes from .. end - 1: its states, then two or three steps. */
static void run_loop(Steps *t, const Phase *p, int from, int end)
{
    const Loop *inner = p->node[from]->loop, *l = loop_outer(inner);
    const int64_t most = inner->inside ? 3 : 2;
    for (int i = from; i < end; i++)
        if (p->node[i]->op->scan == SCAN_STATE)
            call(t, p->node[i]);
    for (int64_t step = 0; step < most && step < l->steps; step++) {
        int first = from;
        begin_iteration(t, l, step == 0);
        if (inner->inside)
            first = run_stretch(t, p, from, step != 1 || inner->every == 1);
        for (int i = first; i < end; i++)
            if (p->node[i]->op->scan != SCAN_STATE)
                call(t, p->node[i]);
    }
    t->v.track->iteration[l->id] = 0;
}

bool replay_goes_forward(const Phase *p, int from, int end)
{
    for (int i = from; i < end; i++)
        if (!p->node[i]->backward)
            return true;
    return false;
}

static void run_calls(Steps *t, const Phase *p)
{
    for (int i = 0; i < p->nnode && !t->v.wrong;) {
        const int end = loop_end(p->node, p->nnode, i);
        if (end > i && (!t->forward || replay_goes_forward(p, i, end)))
            run_loop(t, p, i, end);
        else if (end == i && !(p->node[i]->op->flags & OP_TOTAL))
            call(t, p->node[i]);
        i = end > i ? end : i + 1;
    }
}

/* Sets the sums that begin in this phase to zero. */
static void set_to_zero(Steps *t)
{
    Replay *v = &t->v;
    const Step *s = v->graph->step;
    for (int i = 0; i < s->nbuffer && !v->wrong; i++) {
        const Node *n = s->buffer[i].node;
        if (s->buffer[i].place != PLACE_PARTIAL || s->buffer[i].first != v->at ||
            (t->forward && n->backward) || step_writes_sum(v->graph, n, v->options))
            continue;
        const Extent e = replay_extent(v, n);
        v->now++;
        replay_inside(v, n, e);
        if (replay_touch(v, n, e, true))
            replay_put(v, n, e);
        v->track->wrote[n->id] = v->now;
    }
}

/* Reads metrics and the output of an evaluation, which the program reads at the end of a chunk. */
static void report(Steps *t)
{
    Replay *v = &t->v;
    const Graph *g = v->graph;
    for (int i = 0; i < g->nmetric && !t->forward; i++)
        if (g->metric[i].node->phase == v->at)
            replay_read(v, g->metric[i].node, g->metric[i].node);
    if (!g->training && g->output->phase == v->at)
        replay_read(v, g->output, g->output);
}

static Region copy_region(const Replay *v, const Region *r)
{
    Region c = *r;
    c.held = arena_alloc(v->arena, (size_t)(r->n + 1) * sizeof *c.held);
    c.room = r->n;
    for (int i = 0; i < r->n; i++)
        c.held[i] = r->held[i];
    return c;
}

/* Runs a slice phase for one slice: sums set to zero, totals, two chunks, sums of all shards. */
static void run_slice(Steps *t, const Phase *p)
{
    Replay *v = &t->v;
    const Step *s = v->graph->step;
    set_to_zero(t);
    for (int i = 0; i < p->nnode; i++)
        if (p->node[i]->op->flags & OP_TOTAL)
            call(t, p->node[i]);
    v->in_slice = true;
    const Region shard = copy_region(v, &v->memory[REGION_SHARD]);
    for (int64_t row = 0; row < s->slice && row < 2 * s->chunk && !v->wrong; row += s->chunk) {
        v->chunk = ++v->now;
        if (row > 0) /* the next chunk has other samples, but the same thread region and sums */
            v->memory[REGION_SHARD] = copy_region(v, &shard);
        run_calls(t, p);
        report(t);
    }
    v->in_slice = false;
    if (t->forward)
        return; /* the sums of all shards are still in memory */
    if (p->nknown)
        replay_barrier(v);
    for (int i = 0; i < p->nknown; i++)
        call(t, p->known[i]);
}

static void run_all(Steps *t, const Phase *p)
{
    for (int i = 0; i < p->nnode; i++)
        call(t, p->node[i]);
}

/* Without ranks: adds the sums, each with its update if no other operation comes between. */
static void run_gradient(Steps *t)
{
    const Step *s = t->base->step;
    for (int i = 0; i < s->nsum; i++) {
        replay_add_up(t, i);
        if (s->fused_update)
            replay_update(t, i);
    }
    replay_barrier(&t->v);
    for (int i = 0; i < s->nsum; i++)
        replay_update(t, i);
}

void replay_phase_at(Steps *t, int at)
{
    Replay *v = &t->v;
    const Step *s = v->graph->step;
    const Phase *p = &s->phase[at];
    v->at = at;
    replay_barrier(v);
    if (p->kind == PHASE_SLICE)
        run_slice(t, p);
    else if (p->kind == PHASE_PREPARE || p->kind == PHASE_WIDE)
        run_all(t, p);
    else if (p->kind == PHASE_GRADIENT && !t->ranks)
        run_gradient(t);
    for (int b = 0; t->ranks && v->graph == t->base && b < s->nbucket; b++)
        if (s->bucket[b].ready == at) {
            replay_barrier(v);
            for (int i = s->bucket[b].first; i < s->bucket[b].first + s->bucket[b].sums; i++)
                replay_add_up(t, i);
        }
}
