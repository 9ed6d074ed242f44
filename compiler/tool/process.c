/* process.c -- runs other programs: C compilers in parallel, and the program just built.
 *
 * Each child leads its own process group, so that a signal to the group also ends the children of
 * the C compiler.
 */
#define _GNU_SOURCE /* environ, pipe2, ppoll, sched_getaffinity */
#include "tool/process.h"
#include "base/quote.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

volatile int process_signal;

void process_begin(void)
{
    int fd = 0;
    while (fd >= 0 && fd <= 2) {
        fd = open("/dev/null", O_WRONLY); /* the lowest free descriptor; 0 only for writing, */
        if (fd == 1 || fd == 2) {         /* 1 and 2 only for reading */
            close(fd);
            fd = open("/dev/null", O_RDONLY);
        }
    }
    if (fd > 2)
        close(fd);
}

void argv_add(Arena *a, Argv *v, const char *word)
{
    ARENA_PUSH(a, v->word, v->n, arena_strdup(a, word));
}

void argv_split(Arena *a, Argv *v, const char *words)
{
    while (*words) {
        const size_t blank = strspn(words, " \t\n"), len = strcspn(words + blank, " \t\n");
        if (len)
            ARENA_PUSH(a, v->word, v->n, arena_strndup(a, words + blank, len));
        words += blank + len;
    }
}

void argv_end(Arena *a, Argv *v)
{
    ARENA_PUSH(a, v->word, v->n, NULL);
    v->n--;
}

const char *argv_text(Arena *a, const Argv *v)
{
    Text t = text_new(a);
    for (int i = 0; i < v->n; i++)
        text_printf(&t, "%s%s", i ? " " : "", quote_shell(a, v->word[i]));
    return t.s;
}

Process process_of(Arena *a, Argv command)
{
    return (Process){.command = command, .output = text_new(a)};
}

int process_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

typedef struct Child {
    Process *process;
    pid_t pid;
    int fd;
} Child;

/* Starts a child.  stdout and stderr go to a pipe, stdin is empty, and the signal mask is that of
 * the caller. */
static bool start(Child *c, const sigset_t *mask)
{
    int fd[2];
    Process *p = c->process;
    p->status = -1;
    if (pipe2(fd, O_CLOEXEC) != 0) {
        p->error = errno;
        return false;
    }
    posix_spawn_file_actions_t act;
    posix_spawnattr_t attr;
    posix_spawn_file_actions_init(&act);
    posix_spawn_file_actions_addopen(&act, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&act, fd[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&act, fd[1], STDERR_FILENO);
    posix_spawnattr_init(&attr);
    posix_spawnattr_setsigmask(&attr, mask);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    p->error = posix_spawnp(&c->pid, p->command.word[0], &act, &attr, p->command.word, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&act);
    close(fd[1]);
    c->fd = fd[0];
    if (p->error)
        close(c->fd);
    return !p->error;
}

/* Reads output of the child; true if the output has ended and the status is known. */
static bool finished(Child *c)
{
    char bytes[4096];
    int status = 0;
    const ssize_t n = read(c->fd, bytes, sizeof bytes);
    if (n > 0)
        text_addn(&c->process->output, bytes, (size_t)n);
    if (n > 0 || (n < 0 && errno == EINTR))
        return false;
    close(c->fd);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
        ;
    c->process->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return true;
}

static void note_signal(int sig)
{
    process_signal = sig;
}

enum { CAUGHT = 3 };
static const int caught[CAUGHT] = {SIGINT, SIGTERM, SIGHUP};

/* Catches signals.  They are blocked except during ppoll, so that none is missed. */
static void catch_signals(struct sigaction *old, sigset_t *mask)
{
    struct sigaction act = {.sa_handler = note_signal};
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < CAUGHT; i++) {
        sigaddset(&set, caught[i]);
        sigaction(caught[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN)
            sigaction(caught[i], &act, NULL);
    }
    sigprocmask(SIG_BLOCK, &set, mask);
}

static void release_signals(const struct sigaction *old, const sigset_t *mask)
{
    sigprocmask(SIG_SETMASK, mask, NULL);
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &old[i], NULL);
}

/* A line of progress on the terminal of stderr. */
typedef struct Progress {
    const char *what;
    int columns; /* 0: no line is shown */
    struct timespec began;
    int done;          /* as shown */
    long long seconds; /* as shown; 0: no line has been shown */
} Progress;

static Progress progress_begin(const char *what)
{
    struct winsize size = {0};
    Progress p = {.what = what};
    if (what && isatty(STDERR_FILENO) && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0)
        p.columns = size.ws_col;
    clock_gettime(CLOCK_MONOTONIC, &p.began);
    return p;
}

/* Draws "compiling: 34 of 120, 12 s" from the first second on, cut off at the width of the
 * terminal. */
static void progress_draw(Progress *p, int done, int n)
{
    struct timespec now;
    char text[256], share[32] = "";
    if (!p->columns)
        return;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const long long seconds = (long long)(now.tv_sec - p->began.tv_sec);
    if (seconds < 1 || (seconds == p->seconds && done == p->done))
        return;
    p->seconds = seconds, p->done = done;
    if (n > 1)
        snprintf(share, sizeof share, "%d of %d, ", done, n);
    snprintf(text, sizeof text, "%s: %s%lld s", p->what, share, seconds);
    fprintf(stderr, "\r\033[K%.*s", p->columns - 1, text);
    fflush(stderr);
}

static void progress_end(const Progress *p)
{
    if (p->seconds)
        fputs("\r\033[K", stderr);
}

int process_run_all(Process *p, int n, int jobs, const char *what)
{
    enum { MOST = 256 };
    Child child[MOST];
    struct sigaction old[CAUGHT];
    sigset_t mask;
    int running = 0, next = 0, failed = -1;
    bool ending = false;
    Progress progress = progress_begin(what);
    static const struct timespec second = {1, 0};

    jobs = jobs < 1 ? 1 : jobs > MOST ? MOST : jobs;
    process_signal = 0;
    catch_signals(old, &mask);
    while (running || (next < n && failed < 0 && !process_signal)) {
        while (next < n && running < jobs && failed < 0 && !process_signal) {
            child[running] = (Child){.process = &p[next]};
            if (start(&child[running], &mask))
                running++, next++;
            else
                failed = next;
        }
        if ((failed >= 0 || process_signal) && !ending) {
            ending = true;
            for (int i = 0; i < running; i++)
                kill(-child[i].pid, SIGTERM);
        }
        struct pollfd ready[MOST];
        for (int i = 0; i < running; i++)
            ready[i] = (struct pollfd){.fd = child[i].fd, .events = POLLIN};
        progress_draw(&progress, next - running, n);
        if (!running ||
            ppoll(ready, (nfds_t)running, progress.columns ? &second : NULL, &mask) <= 0)
            continue;
        for (int i = running - 1; i >= 0; i--) {
            if (!ready[i].revents || !finished(&child[i]))
                continue;
            if (child[i].process->status != 0 && failed < 0 && !process_signal)
                failed = (int)(child[i].process - p);
            child[i] = child[--running];
        }
    }
    progress_end(&progress);
    release_signals(old, &mask);
    return failed;
}

void process_run(Process *p, const char *what)
{
    process_run_all(p, 1, 1, what);
}

void process_pass_on(void)
{
    if (process_signal)
        raise(process_signal);
}
