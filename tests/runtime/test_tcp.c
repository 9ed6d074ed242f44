/* test_tcp.c -- ranks that connect over TCP (comm/tcp_meet.c) and exchange messages (comm/tcp.c),
 * and strangers that connect to the same port.
 *
 * Ranks are processes.  The test simulates strangers that know host, port and number of ranks:
 * silent ones, hundreds of them, one with another secret, one that repeats an earlier greeting;
 * and, with the secret, a rank that breaks the protocol.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "comm/tcp.h"
#include "comm/transport.h"
#include "base/error.h"
#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* ---- ranks */

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

START_TEST(ranks_meet)
{
    all_meet(_i);
}
END_TEST

static const char *const hosts[] = {"127.0.1.1", "localhost", "[::1]"};

START_TEST(ranks_meet_at)
{
    if (_i == 2 && free_port(AF_INET6) < 0)
        return;                                       /* no IPv6 here */
    meet_at(hosts[_i]);
    all_meet(3);
}
END_TEST

/* By its own name, whatever address that is: a host of Debian is 127.0.1.1 to itself. */
START_TEST(ranks_meet_at_their_own_name)
{
    char name[65] = "";
    struct addrinfo *found;
    gethostname(name, sizeof name - 1);
    if (getaddrinfo(name, NULL, NULL, &found) != 0)
        return;                                       /* it has no address */
    freeaddrinfo(found);
    meet_at(name);
    all_meet(3);
}
END_TEST

/* ---- others */

static in_addr_t toward;                              /* 0: 127.0.0.1 */
static int played = 1;                                /* the rank that the test plays */

static int connect_to(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = toward ? toward : htonl(INADDR_LOOPBACK)};
    const double began = clock_now();
    for (;;) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_ge(fd, 0);
        if (connect(fd, (struct sockaddr *)&a, sizeof a) == 0)
            return fd;
        close(fd);
        ck_assert_double_lt(clock_now() - began, 5);
        usleep(5000);
    }
}

static bool get(int fd, void *to, size_t n)
{
    return recv(fd, to, n, MSG_WAITALL) == (ssize_t)n;
}

static void put(int fd, const void *from, size_t n)
{
    ck_assert_int_eq(send(fd, from, n, MSG_NOSIGNAL), (int)n);
}

static uint64_t job(int size)
{
    char host[256];
    int p;
    uint64_t j;
    setenv("TENON_MEET", place, 1);
    launch_meeting(&(Launch){.size = size}, host, &p, &j);
    unsetenv("TENON_MEET");
    return j;
}

static Hmac key(const char *secret)
{
    Hmac k;
    hmac_new(&k, secret, strlen(secret));
    return k;
}

/* The messages of a greeting as rank 1. */
typedef struct Record { Hello hello; Proof proof; } Record;

/* A line of rank 1 to rank 0 that the test opens itself; false: rank 0 refuses. */
static bool greet(const char *secret, int size, int line, int *fd, Seal *seal, Record *said)
{
    const Hmac k = key(secret);
    Challenge c;
    Proof answer;
    *fd = connect_to();
    said->hello = greet_hello(job(size), size, played, 0, line, 1, "elsewhere");
    put(*fd, &said->hello, sizeof said->hello);
    ck_assert(get(*fd, &c, sizeof c));
    said->proof = greet_proof(&k, "caller", &said->hello, &c);
    put(*fd, &said->proof, sizeof said->proof);
    if (!get(*fd, &answer, sizeof answer) || !greet_proof_holds(&k, "answerer", &said->hello, &c, &answer))
        return false;
    *seal = seal_new(&k, &said->hello, &c, true);
    return true;
}

/* Rank 1 of two, simulated by the test, up to the list of addresses. */
typedef struct Fake { int fd[TCP_LINES]; Seal seal[TCP_LINES]; Record said; } Fake;

static Fake fake_rank(void)
{
    Fake f;
    Head h;
    char list[1000];
    uint8_t code[CODE_BYTES];
    for (int line = 0; line < TCP_LINES; line++)
        ck_assert(greet(SECRET, 2, line, &f.fd[line], &f.seal[line], &f.said));
    ck_assert(get(f.fd[TCP_DATA], &h, sizeof h) && h.tag == TAG_PLACES && h.bytes <= (int)sizeof list && get(f.fd[TCP_DATA], list, (size_t)h.bytes));
    ck_assert(get(f.fd[TCP_DATA], code, sizeof code));
    Hmac m = seal_begin(&f.seal[TCP_DATA], h);
    hmac_add(&m, list, (size_t)h.bytes);
    ck_assert(seal_holds(&f.seal[TCP_DATA], &m, code));
    return f;
}

