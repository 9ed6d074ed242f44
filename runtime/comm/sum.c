/* sum.c -- sums over the shards of all ranks, in the fixed tree.
 *
 * If each rank holds one node of the tree and the number of ranks is a power of two, vector halving
 * with distance doubling is the tree itself: partners exchange halves of their vectors and add,
 * first neighbours, then pairs; then the finished pieces go back the same way (Rabenseifner 2004).
 * Each rank sends 2 (size - 1) / size of the vector in 2 log2(size) messages.
 *
 * Otherwise every rank adds one piece of the vector: the others send it the piece of their nodes,
 * and it sends the sum back.  Ranks then send up to a few times as many bytes; the bits are the
 * same.
 *
 * A long vector is divided into stretches.  With halving, several stretches are pending, each one
 * message ahead of the next: while one is added, the link transfers another.  Such a sum can pause
 * between two messages, so that a more urgent sum goes first (post.c).  Without halving, received
 * numbers stay in the cache until they are added.
 */
#include "base/ascending.h"
#include "base/clock.h"
#include "base/error.h"
#include "comm/state.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reals of a stretch.  STRETCH: without halving, or of a single sum over a slow link.  HALVED,
 * LEAST: with halving, the most and the least if several sums can be pending. */
enum { STRETCH = 1 << 18, HALVED = 1 << 15, LEAST = 1 << 12 };
enum { PROBE = 48 << 10 }; /* bytes; MPI sends a message of this size at once */
enum { GRAIN = 16 };       /* pieces are multiples of this number of reals */
enum { LEVELS = 20 };      /* log2 of the number of ranks, at most */

/* Seconds.  SLOW: a message of HALVED / 2 reals on a slow link.  PREEMPTED: how long a more urgent
 * sum may wait for a message that is being sent. */
static const double SLOW = 0.3e-3, PREEMPTED = 1.5e-3;

static void add_reals(char *to, const char *from, int64_t n, int real_bytes)
{
    if (real_bytes == 8)
        for (int64_t i = 0; i < n; i++)
            ((double *)to)[i] += ((const double *)from)[i];
    else
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] += ((const float *)from)[i];
}

/* The first real of piece i, if n reals are divided into `pieces`. */
static int64_t piece_begin(int64_t n, int i, int pieces)
{
    const int64_t grains = (n + GRAIN - 1) / GRAIN, at = grains * i / pieces * GRAIN;
    return at < n ? at : n;
}

/* ---- halving and doubling */

/* A stretch that is pending.  At level k this rank adds reals from[k] .. to[k] - 1. */
typedef struct Stretch {
    int64_t from[LEVELS + 1], to[LEVELS + 1];
    char *come;        /* what the partner has sent, not yet added */
    int sent, awaited; /* pending requests; -1: none */
} Stretch;

typedef struct Halving {
    const CommSum *s;
    char *x, *scratch;
    int64_t n, stretch;
    int count, tag; /* number of stretches; tag of the messages */
    int now, message;
    bool heard, done;
    Stretch under_way[2 * LEVELS + 1];
} Halving;

static int levels(int ranks)
{
    int n = 0;
    while (1 << n < ranks)
        n++;
    return n;
}

/* Reals that arrive at a level.  Each level has two such buffers: one stretch is still being added
 * when the message of the next one arrives. */
static int64_t level_room(int64_t stretch, int level)
{
    return (stretch >> (level + 1)) + GRAIN;
}

static int64_t room_before(int64_t stretch, int level)
{
    int64_t reals = 0;
    for (int i = 0; i < level; i++)
        reals += 2 * level_room(stretch, i);
    return reals;
}

