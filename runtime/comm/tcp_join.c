/* tcp_join.c -- many greetings at a time: this rank's outgoing connections and incoming ones, until
 * all connections of a run exist.
 *
 * Any process that can reach the port can connect to it.  So nothing blocks on a single greeting
 * (tcp_greet.h), and each has a few seconds.  Incoming connections share a fixed number of slots;
 * when all are taken, the oldest connection that has sent nothing is closed.  A rank whose greeting
 * is cut short connects again.
 */
#define _GNU_SOURCE
#include "comm/tcp_join.h"
#include "base/clock.h"
#include "base/error.h"
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST_SLOTS = 256, LEAST_SLOTS = 4, ACCEPTED = 16 };
/* Seconds: of a greeting at most; until the next call where nobody was there, and where somebody
 * else was. */
static const double PATIENCE = 5, SOON = 0.02, NOT_SO_SOON = 0.2;

static void set_up(int fd)
{
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

/* Listens at one address; false with errno: it cannot. */
static bool open_at(Meeting *m, Address a, int port)
{
    address_set_port(&a, port);
    m->door = address_listen(&a, TCP_LINES * m->l->size + MOST_SLOTS);
    m->port = address_port(&a);
    return m->door >= 0;
}

void join_open_door(Meeting *m, const Address *only, int n, int port)
{
    const Address six = {.v6 = {.sin6_family = AF_INET6}};
    const Address four = {.v4 = {.sin_family = AF_INET}};
    m->door = -1;
    for (int i = 0; i < n && m->door < 0; i++)
        open_at(m, only[i], port);
    if (n == 0 && !open_at(m, six, port) && errno != EADDRINUSE && errno != EACCES)
        open_at(m, four, port); /* no IPv6 here */
    if (m->door < 0)
        rt_die("port %d, to which the other ranks connect, cannot be opened: %s; set another one for all ranks with "
               "TENON_MEET=HOST:PORT",
               port, strerror(errno));
}

/* Those that are still missing, in words. */
static const char *missing(const Meeting *m, char text[512])
{
    int n = 0, count = 0;
    for (int r = 0; r < m->l->size; r++)
        if (r != m->l->rank && m->peer[r].fd[TCP_DATA] < 0 && count++ < 16)
            n += snprintf(text + n, 512 - (size_t)n, "%s%d", n ? ", " : "", r);
    if (count > 16)
        snprintf(text + n, 512 - (size_t)n, " and %d more", count - 16);
    return text;
}

/* ---- descriptors */

static int count_open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = -3; /* ".", ".." and the directory itself */
    if (!d)
        return 16;
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

int join_slots(const Launch *l)
{
    struct rlimit limit = {0, 0};
    const rlim_t lines = (rlim_t)(count_open_files() + TCP_LINES * (l->size - 1) + 1);
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < lines + MOST_SLOTS) {
        limit.rlim_cur = lines + MOST_SLOTS < limit.rlim_max ? lines + MOST_SLOTS : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
        getrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur < lines + LEAST_SLOTS)
        rt_die("%d ranks need %llu open files in each process, and the limit is %llu: raise it, "
               "`ulimit -n %llu`",
               l->size, (unsigned long long)lines + LEAST_SLOTS, (unsigned long long)limit.rlim_cur,
               (unsigned long long)lines + MOST_SLOTS);
    const rlim_t left = limit.rlim_cur - lines;
    return left < MOST_SLOTS ? (int)left : MOST_SLOTS;
}

static void __attribute__((noreturn)) too_many_files(const Meeting *m)
{
    rt_die("no more files can be opened for the connections between %d ranks: %s (ulimit -n)", m->l->size,
           strerror(errno));
}

/* ---- greetings, both ways */

static void drop_greeting(Greeting *g)
{
    close(g->fd);
    g->step = NONE;
}

/* Closes a connection whose other end is no rank of this run, or cannot prove it. */
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

/* This rank calls again; the reason is kept for the message. */
static void call_later(Meeting *m, Greeting *g, double now, double wait, const char *trouble)
{
    if (g->fd >= 0)
        close(g->fd);
    g->fd = -1;
    g->step = NONE;
    g->again = now + wait;
    m->trouble = trouble;
}

static void expect(Greeting *g, Step what)
{
    g->step = what;
    g->got = 0;
}