/* Sends the message of `bytes` bytes that rank 0 waits for, with one wrong bit in byte `at`; -1: no wrong bit. */
static void send_flipped(Fake *f, int bytes, int at)
{
    char m[sizeof(Head) + BYTES + CODE_BYTES];
    const Head h = {1, bytes};
    memcpy(m, &h, sizeof h);
    memset(m + sizeof h, 'b', (size_t)bytes);
    seal_send(&f->seal[TCP_DATA], h, m + sizeof h, (uint8_t *)m + sizeof h + bytes);
    if (at >= 0)
        m[at] ^= 1;
    put(f->fd[TCP_DATA], m, sizeof h + (size_t)bytes + CODE_BYTES);
}

static void last_words(Fake *f, Head h, bool right)
{
    uint8_t code[CODE_BYTES];
    seal_last(&f->seal[TCP_WORDS], h, code);
    code[3] ^= !right;
    put(f->fd[TCP_WORDS], &h, sizeof h);
    put(f->fd[TCP_WORDS], code, sizeof code);
}

START_TEST(a_rank_with_another_secret_is_refused)
{
    Child zero = start(0, 2, 10);
    setenv("TENON_SECRET", "not the secret of the job", 1);
    for (int i = 0; i < 2; i++)
        ends(start(1, 2, 5), 1, "has a different secret; this rank uses the secret from TENON_SECRET");
    setenv("TENON_SECRET", SECRET, 1);
    Child one = start(1, 2, 5);
    ends(one, 0, NULL);
    ends(zero, 0, NULL);
}
END_TEST

START_TEST(nobody_but_a_rank_ends_the_run)
{
    Child zero = start(0, 2, 1.5);
    int fd;
    Seal seal;
    Record said;
    ck_assert(!greet("not the secret of the job", 2, TCP_DATA, &fd, &seal, &said));
    ck_assert(!greet("not the secret of the job", 2, TCP_WORDS, &fd, &seal, &said));
    const Head end[] = {{TAG_END, 0}, {TAG_BYE, 0}};
    for (int i = 0; i < 2; i++) {                     /* as ranks greeted and ended before they had a secret */
        fd = connect_to();
        put(fd, &said.hello, sizeof said.hello);
        put(fd, end, sizeof end);
    }
    ends(zero, 76, "ranks 1 of 2 (TENON_RANKS) have not connected to 127.0.0.1:");
}
END_TEST

START_TEST(strangers_are_named)
{
    Child zero = start(0, 2, 1);
    int fd;
    Seal seal;
    Record said;
    ck_assert(!greet("not the secret of the job", 2, TCP_DATA, &fd, &seal, &said));
    ends(zero, 76, "; 1 others were refused, the last one from 127.0.0.1:");
}
END_TEST

/* The greeting of a rank in one run is not accepted in the next. */
START_TEST(a_greeting_is_good_once)
{
    Child zero = start(0, 2, 10);
    Fake f = fake_rank();
    for (int line = 0; line < TCP_LINES; line++)
        close(f.fd[line]);
    ends(zero, 76, "rank 1 is gone");
    zero = start(0, 2, 1);
    const int fd = connect_to();
    Challenge c;
    Proof answer;
    put(fd, &f.said.hello, sizeof f.said.hello);
    ck_assert(get(fd, &c, sizeof c));
    put(fd, &f.said.proof, sizeof f.said.proof);
    ck_assert(get(fd, &answer, sizeof answer));
    ck_assert_mem_eq(&answer, &greet_refusal, sizeof answer);
    ends(zero, 76, "does not know the job's secret");
}
END_TEST

/* A head, a byte in the middle, the last one, the code; and the same message twice. */
START_TEST(a_message_that_was_changed_ends_the_run)
{
    static const int at[] = {sizeof(Head), sizeof(Head) + BYTES / 2, sizeof(Head) + BYTES - 1, sizeof(Head) + BYTES + 5};
    Child zero = start(0, 2, 10);
    Fake f = fake_rank();
    send_flipped(&f, BYTES, at[_i]);
    ends(zero, 1, "a message of rank 1 was changed on its way here");
}
END_TEST

