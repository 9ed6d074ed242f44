/* simulation.c -- see simulation.h: coroutines, records of units, and their layout on a machine. */
#include "base/simulation.h"
#include "base/error.h"
#include "base/fanout.h"
#include "base/team.h"
#include "rt.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

/* A moment on the clock of the machine and on that of this thread's processor time. */
typedef struct Moment {
    int64_t wall, used;
} Moment;

/* A part of a unit, up to the next barrier of the team: nanoseconds in each step. */
typedef float Part[SIMULATION_STEPS];

typedef struct Unit {
    int nparts, room;
    Part *part;
    int *call;     /* of each part; -1: of no call */
    int first, of; /* first thread and size of the team; of 0: no team */
} Unit;

typedef struct Job {
    const char *what;
    double bytes, local;
    bool each;
    int units, *end; /* end: [threads], or NULL */
    Unit *unit;
    Part before; /* nanoseconds between the job before and this one, of one thread */
} Job;

/* A member of a team while it computes. */
typedef struct Member {
    ucontext_t context;
    char *stack;
    RtTeam team; /* rt_team while the member waits */
    bool waits, ended;
    int arrived; /* of the first thread of a team: members at the barrier */
    int parts;   /* ended in this step */
    int counted; /* of these, the parts whose call is known */
} Member;

struct Simulation {
    int threads;
    bool backwards;
    int njobs, room, at; /* at: index of the next job in the step */
    Job *job;
    int step; /* steps that have ended */
    bool inside;
    Moment ended; /* the job before */
    Part after;   /* nanoseconds between the last job and the end of the step */
    const char *what;
    double bytes, local;
    /* the members of the current job */
    Member *member;
    ucontext_t caller;
    Job *current; /* NULL: the job is not recorded */
    int running;
    PoolWork work;
    void *arg;
    Moment began;
    int64_t overhead, overhead_used; /* of two readings of the clocks, in either time */
};

static Simulation *active; /* runs members; NULL: none */

void (*simulation_watch)(const char *what, int team, int thread, int part);

/* Longer parts count the thread's time, because other programs may interrupt them. */
enum { LONG_NS = 50000 };

int64_t (*simulation_clock)(void);

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    if (simulation_clock)
        return simulation_clock();
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* The clock of the machine is read last here, and first in moment_after, so that only the measured
 * work lies between the two readings. */
static Moment moment_before(void)
{
    const int64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return (Moment){clock_ns(CLOCK_MONOTONIC), used};
}

static Moment moment_after(void)
{
    const int64_t wall = clock_ns(CLOCK_MONOTONIC);
    return (Moment){wall, clock_ns(CLOCK_THREAD_CPUTIME_ID)};
}

Simulation *simulation_new(int threads, bool backwards)
{
    Simulation *s = rt_alloc(sizeof *s);
    *s = (Simulation){.threads = threads,
                      .backwards = backwards,
                      .what = "",
                      .overhead = INT64_MAX,
                      .overhead_used = INT64_MAX};
    for (int i = 0; i < 1000; i++) {
        const Moment a = moment_before(), b = moment_after();
        s->overhead = b.wall - a.wall < s->overhead ? b.wall - a.wall : s->overhead;
        s->overhead_used = b.used - a.used < s->overhead_used ? b.used - a.used : s->overhead_used;
    }
    return s;
}

void simulation_free(Simulation *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->njobs; i++) {
        for (int u = 0; u < s->job[i].units; u++)
            free(s->job[i].unit[u].part), free(s->job[i].unit[u].call);
        free(s->job[i].unit), free(s->job[i].end);
    }
    for (int t = 0; s->member && t < s->threads; t++)
        munmap(s->member[t].stack, (size_t)threads_stack_bytes());
    free(s->member), free(s->job), free(s);
}

void simulation_next(Simulation *s, const char *what, double bytes, double local)
{
    s->what = what, s->bytes = bytes, s->local = local;
}

/* ---- records */

static float elapsed(const Simulation *s, Moment from, Moment to)
{
    const int64_t wall = to.wall - from.wall - s->overhead,
                  used = to.used - from.used - s->overhead_used;
    return wall < 0 ? 0 : wall > LONG_NS && used < wall ? (float)used : (float)wall;
}

