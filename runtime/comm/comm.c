/* comm.c -- see comm.h: start and end of a run, comparison, broadcast, gather.  exchange.c has the
 * messages. */
#define _GNU_SOURCE
#include "comm/comm.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/threads.h"
#include "base/variables.h"
#include "comm/launch.h"
#include "comm/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GATHER_PARTS = 32 }; /* parts of one exchange: two requests each */

/* ---- broadcast, gather, comparison */

/* Rank r receives from the rank whose number is r without its highest bit: a binomial tree of
 * log2(size) rounds. */
void comm_broadcast(Comm *c, void *bytes, int64_t n, const char *during)
{
    if (c->size == 1)
        return;
    comm_enter(c, during);
    for (int64_t at = 0; at < n; at += MESSAGE) {
        const int64_t piece = n - at < MESSAGE ? n - at : MESSAGE;
        Exchange e = {.n = 0};
        int bit = 1;
        for (; bit <= c->rank; bit *= 2)
            ;
        if (c->rank > 0) {
            comm_receive(c, &e, c->rank - bit / 2, (char *)bytes + at, piece);
            comm_wait(c, &e);
        }
        for (; c->rank + bit < c->size; bit *= 2)
            comm_send(c, &e, c->rank + bit, (char *)bytes + at, piece);
        comm_wait(c, &e);
    }
    comm_leave(c);
}

void comm_gather_parts(Comm *c, const CommPart *part, int n, const char *during)
{
    if (c->size == 1)
        return;
    comm_enter(c, during);
    for (int i = 0; i < n; i += GATHER_PARTS)
        comm_gather_now(c, part + i, n - i < GATHER_PARTS ? n - i : GATHER_PARTS);
    comm_leave(c);
}

void comm_gather(Comm *c, void *all, int64_t each, const char *during)
{
    comm_gather_parts(c, &(CommPart){all, each}, 1, during);
}

/* Rank 0 reports the difference for all ranks. */
void comm_same(Comm *c, uint64_t hash, const char *what)
{
    char text[1024] = "";
    int others = 0;
    if (c->size == 1)
        return;
    uint64_t *all = rt_alloc(sizeof *all * (size_t)c->size);
    all[c->rank] = hash;
    comm_gather(c, all, sizeof hash, what);
    for (int r = 1; r < c->size; r++)
        if (all[r] != all[0] && others++ < 8) {
            const size_t n = strlen(text);
            snprintf(text + n, sizeof text - n, "%srank %d (%s)", n ? ", " : "", r,
                     comm_host(c, r));
        }
    free(all);
    if (others > 0)
        rt_die("%s%s %s %s than rank 0 (%s)", text, others > 8 ? " and more" : "",
               others > 1 ? "have" : "has", what, comm_host(c, 0));
}

/* ---- start and end */

static int number_of_variable(const char *variable)
{
    const char *text = getenv(variable);
    return text ? atoi(text) : 0;
}

/* Whether MPI knows the other ranks.  Under Slurm, srun alone is not enough: a PMI must connect
 * them. */
static bool introduced(void)
{
    return getenv(VARIABLE(OMPI_COMM_WORLD_RANK)) || getenv(VARIABLE(PMIX_RANK)) ||
           getenv(VARIABLE(PMI_RANK)) || getenv(VARIABLE(PMI_FD));
}

/* If there are more ranks than processors, a rank that waits must yield to those that compute.
 * Open MPI does so by itself only if its own mpirun has counted the ranks. */
static void yield_when_crowded(void)
{
    const int here = number_of_variable(VARIABLE(OMPI_COMM_WORLD_LOCAL_SIZE));
    if (here == 0 || here > sysconf(_SC_NPROCESSORS_ONLN))
        setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
}

