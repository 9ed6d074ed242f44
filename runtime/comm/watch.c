/* watch.c -- waits for other ranks; if a wait is too long, names the ranks that it waits for.
 *
 * MPI has no time limit: if a rank is stopped or its link is cut, all others wait for ever.  So
 * every wait polls.  A wait that is longer than the limit asks all ranks what they are doing.  A
 * rank that waits answers from its own polls.  For a rank that computes, the thread of comm/post.c
 * answers; this thread wakes up a few times a second.  The message names the ranks that do not
 * answer; if all answer, it names the ranks that are doing something else.
 *
 * Another limit holds until the first step is done: reading data, and touching memory for the first
 * time, take longer than any step, and the time differs between hosts.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/error.h"
#include "comm/state.h"
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { EAGER = 2000, PATIENT = 20000 }; /* polls before a wait yields, and before it sleeps */
enum { ASIDE = 100 };                   /* polls before the thread of posts sleeps */
static const double ASKING = 3;         /* seconds until an answer must have arrived */

static void nap(long microseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
}

static int64_t posts_made(const CommState *s)
{
    return __atomic_load_n(&s->posts.next, __ATOMIC_RELAXED);
}

/* Whether a thread waits for a post. */
static bool post_awaited(const CommState *s)
{
    return __atomic_load_n(&s->posts.awaited, __ATOMIC_RELAXED) != 0;
}

/* A rank that computes while its posts run counts as computing, unless a thread waits for a
 * post. */
static Progress progress_of(CommState *s)
{
    const bool waits = s->doing && (!s->background || post_awaited(s));
    Progress w = {.step = s->comm->step, .posts = posts_made(s), .seconds = clock_now() - s->since};
    snprintf(w.doing, sizeof w.doing, "%s", waits ? s->doing : "");
    return w;
}

/* A small message is sent at once, even if its receiver does not receive it yet. */
static void send_word(CommState *s, int to, int tag, const void *bytes, int n)
{
    const int request = s->t->send(to, tag, bytes, n);
    for (int i = 0; i < PATIENT && !s->t->done(request); i++)
        sched_yield();
}

static void receive_word(CommState *s, int from, int tag, void *bytes, int n)
{
    const int request = s->t->receive(from, tag, bytes, n);
    while (!s->t->done(request))
        sched_yield();
}

static void __attribute__((noreturn)) die_of_lost_rank(const CommState *s, int rank)
{
    const char *doing = s->doing;
    rt_lost("rank %d (%s) is gone: it ended without a message while this one was in step %lld, "
            "%s%s",
            rank, s->host[rank], (long long)s->comm->step + 1, doing ? "at " : "computing",
            doing ? doing : "");
}

/* Answers questions, and records answers; ends the run if a rank is lost. */
void comm_answer(CommState *s)
{
    char ask;
    const bool at_end = __atomic_load_n(&s->ending, __ATOMIC_RELAXED);
    const int gone = s->t->gone ? s->t->gone(at_end) : -1;
    if (gone >= 0)
        die_of_lost_rank(s, gone);
    for (int from; (from = s->t->waiting(TAG_ASK)) >= 0;) {
        const Progress w = progress_of(s);
        receive_word(s, from, TAG_ASK, &ask, 1);
        send_word(s, from, TAG_ANSWER, &w, sizeof w);
    }
    for (int from; (from = s->t->waiting(TAG_ANSWER)) >= 0;) {
        receive_word(s, from, TAG_ANSWER, &s->of[from], sizeof *s->of);
        s->answered[from] = true;
    }
}

/* ---- a wait that is too long */

static void ask_all(CommState *s)
{
    const Comm *c = s->comm;
    const double began = clock_now();
    memset(s->answered, 0, sizeof *s->answered * (size_t)c->size);
    for (int r = 0; r < c->size; r++)
        if (r != c->rank)
            send_word(s, r, TAG_ASK, "", 1);
    while (clock_now() - began < ASKING) {
        comm_answer(s);
        nap(1000);
    }
}

static bool started(const CommState *s)
{
    return __atomic_load_n(&s->started, __ATOMIC_RELAXED);
}

/* Whether rank r is at another point than this rank: in another step, with fewer posts, or in
 * another operation.  If this rank waits in the background, a rank that computes is at the same
 * point. */
static bool is_elsewhere(const CommState *s, int r)
{
    const Progress *w = &s->of[r];
    return w->step != s->comm->step || w->posts < posts_made(s) ||
           (strcmp(w->doing, s->doing) != 0 && !(s->background && !*w->doing));
}

/* Whether another rank has made more posts: then the others wait for this rank, and this rank must
 * not give up. */
static bool is_behind(const CommState *s)
{
    for (int r = 0; r < s->comm->size; r++)
        if (r != s->comm->rank && s->answered[r] && s->of[r].posts > posts_made(s))
            return true;
    return false;
}

static void give_up(CommState *s)
{
    const Comm *c = s->comm;
    char text[1500] = "";
    int named = 0;
    ask_all(s);
    if (is_behind(s))
        return;
    for (int silent = 1; silent >= 0 && !named; silent--)
        for (int r = 0; r < c->size && named < 8; r++) {
            const size_t n = strlen(text);
            const Progress *w = &s->of[r];
            if (r == c->rank || s->answered[r] == (silent == 1) || (!silent && !is_elsewhere(s, r)))
                continue;
            named++;
            if (silent)
                snprintf(text + n, sizeof text - n, "%srank %d (%s) does not answer", n ? ", " : "",
                         r, s->host[r]);
            else
                snprintf(text + n, sizeof text - n, "%srank %d (%s) is in step %lld%s%s for %.0f s",
                         n ? ", " : "", r, s->host[r], (long long)w->step + 1,
                         w->doing[0] ? ", at " : ", computing", w->doing, w->seconds);
        }
    rt_lost("%.0f s at %s in step %lld, longer than --timeout%s: %s", clock_now() - s->since,
            s->doing, (long long)c->step + 1, started(s) ? "" : "-start",
            named ? text : "all ranks answer and wait as this one does");
}

/* ---- waiting */

void comm_begin(CommState *s, const char *during)
{
    pthread_mutex_lock(&s->lock);
    s->since = clock_now();
    s->doing = during;
}

double comm_end(CommState *s)
{
    const double now = clock_now(), spent = now - s->since;
    s->doing = NULL;
    s->since = now;
    pthread_mutex_unlock(&s->lock);
    return spent;
}

Wait comm_wait_from_now(void)
{
    return (Wait){.began = clock_now()};
}

/* The thread of posts can share its processor with a thread that computes.  Its polls would delay
 * the computation: with many polls, the first bucket of a step of 17 ms began 3 ms late.  So the
 * thread of posts sleeps after few polls.  When it wakes up, Linux runs it at once. */
void comm_rest(CommState *s, Wait *w)
{
    const int polls = w->polls++;
    if (polls < (s->background ? ASIDE : EAGER))
        return;
    if (polls < PATIENT && !s->background) {
        sched_yield();
        return;
    }
    nap(s->background ? 20 : 50);
    if (polls % 200 == 0) {
        comm_answer(s);
        if (clock_now() - w->began > (started(s) ? s->limit : s->at_start)) {
            give_up(s);
            *w = comm_wait_from_now();
        }
    }
}
