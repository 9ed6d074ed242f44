/* tcp_meet.c -- how the processes of a run find each other without MPI: rank 0 waits at an address
 * that all ranks know.
 *
 * Each rank opens a port of its own, reports it to rank 0, and gets the list of all ports.  Then
 * rank r connects to the ranks below it, and the ranks above connect to r.  Each connection begins
 * with the greeting of tcp_greet.h; a process that does not know the job's secret is refused.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/error.h"
#include "comm/tcp_join.h"
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the list of all addresses, with a code as all messages have */

static bool socket_ready(int fd, short what, double until)
{
    for (;;) {
        const double left = until - clock_now();
        struct pollfd p = {.fd = fd, .events = what};
        const int n = poll(&p, 1, left > 0 ? (int)(left * 1000) + 1 : 0);
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* Moves n bytes; false: the time is over, or the connection is closed. */
static bool move_bytes(int fd, bool out, void *bytes, size_t n, double until)
{
    for (size_t at = 0; at < n;) {
        char *const next = (char *)bytes + at;
        if (!socket_ready(fd, out ? POLLOUT : POLLIN, until))
            return false;
        const ssize_t some = out ? send(fd, next, n - at, MSG_NOSIGNAL) : recv(fd, next, n - at, 0);
        if (some == 0 || (some < 0 && errno != EAGAIN && errno != EINTR))
            return false;
        at += some > 0 ? (size_t)some : 0;
    }
    return true;
}

static bool send_list(const Meeting *m, Peer *p)
{
    uint8_t code[CODE_BYTES];
    Head h = {TAG_PLACES, (int32_t)(sizeof *m->place * (size_t)m->l->size)};
    const int fd = p->fd[TCP_DATA];
    seal_send(&p->seal[TCP_DATA], h, m->place, code);
    return move_bytes(fd, true, &h, sizeof h, m->until) &&
           move_bytes(fd, true, m->place, (size_t)h.bytes, m->until) &&
           move_bytes(fd, true, code, sizeof code, m->until);
}

static bool receive_list(const Meeting *m, Peer *p)
{
    uint8_t code[CODE_BYTES];
    Head h;
    const int32_t bytes = (int32_t)(sizeof *m->place * (size_t)m->l->size);
    const int fd = p->fd[TCP_DATA];
    if (!move_bytes(fd, false, &h, sizeof h, m->until) || h.tag != TAG_PLACES || h.bytes != bytes ||
        !move_bytes(fd, false, m->place, (size_t)bytes, m->until) ||
        !move_bytes(fd, false, code, sizeof code, m->until))
        return false;
    Hmac sum = seal_begin(&p->seal[TCP_DATA], h);
    hmac_add(&sum, m->place, (size_t)bytes);
    if (!seal_holds(&p->seal[TCP_DATA], &sum, code))
        rt_die("the list of all ranks was changed on its way from rank 0 at %s", m->text);
    return true;
}

/* ---- the two roles */

static void find_meeting_place(Meeting *m)
{
    char host[256];
    int port;
    struct addrinfo *found, hint = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    launch_meeting(m->l, host, &port, &m->job);
    snprintf(m->text, sizeof m->text, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
    const int error = getaddrinfo(host, NULL, &hint, &found);
    if (error)
        rt_die("'%s', where the ranks meet, is not a known host: %s", host, gai_strerror(error));
    for (const struct addrinfo *a = found; a && m->nat < JOIN_ADDRESSES; a = a->ai_next)
        if (a->ai_family == AF_INET || a->ai_family == AF_INET6) {
            memcpy(&m->at[m->nat], a->ai_addr, a->ai_addrlen);
            address_set_port(&m->at[m->nat++], port);
        }
    freeaddrinfo(found);
    if (m->nat == 0)
        rt_die("'%s', where the ranks meet, has no address", host);
    /* A name that is resolved to loopback is not private, except "localhost": a host can resolve
     * its own name to 127.0.1.1, and other hosts resolve it to another address. */
    hint.ai_flags = AI_NUMERICHOST;
    const bool numeric = getaddrinfo(host, NULL, &hint, &found) == 0;
    if (numeric)
        freeaddrinfo(found);
    m->private = address_is_loopback(&m->at[0]) && (numeric || strcmp(host, "localhost") == 0);
}

/* Dies if some ranks have come from loopback and others have not.  Rank 0 sees a rank of its own
 * host at a loopback address, at which ranks of other hosts cannot connect to it. */
static void check_places(const Meeting *m)
{
    int near = 0, far = 0;
    for (int r = 1; r < m->l->size; r++)
        *(address_is_loopback(&m->place[r].at) ? &near : &far) = r;
    if (near && far)
        rt_die("rank %d (%s) came to %s by a loopback address, which rank %d (%s) cannot use: set "
               "TENON_MEET=HOST:PORT to an address of this host that all hosts reach",
               near, m->place[near].host, m->text, far, m->place[far].host);
}

static void meet_as_rank_0(Meeting *m)
{
    const int size = m->l->size, port = address_port(&m->at[0]);
    join_listen(m, m->at, m->private ? m->nat : 0, port);
    join_plan(m, 0, 0, 0, 0);
    join_lines(m, TCP_LINES * (size - 1));
    check_places(m);
    for (int r = 1; r < size; r++)
        if (!send_list(m, &m->peer[r]))
            rt_lost("rank %d (%s) closed its connection at the start", r, m->place[r].host);
}

static void meet_as_other_rank(Meeting *m)
{
    const int size = m->l->size, rank = m->l->rank;
    join_plan(m, 0, 1, TCP_DATA, TCP_DATA);
    join_lines(m, 0);
    m->at[0] = *join_address(m, &m->greeting[0]);
    m->nat = 1;
    join_plan(m, 0, 1, TCP_WORDS, TCP_WORDS);
    join_lines(m, 0);
    if (!receive_list(m, &m->peer[0]))
        rt_lost("rank 0 at %s has sent no list of all %d ranks: a rank is missing after %.0f s, "
                "--timeout, or another run uses this address (TENON_MEET=HOST:PORT sets another "
                "one)",
                m->text, size, m->limit);
    join_plan(m, 1, rank, 0, TCP_LINES - 1);
    join_lines(m, TCP_LINES * (size - 1 - rank));
}

Peer *tcp_meet(const Launch *l, double limit)
{
    Meeting m = {.l = l, .limit = limit, .until = clock_now() + limit, .listener = -1};
    secret_find(l, &m.secret);
    find_meeting_place(&m);
    m.slots = join_slots(l);
    const size_t size = (size_t)l->size, all = TCP_LINES * size + (size_t)m.slots;
    m.peer = rt_alloc(sizeof *m.peer * size);
    m.place = rt_alloc(sizeof *m.place * size);
    m.greeting = rt_alloc(sizeof *m.greeting * all);
    m.watch = rt_alloc(sizeof *m.watch * (1 + all));
    gethostname(m.place[l->rank].host, sizeof m.place->host - 1);
    for (int r = 0; r < l->size; r++)
        for (int line = 0; line < TCP_LINES; line++)
            m.peer[r].fd[line] = -1;
    if (l->rank == 0)
        meet_as_rank_0(&m);
    else
        meet_as_other_rank(&m);
    close(m.listener);
    for (int r = 0; r < l->size; r++)
        memcpy(m.peer[r].host, m.place[r].host, sizeof m.peer[r].host);
    free(m.place);
    free(m.greeting);
    free(m.watch);
    return m.peer;
}