static void record_part(const Simulation *s, Unit *u, int part, Moment from, Moment to)
{
    if (part >= u->room) {
        u->room = u->room ? 2 * u->room : 1;
        u->part = realloc(u->part, sizeof *u->part * (size_t)u->room);
        u->call = realloc(u->call, sizeof *u->call * (size_t)u->room);
        if (!u->part || !u->call)
            rt_die("out of memory for the times of a simulation");
    }
    if (part >= u->nparts)
        u->nparts = part + 1, u->call[part] = -1;
    u->part[part][s->step] = elapsed(s, from, to);
}

static Job *new_job(Simulation *s, int units, const int *end, bool each)
{
    if (s->njobs == s->room) {
        s->room = s->room ? 2 * s->room : 64;
        s->job = realloc(s->job, sizeof *s->job * (size_t)s->room);
        if (!s->job)
            rt_die("out of memory for the times of a simulation");
    }
    Job *j = &s->job[s->njobs++];
    *j = (Job){.each = each, .units = units, .unit = rt_alloc(sizeof(Unit) * (size_t)units)};
    if (end)
        j->end = memcpy(rt_alloc(sizeof *end * (size_t)s->threads), end,
                        sizeof *end * (size_t)s->threads);
    return j;
}

/* The record of the next job of this step. */
static Job *record_job(Simulation *s, int units, const int *end, bool each)
{
    if (!s->inside)
        return NULL;
    if (s->step == 0)
        new_job(s, units, end, each);
    if (s->at >= s->njobs || s->job[s->at].units != units)
        rt_die("a simulation needs steps with equal phases, and step %d has others than the first",
               s->step + 1);
    Job *j = &s->job[s->at++];
    j->what = s->what, j->bytes = s->bytes, j->local = s->local;
    j->before[s->step] = elapsed(s, s->ended, moment_after());
    return j;
}

void simulation_step_begin(Simulation *s)
{
    s->inside = true;
    s->at = 0;
    s->ended = moment_before();
}

void simulation_step_end(Simulation *s)
{
    s->after[s->step++] = elapsed(s, s->ended, moment_after());
    s->inside = false;
}

/* ---- members of teams */

/* Assigns all parts since the previous call to `call`. A call has several parts if its kernel has
 * barriers inside. */
bool simulation_tick(int call)
{
    Simulation *s = active;
    Member *m = s ? &s->member[s->running] : NULL;
    for (; m && m->counted < m->parts; m->counted++)
        if (s->current)
            s->current->unit[s->running].call[m->counted] = call;
    return s;
}

static void end_part(Simulation *s, Moment now)
{
    Member *m = &s->member[s->running];
    if (simulation_watch)
        simulation_watch(s->what, s->running - rt_team.at, s->running, m->parts);
    if (s->current)
        record_part(s, &s->current->unit[s->running], m->parts, s->began, now);
    m->parts++;
}

static void enter(void)
{
    Simulation *s = active;
    s->began = moment_before();
    s->work(s->arg, s->running, s->running);
    end_part(s, moment_after());
    s->member[s->running].ended = true; /* the context continues at uc_link */
}

bool simulation_runs(void)
{
    return active;
}

/* To be called by a member at a barrier, instead of waiting.  The last member that arrives lets all
 * members of its team continue. */
static bool pass_barrier(void)
{
    Simulation *s = active;
    if (!s)
        return false;
    end_part(s, moment_after());
    const int t = s->running, first = t - rt_team.at;
    Member *m = &s->member[t];
    m->team = rt_team;
    m->waits = true;
    if (s->current)
        s->current->unit[t].first = first, s->current->unit[t].of = rt_team.of;
    if (++s->member[first].arrived == rt_team.of) {
        s->member[first].arrived = 0;
        for (int i = 0; i < rt_team.of; i++)
            s->member[first + i].waits = false;
    }
    swapcontext(&m->context, &s->caller);
    rt_team = m->team;
    s->began = moment_before();
    return true;
}

static void start_member(Simulation *s, Member *m)
{
    const size_t bytes = (size_t)threads_stack_bytes();
    if (!m->stack) {
        m->stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m->stack == MAP_FAILED)
            rt_die("out of memory for the stacks of %d simulated threads", s->threads);
    }
    getcontext(&m->context);
    m->context.uc_stack.ss_sp = m->stack;
    m->context.uc_stack.ss_size = bytes;
    m->context.uc_link = &s->caller;
    makecontext(&m->context, enter, 0);
    m->waits = m->ended = false;
    m->arrived = m->parts = m->counted = 0;
}

