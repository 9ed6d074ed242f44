/* recompute.c -- recomputes values in the backward pass instead of keeping them: cheap values of
 * large networks; with --memory-limit, as many values as necessary.
 *
 * A kept value is in the shard region, from the forward phase that makes it to the last backward
 * phase that reads it.  A recomputed value is made by the same kernel from the same operands, so it
 * has the same bits; it lies in the thread region.  The operands must be in memory at that time, or
 * are recomputed, too.  Values with the least price for each byte come first.  After each value,
 * schedule and plan run again; a change that makes the plan larger is undone.
 *
 *   always           if more than 256 MB (LARGE) would be kept, as long as all recomputed values
 *                    together add at most a hundredth (SHARE) to the predicted time of the step.
 *                    An example is relu(batch_norm(x)) if the gradient of batch_norm keeps x.  No
 *                    convolution or dense layer runs twice.  Not under --keep-all or --plain.
 *   --memory-limit   until the program fits, with as many threads as the compiling machine has, at
 *                    any price.  At first, values that lie within others (pass slices) are not
 *                    recomputed.  If the program still does not fit, they get memory of their own
 *                    and become candidates, too.
 *
 * The first rule counts one thread, so its result does not depend on the machine.
 *
 * Idea: Chen, Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost".
 */
#include "ir/readers.h"
#include "ir/target.h"
#include "ops/step_price.h"
#include "passes/pass.h"
#include <string.h>

enum { CHAIN_MOST = 64 };               /* operations between a kept value and a recomputed one */
static const int64_t LARGE = 256000000; /* bytes of kept values: more than last-level caches hold */
static const double SHARE = .01;        /* of the predicted cycles of a step */

/* A recomputed value, for the phase that computes it. */
typedef struct Again {
    const Node *of;
    int phase;
    Node *node;
} Again;

typedef struct Search {
    Graph *g;    /* the training graph */
    Graph *eval; /* the evaluation graph, once it is planned: it shares the arena */
    const Options *o;
    int threads; /* number of threads, each with a scratch region */
    int ids;     /* next id when the search began: only older nodes are candidates */
    bool *tried; /* by id */
    int known;   /* next id at the last call of look: newer nodes have no phase yet */
    int *at;     /* by id: the phase of the call that computes a node */
    int *last;   /* by id: the last phase that reads it */
    bool *maker; /* by id: it has a side (op side) */
    bool *frame; /* by id: other values lie within it (pass slices) */
    bool cheap;  /* no convolution or dense layer is computed twice */
    Again *again;
    int nagain;
    Node **fresh; /* new nodes, before they are inserted into graph->node */
    int nfresh;
} Search;

/* ---- phases of calls, and the readers of values */

static Node *skip_views(Node *n)
{
    while (n->op->flags & OP_VIEW)
        n = n->in[0];
    return n;
}

/* Records that `phase` reads n; if n is inlined, that it reads the inputs of n. */
static void read(Search *s, const Node *n, int phase)
{
    for (int i = 0; i < n->nin; i++) {
        Node *x = skip_views(n->in[i]);
        if (s->last[x->id] < phase)
            s->last[x->id] = phase;
        if (node_attr(n->in[i], "inline")) {
            s->at[n->in[i]->id] = phase;
            read(s, n->in[i], phase);
        }
    }
}

/* Reads from the current plan in which phase each value is computed and last read. */
static void look(Search *s)
{
    const Graph *g = s->g;
    const size_t ids = (size_t)g->next_id + 1;
    s->known = g->next_id;
    s->at = arena_alloc(g->arena, ids * sizeof *s->at);
    s->last = arena_alloc(g->arena, ids * sizeof *s->last);
    s->maker = arena_alloc(g->arena, ids * sizeof *s->maker);
    s->frame = arena_alloc(g->arena, ids * sizeof *s->frame);
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!node_attr(n, "inline")) {
            s->at[n->id] = n->phase;
            read(s, n, n->phase);
        }
        if (n->op->flags & OP_SIDE)
            s->maker[n->in[0]->id] = true;
        if (n->within)
            s->frame[n->within->id] = true;
    }
}

static bool in_slices(const Graph *g, int phase)
{
    return phase >= 0 && g->step->phase[phase].kind == PHASE_SLICE;
}

/* Whether n is expensive: then it is recomputed once for all phases that read it. */
static bool is_expensive(const Node *n)
{
    return op_computes(n, PRODUCT_CONV, ROLE_Y) || op_computes(n, PRODUCT_DENSE, ROLE_Y);
}

