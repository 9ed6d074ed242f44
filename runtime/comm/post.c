/* post.c -- asynchronous communication: a thread that runs posted sums and gathers.
 *
 * All ranks make the same posts in the same order.  Gathers, and sums that go in one piece, run in
 * this order, so that their messages need no numbers.  Sums in halves are all pending at the same
 * time, each with its own messages.  The sum that is waited for has priority, then the latest sum:
 * the gradients of the first layers come last in the backward pass, and the next forward pass needs
 * them first, when the sums of the last layers may still be pending.  Of two sums, the more urgent
 * one has the link to itself as soon as a message of its partner arrives; until then the others
 * continue.
 *
 * There is no deadlock: all ranks wait in the order of posts.  So each rank that waits either waits
 * for the earliest post that is not complete on all ranks, and gives it priority, or has completed
 * its own part of it.
 *
 * While there is nothing to do, the thread answers ranks that ask what this rank is doing.  Only
 * one thread uses MPI at a time (MPI_THREAD_SERIALIZED): this one, or the main thread after all
 * posts.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/error.h"
#include "base/threads.h"
#include "comm/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static const double QUARTER = 0.25; /* seconds between two checks for questions */

static Post *post_of(const Posts *q, int64_t number)
{
    return &q->post[number % q->most];
}

static bool is_done(const Posts *q, int64_t number)
{
    return number < q->oldest || post_of(q, number)->done;
}

/* After this, another post can take the place of p.  The time of p is added to Comm.busy before the
 * thread that waits for p continues, because other posts can keep the thread of posts at work
 * across steps. */
static void finish_post(CommState *s, Post *p)
{
    Posts *q = &s->posts;
    const double now = clock_now();
    pthread_mutex_lock(&q->lock);
    s->comm->busy += now - q->counted;
    q->counted = now;
    p->done = true;
    if (q->awaited == p->number + 1)
        pthread_cond_signal(&q->finished);
    int64_t oldest = q->oldest;
    while (oldest < q->next && post_of(q, oldest)->done)
        oldest++;
    __atomic_store_n(&q->oldest, oldest, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&q->lock);
}

/* Runs a post that cannot pause. */
static void do_post(CommState *s, Post *p)
{
    s->doing = p->during;
    if (p->sum)
        comm_sum_now(s->comm, p->sum, p->from, p->n);
    else
        comm_gather_now(s->comm, &(CommPart){p->all, p->each}, 1);
    finish_post(s, p);
}

/* Advances a sum in halves.  True: this sum has the link, and less urgent sums wait. */
static bool advance_post(CommState *s, Post *p, bool *moved)
{
    if (p->done || !p->sum || !p->sum->halving)
        return false;
    if (!p->begun)
        comm_sum_begin(p->sum, p->place, TAG_SUM + p->place, p->from, p->n);
    p->begun = true;
    *moved |= comm_sum_go_on(s->comm, p->sum, p->place);
    if (!comm_sum_done(p->sum, p->place))
        return comm_sum_fills(p->sum, p->place);
    finish_post(s, p);
    return false;
}

/* Advances all posts below `next`, the most urgent first; returns whether any of them moved. */
static bool advance_posts(CommState *s, int64_t next)
{
    Posts *q = &s->posts;
    bool moved = false;
    for (int64_t k = q->oldest; k < next; k++) {
        Post *p = post_of(q, k);
        if (!p->done && !(p->sum && p->sum->halving))
            do_post(s, p), moved = true;
    }
    if (q->oldest < next)
        s->doing = post_of(q, next - 1)->during;
    const int64_t first = __atomic_load_n(&q->awaited, __ATOMIC_RELAXED) - 1;
    if (first >= q->oldest && first < next && advance_post(s, post_of(q, first), &moved))
        return moved;
    for (int64_t k = next - 1; k >= q->oldest; k--)
        if (advance_post(s, post_of(q, k), &moved))
            break;
    return moved;
}

/* Waits until something is posted, at most a quarter of a second. */
static void wait_for_post(Posts *q)
{
    const struct timespec t = threads_after(QUARTER);
    pthread_cond_timedwait(&q->posted, &q->lock, &t);
}

static void try_answer(CommState *s)
{
    if (pthread_mutex_trylock(&s->lock) != 0)
        return; /* the thread that holds the lock answers */
    comm_answer(s);
    pthread_mutex_unlock(&s->lock);
}

