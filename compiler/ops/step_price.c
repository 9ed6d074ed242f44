/* step_price.c -- prices of a planned step: nodes by their rules, sums over samples by their
 * sizes. */
#include "ops/step_price.h"
#include "ir/target.h"
#include "ops/conv_price.h"
#include "ops/dense_price.h"
#include "ops/embedding.h"
#include "ops/scan.h"

/* a vector of the sum of one slice, read and added in the tree */
static const double REDUCE_CYCLES = 8;
static const double UPDATE_CYCLES = 12; /* update of a vector of weights and states */

static Price times(Price p, double n)
{
    p.textbook *= n, p.executed *= n, p.weights *= n, p.values *= n, p.cycles *= n;
    return p;
}

Price step_price(const Graph *g, const Node *n, const Options *o)
{
    const Step *s = g->step;
    const bool once = n->phase >= 0 && s->phase[n->phase].kind == PHASE_PREPARE;
    const Market m = market_of(g, o, s->chunk);
    if (n->op->flags & OP_KNOWN)
        return times(price_of(n, &m), (double)(s->shards * s->slices));
    const double steps = n->op->scan == SCAN_STATE    ? 1
                         : n->op->scan == SCAN_RESUME ? (double)scan_stretches(n->loop)
                                                      : (double)node_steps(n);
    return times(price_of(n, &m), once ? 1 : steps * (double)(s->batch / s->chunk));
}

/* Price of the sums over slices and shards, and of one pass over weights and states. */
static Price reduced(const Graph *g, const Sum *s, bool from_grad, const Market *m)
{
    const Step *t = g->step;
    const double items = from_grad ? 1 : (double)(t->shards * t->slices),
                 bytes = (double)(s->count * m->real);
    const double vectors = (double)ceil_div(s->count, m->lanes);
    Price p = {.weights = bytes * (items + (s->update ? 2.0 * (1 + g->nstate) : 1))};

    p.cycles = vectors * (items * REDUCE_CYCLES + UPDATE_CYCLES) / m->core->fma;
    price_stream(&p, m, p.weights, p.weights);
    return p;
}

Price step_price_sum(const Graph *g, const Sum *s, bool from_grad, const Options *o)
{
    const Step *t = g->step;
    const Market m = market_of(g, o, t->chunk);

    if (!s->panels || from_grad)
        return reduced(g, s, from_grad, &m);
    if (s->root->op->product == PRODUCT_TABLE)
        return embedding_price_update(s->root, &m, t->batch, g->nstate);
    if (s->root->op->product == PRODUCT_CONV)
        return conv_price_update(s->root, &m, t->shards, t->shard, g->nstate);
    return dense_price_update(&m, s->param->file.dim[1], s->param->file.dim[0], t->shards,
                              t->shard * dense_rows(s->root), g->nstate);
}

bool step_writes_sum(const Graph *g, const Node *n, const Options *o)
{
    const Target t = target_of(o);
    const bool once = t.whole_shards
                          ? n->op->flags & OP_SUM && !n->loop && n->op->product != PRODUCT_TABLE
                          : op_computes(n, PRODUCT_CONV, ROLE_DW) && t.panels;
    if (!once || g->step->slice != g->step->chunk || (n->alias && n->alias != n))
        return false;
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i] != n && g->node[i]->alias == n)
            return false;
    return true;
}

Price step_price_zero(const Graph *g, int phase, const Options *o)
{
    const Step *s = g->step;
    const Market m = market_of(g, o, s->chunk);
    double bytes = 0;

    for (int i = 0; i < s->nbuffer; i++)
        if (s->buffer[i].place == PLACE_PARTIAL && s->buffer[i].first == phase &&
            !step_writes_sum(g, s->buffer[i].node, o))
            bytes += (double)(s->buffer[i].bytes * s->shards);
    Price p = {.weights = bytes, .cycles = bytes / (m.lanes * m.real) / m.core->stores};
    price_stream(&p, &m, bytes, bytes);
    return p;
}