/* Whether n can be computed a second time. */
static bool repeats(const Search *s, const Node *n)
{
    const bool alone = !n->within && !s->frame[n->id];
    return n->nin > 0 && !n->loop && !n->backward && n->dtype == DT_REAL && !s->maker[n->id] &&
           alone && !(s->cheap && is_expensive(n)) && !(n->op->flags & OP_ROOT) &&
           !graph_keeps(s->g, n);
}

/* ---- recomputing */

static Node *copy(Search *s, const Node *n, Node *const *in, int phase)
{
    Graph *g = s->g;
    Node *c = graph_add(g, n->op, in, n->nin, n->span);
    g->node[--g->nnode] = NULL;
    node_copy_attrs(g, c, n);
    node_set_int(g, c, "again", g->step->phase[phase].level);
    c->shape = n->shape, c->dtype = n->dtype, c->half = n->half, c->name = n->name,
    c->needs_grad = n->needs_grad;
    c->layout = n->layout, c->backward = true;
    memcpy(c->flat, n->flat, sizeof c->flat);
    ARENA_PUSH(g->arena, s->fresh, s->nfresh, c);
    return c;
}

/* Whether `phase` can read the recomputed value a: it is made in this phase, or it is made in an
 * earlier one and kept. */
static bool serves(const Search *s, const Again *a, int phase)
{
    return a->phase == phase || (a->phase < phase && a->node->id < s->known &&
                                 a->node->place == PLACE_BATCH && s->last[a->node->id] >= phase);
}

/* The value of x for `phase`: x itself if x is in memory in this phase, else a recomputed value,
 * whose price is added to *cycles.  NULL: impossible.  whole: x is recomputed even if x is kept.
 * If `make` is false, computes only the price, and makes no node. */
static Node *at_phase(Search *s, Node *x, int phase, bool whole, bool make, int depth,
                      double *cycles)
{
    Node *base = skip_views(x), *in[8];
    const bool constant = !x->shape.batched || x->op->leaf == LEAF_CONST;

    if (constant || (!whole && base->place == PLACE_BATCH && s->last[base->id] >= phase))
        return x;
    for (int i = 0; i < s->nagain; i++)
        if (s->again[i].of == x && serves(s, &s->again[i], phase))
            return s->again[i].node;
    if (!repeats(s, x) || depth == CHAIN_MOST || x->nin > 8)
        return NULL;
    for (int i = 0; i < x->nin; i++) {
        in[i] = at_phase(s, x->in[i], phase, false, make, depth + 1, cycles);
        if (!in[i])
            return NULL;
    }
    const bool called = !node_attr(x, "inline") && !(x->op->flags & OP_VIEW);
    if (called)
        *cycles += step_price(s->g, x, s->o).cycles;
    if (!make)
        return x;
    Node *c = copy(s, x, in, phase);
    if (called)
        ARENA_PUSH(s->g->arena, s->again, s->nagain, ((Again){x, phase, c}));
    return c;
}

static bool has_input(const Node *u, const Node *n)
{
    for (int i = 0; i < u->nin; i++)
        if (u->in[i] == n)
            return true;
    return false;
}

/* The first phase later than `after` in which the backward pass reads n; -1: none. */
static int next_phase(const Search *s, const Node *n, int after)
{
    int phase = -1;
    for (int i = 0; i < s->g->nnode; i++) {
        const Node *u = s->g->node[i];
        if (u->backward && has_input(u, n) && s->at[u->id] > after &&
            (phase < 0 || s->at[u->id] < phase))
            phase = s->at[u->id];
    }
    return phase;
}

/* ---- one value */

/* Whether n is kept for the backward pass and can be recomputed there. */
static bool candidate(const Search *s, const Node *n)
{
    if (n->id >= s->ids || s->tried[n->id] || n->place != PLACE_BATCH || !repeats(s, n))
        return false;
    for (int i = 0; i < s->g->nnode; i++) {
        const Node *u = s->g->node[i];
        const bool later = has_input(u, n) && s->at[u->id] > s->at[n->id];
        if (has_input(u, n) && (u->op->flags & OP_VIEW || !in_slices(s->g, s->at[u->id])))
            return false;
        if (later && u->backward && u->op->flags & OP_SIDE)
            return false;
    }
    return next_phase(s, n, s->at[n->id]) >= 0;
}

/* Cycles that a step needs to recompute n; negative: impossible. */
static double cost(Search *s, Node *n)
{
    double cycles = 0;
    for (int p = next_phase(s, n, s->at[n->id]); p >= 0; p = next_phase(s, n, p)) {
        if (!at_phase(s, n, p, true, false, 0, &cycles))
            return -1;
        if (is_expensive(n))
            break;
    }
    return cycles;
}

