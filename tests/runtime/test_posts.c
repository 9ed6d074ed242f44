/* test_posts.c -- asynchronous sums (comm/post.c): several are pending, each rank at another speed,
 * and waited for in another order than posted.
 *
 * Ranks are threads, each with a thread of posts; messages have delays (mailbox.h).  Every sum of
 * every step is compared with the tree, written as plain code: partners at distance 1, then 2, then
 * 4.
 */
#include "mailbox.h"
#include "suite.h"
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BUCKETS = 5, MOST = 90000 };
static int steps;                                     /* of a run */

static const int64_t bucket_end[BUCKETS + 1] = {0, 40000, 40016, 60001, 89000, MOST};

typedef struct Rank {
    Comm comm;
    CommState state;
    CommSum sum;
    pthread_t main;
    unsigned seed;
    bool fifo;
} Rank;

static Rank rank[MAILBOX_RANKS];
static int ranks;

static int whose_thread(void)
{
    for (;;)
        for (int r = 0; r < ranks; r++)
            if (rank[r].state.posts.post && pthread_equal(rank[r].state.posts.thread, pthread_self()))
                return r;
}

static float value(int r, int step, int64_t i)
{
    return (float)((i * 31 + r * 977 + step * 131) % 1009) * 0x1.2345p-3f - 40;
}

static float tree_sum(int step, int64_t i)
{
    float part[MAILBOX_RANKS];
    for (int r = 0; r < ranks; r++)
        part[r] = value(r, step, i);
    for (int d = 1; d < ranks; d *= 2)
        for (int r = 0; r + d < ranks; r += 2 * d)
            part[r] += part[r + d];
    return part[0];
}

static void compute(Rank *x)
{
    usleep((unsigned)rand_r(&x->seed) % 3000);
}

static void expect(Rank *x, int step, int b, const int64_t *posted)
{
    const float *got = (const float *)(const void *)x->sum.buffer;
    comm_await(&x->comm, posted[b]);
    for (int64_t i = bucket_end[b]; i < bucket_end[b + 1]; i++) {
        const float want = tree_sum(step, i);
        if (memcmp(&got[i], &want, sizeof want) != 0)
            ck_abort_msg("rank %d of %d, step %d, bucket %d, number %lld: %a, not %a", x->comm.rank, ranks, step, b, (long long)i,
                         (double)got[i], (double)want);
    }
}

/* A step: a gather of reports, then each bucket when its part of the backward pass is complete. */
static void post_all(Rank *x, int step, int64_t *posted, int *told)
{
    float *of = (float *)(void *)x->sum.buffer;
    told[x->comm.rank] = step * 100 + x->comm.rank;
    const int64_t gather = comm_post_gather(&x->comm, told, sizeof *told, "metrics");
    for (int b = 0; b < BUCKETS; b++) {
        compute(x);
        for (int64_t i = bucket_end[b]; i < bucket_end[b + 1]; i++)
            of[i] = value(x->comm.rank, step, i);
        posted[b] = comm_post_sum(&x->comm, &x->sum, b, bucket_end[b], bucket_end[b + 1] - bucket_end[b], "a bucket");
    }
    comm_await(&x->comm, gather);
    for (int r = 0; r < ranks; r++)
        ck_assert_int_eq(told[r], step * 100 + r);
}

/* The next step's forward pass needs the last bucket first; after every third step another operation waits for all posts. */
static void *run(void *arg)
{
    Rank *x = arg;
    int64_t posted[BUCKETS];
    int told[MAILBOX_RANKS];
    mailbox_here = x->comm.rank;
    for (int step = 0; step < steps; step++) {
        post_all(x, step, posted, told);
        if (step % 3 == 2)
            comm_gather(&x->comm, told, sizeof *told, "a test");
        for (int k = 0; k < BUCKETS; k++) {
            compute(x);
            expect(x, step, x->fifo ? k : BUCKETS - 1 - k, posted);
        }
    }
    comm_await_all(&x->comm);
    return NULL;
}

static void *open_rank(void *arg)
{
    Rank *x = arg;
    mailbox_here = x->comm.rank;
    comm_sum_plan(&x->comm, &x->sum);
    x->sum.buffer = calloc(MOST, sizeof(float));
    x->sum.scratch = calloc((size_t)x->sum.scratch_bytes, 1);
    comm_posts(&x->comm, BUCKETS + 1);
    return NULL;
}

static void all_ranks(void *(*run_one)(void *))
{
    for (int r = 0; r < ranks; r++)
        ck_assert_int_eq(pthread_create(&rank[r].main, NULL, run_one, &rank[r]), 0);
    for (int r = 0; r < ranks; r++)
        pthread_join(rank[r].main, NULL);
}

static void open_ranks(int size, double slow, bool fifo)
{
    ranks = size;
    mailbox_who = whose_thread;
    mailbox_open(size, slow);
    for (int r = 0; r < size; r++) {
        Rank *x = &rank[r];
        *x = (Rank){.comm = {.rank = r, .size = size, .state = &x->state}, .seed = (unsigned)r + 1, .fifo = fifo,
                    .state = {.t = &mailbox, .comm = &x->comm, .limit = 60, .at_start = 60, .started = true},
                    .sum = {.n = MOST, .real_bytes = 4, .shards = size, .places = BUCKETS}};
        pthread_mutex_init(&x->state.lock, NULL);
        comm_start(&x->state);
    }
    all_ranks(open_rank);
}

