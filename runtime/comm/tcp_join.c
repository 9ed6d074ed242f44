/* tcp_join.c -- greetings of many connections at a time: this rank's calls (outgoing connections)
 * and incoming connections, until all lines of a run exist.
 *
 * Any process that can reach the port can connect to it.  So nothing blocks on a single greeting
 * (tcp_greet.h), and each greeting has a few seconds.  Incoming connections share a fixed number of
 * slots; if all are taken, the oldest connection that has sent nothing is closed.  A rank whose
 * greeting is cut short connects again.
 */
#define _GNU_SOURCE
#include "comm/tcp_join.h"
#include "base/clock.h"
#include "base/error.h"
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ACCEPTED = 16 }; /* connections that are accepted at a time */
/* Seconds.  PATIENCE: limit for a greeting.  SOON: until the next call if no process listens at the
 * address.  NOT_SO_SOON: the same if another program answers. */
static const double PATIENCE = 5, SOON = 0.02, NOT_SO_SOON = 0.2;

static void set_up(int fd)
{
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

/* The numbers of the missing ranks, as text. */
static const char *missing_ranks(const Meeting *m, char text[512])
{
    int n = 0, count = 0;
    for (int r = 0; r < m->l->size; r++)
        if (r != m->l->rank && m->peer[r].fd[TCP_DATA] < 0 && count++ < 16)
            n += snprintf(text + n, 512 - (size_t)n, "%s%d", n ? ", " : "", r);
    if (count > 16)
        snprintf(text + n, 512 - (size_t)n, " and %d more", count - 16);
    return text;
}

static void __attribute__((noreturn)) too_many_files(const Meeting *m)
{
    rt_die("no more files can be opened for the connections between %d ranks: %s (ulimit -n)",
           m->l->size, strerror(errno));
}

/* ---- greetings, both ways */

static void drop_greeting(Greeting *g)
{
    close(g->fd);
    g->step = NONE;
}

/* Closes a connection whose other end is no rank of this run, or cannot prove that it is. */
static void refuse_greeting(Meeting *m, Greeting *g, const char *why)
{
    Address a = {.any = {.sa_family = AF_UNSPEC}};
    socklen_t n = sizeof a;
    char text[80] = "somewhere";
    if (getpeername(g->fd, &a.any, &n) == 0) {
        address_simplify(&a);
        address_text(&a, text);
    }
    m->refused++;
    snprintf(m->stranger, sizeof m->stranger, "%s, %s", text, why);
    drop_greeting(g);
}

/* Plans another call after `wait` seconds, and keeps the reason for the error message. */
static void call_later(Meeting *m, Greeting *g, double now, double wait, const char *trouble)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    g->step = NONE;
    g->again = now + wait;
    m->trouble = trouble;
}

static void await_message(Greeting *g, Step what)
{
    g->step = what;
    g->got = 0;
}

