/* choose.c -- chooses the algorithm of each convolution: the one with the lowest price
 * (ops/price.h).
 *
 * Winograd's F(2x2, 3x3) and F(2x2, 5x5) need 2.25 and 2.8 times fewer multiplications than the
 * direct sum and have rounding errors of the same size.  F(4x4, 3x3) needs 4 times fewer, and its
 * rounding errors are 3-4 times as large; it is only used with --fast.  The transforms need a pass
 * over input and output, and the packed filters are larger.
 *
 * The gradients of a convolution with a fused pooling stay sparse, which is faster than each dense
 * algorithm.  Prices depend only on sizes, --cpu and --dtype, and the program contains the choice,
 * so its bits are the same on each machine.  With --tune, measurements decide between prices that
 * are close.
 */
#include "ir/choice.h"
#include "ops/conv_price.h"
#include "passes/pass.h"
#include "runtime/constants.h"

enum { SCRATCH_BYTES = RT_WINO_BYTES / 2 }; /* a block that needs more scratch is not faster */
/* algorithms above this multiple of the lowest price are not measured */
static const double CLOSE = 2.5;

static bool all(const Node *n, const char *key, int64_t value)
{
    const Attr *a = node_attr(n, key);
    return a && a->nlist == 2 && a->list[0] == value && a->list[1] == value;
}

/* Whether the transformed tiles of `in` channels and one panel of outputs fit the scratch of the
 * kernel. */
static bool fits(int64_t in, int64_t side, const Market *m)
{
    return side * side * (in + 2 * m->lanes) * RT_TILE_ROWS_MOST * m->real <= SCRATCH_BYTES;
}

/* Whether conv2d_dx can be a convolution: its padding is k - 1 - pad, which must not be
 * negative. */
static bool pad_within_kernel(const Node *n)
{
    const int64_t *pad = node_attr(n, "pad_before")->list, *k = node_attr(n, "kernel")->list;
    return pad[0] < k[0] && pad[1] < k[1];
}

/* Whether F(m x m) can compute n.  The gradient of the filters needs no check of the scratch: it
 * divides channels into blocks, and packs no filters. */
static bool possible(const Node *n, int64_t m, const Options *o, const Market *k)
{
    const int64_t r = node_attr(n, "kernel")->list[0];
    const int w = op_weights(n);

    return (all(n, "kernel", 3) || (all(n, "kernel", 5) && m == 2)) && all(n, "stride", 1) &&
           all(n, "dilation", 1) && node_int(n, "groups") == 1 && (m == 2 || o->fast) &&
           (w < 0 || fits(n->in[1 - w]->shape.dim[0], m + r - 1, k)) &&
           (n->op->role != ROLE_DX || pad_within_kernel(n));
}

static void set_tile(Graph *g, Node *n, int64_t tile)
{
    if (tile)
        node_set_int(g, n, "winograd", tile);
    else
        node_drop_attr(g->arena, n, "winograd");
}

/* Seconds in a step: one call for each chunk, and one packing of the filters. */
static double seconds(Graph *g, Node *n, int64_t tile, const Market *m)
{
    Node pack = {.op = op_find("conv2d_pack"), .nin = 1, .in = n->in};
    Price packed = {0};

    set_tile(g, n, tile);
    node_copy_attrs(g, &pack, n);
    node_set_int(g, &pack, "dx", n->op->role == ROLE_DX);
    if (op_weights(n) >= 0)
        conv_price_pack(&pack, m, &packed);
    const double calls = (double)(g->recipe.batch / m->n);
    const double cycles = calls * price_of(n, m).cycles + packed.cycles;
    set_tile(g, n, 0);
    return market_seconds(m, cycles);
}

static void offer(Graph *g, Choice *c, int64_t tile, const Market *m)
{
    c->tile[c->n] = tile;
    c->predicted[c->n] = seconds(g, c->node, tile, m);
    if (c->predicted[c->n] < c->predicted[c->pick])
        c->pick = c->n;
    c->n++;
}

static Choice choice_of(Graph *g, Node *n, const Options *o, const Market *m)
{
    Choice c = {.node = n};

    offer(g, &c, 0, m);
    for (int64_t tile = 2; tile <= 4; tile += 2)
        if (possible(n, tile, o, m))
            offer(g, &c, tile, m);
    return c;
}

/* Keeps the algorithms that cost at most CLOSE times as much as the cheapest one. */
static void keep_close(Choice *c)
{
    const double most = CLOSE * c->predicted[c->pick];
    int n = 0;

    for (int i = 0; i < c->n; i++) {
        if (c->predicted[i] > most)
            continue;
        if (c->pick == i)
            c->pick = n;
        c->tile[n] = c->tile[i], c->predicted[n] = c->predicted[i];
        n++;
    }
    c->n = n;
}

static bool is_conv(const Node *n)
{
    return n->op->product == PRODUCT_CONV;
}

/* Chooses by price; with --tune, Options.tuner decides between close prices by measurement. */
void pass_choose(Graph *g, const Options *o, Diag *d)
{
    Step step = {0};
    Choice *list = NULL, *open = NULL;
    int n = 0, nopen = 0;

    schedule_cut(g, &step);
    const Market m = market_of(g, o, step.chunk);
    for (int i = 0; i < g->nnode; i++)
        if (is_conv(g->node[i]))
            ARENA_PUSH(g->arena, list, n, choice_of(g, g->node[i], o, &m));
    for (int i = 0; o->tuner && i < n; i++) {
        keep_close(&list[i]);
        if (list[i].n > 1)
            ARENA_PUSH(g->arena, open, nopen, list[i]);
    }
    if (nopen)
        o->tuner->settle(o->tuner, g, open, nopen, d);
    for (int i = 0; i < n; i++)
        set_tile(g, list[i].node, list[i].tile[list[i].pick]);
    for (int i = 0; i < nopen; i++)
        set_tile(g, open[i].node, open[i].tile[open[i].pick]);
}