START_TEST(a_message_is_good_once)
{
    Child zero = start(0, 2, 10);
    Fake f = fake_rank();
    send_flipped(&f, BYTES, -1);
    f.seal[TCP_DATA].sent = 0;                        /* its number again */
    send_flipped(&f, 1, -1);
    ends(zero, 1, "a message of rank 1 was changed on its way here");
}
END_TEST

START_TEST(a_fake_rank_could_play_its_part)            /* else the tests around this one would show nothing */
{
    Child zero = start(0, 2, 10);
    Fake f = fake_rank();
    send_flipped(&f, BYTES, -1);
    send_flipped(&f, 1, -1);
    last_words(&f, (Head){TAG_BYE, 0}, true);
    ends(zero, 0, NULL);
}
END_TEST

START_TEST(an_end_is_never_success)
{
    static const struct { Head h; bool right; int code; const char *word; } words[] = {
        {{TAG_END, 0}, true, 76, NULL},
        {{TAG_END, 0}, false, 1, "a message of rank 1 was changed"},
        {{TAG_END, 75}, true, 75, NULL},
        {{TAG_BYE, 0}, true, 76, "rank 1 is gone"},
        {{TAG_BYE, 0}, false, 1, "a message of rank 1 was changed"},
    };
    Child zero = start(0, 2, 10);
    Fake f = fake_rank();
    last_words(&f, words[_i].h, words[_i].right);
    ends(zero, words[_i].code, words[_i].word);
}
END_TEST

/* An address of this host that others reach; 0: there is none. */
static in_addr_t outer_address(void)
{
    struct ifaddrs *all = NULL;
    in_addr_t found = 0;
    ck_assert_int_eq(getifaddrs(&all), 0);
    for (const struct ifaddrs *a = all; a; a = a->ifa_next)
        if (a->ifa_addr && a->ifa_addr->sa_family == AF_INET && (a->ifa_flags & IFF_UP) && !(a->ifa_flags & IFF_LOOPBACK))
            found = ((const struct sockaddr_in *)(const void *)a->ifa_addr)->sin_addr.s_addr;
    freeifaddrs(all);
    return found;
}

/* Rank 2 would be told to call rank 1 at 127.0.0.1. */
START_TEST(a_loopback_address_is_not_passed_on)
{
    char name[65] = "";
    int fd[4];
    Seal seal;
    Record said;
    struct addrinfo *found;
    const in_addr_t outer = outer_address();
    gethostname(name, sizeof name - 1);
    if (!outer || getaddrinfo(name, NULL, NULL, &found) != 0)
        return;                                       /* one host alone, or one without a name */
    freeaddrinfo(found);
    meet_at(name);
    const Child zero = start(0, 3, 10);
    for (int line = 0; line < TCP_LINES; line++)
        ck_assert(greet(SECRET, 3, line, &fd[line], &seal, &said));
    played = 2;
    toward = outer;
    for (int line = 0; line < TCP_LINES; line++)
        ck_assert(greet(SECRET, 3, line, &fd[2 + line], &seal, &said));
    ends(zero, 1, "rank 1 (elsewhere) came to ");
}
END_TEST

/* ---- many of them */

static void limit_files(rlim_t soft, rlim_t hard)
{
    const struct rlimit l = {soft, hard};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &l), 0);
}

/* Connections that say nothing, or the beginning of a greeting, before rank 1 comes. */
static void silent_ones(int count)
{
    int fd[300];
    const double began = clock_now();
    const Child zero = start(0, 2, 10);
    for (int i = 0; i < count; i++) {
        fd[i] = connect_to();
        if (i % 3 == 1)
            put(fd[i], "tenon-2", 8);
    }
    ends(start(1, 2, 10), 0, NULL);
    ends(zero, 0, NULL);
    ck_assert_double_lt(clock_now() - began, 4.5);
    for (int i = 0; i < count; i++)
        close(fd[i]);
}

START_TEST(silent_ones_cost_nothing)
{
    silent_ones(10);
}
END_TEST