/* The thread or unit at position i of n. */
static int in_order(const Simulation *s, int i, int n)
{
    return s->backwards ? n - 1 - i : i;
}

/* Runs each member up to its next barrier, in turn, until all have ended. */
static void run_members(Simulation *s)
{
    const RtTeam own = rt_team;
    if (!s->member)
        s->member = rt_alloc(sizeof *s->member * (size_t)s->threads);
    for (int t = 0; t < s->threads; t++)
        start_member(s, &s->member[t]);
    active = s;
    team_wait_instead = pass_barrier;
    for (int left = s->threads; left > 0;) {
        left = 0;
        for (int i = 0; i < s->threads; i++) {
            const int t = in_order(s, i, s->threads);
            Member *m = &s->member[t];
            if (!m->ended && !m->waits) {
                s->running = t;
                swapcontext(&s->caller, &m->context);
            }
            left += !m->ended;
        }
    }
    active = NULL;
    team_wait_instead = NULL;
    rt_team = own;
}

void simulation_run(Simulation *s, PoolWork work, void *arg, int units, const int *end, bool each)
{
    s->current = record_job(s, units, end, each);
    if (simulation_watch)
        simulation_watch(s->what, -1, -1, -1);
    if (each) {
        s->work = work, s->arg = arg;
        run_members(s);
    } else {
        for (int i = 0; i < units; i++) {
            const int u = in_order(s, i, units), thread = (int)((int64_t)u * s->threads / units);
            const Moment began = moment_before();
            work(arg, thread, u);
            if (s->current)
                record_part(s, &s->current->unit[u], 0, began, moment_after());
            if (simulation_watch)
                simulation_watch(s->what, thread, thread, 0);
        }
    }
    s->current = NULL;
    s->ended = moment_before();
}

/* ---- the layout on a machine */

typedef struct Layout {
    const Simulation *s;
    const Machine *m;
    Fanout fan;
    double scale;        /* nanoseconds here to seconds on the machine */
    double line[3];      /* seconds to move a cache line, by distance */
    double *begin, *end; /* [threads] */
    int *next, *last;    /* [threads]: units that nobody has taken yet */
    bool *worked;        /* [threads] */
    SimulatedCall *call; /* NULL: not counted now */
} Layout;

