/* tcp_meet.c -- how the processes of a run find each other without MPI: rank 0 waits at a place that all know.
 *
 * Every rank opens a port of its own, says so to rank 0, and gets the list of all; then rank r opens lines to those below it and
 * takes those of the ranks above.  Who comes from another run is sent away: each greeting carries the run's key.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "comm/tcp.h"
#include "error.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

typedef struct Greeting {
    uint64_t key;
    int32_t rank, line, port;
    char host[64];
} Greeting;

typedef struct Place {
    struct in_addr address;
    int32_t port;
    char host[64];
} Place;

typedef struct Meeting {
    const Launch *l;
    uint64_t key;
    double limit, until; /* seconds; moment */
    struct sockaddr_in at;
    char text[300]; /* "node1:21000" */
    int door;       /* where this rank is found */
    int port;
    Peer *peer;
    Place *place;
} Meeting;

static const double STRANGER = 5; /* seconds that a greeting may take */

/* ---- bytes, with a limit */

static bool ready(int fd, short what, double until)
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

static bool get(int fd, void *bytes, size_t n, double until)
{
    for (size_t at = 0; at < n;) {
        const ssize_t some =
            ready(fd, POLLIN, until) ? recv(fd, (char *)bytes + at, n - at, 0) : -1;
        if (some <= 0)
            return false;
        at += (size_t)some;
    }
    return true;
}

static bool put(int fd, const void *bytes, size_t n, double until)
{
    for (size_t at = 0; at < n;) {
        const ssize_t some = ready(fd, POLLOUT, until)
                                 ? send(fd, (const char *)bytes + at, n - at, MSG_NOSIGNAL)
                                 : -1;
        if (some <= 0)
            return false;
        at += (size_t)some;
    }
    return true;
}

/* ---- doors */

static void set_up(int fd)
{
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

/* Ranks of one host are not to be reached from others.  port 0: any. */
static int open_door(Meeting *m, int port)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    const bool alone = ntohl(m->at.sin_addr.s_addr) >> 24 == 127;
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(alone ? INADDR_LOOPBACK : INADDR_ANY)};
    socklen_t n = sizeof a;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) != 0 || listen(fd, 2 * m->l->size) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) != 0)
        rt_die("port %d, where the other ranks are to find this one, cannot be opened: %s; another "
               "place: TENON_MEET=HOST:PORT in the environment of all ranks",
               port, strerror(errno));
    m->port = ntohs(a.sin_port);
    return fd;
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

/* One line of a rank of this run; false: it was somebody else. */
static bool take(Meeting *m, int fd)
{
    Greeting g;
    const double soon = clock_now() + STRANGER;
    if (!get(fd, &g, sizeof g, soon < m->until ? soon : m->until) || g.key != m->key ||
        g.rank <= 0 || g.rank >= m->l->size || g.line < 0 || g.line >= TCP_LINES)
        return false;
    if (m->peer[g.rank].fd[g.line] >= 0)
        rt_die("two processes say that they are rank %d of %d (%s): start each rank once", g.rank,
               m->l->size, m->l->word);
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof a;
    getpeername(fd, (struct sockaddr *)&a, &n);
    set_up(fd);
    m->peer[g.rank].fd[g.line] = fd;
    m->place[g.rank] = (Place){a.sin_addr, g.port, ""};
    memcpy(m->place[g.rank].host, g.host, sizeof g.host - 1);
    return true;
}

static void take_lines(Meeting *m, int lines)
{
    while (lines > 0) {
        char text[512];
        if (!ready(m->door, POLLIN, m->until))
            rt_lost("ranks %s of %d (%s) have not come to %s in %.0f s, --timeout",
                    missing(m, text), m->l->size, m->l->word, m->text, m->limit);
        const int fd = accept4(m->door, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        if (take(m, fd))
            lines--;
        else
            close(fd);
    }
}

/* ---- lines to others */

static int line_to(const Meeting *m, const struct sockaddr_in *to, int line, const char *host)
{
    Greeting g = {m->key, m->l->rank, line, m->port, ""};
    memcpy(g.host, host, sizeof g.host);
    for (;;) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof *to) == 0 &&
            put(fd, &g, sizeof g, m->until)) {
            set_up(fd);
            return fd;
        }
        const int error = errno;
        close(fd);
        if (clock_now() > m->until)
            rt_lost("no way to %s:%d in %.0f s, --timeout: %s", inet_ntoa(to->sin_addr),
                    ntohs(to->sin_port), m->limit, strerror(error));
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* it may not be there yet */
    }
}

static void call(Meeting *m, int rank, const struct sockaddr_in *to, const char *host)
{
    for (int line = 0; line < TCP_LINES; line++)
        m->peer[rank].fd[line] = line_to(m, to, line, host);
}

static void find_place(Meeting *m)
{
    char host[256];
    int port;
    struct addrinfo *found, hint = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    launch_meeting(m->l, host, &port, &m->key);
    snprintf(m->text, sizeof m->text, "%s:%d", host, port);
    const int error = getaddrinfo(host, NULL, &hint, &found);
    if (error)
        rt_die("'%s', where the ranks are to meet, is no host that is known here: %s", host,
               gai_strerror(error));
    memcpy(&m->at, found->ai_addr, sizeof m->at);
    m->at.sin_port = htons((uint16_t)port);
    freeaddrinfo(found);
}

static void be_host(Meeting *m, const char *host)
{
    const int size = m->l->size;
    m->door = open_door(m, ntohs(m->at.sin_port));
    m->place[0] = (Place){m->at.sin_addr, m->port, ""};
    memcpy(m->place[0].host, host, sizeof m->place[0].host);
    take_lines(m, TCP_LINES * (size - 1));
    for (int r = 1; r < size; r++)
        if (!put(m->peer[r].fd[TCP_DATA], m->place, sizeof *m->place * (size_t)size, m->until))
            rt_lost("rank %d (%s) went away at the start", r, m->place[r].host);
}

static void be_guest(Meeting *m, const char *host)
{
    const int size = m->l->size, rank = m->l->rank;
    m->door = open_door(m, 0);
    call(m, 0, &m->at, host);
    if (!get(m->peer[0].fd[TCP_DATA], m->place, sizeof *m->place * (size_t)size, m->until))
        rt_lost("rank 0 at %s has sent no list of all %d ranks: one has not come in %.0f s, "
                "--timeout, "
                "or another run is there (TENON_MEET=HOST:PORT names another place)",
                m->text, size, m->limit);
    for (int r = 1; r < rank; r++)
        call(m, r,
             &(struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)m->place[r].port),
                                   .sin_addr = m->place[r].address},
             host);
    take_lines(m, TCP_LINES * (size - 1 - rank));
}

Peer *tcp_meet(const Launch *l, double limit)
{
    char host[64] = "";
    Meeting m = {.l = l, .limit = limit, .until = clock_now() + limit};
    gethostname(host, sizeof host - 1);
    m.peer = rt_alloc(sizeof *m.peer * (size_t)l->size);
    m.place = rt_alloc(sizeof *m.place * (size_t)l->size);
    for (int r = 0; r < l->size; r++)
        for (int line = 0; line < TCP_LINES; line++)
            m.peer[r].fd[line] = -1;
    find_place(&m);
    if (l->rank == 0)
        be_host(&m, host);
    else
        be_guest(&m, host);
    close(m.door);
    for (int r = 0; r < l->size; r++)
        memcpy(m.peer[r].host, r == l->rank ? host : m.place[r].host, sizeof m.peer[r].host);
    free(m.place);
    return m.peer;
}