/* A message of a greeting always fits into the buffer of a new socket. */
static bool send_greeting(const Greeting *g, const void *bytes, size_t n)
{
    return send(g->fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static size_t awaited_bytes(const Greeting *g)
{
    return g->step == HELLO       ? sizeof(Hello)
           : g->step == CHALLENGE ? sizeof(Challenge)
                                  : sizeof(Proof);
}

static void keep_connection(Meeting *m, Greeting *g, bool caller)
{
    Peer *p = &m->peer[g->rank];
    set_up(g->fd);
    p->fd[g->line] = g->fd;
    p->seal[g->line] = seal_new(&m->secret.key, &g->hello, &g->challenge, caller);
    g->step = caller ? DONE : NONE;
}

/* ---- incoming connections */

static void receive_hello(Meeting *m, Greeting *g)
{
    g->hello = g->in.hello;
    g->rank = g->hello.from;
    g->line = g->hello.line;
    if (!greet_hello_fits(&g->hello, m->job, m->l->size, m->l->rank) || g->line < 0 ||
        g->line >= TCP_LINES) {
        refuse_greeting(m, g, "is not a rank of this run");
        return;
    }
    g->challenge = greet_challenge();
    await_message(g, CALLER);
    if (!send_greeting(g, &g->challenge, sizeof g->challenge))
        drop_greeting(g);
}

static void receive_caller_proof(Meeting *m, Greeting *g)
{
    const Hmac *secret = &m->secret.key;
    Place *place = &m->place[g->rank];
    if (!greet_proof_holds(secret, "caller", &g->hello, &g->challenge, &g->in.proof)) {
        send_greeting(g, &greet_refusal, sizeof greet_refusal);
        refuse_greeting(m, g, "does not know the job's secret");
        return;
    }
    char none;
    if (recv(g->fd, &none, 1, MSG_PEEK) == 0) { /* the caller has given up, and calls again */
        drop_greeting(g);
        return;
    }
    if (m->peer[g->rank].fd[g->line] >= 0)
        rt_die("two processes say that they are rank %d of %d (%s): start each rank once", g->rank,
               m->l->size, m->l->word);
    socklen_t n = sizeof place->at;
    const Proof own = greet_proof(secret, "answerer", &g->hello, &g->challenge);
    if (getpeername(g->fd, &place->at.any, &n) != 0 || !send_greeting(g, &own, sizeof own)) {
        drop_greeting(g);
        return;
    }
    address_simplify(&place->at);
    address_set_port(&place->at, g->hello.port);
    memcpy(place->host, g->hello.host, sizeof place->host - 1);
    keep_connection(m, g, false);
    m->taken++;
}

/* The oldest incoming connection that has sent nothing, else the oldest of all; NULL: none. */
static Greeting *oldest_connection(Meeting *m)
{
    Greeting *old = NULL;
    for (Greeting *g = m->greeting + m->calls; g < m->greeting + m->calls + m->slots; g++) {
        const bool silent = g->step == HELLO, older = old && g->since < old->since;
        if (g->step != NONE &&
            (!old || (silent && old->step != HELLO) || (silent == (old->step == HELLO) && older)))
            old = g;
    }
    return old;
}

static Greeting *free_slot(Meeting *m)
{
    for (Greeting *g = m->greeting + m->calls; g < m->greeting + m->calls + m->slots; g++)
        if (g->step == NONE)
            return g;
    Greeting *g = oldest_connection(m);
    refuse_greeting(m, g, "sent nothing while others waited");
    return g;
}

static void accept_some(Meeting *m, double now)
{
    for (int i = 0; i < ACCEPTED; i++) {
        const int fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            Greeting *g = oldest_connection(m);
            if (!g)
                too_many_files(m);
            refuse_greeting(m, g, "sent nothing while others waited");
        }
        if (fd < 0)
            return;
        Greeting *g = free_slot(m);
        *g = (Greeting){.step = HELLO, .fd = fd, .since = now};
    }
}

/* ---- calls */

const Address *join_address(const Meeting *m, const Greeting *g)
{
    return g->rank == 0 ? &m->at[g->tries % m->nat] : &m->place[g->rank].at;
}

static void call_rank(Meeting *m, Greeting *g, double now)
{
    g->tries += g->again > 0;
    const Address *to = join_address(m, g);
    g->fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (g->fd < 0 && (errno == EMFILE || errno == ENFILE))
        too_many_files(m);
    g->since = now;
    g->step = CONNECTS;
    if (g->fd < 0 || (connect(g->fd, &to->any, address_length(to)) != 0 && errno != EINPROGRESS))
        call_later(m, g, now, SOON, strerror(errno)); /* that rank may not have started yet */
}

/* Other ranks connect to the address at which rank 0 saw this rank.  So this rank listens on
 * loopback, in the same family, if it has called rank 0 on loopback, and else at all addresses. */
static void listen_for_ranks(Meeting *m, const Greeting *g)
{
    const Address *to = join_address(m, g);
    const Address six = {.v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}};
    const Address four = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    if (m->listener >= 0)
        close(m->listener);
    join_listen(m, to->any.sa_family == AF_INET6 ? &six : &four, address_is_loopback(to), 0);
}

static void send_hello(Meeting *m, Greeting *g, double now)
{
    char host[64] = "";
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(g->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error) {
        call_later(m, g, now, SOON, strerror(error));
        return;
    }
    gethostname(host, sizeof host - 1);
    if (g->rank == 0 && g->line == TCP_DATA)
        listen_for_ranks(m, g);
    g->hello = greet_hello(m->job, m->l->size, m->l->rank, g->rank, g->line, m->port, host);
    await_message(g, CHALLENGE);
    if (!send_greeting(g, &g->hello, sizeof g->hello))
        call_later(m, g, now, NOT_SO_SOON, strerror(errno));
}

static void receive_challenge(Meeting *m, Greeting *g, double now)
{
    g->challenge = g->in.challenge;
    const Proof p = greet_proof(&m->secret.key, "caller", &g->hello, &g->challenge);
    await_message(g, ANSWERER);
    if (!greet_challenge_fits(&g->challenge) || !send_greeting(g, &p, sizeof p))
        call_later(m, g, now, NOT_SO_SOON, "another program answers there");
}

