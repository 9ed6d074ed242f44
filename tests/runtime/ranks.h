/* ranks.h -- ranks for tests of comm/tcp*.c: processes that meet over TCP, exchange bytes and end.
 *
 * setup() and teardown() are the fixture of each test: a scratch directory, a free port, and an
 * environment that holds only a secret.
 */
#ifndef RANKS_H
#define RANKS_H
#include "base/clock.h"
#include "base/error.h"
#include "comm/tcp.h"
#include "comm/transport.h"
#include "suite.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 6, BYTES = 3000 };

static const char SECRET[] = "the secret of this test, long enough";
static char scratch[64], place[128];                  /* a directory; TENON_MEET */
static int port;
static bool by_mpirun;                                /* ranks are numbered as Open MPI does */

/* A free port. */
static int free_port(int family)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr *a = family == AF_INET6 ? (void *)&six : (void *)&four;
    socklen_t n = family == AF_INET6 ? sizeof six : sizeof four;
    const int fd = socket(family, SOCK_STREAM, 0);
    int found = -1;
    if (fd >= 0 && bind(fd, a, n) == 0 && getsockname(fd, a, &n) == 0)
        found = ntohs(family == AF_INET6 ? six.sin6_port : four.sin_port);
    close(fd);
    return found;
}

static void meet_at(const char *host)
{
    port = free_port(AF_INET);
    snprintf(place, sizeof place, "%s:%d", host, port);
}

static void setup(void)
{
    snprintf(scratch, sizeof scratch, "/tmp/tenon-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch));
    meet_at("127.0.0.1");
    clearenv();
    setenv("TENON_SECRET", SECRET, 1);
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    ck_assert_int_eq(system(command), 0);
}

typedef struct Child { pid_t pid; char said[96]; } Child;

/* n bytes of `out` to each other rank, and as many from each. */
static void exchange(int rank, int size, const char *out, char in[RANKS][BYTES], int bytes, bool at_end)
{
    int request[2 * RANKS], n = 0;
    const double began = clock_now();
    for (int r = 0; r < size; r++)
        if (r != rank) {
            request[n++] = rt_tcp.send(r, 1, out, bytes);
            request[n++] = rt_tcp.receive(r, 1, in[r], bytes);
        }
    while (n > 0) {
        const int gone = rt_tcp.gone(at_end);
        if (gone >= 0)
            rt_lost("rank %d is gone", gone);
        if (clock_now() > began + 20)
            rt_die("nothing comes");
        rt_tcp.waiting(99);
        for (int i = 0; i < n; i++)
            if (rt_tcp.done(request[i]))
                request[i--] = request[--n];
    }
}

/* Sends bytes to each other rank and checks those that it receives; then ends as comm_close does. */
static void play(double limit)
{
    static char out[BYTES], in[RANKS][BYTES];
    int rank, size, near, all_near;
    rt_tcp.open(limit, &rank, &size, &near, &all_near);
    rt_tcp.room(2 * RANKS);
    memset(out, 'a' + rank, sizeof out);
    exchange(rank, size, out, in, BYTES, false);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < BYTES && r != rank; i++)
            if (in[r][i] != 'a' + r)
                rt_die("rank %d has sent other bytes", r);
    exchange(rank, size, out, in, 1, true);
    rt_tcp.close();
}

static Child start(int rank, int size, double limit)
{
    static int number;
    Child c;
    snprintf(c.said, sizeof c.said, "%s/said.%d", scratch, number++);
    c.pid = fork();
    if (c.pid == 0) {
        const int fd = open(c.said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        char text[16];
        dup2(fd, 2);
        close(fd);
        signal(SIGALRM, SIG_DFL);
        alarm(25);
        snprintf(text, sizeof text, "%d", rank);
        setenv(by_mpirun ? "OMPI_COMM_WORLD_RANK" : "TENON_RANK", text, 1);
        snprintf(text, sizeof text, "%d", size);
        setenv(by_mpirun ? "OMPI_COMM_WORLD_SIZE" : "TENON_RANKS", text, 1);
        setenv("TENON_MEET", place, 1);
        play(limit);
        _exit(0);
    }
    ck_assert_int_gt(c.pid, 0);
    return c;
}

/* Checks the exit code, and that the message contains `word`. */
static void ends(Child c, int want, const char *word)
{
    int status;
    char said[4096] = "";
    ck_assert_int_eq(waitpid(c.pid, &status, 0), c.pid);
    const int fd = open(c.said, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    said[read(fd, said, sizeof said - 1)] = '\0';
    close(fd);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    ck_assert_msg(code == want, "exit code %d, not %d: %s", code, want, said);
    ck_assert_msg(!word || strstr(said, word), "'%s' is missing in: %s", word, said);
}

static void all_meet(int size)
{
    Child c[RANKS];
    const double began = clock_now();
    for (int r = size - 1; r >= 0; r--)
        c[r] = start(r, size, 10);
    for (int r = 0; r < size; r++)
        ends(c[r], 0, NULL);
    ck_assert_double_lt(clock_now() - began, 8);
}

static inline TCase *ranks_case(const char *name)
{
    TCase *t = tcase_create(name);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 30);
    return t;
}

#endif