static int ascending_parts(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double median_part(const Simulation *s, const Part times)
{
    Part sorted;
    memcpy(sorted, times, sizeof sorted);
    qsort(sorted, (size_t)s->step, sizeof *sorted, ascending_parts);
    return (double)sorted[s->step / 2];
}

static double unit_time(const Layout *l, const Unit *u)
{
    double sum = 0;
    for (int i = 0; i < u->nparts; i++)
        sum += median_part(l->s, u->part[i]);
    return l->scale * sum;
}

static double move_line(const Layout *l, int a, int b)
{
    return l->line[machine_distance(l->m, a, b)];
}

/* The barrier of a team (base/team.c): along a binomial tree to its first member, and back. */
static double team_barrier(const Layout *l, int first, int of)
{
    double *at = rt_alloc(sizeof *at * (size_t)of), all = 0;
    int top = 1;
    for (int m = of - 1; m >= 0; m--)
        for (int d = 1; d < of && !(m & d) && m + d < of; d *= 2)
            at[m] =
                (at[m] > at[m + d] ? at[m] : at[m + d]) + move_line(l, first + m, first + m + d);
    while (top < of)
        top *= 2;
    for (int m = 1; m < of; m++)
        at[m] = 0;
    for (int d = top / 2; d > 0; d /= 2)
        for (int m = 0; m + d < of; m += 2 * d)
            at[m + d] = at[m] += move_line(l, first + m, first + m + d);
    for (int m = 0; m < of; m++)
        all = at[m] > all ? at[m] : all;
    free(at);
    return all;
}

/* Seconds of the team whose first thread is `first`, with its barriers. */
static double team_time(Layout *l, const Job *j, int first, int *barriers)
{
    const int of = j->unit[first].of, parts = j->unit[first].nparts;
    const double wait = team_barrier(l, first, of);
    double sum = 0;
    for (int i = 0; i < parts; i++) {
        double slowest = 0, all = 0;
        for (int m = 0; m < of; m++) {
            const Unit *u = &j->unit[first + m];
            const double t = i < u->nparts ? median_part(l->s, u->part[i]) : 0;
            slowest = t > slowest ? t : slowest;
            all += t;
        }
        if (l->call && j->unit[first].call[i] >= 0) {
            SimulatedCall *c = &l->call[j->unit[first].call[i]];
            c->step += l->scale * slowest * of, c->work += l->scale * all, c->parts++;
            c->barriers += wait * of;
        }
        sum += l->scale * slowest + (i + 1 < parts ? wait : 0);
    }
    *barriers = parts - 1;
    return sum;
}

/* Messages from parents to children: when each thread can begin. */
static void fork_threads(Layout *l, int threads)
{
    for (int t = 0; t < threads; t++)
        l->begin[t] = 0;
    for (int t = 0; t < threads; t++)
        for (int i = 0; i < l->fan.nchild[t]; i++) {
            const int c = l->fan.child[t][i];
            if (c < threads)
                l->begin[c] = l->begin[t] += move_line(l, t, c);
        }
}

/* Answers of children to parents: the end of thread 0. */
static double join_threads(Layout *l, int threads)
{
    for (int t = threads - 1; t >= 0; t--)
        for (int i = l->fan.nchild[t]; i-- > 0;) {
            const int c = l->fan.child[t][i];
            if (c < threads)
                l->end[t] = (l->end[t] > l->end[c] ? l->end[t] : l->end[c]) + move_line(l, t, c);
        }
    return l->end[0];
}

static bool take_from(Layout *l, int victim, int *unit)
{
    if (l->next[victim] >= l->last[victim])
        return false;
    *unit = l->next[victim]++;
    return true;
}

/* The next unit of a thread, in the order of take_units in pool.c; -1: none is left. */
static int take_unit(Layout *l, int thread, int threads)
{
    const Fanout *f = &l->fan;
    const int own = f->group[thread];
    int unit = -1;
    if (take_from(l, thread, &unit))
        return unit;
    for (int distance = -1; distance < 3; distance++)
        for (int k = distance < 0 ? 0 : 1; k < (distance < 0 ? 1 : f->groups); k++) {
            const int g = (own + k) % f->groups;
            const FanoutGroup *a = &f->part[own], *b = &f->part[g];
            const int apart = a->socket != b->socket ? 2 : a->cache != b->cache;
            if (distance >= 0 && apart != distance)
                continue;
            const int end = b->end < threads ? b->end : threads, n = end - b->first;
            for (int i = 0; i < n; i++)
                if (take_from(l, b->first + (distance < 0 ? thread - b->first + i : i) % n, &unit))
                    return unit;
        }
    return -1;
}

static void share_units(Layout *l, const Job *j, int threads)
{
    for (int t = 0; t < threads; t++) {
        l->next[t] = j->end ? (t ? j->end[t - 1] : 0) : (int)((int64_t)j->units * t / threads);
        l->last[t] = j->end ? j->end[t] : (int)((int64_t)j->units * (t + 1) / threads);
    }
}

static void run_units(Layout *l, const Job *j, int threads)
{
    bool *over = rt_alloc(sizeof *over * (size_t)threads);
    share_units(l, j, threads);
    for (int left = threads; left > 0;) {
        int first = -1;
        for (int t = 0; t < threads; t++)
            if (!over[t] && (first < 0 || l->end[t] < l->end[first]))
                first = t;
        const int u = take_unit(l, first, threads);
        if (u < 0) {
            over[first] = true, left--;
            continue;
        }
        l->end[first] += unit_time(l, &j->unit[u]);
        l->worked[first] = true;
    }
    free(over);
}

static void run_teams(Layout *l, const Job *j, int *barriers)
{
    for (int t = 0; t < j->units; t++) {
        const Unit *u = &j->unit[t];
        int n = 0;
        l->worked[t] = true;
        if (u->of == 0) {
            l->end[t] += unit_time(l, u);
        } else if (u->first == t) {
            const double time = team_time(l, j, t, &n);
            for (int m = 0; m < u->of; m++)
                l->end[t + m] += time;
        }
        *barriers = n > *barriers ? n : *barriers;
    }
}

/* Seconds from the beginning of a job to its end on thread 0. */
static double job_time(Layout *l, const Job *j, int *barriers)
{
    const int threads = !j->each && !j->end && j->units < l->s->threads ? j->units : l->s->threads;
    *barriers = 0;
    if (threads <= 0)
        return 0;
    fork_threads(l, threads);
    memcpy(l->end, l->begin, sizeof *l->end * (size_t)threads);
    memset(l->worked, 0, sizeof *l->worked * (size_t)l->s->threads);
    if (j->each)
        run_teams(l, j, barriers);
    else
        run_units(l, j, threads);
    *barriers += threads > 1;
    return join_threads(l, threads);
}

/* Counts the threads with work.  A member whose parts take no time in sum has no work. */
static int working(const Layout *l, const Job *j)
{
    int n = 0;
    for (int t = 0; t < l->s->threads; t++)
        n += l->worked[t] && (!j->each || unit_time(l, &j->unit[t]) > 1e-6);
    return n;
}

static SimulatedJob *job_named(Simulated *r, const Job *j)
{
    for (int i = 0; i < r->njob; i++)
        if (strcmp(r->job[i].what, j->what) == 0)
            return &r->job[i];
    r->job[r->njob] = (SimulatedJob){.what = j->what};
    return &r->job[r->njob++];
}

static int sockets_used(const Machine *m, int threads)
{
    const int socket = m->caches * m->cores, n = (threads + socket - 1) / socket;
    return n < m->sockets ? n : m->sockets;
}

/* Adds a job to the result.  The time of the barriers is the difference from the same job with
 * barriers that take no time. */
static void add_job(Layout *l, const Job *j, double moved, Simulated *r)
{
    const int threads = l->s->threads;
    const double rate = 1e9 * l->m->memory_gbs * sockets_used(l->m, threads);
    double work = 0, line[3];
    int barriers = 0, none = 0;
    for (int u = 0; u < j->units; u++)
        work += unit_time(l, &j->unit[u]);
    l->call = r->call;
    const double time = job_time(l, j, &barriers), least = moved / rate;
    l->call = NULL;
    const int parallel = working(l, j);
    memcpy(line, l->line, sizeof line);
    memset(l->line, 0, sizeof l->line);
    const double bare = job_time(l, j, &none);
    memcpy(l->line, line, sizeof line);
    SimulatedJob *n = job_named(r, j);
    const double all = time > least ? time : least;
    n->count++;
    n->units = j->units > n->units ? j->units : n->units;
    n->parallel = parallel > n->parallel ? parallel : n->parallel;
    n->step += all;
    n->work += work;
    n->barriers += threads * (time - bare);
    n->memory += threads * (all - time);
    n->idle += threads * bare - work;
    r->step += all, r->work += work, r->barriers += barriers;
}

Simulated simulation_result(const Simulation *s, const Machine *m, double faster, bool in_memory,
                            bool local_in_memory, int ncall)
{
    const size_t n = (size_t)s->threads;
    Simulated r = {.job = rt_alloc(sizeof *r.job * (size_t)(s->njobs + 1)),
                   .call = rt_alloc(sizeof *r.call * (size_t)ncall),
                   .units_least = -1};
    Layout l = {.s = s,
                .m = m,
                .scale = 1e-9 * faster,
                .begin = rt_alloc(sizeof *l.begin * n),
                .end = rt_alloc(sizeof *l.end * n),
                .next = rt_alloc(sizeof *l.next * n),
                .last = rt_alloc(sizeof *l.last * n),
                .worked = rt_alloc(sizeof *l.worked * n)};
    Processor *p = machine_processors(m, s->threads);
    fanout_plan(&l.fan, p, s->threads);
    for (int i = 0; i < 3; i++)
        l.line[i] = 1e-9 * m->line_ns[i];
    r.alone = l.scale * median_part(s, s->after);
    for (int i = 0; i < s->njobs; i++) {
        const Job *j = &s->job[i];
        r.alone += l.scale * median_part(s, j->before);
        add_job(&l, j, (in_memory ? j->bytes : 0) + (local_in_memory ? j->local : 0), &r);
    }
    r.step += r.alone;
    for (int i = 0; i < r.njob; i++)
        if (r.job[i].step >= .01 * r.step &&
            (r.units_least < 0 || r.job[i].parallel < r.units_least))
            r.units_least = r.job[i].parallel;
    fanout_free(&l.fan);
    free(p), free(l.begin), free(l.end), free(l.next), free(l.last), free(l.worked);
    return r;
}
