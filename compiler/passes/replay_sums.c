/* replay_sums.c -- replays sums over samples and updates of parameters. */
#include "ops/op.h"
#include "passes/replay.h"

/* Reads the sources of a sum: the parts of the slices; for a sum by panels, the inputs of all
 * samples. */
static void read_sources(Steps *t, const Sum *m)
{
    const Node *root = m->root;
    for (int k = m->stored; k < 2 && m->panels; k++)
        replay_read(&t->v, root, root->in[k]);
    if (!m->panels)
        replay_read(&t->v, root, root);
}

static Extent in_buffer(const Steps *t, const Sum *m)
{
    return (Extent){REGION_GRADIENT, m->offset, m->offset + m->count * t->v.real, 0};
}

void replay_add_up(Steps *t, int i)
{
    Replay *v = &t->v;
    const Sum *m = &t->base->step->sum[i];
    if (v->wrong || (!m->update && m->total))
        return;
    if (m->known) {
        t->known[i] = v->track->wrote[m->update->in[1]->id];
    } else {
        read_sources(t, m);
        replay_inside(v, m->root, in_buffer(t, m));
        if (!v->wrong && replay_touch(v, m->root, in_buffer(t, m), true))
            replay_put(v, m->root, in_buffer(t, m));
    }
    if (t->pending[i])
        replay_fail(v, "%s is added up again in %s, before the update of the previous step",
                    replay_value(v, m->root), replay_phase(v, v->graph, v->at));
    t->pending[i] = m->update != NULL, t->added[i] = v->step;
    for (int k = 0; m->update && k < m->update->nin; k += 2)
        v->track->stale[m->update->in[k]->id] = v->step;
}

static void change(Steps *t, const Node *by, const Node *x, int64_t at, int64_t bytes)
{
    const Extent e = {REGION_FIXED, at, at + bytes, 0};
    if (!t->v.wrong && replay_holds(&t->v, by, x, e))
        replay_touch(&t->v, by, e, true);
}

static void change_param(Steps *t, const Node *by, const Node *x)
{
    const Graph *g = t->base;
    const Param *p = x->param;
    const int64_t bytes = p->count_memory * t->v.real;
    change(t, by, x, p->offset, bytes);
    for (int i = 0; i < g->nparam; i++)
        for (int k = 0; k < 2 && g->param[i] == p; k++)
            if (p->offset_state[k] >= 0)
                change(t, by, t->state[k][i], p->offset_state[k], bytes);
    t->v.track->stale[x->id] = 0;
}

/* Runs update i, which changes the parameters in its inputs 0, 2 ... */
void replay_update(Steps *t, int i)
{
    Replay *v = &t->v;
    const Sum *m = &t->base->step->sum[i];
    if (v->wrong || !t->pending[i])
        return;
    t->pending[i] = false;
    if (t->scale)
        replay_holds(v, m->update, t->scale,
                     (Extent){REGION_FIXED, t->base->step->offset_scaling,
                              t->base->step->offset_scaling + (int64_t)sizeof(double), 0});
    if (m->known && t->known[i] != v->track->wrote[m->update->in[1]->id])
        replay_fail(v, "%s reads %s in %s, which has been computed again since",
                    replay_value(v, m->update), replay_value(v, m->update->in[1]),
                    replay_phase(v, v->graph, v->at));
    else if (m->known)
        replay_holds(v, m->update, m->update->in[1], replay_extent(v, m->update->in[1]));
    else
        replay_holds(v, m->update, m->root, in_buffer(t, m));
    for (int k = 0; k < m->update->nin; k += 2)
        change_param(t, m->update, m->update->in[k]);
}

/* Runs the updates of sums of the previous step.  Sums of this step are updated in the next
 * step. */
static void update_bucket(Steps *t, const Bucket *b)
{
    replay_barrier(&t->v);
    for (int i = b->first; i < b->first + b->sums; i++)
        if (t->added[i] < t->v.step)
            replay_update(t, i);
}

/* Runs the pending updates of the previous step that phase `at` needs, the last bucket first. */
void replay_catch_up(Steps *t, int at)
{
    const Step *s = t->base->step;
    for (int b = s->nbucket - 1; b >= 0 && t->ranks; b--)
        if (s->bucket[b].due <= at)
            update_bucket(t, &s->bucket[b]);
}
