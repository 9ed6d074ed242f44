/* sum.c -- sums over the shards of all ranks, in the fixed tree.
 *
 * Where each rank holds one node of the tree and the ranks are a power of two, vector halving with
 * distance doubling is the tree itself: partners exchange halves of what they have and add, first
 * neighbours, then pairs; then the finished pieces go back the same way (Rabenseifner 2004). Each rank sends
 * 2 (size - 1) / size of the vector in 2 log2(size) messages.
 *
 * Otherwise every rank adds one piece of the vector, for which all others send it their nodes'
 * parts, and sends the sum back: up to a few times the bytes, the same bits.
 *
 * Long vectors go stretch by stretch: what is received then stays in the cache until it is added.
 */
#include "comm/state.h"
#include "error.h"
#include <string.h>

enum { STRETCH = 1 << 20, GRAIN = 16 }; /* reals: of a stretch, and what pieces are multiples of */

static void add(char *to, const char *from, int64_t n, int real_bytes)
{
    if (real_bytes == 8)
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i] += ((const double *)from)[i];
    else
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] += ((const float *)from)[i];
}

/* Where piece i of `pieces` of n reals begins. */
static int64_t cut(int64_t n, int i, int pieces)
{
    const int64_t grains = (n + GRAIN - 1) / GRAIN, at = grains * i / pieces * GRAIN;
    return at < n ? at : n;
}

/* ---- halving and doubling */

static void sum_halves(Comm *c, char *x, int64_t n, int bytes, char *scratch)
{
    int64_t low[32], high[32], from = 0, to = n;
    int level = 0;
    for (int d = 1; d < c->size; d *= 2, level++) {
        Exchange e = {.n = 0};
        const int64_t middle = from + cut(to - from, 1, 2);
        const bool upper = c->rank & d;
        low[level] = from, high[level] = to;
        if (upper) {
            comm_send(c, &e, c->rank ^ d, x + from * bytes, (middle - from) * bytes);
            from = middle;
        } else {
            comm_send(c, &e, c->rank ^ d, x + middle * bytes, (to - middle) * bytes);
            to = middle;
        }
        comm_receive(c, &e, c->rank ^ d, scratch, (to - from) * bytes);
        comm_wait(c, &e);
        add(x + from * bytes, scratch, to - from, bytes);
    }
    for (int d = c->size / 2; d > 0; d /= 2) {
        Exchange e = {.n = 0};
        level--;
        comm_send(c, &e, c->rank ^ d, x + from * bytes, (to - from) * bytes);
        if (from == low[level])
            comm_receive(c, &e, c->rank ^ d, x + to * bytes, (high[level] - to) * bytes);
        else
            comm_receive(c, &e, c->rank ^ d, x + low[level] * bytes, (from - low[level]) * bytes);
        comm_wait(c, &e);
        from = low[level], to = high[level];
    }
}

/* ---- each rank a piece */

typedef struct Piece {
    char *sum;
    int64_t n;
    int bytes;
} Piece;

static void add_nodes(void *arg, int to, int from)
{
    const Piece *p = arg;
    add(p->sum + to * p->n * p->bytes, p->sum + from * p->n * p->bytes, p->n, p->bytes);
}

/* This rank's nodes of piece `to` go there; those of `from` of our own piece come. */
static void trade(Comm *c, const CommSum *s, const char *x, int64_t n, int to, int from)
{
    const int bytes = s->real_bytes;
    const int64_t at = cut(n, to, c->size), there = cut(n, to + 1, c->size) - at;
    const int64_t here = cut(n, c->rank + 1, c->size) - cut(n, c->rank, c->size);
    Exchange e = {.n = 0};
    for (int i = 0; i < s->first[c->rank + 1] - s->first[c->rank]; i++)
        comm_send(c, &e, to, x + i * s->next + at * bytes, there * bytes);
    for (int i = s->first[from]; i < s->first[from + 1]; i++)
        comm_receive(c, &e, from, s->scratch + i * here * bytes, here * bytes);
    comm_wait(c, &e);
}

static void sum_pieces(Comm *c, const CommSum *s, char *x, int64_t n)
{
    const int bytes = s->real_bytes;
    const int64_t at = cut(n, c->rank, c->size), here = cut(n, c->rank + 1, c->size) - at;
    Piece piece = {s->scratch, here, bytes};
    for (int i = s->first[c->rank]; i < s->first[c->rank + 1]; i++)
        memcpy(s->scratch + i * here * bytes, x + (i - s->first[c->rank]) * s->next + at * bytes,
               (size_t)(here * bytes));
    for (int d = 1; d < c->size; d++)
        trade(c, s, x, n, (c->rank + d) % c->size, (c->rank + c->size - d) % c->size);
    tree_add(s->node, s->first[c->size], add_nodes, &piece);
    memcpy(x + at * bytes, s->scratch, (size_t)(here * bytes));
    for (int d = 1; d < c->size; d++) {
        Exchange e = {.n = 0};
        const int to = (c->rank + d) % c->size, from = (c->rank + c->size - d) % c->size;
        const int64_t theirs = cut(n, from, c->size);
        comm_send(c, &e, to, x + at * bytes, here * bytes);
        comm_receive(c, &e, from, x + theirs * bytes, (cut(n, from + 1, c->size) - theirs) * bytes);
        comm_wait(c, &e);
    }
}

/* ---- */

void comm_sum_plan(const Comm *c, CommSum *s)
{
    const int each = s->shards / c->size;
    const int64_t n = s->n < STRETCH ? s->n : STRETCH;
    if (c->size == 1)
        return;
    s->node = rt_alloc(sizeof *s->node * TREE_NODES * (size_t)c->size);
    s->first = rt_alloc(sizeof *s->first * (size_t)(c->size + 1));
    for (int r = 0; r < c->size; r++)
        s->first[r + 1] =
            s->first[r] + tree_nodes(r * each, each, s->shards, s->node + s->first[r]);
    if (c->bf16 && c->size > WIRE_RANKS)
        rt_die("--wire bf16 is for %d ranks at most, not %d", WIRE_RANKS, c->size);
    if ((c->size & (c->size - 1)) == 0 && s->first[c->size] == c->size) {
        s->node = NULL;
        s->scratch_bytes = c->bf16 ? wire_scratch(c, s->n, n) : (n / 2 + GRAIN) * s->real_bytes;
    } else if (c->bf16)
        rt_die("--wire bf16 needs a number of ranks that is a power of two, and shards that divide "
               "by it evenly: %d and %d do not fit",
               c->size, s->shards);
    else
        s->scratch_bytes = s->first[c->size] * (n / c->size + 2 * GRAIN) * s->real_bytes;
}

void comm_sum_now(Comm *c, const CommSum *s, int64_t from, int64_t n)
{
    for (int64_t at = 0; at < n; at += STRETCH) {
        const int64_t reals = n - at < STRETCH ? n - at : STRETCH;
        char *x = s->buffer + (from + at) * s->real_bytes;
        if (c->bf16)
            wire_sum(c, s, from + at, reals);
        else if (s->node)
            sum_pieces(c, s, x, reals);
        else
            sum_halves(c, x, reals, s->real_bytes, s->scratch);
    }
}

void comm_sum(Comm *c, const CommSum *s)
{
    if (c->size == 1)
        return;
    comm_enter(c, "the sum of gradients");
    comm_sum_now(c, s, 0, s->n);
    comm_leave(c);
}