/* Runs posts until none is left. */
static void do_posts(CommState *s)
{
    Posts *q = &s->posts;
    q->counted = clock_now();
    comm_begin(s, post_of(q, q->oldest)->during);
    s->background = true;
    Wait w = comm_wait_from_now();
    for (int64_t next; (next = __atomic_load_n(&q->next, __ATOMIC_ACQUIRE)) > q->oldest;)
        if (advance_posts(s, next)) {
            w = comm_wait_from_now();
            s->since = w.began;
        } else {
            comm_rest(s, &w);
        }
    s->background = false;
    comm_end(s);
}

static void *post_thread(void *arg)
{
    CommState *s = arg;
    Posts *q = &s->posts;
    threads_flush_denormals();      /* this thread adds reals */
    prctl(PR_SET_TIMERSLACK, 1000); /* nanoseconds: short sleeps end in time */
    for (;;) {
        pthread_mutex_lock(&q->lock);
        if (q->oldest == q->next)
            wait_for_post(q);
        const bool any = q->oldest < q->next;
        pthread_mutex_unlock(&q->lock);
        if (any)
            do_posts(s);
        else
            try_answer(s);
    }
    return NULL;
}

void comm_start(CommState *s)
{
    Posts *q = &s->posts;
    s->since = clock_now();
    pthread_mutex_init(&q->lock, NULL);
    threads_condition(&q->posted);
    pthread_cond_init(&q->finished, NULL);
    if (threads_start(&q->thread, post_thread, s) != 0)
        rt_die("no thread could be started");
}

void comm_posts(Comm *c, int most)
{
    if (c->size == 1)
        return;
    Posts *q = &c->state->posts;
    comm_await_all(c);
    pthread_mutex_lock(&q->lock);
    free(q->post);
    q->post = rt_alloc(sizeof *q->post * (size_t)most);
    q->most = most;
    pthread_mutex_unlock(&q->lock);
}

void comm_await(Comm *c, int64_t number)
{
    if (c->size == 1)
        return;
    Posts *q = &c->state->posts;
    const double began = clock_now();
    pthread_mutex_lock(&q->lock);
    if (!is_done(q, number)) {
        __atomic_store_n(&q->awaited, number + 1, __ATOMIC_RELAXED);
        while (!is_done(q, number))
            pthread_cond_wait(&q->finished, &q->lock);
        __atomic_store_n(&q->awaited, 0, __ATOMIC_RELAXED);
        c->waited += clock_now() - began;
    }
    pthread_mutex_unlock(&q->lock);
}

/* Only this thread posts, so q->next does not change meanwhile. */
static void await_below(Comm *c, int64_t next)
{
    const Posts *q = &c->state->posts;
    for (int64_t k = __atomic_load_n(&q->oldest, __ATOMIC_RELAXED); k < next; k++)
        comm_await(c, k);
}

void comm_await_all(Comm *c)
{
    await_below(c, c->state->posts.next);
}

static int64_t add_post(Comm *c, Post p, const char *during)
{
    Posts *q = &c->state->posts;
    await_below(c, q->next - q->most + 1); /* the new post takes the place of the last of them */
    snprintf(p.during, sizeof p.during, "%s", during);
    pthread_mutex_lock(&q->lock);
    p.number = q->next;
    *post_of(q, p.number) = p;
    __atomic_store_n(&q->next, p.number + 1, __ATOMIC_RELEASE);
    pthread_cond_signal(&q->posted);
    pthread_mutex_unlock(&q->lock);
    return p.number;
}

int64_t comm_post_sum(Comm *c, const CommSum *s, int place, int64_t from, int64_t n,
                      const char *during)
{
    return c->size == 1
               ? 0
               : add_post(c, (Post){.sum = s, .place = place, .from = from, .n = n}, during);
}

int64_t comm_post_gather(Comm *c, void *all, int64_t each, const char *during)
{
    return c->size == 1 ? 0 : add_post(c, (Post){.all = all, .each = each}, during);
}

/* ---- operations on the caller's thread, after all posts */

void comm_enter(Comm *c, const char *during)
{
    comm_await_all(c);
    comm_begin(c->state, during);
}

void comm_leave(Comm *c)
{
    const double spent = comm_end(c->state);
    c->waited += spent;
    c->busy += spent;
}

/* Does not count as waiting: most of the time is the device's own work. */
void comm_poll(Comm *c, bool (*done)(void), const char *during)
{
    comm_enter(c, during);
    Wait w = comm_wait_from_now();
    while (!done())
        comm_rest(c->state, &w);
    comm_end(c->state);
}
