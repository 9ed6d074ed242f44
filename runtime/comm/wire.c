/* wire.c -- sums that are sent as bf16 (--wire bf16): half the bytes, but other bits than in f32.
 *
 * Each rank adds one piece of the vector.  The others send it their numbers, rounded to bf16; it
 * adds them in f32, in the order of the tree, and sends back the rounded sum.  A rank that rounds
 * keeps the error and adds it to the numbers of the next step, so that errors do not accumulate
 * (error feedback: Seide et al. 2014, "1-bit stochastic gradient descent"; Karimireddy et al.
 * 2019).
 *
 * All ranks have the same weights afterwards, but the weights depend on the number of ranks.  A
 * resumed run begins without kept errors.
 */
#include "base/error.h"
#include "comm/state.h"
#include <string.h>

enum { GRAIN = 16 };

/* The parts of the scratch that a stretch uses.  The kept errors are those of the whole vector. */
typedef struct Room {
    /* kept errors of this rank's numbers, and of the sums in its pieces; both pointers begin at the
     * stretch */
    float *kept, *kept_sum;
    float *sum;         /* [size][piece]: what ranks have sent, in f32 */
    uint16_t *out, *in; /* [size * piece] each, bf16 */
    int64_t piece;      /* reals of a piece, at most */
} Room;

/* f32 to bf16, rounded to nearest even; a NaN stays a NaN. */
static uint16_t narrow(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if ((u & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(u >> 16 | 0x40);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static float wide(uint16_t x)
{
    const uint32_t u = (uint32_t)x << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* out = x + kept, rounded; kept = the error of this rounding. */
static void round_all(uint16_t *out, const float *x, float *kept, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float v = x[i] + kept[i];
        out[i] = narrow(v);
        kept[i] = v - wide(out[i]);
    }
}

static void widen(float *to, const uint16_t *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = wide(from[i]);
}

static int64_t wire_piece_begin(int64_t n, int i, int pieces)
{
    const int64_t grains = (n + GRAIN - 1) / GRAIN, at = grains * i / pieces * GRAIN;
    return at < n ? at : n;
}

static int64_t wire_piece(int64_t n, int ranks)
{
    return n / ranks + 2 * GRAIN;
}

int64_t wire_scratch(const Comm *c, int64_t n, int64_t stretch)
{
    const int64_t staging = c->size * wire_piece(stretch, c->size);
    return n * 2 * (int64_t)sizeof(float) +
           staging * (int64_t)(sizeof(float) + 2 * sizeof(uint16_t));
}

static Room room_in(const Comm *c, const CommSum *s, int64_t at, int64_t n)
{
    Room r = {.piece = wire_piece(n, c->size)};
    const int64_t staging = c->size * r.piece;
    float *kept = (float *)(void *)s->scratch;
    r.kept = kept + at;
    r.kept_sum = kept + s->n + at;
    r.sum = kept + 2 * s->n;
    r.out = (uint16_t *)(r.sum + staging);
    r.in = r.out + staging;
    return r;
}

typedef struct Pieces {
    float *sum;
    int64_t next, n;
} Pieces;

static void add_node(void *arg, int to, int from)
{
    const Pieces *p = arg;
    for (int64_t i = 0; i < p->n; i++)
        p->sum[to * p->next + i] += p->sum[from * p->next + i];
}

/* Sends each rank its piece of this rank's numbers, and receives this rank's piece from each. */
static void exchange_pieces(Comm *c, const Room *r, int64_t n, int64_t here)
{
    for (int d = 1; d < c->size; d++) {
        Exchange e = {.n = 0};
        const int to = (c->rank + d) % c->size, from = (c->rank + c->size - d) % c->size;
        const int64_t at = wire_piece_begin(n, to, c->size),
                      there = wire_piece_begin(n, to + 1, c->size) - at;
        comm_send(c, &e, to, r->out + at, there * 2);
        comm_receive(c, &e, from, r->in + from * r->piece, here * 2);
        comm_wait(c, &e);
        widen(r->sum + from * r->piece, r->in + from * r->piece, here);
    }
}

/* Sends the finished piece to all ranks, and receives theirs. */
static void spread(Comm *c, const Room *r, float *x, int64_t n, int64_t at, int64_t here)
{
    for (int d = 1; d < c->size; d++) {
        Exchange e = {.n = 0};
        const int to = (c->rank + d) % c->size, from = (c->rank + c->size - d) % c->size;
        const int64_t theirs = wire_piece_begin(n, from, c->size),
                      count = wire_piece_begin(n, from + 1, c->size) - theirs;
        comm_send(c, &e, to, r->out + at, here * 2);
        comm_receive(c, &e, from, r->in, count * 2);
        comm_wait(c, &e);
        widen(x + theirs, r->in, count);
    }
}

void wire_sum(Comm *c, const CommSum *s, int64_t from, int64_t n)
{
    float *x = (float *)(void *)s->buffer + from;
    Node leaf[WIRE_RANKS];
    const Room r = room_in(c, s, from, n);
    const int64_t at = wire_piece_begin(n, c->rank, c->size),
                  here = wire_piece_begin(n, c->rank + 1, c->size) - at;
    Pieces p = {r.sum, r.piece, here};
    for (int i = 0; i < c->size; i++)
        leaf[i] = (Node){i, 1, 0};
    round_all(r.out, x, r.kept, n);
    widen(r.sum + c->rank * r.piece, r.out + at, here);
    exchange_pieces(c, &r, n, here);
    tree_add(leaf, c->size, add_node, &p);
    round_all(r.out + at, r.sum, r.kept_sum + at, here);
    widen(x + at, r.out + at, here);
    spread(c, &r, x, n, at, here);
}
