/* lines.c -- finds cache lines that two threads would write at the same time (false sharing).
 *
 * Linked with a program.  While the program simulates threads (bench --simulate), units and members
 * of teams run one after another.  Pages of the arena are read-only until something writes to them;
 * after each part the written pages are compared with a copy, line by line.  A write of the value
 * that is there already is not seen; several steps change most values.
 *
 * Compile it with the simulated program: CC is a script that adds this object and
 * -Wl,--wrap=memory_map to the options of the linker.  At the end of the process, stderr has a row
 * for each job and part:
 *
 *   lines: PAIRS pairs, LINES written lines, PARTS parts
 *   lines: shared N times, JOB, first: line L, threads A and B, part P
 *
 * Jobs without a name are not parts of a step, and are left out.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LINE = 64, PAGE = 4096, ROWS = 64 };

extern void (*simulation_watch)(const char *what, int team, int thread, int part);

/* The writer of a line in the current job. */
typedef struct Owner {
    int job, team, thread, part;
} Owner;

typedef struct Row {
    const char *what;
    int64_t line, count;
    int threads[2], part;
} Row;

static char *begin, *copy;
static int64_t bytes, pairs, written, parts;
static Owner *owner; /* [lines] */
static unsigned char *dirty;
static int64_t *page; /* [ndirty] */
static int64_t ndirty;
static int job, nrow;
static Row row[ROWS];

static void writes(int number, siginfo_t *info, void *context)
{
    (void)context;
    char *at = info->si_addr;
    if (at < begin || at >= begin + bytes) {
        signal(number, SIG_DFL);
        return;
    }
    const int64_t i = (at - begin) / PAGE;
    mprotect(begin + i * PAGE, PAGE, PROT_READ | PROT_WRITE);
    if (!dirty[i])
        dirty[i] = 1, page[ndirty++] = i;
}

static void *zeros(int64_t n)
{
    void *p = mmap(NULL, (size_t)n, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        perror("lines");
        exit(1);
    }
    return p;
}

/* Linked with --wrap=memory_map. */
void *__real_memory_map(int64_t size, bool touch, const char *what);
void *__wrap_memory_map(int64_t size, bool touch, const char *what)
{
    char *at = __real_memory_map(size, touch, what);
    if (strcmp(what, "the arena") == 0) {
        if (copy) /* the arena of the simulation of one thread */
            mprotect(begin, (size_t)bytes, PROT_READ | PROT_WRITE);
        begin = at, bytes = size / PAGE * PAGE, copy = NULL, ndirty = 0;
    }
    return at;
}

static void start(void)
{
    copy = zeros(bytes);
    owner = zeros(bytes / LINE * (int64_t)sizeof *owner);
    dirty = zeros(bytes / PAGE);
    page = zeros(bytes / PAGE * (int64_t)sizeof *page);
    memcpy(copy, begin, (size_t)bytes);
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = writes, .sa_flags = SA_SIGINFO}, NULL);
    mprotect(begin, (size_t)bytes, PROT_READ);
}

static void report(const char *what, int64_t line, Owner a, Owner b)
{
    int i = 0;
    for (; i < nrow && !(strcmp(row[i].what, what) == 0 && row[i].part == b.part); i++) { }
    pairs++;
    if (i == nrow) {
        if (nrow == ROWS)
            return;
        row[nrow++] = (Row){what, line, 0, {a.thread, b.thread}, b.part};
    }
    row[i].count++;
}

static void take_lines(const char *what, Owner now, bool counts)
{
    for (int64_t k = 0; k < ndirty; k++) {
        char *at = begin + page[k] * PAGE, *old = copy + page[k] * PAGE;
        for (int64_t l = 0; counts && l < PAGE / LINE; l++) {
            Owner *o = &owner[page[k] * (PAGE / LINE) + l];
            if (memcmp(at + l * LINE, old + l * LINE, LINE) == 0)
                continue;
            written++;
            if (*what && o->job == now.job && o->thread != now.thread &&
                (o->team != now.team || o->part == now.part))
                report(what, page[k] * (PAGE / LINE) + l, *o, now);
            *o = now;
        }
        memcpy(old, at, PAGE);
        mprotect(at, PAGE, PROT_READ);
        dirty[page[k]] = 0;
    }
    ndirty = 0;
}

static void watch(const char *what, int team, int thread, int part)
{
    if (!copy)
        start();
    job += thread < 0;
    parts += thread >= 0;
    take_lines(what, (Owner){job, team, thread, part}, thread >= 0);
}

static void print(void)
{
    fprintf(stderr, "lines: %lld pairs, %lld written lines, %lld parts\n", (long long)pairs,
            (long long)written, (long long)parts);
    for (int i = 0; i < nrow; i++)
        fprintf(stderr, "lines: shared %lld times, %s, first: line %lld, threads %d and %d, part %d\n",
                (long long)row[i].count, row[i].what, (long long)row[i].line, row[i].threads[0],
                row[i].threads[1], row[i].part);
}

/* Programs end with _exit. */
void _exit(int code)
{
    print();
    syscall(SYS_exit_group, code);
    __builtin_unreachable();
}

__attribute__((constructor)) static void begin_watch(void)
{
    simulation_watch = watch;
}