/* The first words of a line fit into any socket's buffer. */
static bool send_greeting(const Greeting *g, const void *bytes, size_t n)
{
    return send(g->fd, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static size_t wanted(const Greeting *g)
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

/* ---- those who come */

static void hear_hello(Meeting *m, Greeting *g)
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
    expect(g, CALLER);
    if (!send_greeting(g, &g->challenge, sizeof g->challenge))
        drop_greeting(g);
}

static void hear_caller(Meeting *m, Greeting *g)
{
    const Hmac *secret = &m->secret.key;
    Place *place = &m->place[g->rank];
    if (!greet_proof_holds(secret, "caller", &g->hello, &g->challenge, &g->in.proof)) {
        send_greeting(g, &greet_refusal, sizeof greet_refusal);
        refuse_greeting(m, g, "does not know the job's secret");
        return;
    }
    char none;
    if (recv(g->fd, &none, 1, MSG_PEEK) == 0) { /* it has given up meanwhile, and calls again */
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

/* The oldest connection that has sent nothing, else the oldest of all; NULL: there is none. */
static Greeting *oldest(Meeting *m)
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
    Greeting *g = oldest(m);
    refuse_greeting(m, g, "sent nothing while others waited");
    return g;
}

static void accept_some(Meeting *m, double now)
{
    for (int i = 0; i < ACCEPTED; i++) {
        const int fd = accept4(m->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            Greeting *g = oldest(m);
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
        call_later(m, g, now, SOON, strerror(errno)); /* it may not be there yet */
}

/* Other ranks call this one at the address that rank 0 sees it come from, so the door is of the
 * same kind. */
static void open_door_for_guests(Meeting *m, const Greeting *g)
{
    const Address *to = join_address(m, g);
    const Address six = {.v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT}};
    const Address four = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    if (m->door >= 0)
        close(m->door);
    join_open_door(m, to->any.sa_family == AF_INET6 ? &six : &four, address_is_loopback(to), 0);
}

static void say_hello(Meeting *m, Greeting *g, double now)
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
        open_door_for_guests(m, g);
    g->hello = greet_hello(m->job, m->l->size, m->l->rank, g->rank, g->line, m->port, host);
    expect(g, CHALLENGE);
    if (!send_greeting(g, &g->hello, sizeof g->hello))
        call_later(m, g, now, NOT_SO_SOON, strerror(errno));
}

static void hear_challenge(Meeting *m, Greeting *g, double now)
{
    g->challenge = g->in.challenge;
    const Proof p = greet_proof(&m->secret.key, "caller", &g->hello, &g->challenge);
    expect(g, ANSWERER);
    if (!greet_challenge_fits(&g->challenge) || !send_greeting(g, &p, sizeof p))
        call_later(m, g, now, NOT_SO_SOON, "another program answers there");
}

static void hear_answerer(Meeting *m, Greeting *g, double now)
{
    char text[80];
    if (greet_proof_holds(&m->secret.key, "answerer", &g->hello, &g->challenge, &g->in.proof))
        keep_connection(m, g, true);
    else if (memcmp(&g->in.proof, &greet_refusal, sizeof greet_refusal) == 0)
        rt_die("rank %d at %s has another secret than this one, which is that of %s: set TENON_SECRET_FILE=FILE for "
               "all ranks, with the same bytes in FILE on all hosts",
               g->rank, address_text(join_address(m, g), text), m->secret.source);
    else
        call_later(m, g, now, NOT_SO_SOON, "who answers there does not know the job's secret");
}

/* ---- all of it, side by side */

static void hear(Meeting *m, Greeting *g, bool caller, double now)
{
    const ssize_t n = recv(g->fd, g->in.bytes + g->got, wanted(g) - g->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 && caller)
        call_later(m, g, now, NOT_SO_SOON, "another run, or another program, is there");
    else if (n <= 0)
        drop_greeting(g);
    if (n <= 0)
        return;
    g->got += (size_t)n;
    if (g->got < wanted(g))
        return;
    if (g->step == HELLO)
        hear_hello(m, g);
    else if (g->step == CALLER)
        hear_caller(m, g);
    else if (g->step == CHALLENGE)
        hear_challenge(m, g, now);
    else
        hear_answerer(m, g, now);
}

static void __attribute__((noreturn)) too_late(const Meeting *m)
{
    char text[512], why[400] = "";
    for (const Greeting *g = m->greeting; g < m->greeting + m->calls; g++)
        if (g->step != DONE)
            rt_lost("no way to rank %d at %s in %.0f s, --timeout: %s", g->rank,
                    g->rank == 0 ? m->text : address_text(join_address(m, g), text), m->limit,
                    m->trouble ? m->trouble : "it does not answer");
    if (m->refused > 0)
        snprintf(why, sizeof why, "; %d others were sent away, the last one from %s", m->refused,
                 m->stranger);
    rt_lost("ranks %s of %d (%s) have not come to %s in %.0f s, --timeout%s", missing(m, text),
            m->l->size, m->l->word, m->text, m->limit, why);
}

/* Calls that are due, and greetings that last too long; returns how many calls are not over. */
static int look_at_clock(Meeting *m, double now)
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
        if (look_at_clock(m, now) == 0 && m->taken == want)
            break;
        if (now > m->until)
            too_late(m);
        m->watch[0] = (struct pollfd){.fd = m->taken < want ? m->door : -1, .events = POLLIN};
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
                    say_hello(m, g, now);
                else
                    hear(m, g, i < m->calls, now);
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
