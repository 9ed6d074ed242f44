/* prices.c -- predicted time and planned memory of each call, computed by a process of its own. */
#include "lsp/prices.h"
#include "base/environment.h"
#include "emit/emit.h"
#include "ops/step_price.h"
#include "tool/file.h"
#include "tool/machine.h"
#include "tool/tool.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- in the process */

/* The nodes of one call in one instance of a block. */
typedef struct Group {
    double seconds;
    int64_t fixed, values;
    int mark; /* the row that has counted it */
} Group;

typedef struct Pricing {
    Arena *arena;
    const Graph *graph;
    Options options;
    Map group;    /* by place and block: Group * */
    Group **made; /* by the id of the node in the graph of the front end */
    int nmade;
} Pricing;

static const char *key_of(Arena *a, const Node *n, const char *block)
{
    const Source *s = n->span.source;
    return arena_printf(a, "%d:%d:%d:%s", s ? s->order : -1, n->span.line, n->span.col,
                        block ? block : "");
}

static Group *group_new(Pricing *p, const char *key)
{
    Group *g = map_get(&p->group, key);
    if (g)
        return g;
    g = arena_alloc(p->arena, sizeof *g);
    map_set(&p->group, key, g);
    return g;
}

/* The block of the call for which n was made.  A backward node has the span of the call, but no
 * block: a value that it reads has one. */
static const char *block_of(const Node *n, Span at, int depth)
{
    if (node_block(n) || !depth)
        return node_block(n);
    for (int i = 0; i < n->nin; i++) {
        const Node *x = n->in[i];
        if (x->span.line != at.line || x->span.col != at.col || x->span.source != at.source)
            continue;
        const char *block = block_of(x, at, depth - 1);
        if (block)
            return block;
    }
    return NULL;
}

static Group *group_of(Pricing *p, const Node *n)
{
    enum { DEPTH = 4 };
    return group_new(p, key_of(p->arena, n, block_of(n, n->span, DEPTH)));
}

static void find_groups(Pricing *p)
{
    const Graph *g = p->graph;
    p->nmade = g->next_id;
    p->made = arena_alloc(p->arena, (size_t)(g->next_id + 1) * sizeof *p->made);
    for (int i = 0; i < g->nnode; i++)
        p->made[g->node[i]->id] = group_of(p, g->node[i]);
}

static void price_calls(Pricing *p, PriceTotal *total)
{
    const Graph *g = p->graph;
    const Step *s = g->step;
    const Market m = market_of(g, &p->options, s->chunk);
    for (int i = 0; i < s->nphase; i++) {
        const Phase *phase = &s->phase[i];
        if (phase->kind == PHASE_SLICE)
            total->seconds += market_seconds(&m, step_price_zero(g, i, &p->options).cycles);
        const bool sums = phase->kind == PHASE_GRADIENT || phase->kind == PHASE_UPDATE;
        for (int k = 0; k < phase->nnode && !sums; k++) {
            if (!emit_is_call(phase->node[k]))
                continue;
            const double v = market_seconds(&m, step_price(g, phase->node[k], &p->options).cycles);
            group_of(p, phase->node[k])->seconds += v;
            total->seconds += v;
        }
        for (int k = 0; k < s->nsum && sums; k++) {
            const Sum *sum = &s->sum[k];
            const bool from_grad = phase->kind == PHASE_UPDATE;
            if (from_grad && (s->fused_update || !sum->update))
                continue;
            const double v =
                market_seconds(&m, step_price_sum(g, sum, from_grad, &p->options).cycles);
            group_of(p, sum->param ? sum->param->node : sum->root)->seconds += v;
            total->seconds += v;
        }
    }
}

static void price_memory(Pricing *p, PriceTotal *total)
{
    const Graph *g = p->graph;
    const Step *s = g->step;
    const int64_t real = dtype_bytes(g->recipe.dtype);
    const int regions = step_regions(s, p->options.threads);
    for (int i = 0; i < g->nparam; i++) {
        const Param *q = g->param[i];
        const int states = q->frozen || q->average ? 0 : g->nstate;
        group_of(p, q->node)->fixed += q->count_memory * real * (1 + states);
    }
    for (int i = 0; i < s->nbuffer; i++) {
        const Buffer *b = &s->buffer[i];
        if (b->place == PLACE_BATCH || b->place == PLACE_PARTIAL)
            group_of(p, b->node)->values += b->bytes * s->shards;
        else if (b->place == PLACE_LOCAL)
            group_of(p, b->node)->values += b->bytes * regions;
    }
    total->planned = step_bytes(s, p->options.threads);
    total->batch = s->batch;
    total->threads = p->options.threads;
}

/* Adds up the groups of all evaluations of a call. */
static PriceRow row_of(const Pricing *p, const Analysis *a, const Expr *e, int mark)
{
    PriceRow row = {.e = e};
    for (const Traced *t = traced_of(a, e); t; t = traced_before(a, t))
        for (int id = t->first; t->graph == p->graph && id < t->end && id < p->nmade; id++) {
            Group *g = p->made[id];
            if (!g || g->mark == mark)
                continue;
            g->mark = mark;
            row.seconds += g->seconds, row.fixed += g->fixed, row.values += g->values;
        }
    return row;
}