static int64_t shorter(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Seconds of a message while the partner sends one, too: the 9th of 21 times in ascending order.  A
 * few messages find an idle link and are too fast; many wait for a processor. */
static double message_seconds(Comm *c, int partner, char *out, char *in, int bytes)
{
    enum { TIMES = 21 };
    double seconds[TIMES];
    for (int i = 0; i < TIMES; i++) {
        Exchange e = {.n = 0};
        const double began = clock_now();
        comm_send(c, &e, partner, out, bytes);
        comm_receive(c, &e, partner, in, bytes);
        comm_wait(c, &e);
        seconds[i] = clock_now() - began;
    }
    sort_ascending(seconds, TIMES);
    return seconds[TIMES * 2 / 5];
}

/* The length of a stretch; it depends on the slowest link of all ranks.  If several sums can be
 * pending, stretches are short on slow links, so that an urgent sum need not wait.  A single sum
 * has long stretches on slow links, which use the link best, and on fast links stretches that stay
 * in the cache.  The time of a short message is subtracted: it is the time until a waiting rank
 * notices a message, which is long where ranks share a processor. */
static int64_t find_stretch(Comm *c, const CommSum *s)
{
    const int bytes = PROBE;
    int64_t stretch = HALVED;
    if (s->n <= LEAST)
        return s->n;
    char *out = rt_alloc((size_t)bytes), *in = rt_alloc((size_t)bytes);
    double *all = rt_alloc(sizeof *all * (size_t)c->size), *mine = &all[c->rank], slowest = 0;
    memset(out, 0, (size_t)bytes);
    comm_enter(c, "the measurement of the links");
    *mine = 0;
    for (int level = 0; level < levels(c->size); level++)
        *mine = fmax(*mine, message_seconds(c, c->rank ^ 1 << level, out, in, bytes) -
                                message_seconds(c, c->rank ^ 1 << level, out, in, bytes / 16));
    comm_gather_now(c, &(CommPart){all, sizeof *all}, 1);
    comm_leave(c);
    for (int r = 0; r < c->size; r++)
        slowest = fmax(slowest, all[r] / PROBE * (HALVED / 2 * s->real_bytes));
    free(out), free(in), free(all);
    if (s->places <= 1)
        return shorter(s->n, slowest > SLOW ? STRETCH : 2 * HALVED);
    for (; slowest > PREEMPTED && stretch > LEAST; slowest /= 2)
        stretch /= 2;
    return shorter(s->n, stretch);
}

static void exchange_halves(Comm *c, const Halving *h, Stretch *t, int partner, const char *from,
                            int64_t out, char *to, int64_t in)
{
    const int bytes = h->s->real_bytes;
    const RtTransport *carry = c->state->t;
    t->sent = out > 0 ? carry->send(partner, h->tag, from, (int)(out * bytes)) : -1;
    t->awaited = in > 0 ? carry->receive(partner, h->tag, to, (int)(in * bytes)) : -1;
}

/* Sends half of this rank's reals to the partner, and receives the partner's values of the other
 * half. */
static void begin_halving(Comm *c, const Halving *h, Stretch *t, int level)
{
    const int partner = c->rank ^ 1 << level, bytes = h->s->real_bytes;
    const int64_t from = t->from[level], to = t->to[level],
                  middle = from + piece_begin(to - from, 1, 2);
    const bool upper = c->rank > partner;
    t->from[level + 1] = upper ? middle : from;
    t->to[level + 1] = upper ? to : middle;
    exchange_halves(c, h, t, partner, h->x + (upper ? from : middle) * bytes,
                    upper ? middle - from : to - middle, t->come,
                    upper ? to - middle : middle - from);
}

/* Sends this rank's sums to the partner, and receives the partner's sums. */
static void begin_doubling(Comm *c, const Halving *h, Stretch *t, int level)
{
    const int partner = c->rank ^ 1 << level, bytes = h->s->real_bytes;
    const int64_t from = t->from[level + 1], to = t->to[level + 1];
    const bool upper = c->rank > partner;
    const int64_t at = upper ? t->from[level] : to, end = upper ? from : t->to[level];
    exchange_halves(c, h, t, partner, h->x + from * bytes, to - from, h->x + at * bytes, end - at);
}

static bool exchanged(const CommState *s, Stretch *t)
{
    if (t->awaited >= 0 && s->t->done(t->awaited))
        t->awaited = -1;
    if (t->sent >= 0 && s->t->done(t->sent))
        t->sent = -1;
    return t->sent < 0 && t->awaited < 0;
}

/* Starts message `message` of stretch i; false: the stretch's previous message is still pending. */
static bool next_message(Comm *c, Halving *h, int i, int message)
{
    const int deep = levels(c->size), ring = 2 * deep + 1, bytes = h->s->real_bytes;
    Stretch *t = &h->under_way[i % ring];
    if (message == 0)
        *t = (Stretch){.from = {piece_begin(h->n, i, h->count)},
                       .to = {piece_begin(h->n, i + 1, h->count)}};
    else if (!exchanged(c->state, t))
        return false;
    h->heard |= message > 0;
    if (message > 0 && message <= deep)
        add_reals(h->x + t->from[message] * bytes, t->come, t->to[message] - t->from[message],
                  bytes);
    t->come = h->scratch +
              (room_before(h->stretch, message) + i % 2 * level_room(h->stretch, message)) * bytes;
    if (message < deep)
        begin_halving(c, h, t, message);
    else if (message < 2 * deep)
        begin_doubling(c, h, t, 2 * deep - 1 - message);
    return true;
}

void comm_sum_begin(const CommSum *s, int place, int tag, int64_t from, int64_t n)
{
    Halving *h = &s->halving[place];
    const int64_t stretch = s->stretch, places = s->places ? s->places : 1;
    *h = (Halving){.s = s,
                   .x = s->buffer + from * s->real_bytes,
                   .scratch = s->scratch + place * (s->scratch_bytes / places),
                   .n = n,
                   .stretch = stretch,
                   .count = (int)((n + stretch - 1) / stretch),
                   .tag = tag};
}

/* All ranks begin and await the messages of all stretches in the same order, so that messages need
 * no number. */
bool comm_sum_go_on(Comm *c, const CommSum *s, int place)
{
    Halving *h = &s->halving[place];
    const int messages = 2 * levels(c->size);
    bool any = false;
    for (; h->now < h->count + messages; h->now++, h->message = 0)
        for (; h->message <= messages; h->message++) {
            const int i = h->now - h->message;
            if (i < 0 || i >= h->count)
                continue;
            if (!next_message(c, h, i, h->message))
                return any;
            any = true;
        }
    h->done = true;
    return any;
}

bool comm_sum_fills(const CommSum *s, int place)
{
    const Halving *h = &s->halving[place];
    return h->heard && h->now < h->count;
}

bool comm_sum_done(const CommSum *s, int place)
{
    return s->halving[place].done;
}

/* Runs a sum to its end; the caller has nothing else to do. */
static void sum_halves(Comm *c, const CommSum *s, int64_t from, int64_t n)
{
    Wait w = comm_wait_from_now();
    comm_sum_begin(s, 0, TAG_DATA, from, n);
    while (!s->halving->done)
        if (comm_sum_go_on(c, s, 0))
            w = comm_wait_from_now();
        else
            comm_rest(c->state, &w);
}

/* ---- each rank adds one piece */

typedef struct Piece {
    char *sum;
    int64_t n;
    int bytes;
} Piece;

static void add_nodes(void *arg, int to, int from)
{
    const Piece *p = arg;
    add_reals(p->sum + to * p->n * p->bytes, p->sum + from * p->n * p->bytes, p->n, p->bytes);
}

/* Sends this rank's nodes of piece `to` to rank `to`, and receives the nodes of rank `from` of this
 * rank's piece. */
static void exchange_nodes(Comm *c, const CommSum *s, const char *x, int64_t n, int to, int from)
{
    const int bytes = s->real_bytes;
    const int64_t at = piece_begin(n, to, c->size), there = piece_begin(n, to + 1, c->size) - at;
    const int64_t here = piece_begin(n, c->rank + 1, c->size) - piece_begin(n, c->rank, c->size);
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
    const int64_t at = piece_begin(n, c->rank, c->size),
                  here = piece_begin(n, c->rank + 1, c->size) - at;
    Piece piece = {s->scratch, here, bytes};
    for (int i = s->first[c->rank]; i < s->first[c->rank + 1]; i++)
        memcpy(s->scratch + i * here * bytes, x + (i - s->first[c->rank]) * s->next + at * bytes,
               (size_t)(here * bytes));
    for (int d = 1; d < c->size; d++)
        exchange_nodes(c, s, x, n, (c->rank + d) % c->size, (c->rank + c->size - d) % c->size);
    tree_add(s->node, s->first[c->size], add_nodes, &piece);
    memcpy(x + at * bytes, s->scratch, (size_t)(here * bytes));
    for (int d = 1; d < c->size; d++) {
        Exchange e = {.n = 0};
        const int to = (c->rank + d) % c->size, from = (c->rank + c->size - d) % c->size;
        const int64_t theirs = piece_begin(n, from, c->size);
        comm_send(c, &e, to, x + at * bytes, here * bytes);
        comm_receive(c, &e, from, x + theirs * bytes,
                     (piece_begin(n, from + 1, c->size) - theirs) * bytes);
        comm_wait(c, &e);
    }
}

/* ---- plan and run */

/* Makes room for the messages of all sums that can be pending: each has at most 2 levels + 1
 * stretches, and a stretch has one pending send and one pending receive. */
static void reserve_requests(Comm *c, int places)
{
    CommState *s = c->state;
    pthread_mutex_lock(&s->lock);
    s->t->room(COMM_REQUESTS + places * 2 * (2 * levels(c->size) + 1));
    pthread_mutex_unlock(&s->lock);
}

void comm_sum_plan(Comm *c, CommSum *s)
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
        const int places = s->places ? s->places : 1, deep = levels(c->size);
        free(s->node), s->node = NULL;
        if (!c->bf16) {
            reserve_requests(c, places);
            s->halving = rt_alloc(sizeof *s->halving * (size_t)places);
            s->stretch = find_stretch(c, s);
        }
        const int64_t longest = shorter(s->n, places > 1 ? HALVED : STRETCH);
        s->scratch_bytes = c->bf16 ? wire_scratch(c, s->n, n)
                                   : places * room_before(longest, deep) * s->real_bytes;
    } else if (c->bf16)
        rt_die("--wire bf16 needs a number of ranks that is a power of two, and shards that divide "
               "by it evenly: %d and %d do not fit",
               c->size, s->shards);
    else
        s->scratch_bytes = s->first[c->size] * (n / c->size + 2 * GRAIN) * s->real_bytes;
}

void comm_sum_now(Comm *c, const CommSum *s, int64_t from, int64_t n)
{
    if (s->halving) {
        sum_halves(c, s, from, n);
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
