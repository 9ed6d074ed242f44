/* tcp_listen.c -- the socket at which a rank listens, and the open files that a run over TCP needs;
 * see tcp_join.h. */
#define _GNU_SOURCE
#include "base/error.h"
#include "comm/tcp_join.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

enum { MOST_SLOTS = 256, LEAST_SLOTS = 4 };

/* Listens at one address; false with errno: that failed. */
static bool open_at(Meeting *m, Address a, int port)
{
    address_set_port(&a, port);
    m->listener = address_listen(&a, TCP_LINES * m->l->size + MOST_SLOTS);
    m->port = address_port(&a);
    return m->listener >= 0;
}

void join_listen(Meeting *m, const Address *only, int n, int port)
{
    const Address six = {.v6 = {.sin6_family = AF_INET6}};
    const Address four = {.v4 = {.sin_family = AF_INET}};
    m->listener = -1;
    for (int i = 0; i < n && m->listener < 0; i++)
        open_at(m, only[i], port);
    if (n == 0 && !open_at(m, six, port) && errno != EADDRINUSE && errno != EACCES)
        open_at(m, four, port); /* this host has no IPv6 */
    if (m->listener < 0)
        rt_die("port %d, to which the other ranks connect, cannot be opened: %s; set another one "
               "for all ranks with TENON_MEET=HOST:PORT",
               port, strerror(errno));
}

/* ---- open files */

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