/* Sets the options that `tenon show` has without options. */
static bool plan_options(const Graph *g, Options *o)
{
    const char *cpu = environment(ENV_TENON_CPU);
    const Machine *m = machine_find(cpu ? cpu : "native");
    if (!m)
        return false;
    *o = (Options){.cpu = m->name, .threads = machine_threads()};
    o->vector = machine_lanes(m, dtype_bytes(g->recipe.dtype));
    return true;
}

static int compute(const Analysis *a, int fd)
{
    Graph *g = a->front.train;
    Pricing p = {.arena = a->arena, .graph = g, .group = map_new(a->arena)};
    PriceTotal total = {0};
    PriceRow *row = NULL;
    if (!plan_options(g, &p.options))
        return 1;
    find_groups(&p);
    Front f = a->front;
    if (!tool_plan(&f, &p.options, diag_new(a->arena, DIAG_NEVER)))
        return 1;
    price_calls(&p, &total);
    price_memory(&p, &total);
    for (int i = 0; i < a->nsymbol; i++) {
        const Expr *e = a->symbol[i].e;
        if (e && e->kind == EX_CALL && e->traced && a->symbol[i].kind != SYMBOL_ARG)
            ARENA_PUSH(a->arena, row, total.rows, row_of(&p, a, e, i + 1));
    }
    strncpy(total.cpu, p.options.cpu, sizeof total.cpu - 1);
    return file_put(fd, &total, sizeof total) == 0 &&
                   file_put(fd, row, (size_t)total.rows * sizeof *row) == 0
               ? 0
               : 1;
}

/* ---- in the server */

enum { BEHIND = 10 }; /* niceness: answers come first */

static bool needs_prices(const Document *d)
{
    return d->open && d->good && d->good == d->now && d->good->front.train && !d->priced;
}

bool prices_wanted(const Server *s)
{
    for (int i = 0; i < s->ndocument && !s->pricing && !s->shut; i++)
        if (needs_prices(s->document[i]))
            return true;
    return false;
}

void prices_start(Server *s)
{
    int fd[2];
    Document *d = NULL;
    for (int i = 0; i < s->ndocument && !d; i++)
        d = needs_prices(s->document[i]) ? s->document[i] : NULL;
    if (!d)
        return;
    d->priced = true; /* one try: without prices, hover shows the rest */
    if (pipe(fd) != 0)
        return;
    const pid_t pid = fork();
    if (pid == 0) {
        close(fd[0]);
        close(s->wire->in);
        close(s->wire->out);
        if (nice(BEHIND) < 0)
            errno = 0; /* after an error it keeps the priority of the server */
        _exit(compute(d->good, fd[1]));
    }
    close(fd[1]);
    if (pid < 0) {
        close(fd[0]);
        return;
    }
    s->pricing = pid;
    s->pricing_fd = fd[0];
    s->pricing_for = d;
    s->pricing_arena = arena_new();
    s->priced = NULL;
    s->npriced = s->room = 0;
}

static int end_process(Server *s)
{
    int status = -1;
    close(s->pricing_fd);
    while (waitpid(s->pricing, &status, 0) < 0 && errno == EINTR)
        ;
    s->pricing = 0;
    return status;
}

void prices_stop(Server *s, const Document *d)
{
    if (!s->pricing || (d && d != s->pricing_for))
        return;
    kill(s->pricing, SIGKILL);
    end_process(s);
    arena_free(s->pricing_arena);
    s->pricing_for->priced = false;
}

/* Keeps the output of a process that has ended well; without prices, hover shows the rest. */
static void take_output(Server *s)
{
    Document *d = s->pricing_for;
    PriceTotal total;
    const bool ended = end_process(s) == 0 && s->npriced >= sizeof total;
    if (ended)
        memcpy(&total, s->priced, sizeof total);
    if (!ended || s->npriced != sizeof total + (size_t)total.rows * sizeof(PriceRow)) {
        arena_free(s->pricing_arena);
        return;
    }
    Prices *p = arena_alloc(s->pricing_arena, sizeof *p);
    PriceRow *row = arena_alloc(s->pricing_arena, (size_t)(total.rows + 1) * sizeof *row);
    memcpy(row, &s->priced[sizeof total], (size_t)total.rows * sizeof *row);
    *p = (Prices){s->pricing_arena, total, row};
    d->prices = p;
}

void prices_read(Server *s)
{
    enum { PIECE = 1 << 16 };
    if (s->room - s->npriced < PIECE) {
        s->priced = arena_grow(s->pricing_arena, s->priced, s->room, 2 * s->room + PIECE);
        s->room = 2 * s->room + PIECE;
    }
    const ssize_t n = read(s->pricing_fd, &s->priced[s->npriced], PIECE);
    if (n > 0)
        s->npriced += (size_t)n;
    else if (n == 0 || errno != EINTR)
        take_output(s);
}

const PriceRow *price_row(const Document *d, const Expr *e)
{
    for (int i = 0; d->prices && i < d->prices->total.rows; i++)
        if (d->prices->row[i].e == e)
            return &d->prices->row[i];
    return NULL;
}
