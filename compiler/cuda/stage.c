/* stage.c -- --kernels=persistent: puts barriers between the stages of a step.
 *
 * A stage needs a barrier before it if it accesses bytes that another thread has written since the
 * last barrier, or if it writes bytes that another thread accesses.  Two stages that divide the
 * same numbers in the same order need none: the thread that has written a number reads it.  An
 * elementwise stage can take any order, so it takes over the order of a product
 * (runtime/cuda/results.cuh).  In loops over time, between shards and between phases there is
 * always a barrier. */
#include "cuda/steps.h"

/* Predicted seconds of a stage, run by all blocks (cluster = 0) or by one cluster. */
double stage_seconds(const Writer *w, const CudaCall *c, int cluster, CallPrice *p)
{
    const Gpu *g = gpu_of(w->in->options->arch);
    *p = c->owned >= 0 ? own_price(w, c->owned, cluster) : call_price(w, c);
    return price_seconds(g, p, cluster ? cluster : g->processors);
}

static void add_costs(const Writer *w, Stages *s, CudaCall *const *call, int n)
{
    for (int i = 0; i < n; i++) {
        CallPrice p;
        const int64_t times = call[i]->kind == KIND_LINE ? 0 : call[i]->times;
        s->all += (double)times * stage_seconds(w, call[i], 0, &p);
        s->few += (double)times * stage_seconds(w, call[i], CLUSTER, &p);
        s->stages += times;
    }
}

/* ------------------------------------------------------------------------------- barriers */

static void push_stage(Writer *w, Stages *s, CudaCall *c, bool first)
{
    if (c->kind != KIND_LINE || first)
        c->barrier = s->barrier, s->barrier = false;
    ARENA_PUSH(w->arena, s->out->call, s->out->n, c);
    pending_add(w, &s->pending, c);
    if (c->node)
        s->done[c->node->id] = true;
}

static void place_calls(Writer *w, Stages *s, CudaCall **call, int n);

static void place_metrics(Writer *w, Stages *s, const char *indent)
{
    for (int i = 0; i < RT_METRICS; i++) {
        CudaCall *c = s->metric[i];
        if (!c)
            continue;
        s->metric[i] = NULL, s->written |= 1u << i;
        c->indent = indent;
        place_calls(w, s, &c, 1);
    }
}

/* Adds a barrier.  Pending metrics are written directly after the barrier that follows their
 * values, so that the update does not wait for them. */
static void add_barrier(Writer *w, Stages *s, const CudaCall *c)
{
    const Node *n = c->owned < 0 ? c->node : NULL;

    s->barrier = true, s->must = false;
    s->barriers += c->times;
    s->pending.n = 0;
    if (!(n && n->loop))
        place_metrics(w, s, c->indent);
}

static bool has_conflict(const Stages *s, CudaCall *const *call, int n)
{
    for (int i = 0; i < n; i++)
        if (pending_conflict(&s->pending, call[i]))
            return true;
    return false;
}

static void forget_decisions(Writer *w, CudaCall *c)
{
    c->barrier = false, c->taken_order = NULL;
    cuda_give_order(w, c, c->natural);
}

/* Places n calls that share one barrier; only the first call can take over an earlier order.  A
 * barrier that is needed in any case is added first, because it ends conflicts that would forbid an
 * update or an order. */
static void place_calls(Writer *w, Stages *s, CudaCall **call, int n)
{
    CudaCall *update = call[0]->with_update;

    for (int i = 0; i < n; i++)
        s->must |= call[i]->needs_barrier, forget_decisions(w, call[i]);
    if (s->must)
        add_barrier(w, s, call[0]);
    if (update && own_can_update(w, s, update))
        call[0] = update, s->updated[update->updates] = true;
    pending_order(w, &s->pending, call[0]);
    add_costs(w, s, call, n);
    if (has_conflict(s, call, n))
        add_barrier(w, s, call[0]);
    for (int i = 0; i < n; i++) {
        if (call[i]->inner_barrier)
            s->barrier = true, s->barriers += call[i]->times, s->pending.n = 0;
        push_stage(w, s, call[i], i == 0);
    }
}

/* ------------------------------------------------------------------------------- a step */

/* The number of calls and lines from index i on that share one barrier before them. */
static int count_together(const CudaCalls *l, int i)
{
    int end = i + 1;
    while (end < l->n && l->call[end]->continues)
        end++;
    return end - i;
}

static void schedule_call(Writer *w, Stages *s, const CudaCalls *l, int i)
{
    CudaCall *c = l->call[i];

    if (c->phase != s->phase)
        s->phase = c->phase, s->written = 0;
    if (c->kind == KIND_METRICS) {
        place_metrics(w, s, "    ");
    } else if (c->kind == KIND_LINE && count_together(l, i) == 1) {
        ARENA_PUSH(w->arena, s->out->call, s->out->n, c);
    } else if (c->metric >= 0) {
        s->metric[c->metric] = c;
    } else if (c->owned >= 0 && s->updated[c->owned]) {
        return; /* a product has done this update */
    } else {
        const int n = count_together(l, i);
        CudaCall **call = arena_alloc(w->arena, sizeof *call * (size_t)n);
        for (int k = 0; k < n; k++)
            call[k] = l->call[i + k];
        place_calls(w, s, call, n);
    }
}

void stage_schedule(Writer *w, const CudaCalls *list, const Pending *last, Stages *s)
{
    *s = (Stages){.must = !last, .phase = -1};
    s->out = arena_alloc(w->arena, sizeof *s->out);
    s->done = arena_alloc(w->arena, sizeof *s->done * (size_t)(w->g->next_id + 1));
    s->updated = arena_alloc(w->arena, sizeof *s->updated * (size_t)(w->g->step->nsum + 1));
    for (int i = 0; last && i < last->n; i++) {
        Operand o = last->operand[i];
        o.memory = o.memory == MEMORY_NEXT      ? MEMORY_SAMPLES
                   : o.memory == MEMORY_SAMPLES ? MEMORY_NEXT
                                                : o.memory;
        pending_add_one(w, &s->pending, &o);
    }
    for (int i = 0; i < list->n; i++)
        if (!list->call[i]->continues)
            schedule_call(w, s, list, i);
}
