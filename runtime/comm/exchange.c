/* exchange.c -- messages between ranks: several sends and receives that end together, and a
 * gather. */
#include "comm/state.h"

void comm_wait(Comm *c, Exchange *e)
{
    CommState *s = c->state;
    Wait w = comm_wait_from_now();
    while (e->n > 0) {
        for (int i = 0; i < e->n; i++)
            if (s->t->done(e->request[i]))
                e->request[i--] = e->request[--e->n];
        comm_rest(s, &w);
    }
}

/* If the exchange is full, waits until it is done. */
static void make_place(Comm *c, Exchange *e)
{
    if (e->n == EXCHANGE_MOST)
        comm_wait(c, e);
}

/* A longer message goes in pieces, because MPI counts bytes as int. */
void comm_send(Comm *c, Exchange *e, int to, const void *from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += MESSAGE) {
        const int n = (int)(bytes - at < MESSAGE ? bytes - at : MESSAGE);
        make_place(c, e);
        e->request[e->n++] = c->state->t->send(to, TAG_DATA, (const char *)from + at, n);
    }
}

void comm_receive(Comm *c, Exchange *e, int from, void *to, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += MESSAGE) {
        const int n = (int)(bytes - at < MESSAGE ? bytes - at : MESSAGE);
        make_place(c, e);
        e->request[e->n++] = c->state->t->receive(from, TAG_DATA, (char *)to + at, n);
    }
}

/* Sends the parts of ranks mine .. mine + count - 1 to rank `to`, and receives those of ranks
 * theirs .. theirs + count - 1 from rank `from`. */
static void exchange_parts(Comm *c, const CommPart *part, int n, int to, int mine, int from,
                           int theirs, int count)
{
    Exchange e = {.n = 0};
    for (int i = 0; i < n; i++) {
        char *const all = part[i].all;
        comm_send(c, &e, to, all + mine * part[i].each, count * part[i].each);
        comm_receive(c, &e, from, all + theirs * part[i].each, count * part[i].each);
    }
    comm_wait(c, &e);
}

/* Uses recursive doubling if the number of ranks is a power of two; else each rank sends to all
 * others. */
void comm_gather_now(Comm *c, const CommPart *part, int n)
{
    if ((c->size & (c->size - 1)) == 0)
        for (int d = 1; d < c->size; d *= 2) {
            const int partner = c->rank ^ d, mine = c->rank & -d;
            exchange_parts(c, part, n, partner, mine, partner, mine ^ d, d);
        }
    else
        for (int d = 1; d < c->size; d++) {
            const int from = (c->rank + c->size - d) % c->size;
            exchange_parts(c, part, n, (c->rank + d) % c->size, c->rank, from, from, 1);
        }
}