/* Over slow links, a run has half the steps without --deep, and at most four ranks: ranks that wait spin. */
static void train(int size, double slow, bool fifo)
{
    const char *deep = getenv("CHECK_DEEP");
    const bool few = slow > 0 && (!deep || *deep != '1');
    if (few && size > 4)
        return;
    steps = few ? 6 : 12;
    open_ranks(size, slow, fifo);
    all_ranks(run);
    mailbox_empty(size);
}

static const int many[] = {2, 3, 4, 6, 8};
enum { MANY = sizeof many / sizeof *many };

START_TEST(the_last_first)
{
    train(many[_i], 0, false);
}
END_TEST

START_TEST(the_last_first_over_slow_links)
{
    train(many[_i], 3e-3, false);
}
END_TEST

START_TEST(in_order_over_slow_links)
{
    train(many[_i], 3e-3, true);
}
END_TEST

/* ---- long messages */

/* A message of several pieces, of which the last is short, from a rank to itself. */
START_TEST(a_long_message_goes_in_pieces)
{
    const int64_t n = 2 * (int64_t)MESSAGE + 77;
    char *from = malloc((size_t)n), *to = malloc((size_t)n);
    CommState state = {.t = &mailbox, .limit = 60, .at_start = 60, .started = true};
    Comm comm = {.size = 1, .state = &state};
    Exchange e = {.n = 0};
    mailbox_here = 0;
    mailbox_open(1, 0);
    for (int64_t i = 0; i < n; i++)
        from[i] = (char)(i * 31 + (i >> 20));
    memset(to, 0, (size_t)n);
    comm_receive(&comm, &e, 0, to, n);
    comm_send(&comm, &e, 0, from, n);
    comm_wait(&comm, &e);
    ck_assert(memcmp(from, to, (size_t)n) == 0);
    mailbox_empty(1);
    free(from);
    free(to);
}
END_TEST

/* ---- the time of communication */

static atomic_bool both, counted;                     /* rank 0 has posted both sums, and has looked at its time */

static int64_t post(Rank *x, int b)
{
    return comm_post_sum(&x->comm, &x->sum, b, bucket_end[b], bucket_end[b + 1] - bucket_end[b], "a bucket");
}

/* A sum that is done counts, although rank 0 still waits for the others' part of the next one. */
static void *run_two(void *arg)
{
    Rank *x = arg;
    mailbox_here = x->comm.rank;
    while (x->comm.rank > 0 && !atomic_load(&both))
        usleep(100);
    const double before = x->comm.busy;
    const int64_t first = post(x, 0);
    if (x->comm.rank == 0) {
        post(x, 2);
        atomic_store(&both, true);
        comm_await(&x->comm, first);
        ck_assert_double_gt(x->comm.busy, before);
        atomic_store(&counted, true);
    } else {
        while (!atomic_load(&counted))
            usleep(100);
        post(x, 2);
    }
    comm_await_all(&x->comm);
    return NULL;
}

START_TEST(a_sum_counts_when_it_is_done)
{
    open_ranks(many[_i], 0, false);
    all_ranks(run_two);
    mailbox_empty(ranks);
}
END_TEST

/* ---- the clock of the system */

static time_t ahead;                                  /* seconds by which CLOCK_REALTIME was set back since it was read */

int clock_gettime(clockid_t clock, struct timespec *t)
{
    const int rc = (int)syscall(SYS_clock_gettime, clock, t);
    if (rc == 0 && clock == CLOCK_REALTIME)
        t->tv_sec += ahead;
    return rc;
}

static atomic_int looks;

static int look(int tag)
{
    atomic_fetch_add(&looks, tag == TAG_ASK);
    return -1;
}

/* A rank that computes looks for questions a few times a second, also after the clock was set back.  A rank that asks
 * waits 3 seconds for the answer. */
START_TEST(a_rank_that_computes_answers)
{
    static const RtTransport idle = {.name = "idle", .waiting = look};
    Rank *x = &rank[0];
    ahead = 1000;
    x->comm = (Comm){.size = 2, .state = &x->state};
    x->state = (CommState){.t = &idle, .comm = &x->comm};
    pthread_mutex_init(&x->state.lock, NULL);
    const double began = clock_now();
    comm_start(&x->state);
    while (atomic_load(&looks) < 3 && clock_now() - began < 60)
        usleep(1000);
    ck_assert_int_ge(atomic_load(&looks), 3);
    ck_assert_double_ge(clock_now() - began, 0.7);     /* it sleeps between two looks */
}
END_TEST

int main(void)
{
    Suite *s = suite_create("posts");
    TCase *t = tcase_create("posts");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, the_last_first, 0, MANY);
    tcase_add_loop_test(t, the_last_first_over_slow_links, 0, MANY);
    tcase_add_loop_test(t, in_order_over_slow_links, 0, MANY);
    tcase_add_test(t, a_long_message_goes_in_pieces);
    tcase_add_loop_test(t, a_sum_counts_when_it_is_done, 0, 2);
    tcase_add_test(t, a_rank_that_computes_answers);
    suite_add_tcase(s, t);
    return suite_run(s);
}
