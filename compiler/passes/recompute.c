/* recompute.c -- values that the backward pass reads are made again there instead of being kept: cheap ones of large networks,
 * and under --memory-limit as many as it takes.
 *
 * A value is kept in the shard's memory from the forward phase that makes it to the backward phase that reads it last.  Made
 * again by the same kernel from the same operands it has the same bits, and lives in a chunk's scratch only.  What it is made
 * from must be in memory at that time anyway, or is made again too.  The cheapest values a byte go first, by price, each followed by
 * a new schedule and plan; a step that makes the plan larger is taken back.
 *
 *   always               while all of them together add at most a hundredth (SHARE) to the predicted time of the step, where more
 *                        than 256 MB (LARGE) would be kept.  Such are relu(batch_norm(x)) of an x that is kept for batch_norm's
 *                        own gradient.  No convolution or dense layer runs twice.  Not under --keep-all, nor --plain.
 *   --memory-limit       until the program fits, with as many threads as the machine that compiles has, whatever that costs.
 *                        Where it fits anyway, nothing.  Values that lie within others (pass slices) are not made again:
 *                        where the rest does not suffice, they get memory of their own and are tried, too
 *
 * The first rule looks at one thread: what it makes does not depend on the machine.
 *
 * Idea: Chen, Xu, Zhang, Guestrin 2016, "Training deep nets with sublinear memory cost".
 */
#include "ir/readers.h"
#include "ir/target.h"
#include "ops/step_price.h"
#include "passes/pass.h"
#include <string.h>

enum { CHAIN_MOST = 64 };               /* operations between a value and what it is made from */
static const int64_t LARGE = 256000000; /* bytes kept: more than last-level caches hold */
static const double SHARE = .01;        /* of the step's predicted cycles */

/* A value made again, in its phase. */
typedef struct Again {
    const Node *of;
    int phase;
    Node *node;
} Again;

typedef struct Search {
    Graph *g;    /* training's */
    Graph *eval; /* evaluation's, once that is planned: it counts, too */
    const Options *o;
    int threads; /* whose scratch counts */
    int ids;     /* nodes had smaller numbers when the search began: candidates */
    bool *tried; /* by id */
    int known;   /* nodes had smaller numbers when the search last looked */
    int *at;     /* by id: the phase of the call that computes a node */
    int *last;   /* by id: the last phase that reads it */
    bool *maker; /* by id: it makes something besides its value */
    bool *frame; /* by id: others lie within it (pass slices) */
    bool cheap;  /* no convolution or dense layer twice */
    Again *again;
    int nagain;
    Node **fresh; /* nodes that are not in the graph's list yet */
    int nfresh;
} Search;

/* ------------------------------------------------------------------------------- what is where */

static Node *stored(Node *n)
{
    while (n->op->flags & OP_VIEW)
        n = n->in[0];
    return n;
}

/* Calls read through nodes that they compute inside their loops. */
static void read(Search *s, const Node *n, int phase)
{
    for (int i = 0; i < n->nin; i++) {
        Node *x = stored(n->in[i]);
        if (s->last[x->id] < phase)
            s->last[x->id] = phase;
        if (node_attr(n->in[i], "inline")) {
            s->at[n->in[i]->id] = phase;
            read(s, n->in[i], phase);
        }
    }
}

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
        if (node_is(n, "side"))
            s->maker[n->in[0]->id] = true;
        if (n->within)
            s->frame[n->within->id] = true;
    }
}

static bool in_slices(const Graph *g, int phase)
{
    return phase >= 0 && g->step->phase[phase].kind == PHASE_SLICE;
}

/* Too dear to be made once for each phase that reads it: once for all of them. */
static bool dear(const Node *n)
{
    return node_is(n, "conv2d") || node_is(n, "dense");
}

/* Its value can be had a second time. */
static bool repeats(const Search *s, const Node *n)
{
    const bool alone = !n->within && !s->frame[n->id];
    return n->nin > 0 && !n->loop && !n->backward && n->dtype == DT_REAL && !s->maker[n->id] &&
           alone && !(s->cheap && dear(n)) && !node_is(n, "input") && !node_is(n, "label") &&
           !graph_keeps(s->g, n);
}

/* ------------------------------------------------------------------------------- making again */

static Node *copy(Search *s, const Node *n, Node *const *in, int phase)
{
    Graph *g = s->g;
    Node *c = graph_add(g, n->op, in, n->nin, n->span);
    g->node[--g->nnode] = NULL;
    node_copy_attrs(g, c, n);
    node_set_int(g, c, "again", g->step->phase[phase].level);
    c->shape = n->shape, c->dtype = n->dtype, c->half = n->half, c->name = n->name, c->needs_grad = n->needs_grad;
    c->layout = n->layout, c->backward = true;
    memcpy(c->flat, n->flat, sizeof c->flat);
    ARENA_PUSH(g->arena, s->fresh, s->nfresh, c);
    return c;
}

/* What was made again for that phase, or for an earlier one and is kept until then. */
static bool serves(const Search *s, const Again *a, int phase)
{
    return a->phase == phase || (a->phase < phase && a->node->id < s->known &&
                                 a->node->place == PLACE_BATCH && s->last[a->node->id] >= phase);
}

/* x as `phase` can read it: itself where it is in memory then, else made again.  Adds what that costs; makes nothing when
 * `make` is false; NULL: it cannot be had.  `whole`: x is made again even where it is kept. */
