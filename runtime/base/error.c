/* error.c -- messages, and the end of a program that cannot continue; see error.h. */
#define _GNU_SOURCE
#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GRACE = 5 };                       /* seconds that at_death has to end other processes */
enum { UNFINISHED = 64, MESSAGE = 4096 }; /* files; bytes of a message: PIPE_BUF */

static _Atomic(const char *) unfinished[UNFINISHED];
static atomic_flag dying = ATOMIC_FLAG_INIT;
static const char *speaker = "";
static bool quiet;
static int keeps = -1; /* descriptor of a log that also gets the messages; -1: none */
static void (*_Atomic at_death)(int code);
static volatile sig_atomic_t exit_code = EXIT_FAILURE;

static bool swap(const char *from, const char *to)
{
    for (int i = 0; i < UNFINISHED; i++) {
        const char *old = from;
        if (atomic_compare_exchange_strong(&unfinished[i], &old, to))
            return true;
    }
    return false;
}

/* Name and descriptor of the only unfinished file whose name another run can take. */
static _Atomic(const char *) shared_name;
static volatile sig_atomic_t shared_fd = -1;

static bool is_ours(const char *path)
{
    struct stat mine, there;
    return path != atomic_load(&shared_name) ||
           (fstat(shared_fd, &mine) == 0 && lstat(path, &there) == 0 &&
            mine.st_dev == there.st_dev && mine.st_ino == there.st_ino);
}

/* Removes files, and then directories that are empty without them. */
static void remove_unfinished(void)
{
    for (int i = 0; i < 2 * UNFINISHED; i++) {
        const char *path = atomic_load(&unfinished[i % UNFINISHED]);
        if (path && is_ours(path))
            i < UNFINISHED ? unlink(path) : rmdir(path);
    }
}

void rt_end_by_signal(int number)
{
    remove_unfinished();
    signal(number, SIG_DFL);
    raise(number);
}

/* Signals that have a handler, or are ignored, stay as they are. */
static void watch_signals(void)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction now;
    for (int i = 0; i < 3; i++)
        if (sigaction(ends[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == SIG_DFL)
            signal(ends[i], rt_end_by_signal);
}

void rt_unfinished(const char *path)
{
    watch_signals();
    if (!swap(NULL, path))
        rt_die("%s: too many files are written at once", path);
}

void rt_unfinished_shared(const char *path, int fd)
{
    shared_fd = fd;
    atomic_store(&shared_name, path);
    rt_unfinished(path);
}

void rt_finished(const char *path)
{
    swap(path, NULL);
}

void rt_speaker(const char *who, bool notes)
{
    speaker = who;
    quiet = !notes;
}

void rt_at_death(void (*end)(int code))
{
    atomic_store(&at_death, end);
}

void rt_keep_messages(int fd)
{
    keeps = fd;
}

/* Writes a message to the log.  A failed write is ignored.  After an error, the write waits at most
 * 1 s. */
static void keep_message(const char *kind, const char *text)
{
    if (*kind == 'e')
        output_hurry();
    char line[MESSAGE];
    int n = snprintf(line, sizeof line, "{\"event\":\"message\",\"kind\":\"%s\",\"text\":", kind);
    n += json_quote(line + n, (int)sizeof line - n - 2, text);
    line[n++] = '}';
    line[n++] = '\n';
    output_write(keeps, line, (size_t)n);
}

/* Writes a message to stderr, then to the log, because the log can be a pipe that is full.  The
 * message is one write, so that messages of two threads never mix.  On a terminal, the write first
 * erases the progress bar. */
static void write_message(const char *kind, const char *fmt, va_list ap)
{
    char text[MESSAGE];
    const int head = snprintf(text, sizeof text, "%s%s: %s%s", isatty(2) ? "\r\033[K" : "",
                              program_invocation_short_name, speaker, kind);
    int n = head + vsnprintf(text + head, sizeof text - (size_t)head - 1, fmt, ap);
    if (n > (int)sizeof text - 2)
        n = (int)sizeof text - 2;
    text[n] = '\n';
    if (!quiet || *kind)
        output_write(2, text, (size_t)n + 1);
    text[n] = '\0';
    if (keeps >= 0)
        keep_message(*kind ? "error" : "note", text + head);
}

static void late(int signal)
{
    (void)signal;
    _exit(exit_code);
}

/* Only the first thread that comes here continues and writes its message.  It ignores SIGPIPE: it
 * still has to remove files and to end other processes, although nobody may read the message. */
static void die_once(int code)
{
    while (atomic_flag_test_and_set(&dying))
        pause();
    signal(SIGPIPE, SIG_IGN);
    exit_code = code;
    fflush(stdout);
}

static void __attribute__((noreturn)) end_process(int code)
{
    remove_unfinished();
    void (*end)(int) = atomic_load(&at_death);
    if (end) {
        signal(SIGALRM, late); /* end() can hang on a broken connection */
        alarm(GRACE);
        end(code);
    }
    _exit(code);
}

static void __attribute__((noreturn)) die(int code, const char *fmt, va_list ap)
{
    /* If the error occurs on all ranks, rank 0 has 1 s to report it.  The launcher then ends this
     * rank. */
    if (quiet) {
        signal(SIGTERM, SIG_DFL);
        sleep(1);
    }
    die_once(code);
    write_message("error: ", fmt, ap);
    end_process(code);
}

void rt_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    die(EXIT_FAILURE, fmt, ap);
}

void rt_lost(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    die(EXIT_LOST, fmt, ap);
}

/* Never exits with 0, whatever the other rank's exit code was. */
void rt_follow(int code, int rank)
{
    code = code > 0 && code < 126 ? code : EXIT_LOST;
    die_once(code);
    rt_note("ended because rank %d failed; its message has the reason", rank);
    end_process(code);
}

void rt_note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fflush(stdout);
    write_message("", fmt, ap);
    va_end(ap);
}

void rt_print(const char *fmt, ...)
{
    static bool lost;
    char text[MESSAGE];
    va_list ap;
    va_start(ap, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (output_write(1, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1))
        return;
    if (!lost && errno != EBADF && errno != EAGAIN) /* EBADF: the parent process closed it */
        rt_note("standard output cannot be written: %s; the run goes on without it",
                strerror(errno));
    lost = true;
}

void rt_said(void)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        rt_die("the output could not be written");
}

void *rt_alloc(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        rt_die("out of memory: %zu more bytes were needed", bytes);
    return p;
}

char *rt_format(const char *fmt, ...)
{
    va_list ap;
    char *text;
    va_start(ap, fmt);
    if (vasprintf(&text, fmt, ap) < 0)
        rt_die("out of memory");
    va_end(ap);
    return text;
}
