/* log.c -- see log.h.  No stdio for the records: a line is one write, whole or not there. */
#include "log.h"
#include "clock.h"
#include "error.h"
#include "json.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void log_open(Log *l, const char *path, bool append)
{
    l->path = path;
    l->fd = -1;
    if (!path)
        return;
    l->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (append ? 0 : O_TRUNC), 0666);
    if (l->fd < 0)
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
    l->n += json_quote(l->line + l->n, 1024, value);
}

void log_count(Log *l, const char *name, int64_t value)
{
    key(l, name);
    l->n += snprintf(l->line + l->n, sizeof l->line - (size_t)l->n, "%lld", (long long)value);
}

void log_real(Log *l, const char *name, double value)
{
    key(l, name);
    l->n += snprintf(l->line + l->n, sizeof l->line - (size_t)l->n,
                     isfinite(value) ? "%.12g" : "null", value);
}

void log_end(Log *l)
{
    l->line[l->n++] = '}';
    l->line[l->n++] = '\n';
    if (l->fd >= 0 && write(l->fd, l->line, (size_t)l->n) != l->n)
        rt_die("the log %s cannot be written: %s", l->path, strerror(errno));
}

/* mpirun gives every process a terminal, whose size is that of its own: none where its output goes to a file. */
void bar_open(Bar *b)
{
    struct winsize size = {0};
    *b = (Bar){.shown = isatty(1) && ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0};
}

void bar_draw(Bar *b, int64_t epoch, int64_t epochs, double share, double samples_per_s,
              double loss, double accuracy, double eta)
{
    enum { WIDTH = 24 };
    static const char full[] = "########################", empty[] = "........................";
    if (!b->shown || clock_now() - b->drawn < 0.1)
        return;
    b->drawn = clock_now();
    const int done = (int)(share * WIDTH);
    printf("\r\033[Kepoch %lld/%lld [%.*s%.*s] %7.0f samples/s  loss %.4f", (long long)epoch,
           (long long)epochs, done, full, WIDTH - done, empty, samples_per_s, loss);
    if (accuracy >= 0)
        printf("  accuracy %.4f", accuracy);
    printf("  ETA %d:%02d", (int)eta / 60, (int)eta % 60);
    fflush(stdout);
}

void bar_clear(Bar *b)
{
    if (b->shown)
        printf("\r\033[K");
}