/* By default, mpirun notices a broken connection between hosts only after eight minutes. */
static void hint_at_keepalive(const Comm *c)
{
    static const char *const variable = VARIABLE(OMPI_MCA_oob_tcp_keepalive_time);
    bool apart = false;
    for (int r = 1; r < c->size; r++)
        apart |= strcmp(c->state->host[r], c->state->host[0]) != 0;
    if (apart && getenv(VARIABLE(OMPI_COMM_WORLD_SIZE)) && !getenv(variable))
        rt_note("ranks are on several hosts, and mpirun would notice a broken connection after "
                "8 minutes; it takes 20 seconds with %s=10 OMPI_MCA_oob_tcp_keepalive_intvl=2 "
                "OMPI_MCA_oob_tcp_keepalive_probes=5 in its environment",
                variable);
}

typedef struct Card {
    char host[64];
    uint64_t program;
} Card;

/* Hash of the source, the compiler and the plan: two versions of tenon can divide the step of one
 * model differently. */
static uint64_t program_hash(const RtProgram *p)
{
    const int64_t plan[] = {p->batch,       p->shards,      p->slices,       p->chunk,
                            p->fixed_bytes, p->shard_bytes, p->thread_bytes, p->grad_bytes,
                            p->ntrain,      p->nbucket};
    const RtWatch *watch[] = {&p->recipe.keep, &p->recipe.stop};
    Hash h = hash_new();
    hash_add(&h, p->source_hash, strlen(p->source_hash));
    hash_add(&h, p->compiler, strlen(p->compiler));
    hash_add(&h, p->flags, strlen(p->flags));
    hash_add(&h, p->cpu, strlen(p->cpu));
    hash_add(&h, plan, sizeof plan);
    for (int i = 0; i < 2; i++)
        if (watch[i]->result) {
            hash_add(&h, watch[i]->result, strlen(watch[i]->result));
            hash_add(&h, &watch[i]->epochs, sizeof watch[i]->epochs);
        }
    for (int b = 0; b < p->nbucket; b++) {
        const int64_t bucket[] = {p->bucket[b].bytes, p->bucket[b].ready, p->bucket[b].due};
        hash_add(&h, bucket, sizeof bucket);
    }
    return hash_end(&h);
}

/* Exchanges the names of hosts, and dies if the ranks run different programs. */
static void introduce(Comm *c, const RtProgram *p)
{
    Card *card = rt_alloc(sizeof *card * (size_t)c->size), *mine = &card[c->rank];
    gethostname(mine->host, sizeof mine->host - 1);
    mine->program = program_hash(p);
    comm_gather(c, card, sizeof *card, "the start of all ranks");
    for (int r = 0; r < c->size; r++)
        memcpy(c->state->host[r], card[r].host, sizeof card[r].host);
    rt_speaker(rt_format("rank %d (%s): ", c->rank, mine->host), c->rank == 0);
    comm_same(c, mine->program, "another program");
    hint_at_keepalive(c);
    free(card);
}

static void __attribute__((noreturn)) unknown_to_mpi(int tasks, const char *word)
{
    rt_die("this process is one of %d tasks (%s), but its MPI does not know the others: start it "
           "with srun --mpi=pmix under Slurm, else with the mpirun of the MPI that it was built "
           "with",
           tasks, word);
}

static CommState *the_run; /* for comm_end_all, which has no argument for it */

static void comm_end_all(int code)
{
    the_run->t->abort(code);
    if (the_run->let_go)
        the_run->let_go();
}

/* MPI's start and its end have no time limit, and block this thread.  So another thread waits for
 * the limit. */
typedef struct Guard {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool done;
    double limit;
    int speaks;       /* the rank, if messages do not show it yet; else -1 */
    const char *late; /* the message after the limit */
} Guard;

