/* log.c -- see log.h. Records do not use stdio: one write has a whole line.
 *
 * An error of the log never ends a run, which can have trained for days. The first lost record is
 * reported. Each later record is tried, because a disk can have room again, and a pipe can
 * have a new reader.
 */
#include "files/log.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/output.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    QUOTED = 1024, /* bytes of a text in a record, at most */
    SHORT = 64,    /* the same if the record is nearly full */
    NUMBERS = 1536 /* bytes for the fields after the text */
};
enum { OPENING = 20 };        /* milliseconds between two tries */
static const double TOLD = 2; /* seconds without a reader until this is reported */

static bool is_pipe(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISFIFO(s.st_mode);
}

/* Waits for the reader of a pipe, as a plain open does, but returns if the run is asked to stop. */
static int open_log_file(const char *path, int flags)
{
    const double began = clock_now();
    for (bool told = false;;) {
        const int fd =
            open(path, flags | O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);
        if (fd >= 0 || !((errno == ENXIO && is_pipe(path)) || errno == EINTR))
            return fd;
        if (output_stopping()) {
            rt_note("the log %s is a pipe that nobody reads: this run ends without it", path);
            return -1;
        }
        if (!told && clock_now() - began > TOLD) {
            told = true;
            rt_note("the log %s is a pipe that nobody reads: the run begins when a reader opens it",
                    path);
        }
        nanosleep(&(struct timespec){.tv_nsec = OPENING * 1000000L}, NULL);
    }
}

void log_open(Log *l, const char *path, bool append)
{
    l->path = path;
    l->fd = -1;
    l->lost = false;
    if (!path)
        return;
    l->fd = open_log_file(path, append ? 0 : O_TRUNC);
    if (l->fd < 0 && !output_stopping())
        rt_die("the log %s cannot be opened: %s", path, strerror(errno));
}

void log_keep_messages(const Log *l)
{
    rt_keep_messages(l->fd);
}

static void key(Log *l, const char *name)
{
    l->n += snprintf(l->line + l->n, sizeof l->line - (size_t)l->n, ",\"%s\":", name);
}

void log_begin(Log *l, const char *event)
{
    l->n = snprintf(l->line, sizeof l->line, "{\"event\":\"%s\"", event);
}

void log_text(Log *l, const char *name, const char *value)
{
    key(l, name);
    const int room = (int)sizeof l->line - l->n - NUMBERS;
    l->n += json_quote(l->line + l->n, room > QUOTED ? QUOTED : room > SHORT ? room : SHORT, value);
}

void log_count(Log *l, const char *name, int64_t value)
{
    key(l, name);
    l->n += snprintf(l->line + l->n, sizeof l->line - (size_t)l->n, "%lld", (long long)value);
}

void log_unsigned(Log *l, const char *name, uint64_t value)
{
    key(l, name);
    l->n +=
        snprintf(l->line + l->n, sizeof l->line - (size_t)l->n, "%llu", (unsigned long long)value);
}

void log_real(Log *l, const char *name, double value)
{
    key(l, name);
    l->n += snprintf(l->line + l->n, sizeof l->line - (size_t)l->n,
                     isfinite(value) ? "%.12g" : "null", value);
}

/* A full disk can leave a part of a record at the end of the file, which would damage the next
 * record. */
static void cut_partial_record(int fd, off_t whole, int n)
{
    struct stat now;
    if (fstat(fd, &now) == 0 && now.st_size > whole && now.st_size < whole + n &&
        ftruncate(fd, whole) != 0)
        rt_note("a part of a record stays in the log: %s", strerror(errno));
}

void log_end(Log *l)
{
    struct stat before = {0};
    l->line[l->n++] = '}';
    l->line[l->n++] = '\n';
    if (l->fd < 0)
        return;
    const bool file = fstat(l->fd, &before) == 0 && S_ISREG(before.st_mode);
    if (output_write(l->fd, l->line, (size_t)l->n))
        return;
    const int why = errno;
    if (file)
        cut_partial_record(l->fd, before.st_size, l->n);
    if (!l->lost && why == EAGAIN)
        rt_note("the log %s is a pipe whose reader does not read: the run stops without the last "
                "records",
                l->path);
    else if (!l->lost)
        rt_note("the log %s cannot be written: %s; the run goes on, and its records are lost until "
                "the log can be written",
                l->path, strerror(why));
    l->lost = true;
}

/* The columns of the terminal; 0: standard output is no terminal, or it has no size.  mpirun gives
 * each process a terminal, whose size is 0 if the output of mpirun goes to a file. */
static int columns(void)
{
    struct winsize size = {0};
    return isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void bar_open(Bar *b)
{
    *b = (Bar){.shown = columns() > 0};
}

/* The user can change the width at any time.  A text in the last column could wrap. */
void bar_text(Bar *b, const char *fmt, ...)
{
    char text[256];
    va_list args;
    if (!b->shown || clock_now() - b->drawn < 0.1)
        return;
    b->drawn = clock_now();
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const int width = columns() - 1;
    rt_print("\r\033[K%.*s", width > 0 ? width : 0, text);
}

void bar_draw(Bar *b, int64_t epoch, int64_t epochs, double share, double samples_per_s,
              double loss, double accuracy, double eta)
{
    enum { WIDTH = 24, OTHERS = 80 }; /* OTHERS: columns of a long text without the bar */
    static const char full[] = "########################", empty[] = "........................";
    const int room = columns() - OTHERS, width = room < 0 ? 0 : room < WIDTH ? room : WIDTH;
    const int done = (int)(share * width);
    char right[40] = "";
    if (accuracy >= 0)
        snprintf(right, sizeof right, "  accuracy %.4f", accuracy);
    bar_text(b, "epoch %lld/%lld %s%.*s%.*s%s%.0f samples/s  loss %.4f%s  ETA %d:%02d",
             (long long)epoch, (long long)epochs, width ? "[" : "", done, full, width - done, empty,
             width ? "] " : "", samples_per_s, loss, right, (int)eta / 60, (int)eta % 60);
}

void bar_clear(Bar *b)
{
    if (b->shown)
        rt_print("\r\033[K");
}