/* The value with the least cycles for each saved byte; *price gets its cycles. */
static Node *cheapest(Search *s, double *price)
{
    Node *best = NULL;
    double least = 0;
    for (int i = 0; i < s->g->nnode; i++) {
        Node *n = s->g->node[i];
        const double cycles = candidate(s, n) ? cost(s, n) : -1;
        const double each = cycles / (double)shape_count(&n->shape);
        if (cycles >= 0 && (!best || each < least))
            best = n, least = each, *price = cycles;
    }
    return best;
}

/* Inserts the fresh nodes before the first backward node of `phase` that reads n. */
static void insert(Search *s, const Node *n, int phase)
{
    Graph *g = s->g;
    const int count = s->nfresh;
    int at = 0;
    while (!g->node[at]->backward || !has_input(g->node[at], n) || s->at[g->node[at]->id] != phase)
        at++;
    for (int i = 0; i < count; i++)
        ARENA_PUSH(g->arena, g->node, g->nnode, s->fresh[i]);
    memmove(g->node + at + count, g->node + at, (size_t)(g->nnode - count - at) * sizeof(Node *));
    memcpy(g->node + at, s->fresh, (size_t)count * sizeof(Node *));
    s->nfresh = 0;
}

/* Recomputes n for each phase in which the backward pass reads it. */
static void make_again(Search *s, Node *n)
{
    Graph *g = s->g;
    for (int p = next_phase(s, n, s->at[n->id]); p >= 0; p = next_phase(s, n, p)) {
        double cycles = 0;
        Node *c = at_phase(s, n, p, true, true, 0, &cycles);
        insert(s, n, p);
        for (int i = 0; i < g->nnode; i++) {
            Node *u = g->node[i];
            const bool mine = u->backward && u->id < s->known &&
                              (s->at[u->id] == p || (is_expensive(n) && s->at[u->id] > p));
            for (int k = 0; mine && k < u->nin; k++)
                u->in[k] = u->in[k] == n ? c : u->in[k];
        }
    }
    graph_sort(g);
}

/* ---- the search */

/* The list of nodes and all inputs, to undo a change. */
typedef struct Before {
    int count, nagain;
    Node **list, ***in;
} Before;

static Before remember(const Search *s)
{
    const Graph *g = s->g;
    Before b = {.count = g->nnode, .nagain = s->nagain};
    b.list = arena_alloc(g->arena, (size_t)(b.count + 1) * sizeof *b.list);
    b.in = arena_alloc(g->arena, (size_t)(b.count + 1) * sizeof *b.in);
    memcpy(b.list, g->node, (size_t)b.count * sizeof *b.list);
    for (int i = 0; i < b.count; i++) {
        const Node *n = g->node[i];
        b.in[i] = arena_alloc(g->arena, (size_t)(n->nin + 1) * sizeof *n->in);
        memcpy(b.in[i], n->in, (size_t)n->nin * sizeof *n->in);
    }
    return b;
}

static void go_back(Search *s, const Before *b)
{
    Graph *g = s->g;
    g->nnode = b->count, s->nagain = b->nagain;
    memcpy(g->node, b->list, (size_t)b->count * sizeof *b->list);
    for (int i = 0; i < b->count; i++)
        memcpy(b->list[i]->in, b->in[i], (size_t)b->list[i]->nin * sizeof(Node *));
}

static int64_t planned(Search *s, Diag *d)
{
    pass_repeat("recompute", s->g, s->o, d);
    if (s->eval)
        pass_repeat("recompute", s->eval, s->o, d);
    look(s);
    return step_bytes(s->g->step, s->threads);
}

/* Recomputes n, unless that makes the plan larger.  `bytes` is the size of the plan before; returns
 * the size after it. */
static int64_t try_value(Search *s, Node *n, int64_t bytes, Diag *d)
{
    const Before b = remember(s);
    s->tried[n->id] = true;
    make_again(s, n);
    const int64_t now = planned(s, d);
    if (s->cheap ? now < bytes : now <= bytes)
        return now;
    go_back(s, &b);
    return planned(s, d);
}

/* Predicted cycles of the slice phases of a step. */
static double step_cycles(const Search *s)
{
    const Graph *g = s->g;
    double cycles = 0;
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (in_slices(g, n->phase) && !node_attr(n, "inline") && !(n->op->flags & OP_VIEW))
            cycles += step_price(g, n, s->o).cycles;
    }
    return cycles;
}

/* Applies the rule "always" of the head of this file. */
static void save_cheaply(Search *s, Diag *d)
{
    double left = SHARE * step_cycles(s), cycles = 0;
    int64_t bytes = step_bytes(s->g->step, s->threads);

    s->cheap = true;
    for (Node *n; (n = cheapest(s, &cycles)) && cycles <= left;) {
        const int64_t now = try_value(s, n, bytes, d);
        left -= now < bytes ? cycles : 0;
        bytes = now;
    }
    s->cheap = false;
}

