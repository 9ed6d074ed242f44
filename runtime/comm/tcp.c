/* tcp.c -- messages between ranks over TCP, for launchers that only start processes.
 *
 * Each pair of ranks has two connections ("lines"): one for data, one for questions and end
 * notices.  A message is its tag, its length, its bytes and a code over them (tcp_greet.h).  A
 * wrong code ends the run.  Messages of a line are read in the order in which they were sent:
 * comm.c receives in the same order.  A message is only read when a request asks for it, so nothing
 * is stored here.
 *
 * A process that ends closes its lines, so that the other ranks know at once which rank has ended;
 * MPI would let them wait.  A rank that finishes normally announces its end first (TAG_BYE), and a
 * rank that ends the run informs all others (TAG_END).
 */
#define _GNU_SOURCE
#include "comm/tcp.h"
#include "base/error.h"
#include "comm/transport.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { DATA = 1, NONE = -1 };

typedef struct Request {
    bool over;
    int rank, line, next;
    Head head;
    char *at;
    int64_t moved; /* bytes moved so far; a send counts its head and code, too */
    uint8_t code[CODE_BYTES];
} Request;

typedef struct List {
    int first, last; /* requests in order; NONE: the list is empty */
} List;

typedef struct Line {
    int fd;
    List sending, receiving;
    Seal seal;
    Head head;  /* of the next message */
    int got;    /* bytes of the head received so far */
    Hmac sum;   /* code over the received part of the message */
    int sealed; /* bytes of the message's code received so far */
    uint8_t code[CODE_BYTES];
    bool over; /* the other end has closed the line */
} Line;

typedef struct Other {
    Line line[TCP_LINES];
    bool bye;
} Other;

static Request *request;
static int *free_slot; /* a stack of the requests that are not in use */
static int slots, nfree;
static Other *other;
static int self, ranks, lost_rank = NONE, bye_rank = NONE;

static int line_of(int tag)
{
    return tag == DATA ? TCP_DATA : TCP_WORDS;
}

/* ---- joining */

static int count_here(const Peer *p, int until)
{
    int n = 0;
    for (int r = 0; r < until; r++)
        n += strcmp(p[r].host, p[self].host) == 0;
    return n;
}

static void tcp_join_run(double limit, int *rank, int *size, int *local_rank, int *local_size)
{
    const Launch l = launch_read();
    rt_speaker(rt_format("rank %d: ", l.rank), l.rank == 0);
    Peer *p = tcp_meet(&l, limit);
    *rank = self = l.rank;
    *size = ranks = l.size;
    *local_rank = count_here(p, self);
    *local_size = count_here(p, ranks);
    other = rt_alloc(sizeof *other * (size_t)ranks);
    for (int r = 0; r < ranks; r++)
        for (int k = 0; k < TCP_LINES; k++)
            other[r].line[k] = (Line){.fd = p[r].fd[k],
                                      .seal = p[r].seal[k],
                                      .sending = {NONE, NONE},
                                      .receiving = {NONE, NONE}};
    free(p);
}

static const char *tcp_describe(void)
{
    return "TCP";
}

/* ---- pending messages */

static void tcp_make_room(int requests)
{
    if (requests <= slots)
        return;
    request = realloc(request, sizeof *request * (size_t)requests);
    free_slot = realloc(free_slot, sizeof *free_slot * (size_t)requests);
    if (!request || !free_slot)
        rt_die("out of memory for %d messages between ranks", requests);
    while (slots < requests)
        free_slot[nfree++] = slots++;
}

static void finish_transfer(List *l)
{
    Request *q = &request[l->first];
    l->first = q->next;
    q->over = true;
}