static void receive_answerer_proof(Meeting *m, Greeting *g, double now)
{
    char text[80];
    if (greet_proof_holds(&m->secret.key, "answerer", &g->hello, &g->challenge, &g->in.proof))
        keep_connection(m, g, true);
    else if (memcmp(&g->in.proof, &greet_refusal, sizeof greet_refusal) == 0)
        rt_die("rank %d at %s has a different secret; this rank uses the secret from %s: set "
               "TENON_SECRET_FILE=FILE for all ranks, with the same bytes in FILE on all hosts",
               g->rank, address_text(join_address(m, g), text), m->secret.source);
    else
        call_later(m, g, now, NOT_SO_SOON,
                   "the process that answers there does not know the job's secret");
}

/* ---- all greetings at the same time */

static void receive_greeting(Meeting *m, Greeting *g, bool caller, double now)
{
    const ssize_t n = recv(g->fd, g->in.bytes + g->got, awaited_bytes(g) - g->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 && caller)
        call_later(m, g, now, NOT_SO_SOON, "another run, or another program, is there");
    else if (n <= 0)
        drop_greeting(g);
    if (n <= 0)
        return;
    g->got += (size_t)n;
    if (g->got < awaited_bytes(g))
        return;
    if (g->step == HELLO)
        receive_hello(m, g);
    else if (g->step == CALLER)
        receive_caller_proof(m, g);
    else if (g->step == CHALLENGE)
        receive_challenge(m, g, now);
    else
        receive_answerer_proof(m, g, now);
}

static void __attribute__((noreturn)) die_of_missing_rank(const Meeting *m)
{
    char text[512], why[400] = "";
    for (const Greeting *g = m->greeting; g < m->greeting + m->calls; g++)
        if (g->step != DONE)
            rt_lost("no connection to rank %d at %s in %.0f s, --timeout: %s", g->rank,
                    g->rank == 0 ? m->text : address_text(join_address(m, g), text), m->limit,
                    m->trouble ? m->trouble : "it does not answer");
    if (m->refused > 0)
        snprintf(why, sizeof why, "; %d others were refused, the last one from %s", m->refused,
                 m->stranger);
    rt_lost("ranks %s of %d (%s) have not connected to %s in %.0f s, --timeout%s",
            missing_ranks(m, text), m->l->size, m->l->word, m->text, m->limit, why);
}

/* Makes calls that are due, and ends greetings that last too long; returns the number of calls that
 * are not done. */
static int check_times(Meeting *m, double now)
{
    int open = 0;
    for (int i = 0; i < m->calls + m->slots; i++) {
        Greeting *g = &m->greeting[i];
        const bool late = g->step != NONE && g->step != DONE && now > g->since + PATIENCE;
        if (late && i < m->calls)
            call_later(m, g, now, 0, "it does not answer");
        else if (late)
            refuse_greeting(m, g, "said nothing for 5 s");
        if (i < m->calls && g->step == NONE && now >= g->again)
            call_rank(m, g, now);
        open += i < m->calls && g->step != DONE;
    }
    return open;
}

void join_lines(Meeting *m, int want)
{
    const int all = m->calls + m->slots;
    m->taken = 0;
    for (;;) {
        const double now = clock_now();
        if (check_times(m, now) == 0 && m->taken == want)
            break;
        if (now > m->until)
            die_of_missing_rank(m);
        m->watch[0] = (struct pollfd){.fd = m->taken < want ? m->listener : -1, .events = POLLIN};
        for (int i = 0; i < all; i++) {
            const Greeting *g = &m->greeting[i];
            m->watch[1 + i] = (struct pollfd){.fd = g->step == NONE || g->step == DONE ? -1 : g->fd,
                                              .events = g->step == CONNECTS ? POLLOUT : POLLIN};
        }
        if (poll(m->watch, (nfds_t)(1 + all), (int)(SOON * 1000)) <= 0)
            continue;
        for (int i = 0; i < all; i++)
            if (m->watch[1 + i].revents) {
                Greeting *g = &m->greeting[i];
                if (g->step == CONNECTS)
                    send_hello(m, g, now);
                else
                    receive_greeting(m, g, i < m->calls, now);
            }
        if (m->watch[0].revents)
            accept_some(m, now);
    }
    for (Greeting *g = m->greeting + m->calls; g < m->greeting + all; g++)
        if (g->step != NONE)
            drop_greeting(g);
}

void join_plan(Meeting *m, int from, int to, int first, int last)
{
    m->calls = 0;
    for (int r = from; r < to; r++)
        for (int line = first; line <= last; line++)
            m->greeting[m->calls++] = (Greeting){.fd = -1, .rank = r, .line = line};
    memset(m->greeting + m->calls, 0, sizeof *m->greeting * (size_t)m->slots);
}