/* Recomputes values until the plan has at most `limit` bytes, or until no value is left to try. */
static void save(Search *s, int64_t limit, Diag *d)
{
    double cycles;
    Node *n;

    memset(s->tried, 0, (size_t)s->ids);
    for (int64_t bytes = step_bytes(s->g->step, s->threads);
         bytes > limit && (n = cheapest(s, &cycles));)
        bytes = try_value(s, n, bytes, d);
}

/* Undoes pass slices: the parts of a concat and slices get memory of their own, and are copied.
 * The tests are by name, because values that other passes place within others stay there. */
static bool undo_slices(Graph *g)
{
    bool any = false;
    for (int i = 0; i < g->nnode; i++) {
        Node *n = g->node[i];
        if (!n->within || !(node_is(n, "slice") || node_is(n->within, "concat")))
            continue;
        n->within = NULL, n->start = 0;
        any = true;
    }
    return any;
}

/* Recomputes values until the program fits into --memory-limit, or until nothing makes it smaller.
 * Returns the size of the smallest plan. */
static int64_t fit(Search *s, Diag *d)
{
    const int64_t limit = s->o->memory_limit;
    save(s, limit, d);
    const int64_t bytes = step_bytes(s->g->step, s->threads);
    if (bytes <= limit)
        return bytes;
    const bool training = undo_slices(s->g), evaluation = s->eval && undo_slices(s->eval);
    if (!training && !evaluation)
        return bytes;
    planned(s, d);
    save(s, limit, d);
    const int64_t apart = step_bytes(s->g->step, s->threads);
    return apart < bytes ? apart : bytes;
}

static bool large(const Step *t)
{
    return t->shards * t->shard_bytes > LARGE;
}

/* `bytes` as a rounded text; exact if `other` would have the same rounded text. */
static const char *figure(const Search *s, int64_t bytes, int64_t other)
{
    Arena *a = s->g->arena;
    const char *text = text_bytes(a, bytes);
    return strcmp(text, text_bytes(a, other)) != 0
               ? text
               : arena_printf(a, "%s bytes", text_commas(a, bytes));
}

static void refuse(const Search *s, int64_t first, int64_t least, Diag *d)
{
    const Step *whole = s->g->step;
    const int64_t limit = s->o->memory_limit;
    const int64_t fixed = whole->fixed_bytes + (whole->fused_update ? 0 : whole->grad_bytes);
    diag_error(d, (Span){0}, "%s needs %s with %d threads, %s more than --memory-limit %s",
               s->g->name, figure(s, least, limit), s->o->threads,
               text_bytes(s->g->arena, least - limit), figure(s, limit, least));
    if (least < first)
        diag_note(d, "all values that can be recomputed are recomputed; without that, it needs %s",
                  figure(s, first, least));
    if (fixed > limit)
        diag_help(d,
                  "%s are parameters, optimizer states and packed weights, which do not depend on "
                  "--batch: use a smaller model",
                  figure(s, fixed, limit));
    else
        diag_help(d, "use a smaller --batch; tenon show lists what needs the memory");
}

/* Runs for training first, then for evaluation, which uses the arena of training.  If evaluation
 * makes the arena too large, values of training are recomputed. */
void pass_recompute(Graph *g, const Options *o, Diag *d)
{
    Graph *const t = g->training ? g : g->peer;
    Search s = {.g = t ? t : g, .eval = t && t != g ? g : NULL, .o = o, .threads = 1};
    const int64_t first = step_bytes(s.g->step, o->threads), limit = o->memory_limit;
    const bool cheaply = g->training && !o->keep_all && target_of(o).remakes && large(g->step);

    if (!cheaply && (!limit || first <= limit))
        return;
    const int made = s.g->step->again;
    const Step *without = s.g->step->without;
    if (!made) {
        Step *copy = arena_alloc(g->arena, sizeof *copy);
        *copy = *s.g->step;
        without = copy;
    }
    int64_t least = first;
    s.ids = s.g->next_id;
    s.tried = arena_alloc(g->arena, (size_t)s.ids + 1);
    look(&s);
    if (cheaply)
        save_cheaply(&s, d);
    s.threads = o->threads;
    if (limit && t && !g->token)
        least = fit(&s, d);
    if (limit && least > limit)
        refuse(&s, step_bytes(without, o->threads), least, d);
    s.g->step->again = made + s.nagain, s.g->step->without = without;
}