/* A message that cannot be sent is dropped: a later read reports the reason. */
static void send_some(Line *l)
{
    while (l->sending.first != NONE) {
        Request *q = &request[l->sending.first];
        char *const part[] = {(char *)&q->head, q->at, (char *)q->code};
        const int64_t bytes[] = {sizeof q->head, q->head.bytes, CODE_BYTES};
        struct iovec piece[3];
        int64_t all = 0, skip = q->moved;
        for (int i = 0; i < 3; i++) {
            const int64_t gone = skip < bytes[i] ? skip : bytes[i];
            piece[i] = (struct iovec){part[i] + gone, (size_t)(bytes[i] - gone)};
            all += bytes[i];
            skip -= gone;
        }
        const struct msghdr m = {.msg_iov = piece, .msg_iovlen = 3};
        const ssize_t n = sendmsg(l->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        q->moved += n > 0 ? n : all;
        if (q->moved >= all)
            finish_transfer(&l->sending);
    }
}

static void __attribute__((noreturn))
die_of_other_message(int rank, const Head *h, const Request *q)
{
    rt_die("rank %d has sent message %d of %d bytes where message %d of %d bytes was expected",
           rank, h->tag, h->bytes, q->head.tag, q->head.bytes);
}

/* Reads up to n bytes that have arrived; 0: nothing has arrived, or the line is closed. */
static int64_t read_some(int rank, Line *l, void *to, int64_t n)
{
    const ssize_t some = n > 0 ? recv(l->fd, to, (size_t)n, MSG_DONTWAIT) : 0;
    if (n == 0 || (some < 0 && (errno == EAGAIN || errno == EINTR)))
        return 0;
    if (some > 0)
        return some;
    l->over = true;
    if (!other[rank].bye && lost_rank == NONE)
        lost_rank = rank;
    return 0;
}

static void __attribute__((noreturn)) die_of_wrong_code(int rank)
{
    rt_die("a message of rank %d was changed on its way here, or another process has sent it: its "
           "authentication code is wrong",
           rank);
}

static bool read_code(int rank, Line *l)
{
    l->sealed += (int)read_some(rank, l, l->code + l->sealed, CODE_BYTES - l->sealed);
    return l->sealed == CODE_BYTES;
}

static void read_last_words(int rank, Line *l)
{
    if (other[rank].bye || !read_code(rank, l))
        return;
    if (!seal_last_holds(&l->seal, l->head, l->code))
        die_of_wrong_code(rank);
    if (l->head.tag == TAG_END)
        rt_follow(l->head.bytes, rank);
    other[rank].bye = true;
    if (bye_rank == NONE)
        bye_rank = rank;
}

/* Whether the head of the next data message or question has arrived.  Handles end notices. */
static bool read_head(int rank, Line *l)
{
    const int all = (int)sizeof l->head;
    if (!l->over && l->got < all) {
        l->got += (int)read_some(rank, l, (char *)&l->head + l->got, all - l->got);
        if (l->got == all)
            l->sum = seal_begin(&l->seal, l->head), l->sealed = 0;
    }
    if (l->over || l->got < all)
        return false;
    if (l->head.tag < 0)
        read_last_words(rank, l);
    return l->head.tag > 0;
}

static void receive_some(int rank, Line *l)
{
    while (l->receiving.first != NONE && read_head(rank, l)) {
        Request *q = &request[l->receiving.first];
        if (l->head.tag != q->head.tag || l->head.bytes != q->head.bytes)
            die_of_other_message(rank, &l->head, q);
        const int64_t n = read_some(rank, l, q->at + q->moved, q->head.bytes - q->moved);
        hmac_add(&l->sum, q->at + q->moved, (size_t)n);
        q->moved += n;
        if (q->moved < q->head.bytes || !read_code(rank, l))
            return;
        if (!seal_holds(&l->seal, &l->sum, l->code))
            die_of_wrong_code(rank);
        finish_transfer(&l->receiving);
        l->got = 0;
    }
}

static int begin_transfer(int rank, int tag, const void *at, int bytes, bool sends)
{
    if (nfree == 0)
        rt_die("more than %d messages are pending, and no more were planned: this is a fault of "
               "tenon",
               slots);
    const int i = free_slot[--nfree];
    Line *l = &other[rank].line[line_of(tag)];
    List *list = sends ? &l->sending : &l->receiving;
    request[i] = (Request){.rank = rank,
                           .line = line_of(tag),
                           .next = NONE,
                           .head = {tag, bytes},
                           .at = (char *)(uintptr_t)at};
    *(list->first == NONE ? &list->first : &request[list->last].next) = i;
    list->last = i;
    if (sends)
        seal_send(&l->seal, request[i].head, at, request[i].code);
    return i;
}

static int tcp_begin_send(int to, int tag, const void *from, int bytes)
{
    const int i = begin_transfer(to, tag, from, bytes, true);
    send_some(&other[to].line[line_of(tag)]);
    return i;
}

static int tcp_begin_receive(int from, int tag, void *to, int bytes)
{
    return begin_transfer(from, tag, to, bytes, false);
}

static bool tcp_done(int i)
{
    Request *q = &request[i];
    Line *l = &other[q->rank].line[q->line];
    send_some(l);
    receive_some(q->rank, l);
    if (!q->over)
        return false;
    free_slot[nfree++] = i;
    return true;
}

/* Also reads the end notices of ranks that have ended. */
static int tcp_waiting(int tag)
{
    for (int r = 0; r < ranks; r++)
        if (r != self && read_head(r, &other[r].line[TCP_WORDS]) &&
            other[r].line[TCP_WORDS].head.tag == tag)
            return r;
    return NONE;
}

/* A lost rank does not count if it has sent an end notice on the other line.  A rank whose end
 * notice comes too early counts as gone. */
static int tcp_gone(bool at_end)
{
    if (lost_rank != NONE)
        read_head(lost_rank, &other[lost_rank].line[TCP_WORDS]);
    if (lost_rank != NONE && other[lost_rank].bye)
        lost_rank = NONE;
    return bye_rank != NONE && !at_end ? bye_rank : lost_rank;
}

/* ---- the end */

static void send_to_all(Head h)
{
    for (int r = 0; r < ranks; r++) {
        struct {
            Head h;
            uint8_t code[CODE_BYTES];
        } last = {.h = h};
        const Line *l = &other[r].line[TCP_WORDS];
        if (r == self)
            continue;
        seal_last(&l->seal, h, last.code);
        if (send(l->fd, &last, sizeof last, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            continue; /* the rank no longer exists */
    }
}

static void tcp_leave(void)
{
    send_to_all((Head){TAG_BYE, 0});
}

static void tcp_end_all(int code)
{
    send_to_all((Head){TAG_END, code});
}

const RtTransport rt_tcp = {.name = "tcp",
                            .open = tcp_join_run,
                            .describe = tcp_describe,
                            .room = tcp_make_room,
                            .send = tcp_begin_send,
                            .receive = tcp_begin_receive,
                            .done = tcp_done,
                            .waiting = tcp_waiting,
                            .gone = tcp_gone,
                            .close = tcp_leave,
                            .abort = tcp_end_all};
