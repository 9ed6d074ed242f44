/* test_tcp.c -- ranks that connect over TCP (comm/tcp_meet.c) and exchange messages (comm/tcp.c),
 * and strangers that connect to the same port.
 *
 * Ranks are processes.  The test simulates strangers that know host, port and number of ranks:
 * silent ones, hundreds of them, one with another secret, one that repeats an earlier greeting;
 * and, with the secret, a rank that breaks the protocol.
 */
#define _GNU_SOURCE
#include "ranks.h"
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdarg.h>
#include <sys/resource.h>

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

int main(void)
{
    Suite *s = suite_create("tcp");
    TCase *t = ranks_case("ranks");
    tcase_add_loop_test(t, ranks_meet, 2, RANKS + 1);
    tcase_add_loop_test(t, ranks_meet_at, 0, sizeof hosts / sizeof *hosts);
    tcase_add_test(t, ranks_meet_at_their_own_name);
    suite_add_tcase(s, t);
    t = ranks_case("others");
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
    return suite_run(s);
}
