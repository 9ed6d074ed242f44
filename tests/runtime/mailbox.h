/* mailbox.h -- a transport between threads that simulate ranks: a queue of messages for each pair.
 *
 * A receive finds a message by sender and tag.  Two messages with the same sender and tag arrive in
 * order; others arrive after a delay, which is random if the test asks for it.  A rank that has
 * more pending messages than it has reserved is a failure.
 */
#ifndef MAILBOX_H
#define MAILBOX_H
#include "base/clock.h"
#include "comm/state.h"
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MAILBOX_RANKS = 8, MAILBOX_ROOM = 256, MAILBOX_WANTED = 1024 };

typedef struct Letter {
    char *bytes;                                      /* NULL: there is none */
    int n, tag;
    int64_t number;
    double due;
} Letter;

static struct Mailbox { pthread_mutex_t lock; Letter letter[MAILBOX_ROOM]; int64_t sent; unsigned seed; } mailbox_of[MAILBOX_RANKS][MAILBOX_RANKS];   /* [to][from] */
static _Thread_local int mailbox_here = -1;
static int (*mailbox_who)(void);                      /* of a thread that has not said: which rank it belongs to */
static _Thread_local struct { int from, tag, n; void *to; bool used; int64_t number; } mailbox_wanted[MAILBOX_WANTED];
static _Thread_local int64_t mailbox_asked;           /* receives so far */
static struct { int room, under_way; } mailbox_requests[MAILBOX_RANKS];
static double mailbox_slow;                           /* seconds that a letter takes at most */

static int mailbox_rank(void)
{
    if (mailbox_here < 0)
        mailbox_here = mailbox_who();
    return mailbox_here;
}

static void mailbox_open(int size, double slow)
{
    mailbox_slow = slow;
    for (int to = 0; to < size; to++)
        for (int from = 0; from < size; from++) {
            struct Mailbox *b = &mailbox_of[to][from];
            pthread_mutex_init(&b->lock, NULL);
            b->seed = (unsigned)(to * MAILBOX_RANKS + from + 1);
        }
}

static void mailbox_empty(int size)
{
    for (int to = 0; to < size; to++)
        for (int from = 0; from < size; from++)
            for (int i = 0; i < MAILBOX_ROOM; i++)
                ck_assert_ptr_null(mailbox_of[to][from].letter[i].bytes);
}

static void mailbox_room(int requests)
{
    if (mailbox_requests[mailbox_rank()].room < requests)
        mailbox_requests[mailbox_rank()].room = requests;
}

static void mailbox_begin(void)
{
    const int room = mailbox_requests[mailbox_rank()].room;
    ck_assert_int_lt(mailbox_requests[mailbox_rank()].under_way++, room > COMM_REQUESTS ? room : COMM_REQUESTS);
}

/* A message is copied at once, so that its send is done. */
static int mailbox_send(int to, int tag, const void *from, int n)
{
    struct Mailbox *b = &mailbox_of[to][mailbox_rank()];
    mailbox_begin();
    pthread_mutex_lock(&b->lock);
    int i = 0;
    while (b->letter[i].bytes)
        ck_assert_int_lt(++i, MAILBOX_ROOM);
    const double way = mailbox_slow * (double)(rand_r(&b->seed) % 1000) / 1000;
    b->letter[i] = (Letter){malloc((size_t)n + 1), n, tag, b->sent++, mailbox_slow > 0 ? clock_now() + way : 0};
    memcpy(b->letter[i].bytes, from, (size_t)n);
    pthread_mutex_unlock(&b->lock);
    return MAILBOX_WANTED;
}

static int mailbox_receive(int from, int tag, void *to, int n)
{
    int i = 0;
    mailbox_begin();
    while (mailbox_wanted[i].used)
        ck_assert_int_lt(++i, MAILBOX_WANTED);
    mailbox_wanted[i].from = from, mailbox_wanted[i].tag = tag, mailbox_wanted[i].to = to, mailbox_wanted[i].n = n;
    mailbox_wanted[i].used = true, mailbox_wanted[i].number = mailbox_asked++;
    return i;
}

/* Whether no earlier receive waits for the same letters. */
static bool mailbox_next(int i)
{
    for (int k = 0; k < MAILBOX_WANTED; k++)
        if (mailbox_wanted[k].used && mailbox_wanted[k].from == mailbox_wanted[i].from && mailbox_wanted[k].tag == mailbox_wanted[i].tag &&
            mailbox_wanted[k].number < mailbox_wanted[i].number)
            return false;
    return true;
}

static bool mailbox_done(int i)
{
    if (i == MAILBOX_WANTED) {
        mailbox_requests[mailbox_rank()].under_way--;
        return true;
    }
    if (!mailbox_next(i))
        return false;
    struct Mailbox *b = &mailbox_of[mailbox_rank()][mailbox_wanted[i].from];
    Letter *first = NULL;
    pthread_mutex_lock(&b->lock);
    for (Letter *l = b->letter; l < b->letter + MAILBOX_ROOM; l++)
        if (l->bytes && l->tag == mailbox_wanted[i].tag && (!first || l->number < first->number))
            first = l;
    const bool here = first && (mailbox_slow <= 0 || first->due <= clock_now());
    if (here) {
        ck_assert_int_eq(first->n, mailbox_wanted[i].n);
        memcpy(mailbox_wanted[i].to, first->bytes, (size_t)first->n);
        free(first->bytes);
        first->bytes = NULL;
        mailbox_wanted[i].used = false;
        mailbox_requests[mailbox_rank()].under_way--;
    }
    pthread_mutex_unlock(&b->lock);
    return here;
}

static int mailbox_waiting(int tag)
{
    (void)tag;
    return -1;
}

static const RtTransport mailbox = {.name = "mailboxes", .room = mailbox_room, .send = mailbox_send, .receive = mailbox_receive, .done = mailbox_done, .waiting = mailbox_waiting};

#endif