START_TEST(hundreds_of_them_cost_nothing)
{
    silent_ones(300);
}
END_TEST

/* With a limit that cannot be raised. */
START_TEST(few_files_are_enough)
{
    int status, fd[200];
    const pid_t pid = fork();
    if (pid == 0) {
        limit_files(24, 24);
        waitpid(start(0, 2, 10).pid, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 200);
    }
    for (int i = 0; i < 200; i++)
        fd[i] = connect_to();
    ends(start(1, 2, 10), 0, NULL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    for (int i = 0; i < 200; i++)
        close(fd[i]);
}
END_TEST

START_TEST(a_soft_limit_is_raised)
{
    struct rlimit usual;
    getrlimit(RLIMIT_NOFILE, &usual);
    limit_files(12, usual.rlim_max);
    all_meet(RANKS);
}
END_TEST

START_TEST(too_few_files_are_named)
{
    limit_files(12, 12);
    ends(start(0, RANKS, 10), 1, "6 ranks need ");
    ends(start(0, RANKS, 10), 1, "ulimit -n");
}
END_TEST

/* A process that connects all the time neither prevents the ranks from connecting nor lengthens the wait. */
START_TEST(a_flood_changes_nothing)
{
    const double began = clock_now();
    Child zero = start(0, 2, _i == 0 ? 10 : 1);
    const pid_t flood = fork();
    if (flood == 0) {
        int fd[64];
        memset(fd, -1, sizeof fd);
        for (int i = 0; clock_now() < began + 4; i = (i + 1) % 64) {
            struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
            close(fd[i]);
            fd[i] = socket(AF_INET, SOCK_STREAM, 0);
            if (connect(fd[i], (struct sockaddr *)&a, sizeof a) != 0)
                usleep(1000);
            else if (i % 2)
                send(fd[i], "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL);
        }
        _exit(0);
    }
    if (_i == 0) {
        usleep(100000);
        ends(start(1, 2, 10), 0, NULL);
        ends(zero, 0, NULL);
    } else {
        ends(zero, 76, "ranks 1 of 2 (TENON_RANKS) have not connected");
    }
    ck_assert_double_lt(clock_now() - began, 4);
    kill(flood, SIGKILL);
    waitpid(flood, NULL, 0);
}
END_TEST

/* ---- where the secret comes from */

static const char *write_secret(const char *text, mode_t mode)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/secret", scratch);
    unlink(path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_eq(dprintf(fd, "%s", text), (int)strlen(text));
    fchmod(fd, mode);
    close(fd);
    return path;
}

START_TEST(a_file_holds_the_secret)
{
    setenv("TENON_SECRET_FILE", write_secret("0123456789abcdef\n", 0600), 1);
    ends(start(0, 2, 1), 1, "TENON_SECRET_FILE and TENON_SECRET are both set");
    unsetenv("TENON_SECRET");
    all_meet(2);
    Child zero = start(0, 2, 5);
    unsetenv("TENON_SECRET_FILE");
    setenv("TENON_SECRET", "0123456789abcdef", 1);    /* the same without a newline */
    ends(start(1, 2, 5), 0, NULL);
    ends(zero, 0, NULL);
}
END_TEST

START_TEST(a_secret_that_is_none_is_refused)
{
    unsetenv("TENON_SECRET");
    setenv("TENON_SECRET_FILE", write_secret("0123456789abcdef\n", 0640), 1);
    ends(start(0, 2, 1), 1, "can be read by others (mode 640): chmod 600");
    setenv("TENON_SECRET_FILE", write_secret("0123456789abcde\n", 0600), 1);
    ends(start(0, 2, 1), 1, "holds 15 characters: a secret must have at least 16");
    setenv("TENON_SECRET_FILE", scratch, 1);
    ends(start(0, 2, 1), 1, "is not a regular file");
    setenv("TENON_SECRET_FILE", "/nowhere/secret", 1);
    ends(start(0, 2, 1), 1, "TENON_SECRET_FILE=/nowhere/secret cannot be opened: No such file");
    unsetenv("TENON_SECRET_FILE");
    setenv("TENON_SECRET", "short", 1);
    ends(start(0, 2, 1), 1, "TENON_SECRET holds 5 characters");
    unsetenv("TENON_SECRET");
    setenv("HOME", "/dev/null", 1);
    ends(start(0, 2, 1), 1, "no file for it can be made; /dev/null/.config/tenon/secret: Not a directory; XDG_RUNTIME_DIR is not set; make one by");
}
END_TEST

/* Each read and write of a file transfers a part of its bytes, as on a network file system. */
static size_t some(int fd, size_t n)
{
    struct stat s;
    return n > 1 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) ? n / 2 : n;
}

ssize_t read(int fd, void *bytes, size_t n)
{
    return syscall(SYS_read, fd, bytes, some(fd, n));
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    return syscall(SYS_write, fd, bytes, some(fd, n));
}

ssize_t pread(int fd, void *bytes, size_t n, off_t at)
{
    return syscall(SYS_pread64, fd, bytes, some(fd, n), at);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
    return syscall(SYS_pwrite64, fd, bytes, some(fd, n), at);
}

/* Without a given secret, the ranks of a user make one; all of them at the same time. */
START_TEST(a_user_has_a_secret)
{
    char path[128];
    struct stat st;
    unsetenv("TENON_SECRET");
    setenv("HOME", scratch, 1);
    all_meet(RANKS);
    snprintf(path, sizeof path, "%s/.config/tenon/secret", scratch);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq((int)st.st_size, 65);
    all_meet(2);
    chmod(path, 0644);
    ends(start(0, 2, 1), 1, "can be read by others (mode 644)");
    snprintf(path, sizeof path, "%s/config", scratch);
    setenv("XDG_CONFIG_HOME", path, 1);               /* not there yet */
    all_meet(3);
}
END_TEST

/* mpirun draws one for each job. */
START_TEST(mpirun_has_a_secret)
{
    unsetenv("TENON_SECRET");
    setenv("HOME", "/dev/null", 1);
    setenv("OMPI_MCA_orte_precondition_transports", "92878d7a51d69cfe-b532a4560fc3c551", 1);
    ends(start(0, 2, 1), 1, "no file for it can be made");      /* of an mpirun around ranks that it has not started */
    by_mpirun = true;
    all_meet(2);
    const Child zero = start(0, 2, 1);
    setenv("OMPI_MCA_orte_precondition_transports", "92878d7a51d69cfe-b532a4560fc3c552", 1);
    ends(start(1, 2, 1), 1, "this rank uses the secret from OMPI_MCA_orte_precondition_transports");
    ends(zero, 76, "does not know the job's secret");
    setenv("OMPI_MCA_orte_precondition_transports", "0000000000000000-0000000000000000", 1);
    ends(start(0, 2, 1), 1, "no file for it can be made");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tcp");
    TCase *t = tcase_create("ranks");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, ranks_meet, 2, RANKS + 1);
    tcase_add_loop_test(t, ranks_meet_at, 0, sizeof hosts / sizeof *hosts);
    tcase_add_test(t, ranks_meet_at_their_own_name);
    suite_add_tcase(s, t);
    t = tcase_create("others");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 30);
    tcase_add_test(t, a_rank_with_another_secret_is_refused);
    tcase_add_test(t, nobody_but_a_rank_ends_the_run);
    tcase_add_test(t, strangers_are_named);
    tcase_add_test(t, a_greeting_is_good_once);
    tcase_add_test(t, a_fake_rank_could_play_its_part);
    tcase_add_loop_test(t, a_message_that_was_changed_ends_the_run, 0, 4);
    tcase_add_test(t, a_message_is_good_once);
    tcase_add_test(t, a_loopback_address_is_not_passed_on);
    tcase_add_loop_test(t, an_end_is_never_success, 0, 5);
    tcase_add_test(t, silent_ones_cost_nothing);
    tcase_add_test(t, hundreds_of_them_cost_nothing);
    tcase_add_test(t, few_files_are_enough);
    tcase_add_test(t, a_soft_limit_is_raised);
    tcase_add_test(t, too_few_files_are_named);
    tcase_add_loop_test(t, a_flood_changes_nothing, 0, 2);
    suite_add_tcase(s, t);
    t = tcase_create("secrets");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 30);
    tcase_add_test(t, a_file_holds_the_secret);
    tcase_add_test(t, a_secret_that_is_none_is_refused);
    tcase_add_test(t, a_user_has_a_secret);
    tcase_add_test(t, mpirun_has_a_secret);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