static Node *at_phase(Search *s, Node *x, int phase, bool whole, bool make, int depth,
                      double *cycles)
{
    Node *base = stored(x), *in[8];
    const bool constant = !x->shape.batched || node_is(x, "const");

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

static bool reads(const Node *u, const Node *n)
{
    for (int i = 0; i < u->nin; i++)
        if (u->in[i] == n)
            return true;
    return false;
}

/* The first phase after `after` in which the backward pass reads n; -1: none. */
static int next_phase(const Search *s, const Node *n, int after)
{
    int phase = -1;
    for (int i = 0; i < s->g->nnode; i++) {
        const Node *u = s->g->node[i];
        if (u->backward && reads(u, n) && s->at[u->id] > after &&
            (phase < 0 || s->at[u->id] < phase))
            phase = s->at[u->id];
    }
    return phase;
}

/* ------------------------------------------------------------------------------- one value */

static bool candidate(const Search *s, const Node *n)
{
    if (n->id >= s->ids || s->tried[n->id] || n->place != PLACE_BATCH || !repeats(s, n))
        return false;
    for (int i = 0; i < s->g->nnode; i++) {
        const Node *u = s->g->node[i];
        const bool later = reads(u, n) && s->at[u->id] > s->at[n->id];
        if (reads(u, n) && (u->op->flags & OP_VIEW || !in_slices(s->g, s->at[u->id])))
            return false;
        if (later && u->backward && node_is(u, "side"))
            return false;
    }
    return next_phase(s, n, s->at[n->id]) >= 0;
}

/* Cycles of a step that making n again costs; negative: it cannot be. */
static double cost(Search *s, Node *n)
{
    double cycles = 0;
    for (int p = next_phase(s, n, s->at[n->id]); p >= 0; p = next_phase(s, n, p)) {
        if (!at_phase(s, n, p, true, false, 0, &cycles))
            return -1;
        if (dear(n))
            break;
    }
    return cycles;
}

/* The value that costs least for each byte that it would not occupy; *price gets its cycles. */
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

/* The fresh nodes go before the first that reads n in their phase. */
static void insert(Search *s, const Node *n, int phase)
{
    Graph *g = s->g;
    const int count = s->nfresh;
    int at = 0;
    while (!g->node[at]->backward || !reads(g->node[at], n) || s->at[g->node[at]->id] != phase)
        at++;
    for (int i = 0; i < count; i++)
        ARENA_PUSH(g->arena, g->node, g->nnode, s->fresh[i]);
    memmove(g->node + at + count, g->node + at, (size_t)(g->nnode - count - at) * sizeof(Node *));
    memcpy(g->node + at, s->fresh, (size_t)count * sizeof(Node *));
    s->nfresh = 0;
}

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
                              (s->at[u->id] == p || (dear(n) && s->at[u->id] > p));
            for (int k = 0; mine && k < u->nin; k++)
                u->in[k] = u->in[k] == n ? c : u->in[k];
        }
    }
    graph_sort(g);
}

/* ------------------------------------------------------------------------------- the search */

/* The list and everybody's inputs, to go back to. */
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

/* Makes n again where that is no loss; the bytes planned then, `bytes` before. */
static int64_t try(Search *s, Node *n, int64_t bytes, Diag *d)
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

/* Predicted cycles of what the slices of a step compute. */
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

/* What the head says of "always". */
static void save_cheaply(Search *s, Diag *d)
{
    double left = SHARE * step_cycles(s), cycles = 0;
    int64_t bytes = step_bytes(s->g->step, s->threads);

    s->cheap = true;
    for (Node *n; (n = cheapest(s, &cycles)) && cycles <= left;) {
        const int64_t now = try(s, n, bytes, d);
        left -= now < bytes ? cycles : 0;
        bytes = now;
    }
    s->cheap = false;
}

/* Until the plan has at most so many bytes, or nothing is left to try. */
static void save(Search *s, int64_t limit, Diag *d)
{
    double cycles;
    Node *n;

    memset(s->tried, 0, (size_t)s->ids);
    for (int64_t bytes = step_bytes(s->g->step, s->threads);
         bytes > limit && (n = cheapest(s, &cycles));)
        bytes = try(s, n, bytes, d);
}

/* Parts of concats are made in memory of their own and copied, slices too: what pass slices did is taken back.  What passes
 * before it put within others stays there. */
static bool take_apart(Graph *g)
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

/* The program fits into --memory-limit, or it is as small as this pass knows how; the least that it needed on the way. */
static int64_t fit(Search *s, Diag *d)
{
    const int64_t limit = s->o->memory_limit;
    save(s, limit, d);
    const int64_t bytes = step_bytes(s->g->step, s->threads);
    if (bytes <= limit)
        return bytes;
    const bool training = take_apart(s->g), evaluation = s->eval && take_apart(s->eval);
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

/* Rounded, or to the byte where rounding would make two figures of one message equal. */
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
        diag_note(d, "this is with all values computed again that can be; without that it is %s",
                  figure(s, first, least));
    if (fixed > limit)
        diag_help(d,
                  "%s are parameters, optimizer states and packed weights, which do not depend on --batch: use a smaller model",
                  figure(s, fixed, limit));
    else
        diag_help(d, "a smaller --batch needs less; tenon show says what for");
}

/* Of training first, then of evaluation, which shares training's arena and may need more of it: training makes room. */
void pass_recompute(Graph *g, const Options *o, Diag *d)
{
    Graph *const t = g->training ? g : g->peer;
    Search s = {.g = t ? t : g, .eval = t && t != g ? g : NULL, .o = o, .threads = 1};
    const int64_t first = step_bytes(s.g->step, o->threads), limit = o->memory_limit;
    const bool cheaply = g->training && !o->keep_all && target_of(o).remakes && large(g->step);

    if (!cheaply && (!limit || first <= limit))
        return;
    const int made = s.g->step->again;
    const int64_t without = made ? s.g->step->bytes_without : first;
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
        refuse(&s, without, least, d);
    s.g->step->again = made + s.nagain, s.g->step->bytes_without = without;
}
