/* child.c -- child processes, see child.h. */
#define _GNU_SOURCE
#include "sweep/child.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopped, rang;

double child_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void child_word(Arena *a, Child *c, const char *word)
{
    ARENA_PUSH(a, c->word, c->nword, word);
}

void child_words(Arena *a, Child *c, const char *words)
{
    while (*(words += strspn(words, " \t"))) {
        const size_t n = strcspn(words, " \t");
        child_word(a, c, arena_strndup(a, words, n));
        words += n;
    }
}

static void on_signal(int number)
{
    stopped = number;
}

static void on_alarm(int number)
{
    rang = number;
}

void child_watch(void)
{
    struct sigaction a = {.sa_handler = on_signal}; /* no SA_RESTART: wait4 returns */
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
    a.sa_handler = on_alarm;
    sigaction(SIGALRM, &a, NULL);
    signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit of file sizes fails with EFBIG */
    signal(SIGPIPE, SIG_IGN);
}

int child_stopped(void)
{
    return stopped;
}

/* Runs in the new process. */
static void __attribute__((noreturn)) become(const Child *c, pid_t parent)
{
    const int out = open(c->output, O_WRONLY | O_CREAT | O_TRUNC, 0666),
              in = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* also if the parent is killed with SIGKILL */
    if (getppid() != parent)
        _exit(127);
    setpgid(0, 0);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(127);
    execvp(c->word[0], (char *const *)c->word);
    fprintf(stderr, "cannot run %s: %s\n", c->word[0], strerror(errno));
    _exit(127);
}

bool child_start(Arena *a, Child *c)
{
    const pid_t parent = getpid();
    const char **word = c->word;
    int n = c->nword;
    ARENA_PUSH(a, word, n, NULL);
    c->word = word;
    c->began = child_now();
    c->status = 127;
    c->late = false;
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0)
        become(c, parent);
    if (c->pid < 0)
        c->pid = 0;
    return c->pid > 0;
}

static void end_all(Child *c, int n, int number)
{
    for (int i = 0; i < n; i++)
        if (c[i].pid)
            kill(-c[i].pid, number);
}

/* The earliest time at which a running child will be late; 0 = never. */
static double deadline(const Child *c, int n)
{
    double first = 0;
    for (int i = 0; i < n; i++) {
        const double end = c[i].began + (double)c[i].timeout;
        if (c[i].pid && c[i].timeout && !c[i].late && (first == 0 || end < first))
            first = end;
    }
    return first;
}

static void end_late(Child *c, int n)
{
    for (int i = 0; i < n; i++)
        if (c[i].pid && c[i].timeout && child_now() >= c[i].began + (double)c[i].timeout) {
            c[i].late = true;
            kill(-c[i].pid, SIGKILL);
        }
}

static int finished(Child *c, int n, pid_t pid, int status, const struct rusage *used)
{
    for (int i = 0; i < n; i++) {
        if (c[i].pid != pid)
            continue;
        kill(-pid, SIGKILL); /* processes that it has started and left */
        c[i].pid = 0;
        c[i].seconds = child_now() - c[i].began;
        c[i].status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        c[i].used = *used;
        return i;
    }
    return -1;
}

int child_wait(Child *c, int n)
{
    struct rusage used;
    int status;
    for (;;) {
        const double end = deadline(c, n);
        if (end > 0) {
            const double left = end - child_now();
            alarm(left > 1 ? (unsigned)left + 1 : 1);
        }
        const pid_t pid = stopped ? -1 : wait4(-1, &status, 0, &used);
        const int error = errno;
        alarm(0);
        if (pid > 0) {
            const int i = finished(c, n, pid, status, &used);
            if (i >= 0)
                return i;
        } else if (stopped || error != EINTR) {
            end_all(c, n, SIGKILL);
            return -1;
        } else
            end_late(c, n);
    }
}

bool child_run(Arena *a, Child *c)
{
    return child_start(a, c) && child_wait(c, 1) == 0 && c->status == 0;
}
