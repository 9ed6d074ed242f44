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
 * Long vectors go stretch by stretch. With halving several are under way, each one message further than the next: while what has
 * come of one is added, the link carries another. Otherwise what is received stays in the cache until it is added.
 */
#include "comm/state.h"
#include "error.h"
#include <string.h>

enum { STRETCH = 1 << 18, GRAIN = 16 }; /* reals: of a stretch, and what pieces are multiples of */
enum { LEVELS = 20 };                   /* log2 of the ranks at most */

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

/* A stretch under way: reals from .. to - 1 are this rank's to add, as they were at each level. */
typedef struct Stretch {
    int64_t from[LEVELS + 1], to[LEVELS + 1];
    char *come; /* what the partner has sent, to be added */
    Exchange e;
} Stretch;

static int levels(int ranks)
{
    int n = 0;
    while (1 << n < ranks)
        n++;
    return n;
}

/* Of what comes at a level, twice: a stretch's is still being added when the next one's comes. */
static int64_t room(int64_t stretch, int level)
{
    return (stretch >> (level + 1)) + GRAIN;
}

static int64_t room_before(int64_t stretch, int level)
{
    int64_t reals = 0;
    for (int i = 0; i < level; i++)
        reals += 2 * room(stretch, i);
    return reals;
}

/* Half of what this rank has goes to the partner, the partner's other half comes. */
static void begin_halving(Comm *c, const CommSum *s, Stretch *t, char *x, int level)
{
    const int partner = c->rank ^ 1 << level, bytes = s->real_bytes;
    const int64_t from = t->from[level], to = t->to[level], middle = from + cut(to - from, 1, 2);
    const bool upper = c->rank > partner;
    t->from[level + 1] = upper ? middle : from;
    t->to[level + 1] = upper ? to : middle;
    comm_send(c, &t->e, partner, x + (upper ? from : middle) * bytes,
              (upper ? middle - from : to - middle) * bytes);
    comm_receive(c, &t->e, partner, t->come, (upper ? to - middle : middle - from) * bytes);
}

/* The sums that this rank has go to the partner, and the partner's come. */
static void begin_doubling(Comm *c, const CommSum *s, Stretch *t, char *x, int level)
{
    const int partner = c->rank ^ 1 << level, bytes = s->real_bytes;
    const int64_t from = t->from[level + 1], to = t->to[level + 1];
    const bool upper = c->rank > partner;
    const int64_t at = upper ? t->from[level] : to, end = upper ? from : t->to[level];
    comm_send(c, &t->e, partner, x + from * bytes, (to - from) * bytes);
    comm_receive(c, &t->e, partner, x + at * bytes, (end - at) * bytes);
}

static void finish_message(Comm *c, const CommSum *s, Stretch *t, char *x, int message, int deep)
{
    comm_wait(c, &t->e);
    if (message < deep)
        add(x + t->from[message + 1] * s->real_bytes, t->come,
            t->to[message + 1] - t->from[message + 1], s->real_bytes);
}

/* All ranks begin and await the messages of all stretches in one order, so that none needs a number. */
static void sum_halves(Comm *c, const CommSum *s, char *x, int64_t n)
{
    const int deep = levels(c->size), messages = 2 * deep, ring = messages + 1;
    const int64_t stretch = s->n < STRETCH ? s->n : STRETCH;
    const int count = (int)((n + stretch - 1) / stretch);
    Stretch under_way[2 * LEVELS + 1];
    for (int now = 0; now < count + messages; now++)
        for (int m = 0; m <= messages; m++) {
            const int i = now - m;
            Stretch *t = &under_way[(i + ring) % ring];
            if (i < 0 || i >= count)
                continue;
            if (m == 0)
                *t = (Stretch){.from = {cut(n, i, count)}, .to = {cut(n, i + 1, count)}};
            else
                finish_message(c, s, t, x, m - 1, deep);
            t->come =
                s->scratch + (room_before(stretch, m) + i % 2 * room(stretch, m)) * s->real_bytes;
            if (m < deep)
                begin_halving(c, s, t, x, m);
            else if (m < messages)
                begin_doubling(c, s, t, x, messages - 1 - m);
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
        s->scratch_bytes =
            c->bf16 ? wire_scratch(c, s->n, n) : room_before(n, levels(c->size)) * s->real_bytes;
    } else if (c->bf16)
        rt_die("--wire bf16 needs a number of ranks that is a power of two, and shards that divide "
               "by it evenly: %d and %d do not fit",
               c->size, s->shards);
    else
        s->scratch_bytes = s->first[c->size] * (n / c->size + 2 * GRAIN) * s->real_bytes;
}

void comm_sum_now(Comm *c, const CommSum *s, int64_t from, int64_t n)
{
    if (!c->bf16 && !s->node) {
        sum_halves(c, s, s->buffer + from * s->real_bytes, n);
        return;
    }
    for (int64_t at = 0; at < n; at += STRETCH) {
        const int64_t reals = n - at < STRETCH ? n - at : STRETCH;
        if (c->bf16)
            wire_sum(c, s, from + at, reals);
        else
            sum_pieces(c, s, s->buffer + (from + at) * s->real_bytes, reals);
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