static void *count_seconds(void *arg)
{
    Guard *g = arg;
    const struct timespec until = threads_after(g->limit + 1);
    pthread_mutex_lock(&g->lock);
    for (int rc = 0; !g->done && rc == 0;)
        rc = pthread_cond_timedwait(&g->over, &g->lock, &until);
    if (!g->done && g->speaks >= 0)
        rt_speaker(rt_format("rank %d: ", g->speaks), g->speaks == 0);
    if (!g->done)
        rt_lost("%.0f s at %s", g->limit, g->late);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

static void guard_begin(Guard *g, double limit, int speaks, const char *late)
{
    *g = (Guard){.limit = limit, .speaks = speaks, .late = late};
    pthread_mutex_init(&g->lock, NULL);
    threads_condition(&g->over);
    if (threads_start(&g->thread, count_seconds, g) != 0)
        rt_die("no thread could be started");
}

static void guard_end(Guard *g)
{
    pthread_mutex_lock(&g->lock);
    g->done = true;
    pthread_cond_signal(&g->over);
    pthread_mutex_unlock(&g->lock);
    pthread_join(g->thread, NULL);
}

static void join_launch(CommState *s, const Launch *l)
{
    Comm *c = s->comm;
    Guard g;
    if (s->t->asks)
        guard_begin(&g, s->at_start, l->rank,
                    rt_format("the start of MPI, longer than --timeout-start: one of %d ranks (%s) "
                              "has ended before it, is stopped, or its host is unreachable",
                              l->size, l->word));
    s->t->open(s->limit, &c->rank, &c->size, &c->local_rank, &c->local_size);
    if (s->t->asks)
        guard_end(&g);
}

void comm_at_death(Comm *c, void (*let_go)(void))
{
    c->state->let_go = let_go;
}

void comm_open(Comm *c, const RtProgram *p, double limit, double at_start)
{
    const Launch l = launch_read();
    *c = (Comm){.size = 1, .local_size = 1};
    if (l.size == 1)
        return;
    if (!p->transport)
        rt_die("this process is one of %d tasks (%s), but the program was built with --comm none: "
               "build it with --comm %s, or start one task",
               l.size, l.word, p->device ? "nccl" : "mpi");
    if (p->transport->asks && !introduced())
        unknown_to_mpi(l.size, l.word);
    CommState *s = rt_alloc(sizeof *s);
    *s = (CommState){.t = p->transport, .comm = c, .limit = limit, .at_start = at_start};
    pthread_mutex_init(&s->lock, NULL);
    yield_when_crowded();
    join_launch(s, &l);
    if (c->size == 1)
        unknown_to_mpi(l.size, l.word);
    c->state = the_run = s;
    s->host = rt_alloc(sizeof *s->host * (size_t)c->size);
    s->of = rt_alloc(sizeof *s->of * (size_t)c->size);
    s->answered = rt_alloc(sizeof *s->answered * (size_t)c->size);
    s->t->room(COMM_REQUESTS);
    rt_at_death(comm_end_all);
    comm_start(s);
    introduce(c, p);
}

void comm_started(Comm *c)
{
    if (c->size > 1)
        __atomic_store_n(&c->state->started, true, __ATOMIC_RELAXED);
}

void comm_close(Comm *c)
{
    if (c->size == 1)
        return;
    CommState *s = c->state;
    char *here = rt_alloc((size_t)c->size);
    Guard g;
    __atomic_store_n(&s->ending, true, __ATOMIC_RELAXED);
    comm_gather(c, here, 1, "the end of all ranks"); /* rank 0 has saved its files by now */
    free(here);
    rt_at_death(NULL);
    pthread_mutex_lock(&s->lock); /* never unlocked: keeps the thread of posts off the transport */
    if (s->t->asks)
        guard_begin(&g, s->limit, -1,
                    "the end of MPI, longer than --timeout: a rank is stopped, or its host is "
                    "unreachable");
    s->t->close();
    if (s->t->asks)
        guard_end(&g);
}

const char *comm_host(const Comm *c, int rank)
{
    return c->size > 1 ? c->state->host[rank] : "this machine";
}

const char *comm_library(const Comm *c)
{
    return c->size > 1 ? c->state->t->describe() : "none";
}
