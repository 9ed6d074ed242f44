/* post.c -- communication beside other work: a thread that does posted sums and gathers one after another.
 *
 * Posts are done in the order in which they came, and all ranks post in the same order: so messages of two of them never mix, and
 * none needs a number.  While there is nothing to do the thread answers those who ask where this rank is.  MPI is used by one
 * thread at a time (MPI_THREAD_SERIALIZED): this one, or the main thread when all posts are done.
 */
#define _GNU_SOURCE
#include "clock.h"
#include "comm/state.h"
#include "error.h"
#include "threads.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static const long QUARTER = 250000000; /* nanoseconds between two looks for questions */

static void do_post(CommState *s, const Post *p)
{
    comm_begin(s, p->during);
    s->background = true;
    if (p->sum)
        comm_sum_now(s->comm, p->sum, p->from, p->n);
    else
        comm_gather_now(s->comm, &(CommPart){p->all, p->each}, 1);
    s->background = false;
    s->comm->busy += comm_end(s);
}

/* Until something is posted, or a quarter of a second has passed. */
static void await_post(Posts *q)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += QUARTER;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&q->posted, &q->lock, &t);
}

static void answer(CommState *s)
{
    if (pthread_mutex_trylock(&s->lock) != 0)
        return; /* who has it answers */
    comm_attend(s);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *arg)
{
    CommState *s = arg;
    Posts *q = &s->posts;
    threads_flush_denormals();      /* it adds */
    prctl(PR_SET_TIMERSLACK, 1000); /* short naps are short */
    pthread_mutex_lock(&q->lock);
    for (;;) {
        if (q->done == q->next)
            await_post(q);
        const bool any = q->done < q->next;
        const Post p = any ? q->post[q->done % q->most] : (Post){.n = 0};
        pthread_mutex_unlock(&q->lock);
        if (any)
            do_post(s, &p);
        else
            answer(s);
        pthread_mutex_lock(&q->lock);
        q->done += any;
        if (q->awaited && q->done >= q->awaited)
            pthread_cond_signal(&q->finished);
    }
    return NULL;
}

void comm_start(CommState *s)
{
    Posts *q = &s->posts;
    s->since = clock_now();
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->posted, NULL);
    pthread_cond_init(&q->finished, NULL);
    if (pthread_create(&q->thread, NULL, work, s) != 0)
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

static int64_t post(Comm *c, Post p, const char *during)
{
    Posts *q = &c->state->posts;
    snprintf(p.during, sizeof p.during, "%s", during);
    pthread_mutex_lock(&q->lock);
    q->post[q->next % q->most] = p;
    const int64_t number = q->next++;
    pthread_cond_signal(&q->posted);
    pthread_mutex_unlock(&q->lock);
    return number;
}

int64_t comm_post_sum(Comm *c, const CommSum *s, int64_t from, int64_t n, const char *during)
{
    return c->size == 1 ? 0 : post(c, (Post){.sum = s, .from = from, .n = n}, during);
}

int64_t comm_post_gather(Comm *c, void *all, int64_t each, const char *during)
{
    return c->size == 1 ? 0 : post(c, (Post){.all = all, .each = each}, during);
}

bool comm_hurry(CommState *s)
{
    return __atomic_load_n(&s->posts.awaited, __ATOMIC_RELAXED) != 0;
}

void comm_await(Comm *c, int64_t number)
{
    if (c->size == 1)
        return;
    Posts *q = &c->state->posts;
    const double began = clock_now();
    pthread_mutex_lock(&q->lock);
    if (q->done <= number) {
        __atomic_store_n(&q->awaited, number + 1, __ATOMIC_RELAXED);
        while (q->done <= number)
            pthread_cond_wait(&q->finished, &q->lock);
        __atomic_store_n(&q->awaited, 0, __ATOMIC_RELAXED);
        c->waited += clock_now() - began;
    }
    pthread_mutex_unlock(&q->lock);
}

void comm_await_all(Comm *c)
{
    comm_await(c, c->state->posts.next - 1); /* this thread alone posts */
}