Price step_price_phase(const Graph *g, int phase, const Options *o)
{
    const Step *s = g->step;
    const Phase *p = &s->phase[phase];
    Price all = {0};
    const bool update = p->kind == PHASE_UPDATE, sums = update || p->kind == PHASE_GRADIENT;
    for (int i = 0; i < p->nnode && !sums; i++)
        if (kernel_needed(p->node[i]))
            all.cycles += step_price(g, p->node[i], o).cycles;
    for (int i = 0; i < s->nsum && sums; i++)
        if (!update || s->sum[i].update)
            all.cycles += step_price_sum(g, &s->sum[i], update, o).cycles;
    return all;
}

double step_price_all(const Graph *g, const Options *o)
{
    const Step *s = g->step;
    const Market m = market_of(g, o, s->chunk);
    double cycles = 0;
    for (int i = 0; i < s->nphase; i++) {
        const Phase *p = &s->phase[i];
        const bool update = p->kind == PHASE_UPDATE, sums = update || p->kind == PHASE_GRADIENT;
        if (p->kind == PHASE_SLICE)
            cycles += step_price_zero(g, i, o).cycles;
        if (!(update && s->fused_update))
            cycles += step_price_phase(g, i, o).cycles;
        for (int k = 0; k < p->nknown && !sums; k++)
            cycles += step_price(g, p->known[k], o).cycles;
    }
    return 1e6 * market_seconds(&m, cycles);
}

/* ---- bytes */

/* Bytes of a value in a step: of all samples, of all slices, or of the whole value. */
static double value_bytes(const Graph *g, const Node *n)
{
    const Step *s = g->step;
    const double size = (double)node_number_bytes(n, dtype_bytes(g->recipe.dtype));
    const double items = n->place == PLACE_PARTIAL ? (double)(s->shards * s->slices)
                         : n->shape.batched        ? (double)s->batch
                                                   : 1;
    return size * items * (double)node_reals(n);
}

typedef struct Moved {
    const Graph *g;
    bool *seen; /* by id of node_root */
    double kept, local;
} Moved;

static void move_value(Moved *m, const Node *n)
{
    n = node_root(n);
    if (m->seen[n->id] || n->place == PLACE_NONE)
        return;
    m->seen[n->id] = true;
    if (n->place == PLACE_LOCAL)
        m->local += 2 * value_bytes(m->g, n);
    else
        m->kept += value_bytes(m->g, n);
}

static void move_inputs(Moved *m, const Node *n)
{
    for (int i = 0; i < n->nin; i++) {
        move_value(m, n->in[i]);
        if (node_attr(n->in[i], "inline"))
            move_inputs(m, n->in[i]);
    }
}

/* Adds the sums with their updates: each weight and each state is read and written. */
static void move_sums(Moved *m)
{
    const Step *s = m->g->step;
    for (int i = 0; i < s->nsum; i++) {
        const Sum *sum = &s->sum[i];
        if (sum->panels)
            move_inputs(m, sum->root);
        else
            move_value(m, sum->root);
        if (sum->param)
            m->kept += 2.0 * (1 + m->g->nstate) * (double)sum->param->count_memory *
                       (double)dtype_bytes(m->g->recipe.dtype);
    }
}

void step_price_moved(const Graph *g, int phase, double *kept, double *local)
{
    const Phase *p = &g->step->phase[phase];
    Moved m = {g, arena_alloc(g->arena, (size_t)(g->next_id + 1) * sizeof(bool)), 0, 0};
    if (p->kind == PHASE_GRADIENT || p->kind == PHASE_UPDATE)
        move_sums(&m);
    for (int i = 0; i < p->nnode && p->kind != PHASE_GRADIENT && p->kind != PHASE_UPDATE; i++) {
        move_value(&m, p->node[i]);
        move_inputs(&m, p->node[i]);
    }
    *kept = m.kept, *local = m.local;
}

const char *step_price_words(Arena *a, const Node *n, const Price *p)
{
    const Attr *act = node_attr(n, "act");
    const bool pooled = op_computes(n, PRODUCT_CONV, ROLE_Y) && node_attr(n, "pool");

    if (!p->algorithm || !pooled)
        return p->algorithm ? p->algorithm : "";
    return act ? arena_printf(a, "%s, pooled before %s", p->algorithm, act->s)
               : arena_printf(a, "%s, pooled", p->algorithm);
}
