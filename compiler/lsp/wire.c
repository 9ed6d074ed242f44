/* wire.c -- messages over two descriptors. */
#include "lsp/wire.h"
#include "tool/file.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

static bool fill(Wire *w)
{
    ssize_t n;
    do
        n = read(w->in, w->bytes, sizeof w->bytes);
    while (n < 0 && errno == EINTR);
    w->from = 0;
    w->to = n > 0 ? (size_t)n : 0;
    w->ended = n <= 0;
    return n > 0;
}

static int next_byte(Wire *w)
{
    return w->from < w->to || fill(w) ? (unsigned char)w->bytes[w->from++] : EOF;
}

/* Reads a line of the header without its end.  false at the end of the input, or if the line is
 * longer than its room. */
static bool read_line(Wire *w, char *line, size_t room, size_t *total)
{
    size_t n = 0;
    for (int c; (c = next_byte(w)) != '\n'; line[n++] = (char)c)
        if (c == EOF || n + 1 == room || ++*total > WIRE_HEADER)
            return false;
    if (n && line[n - 1] == '\r')
        n--;
    line[n] = 0;
    return true;
}

/* The length in a header line; `old` in any other line, -2 if the length is no number. */
static long long length_of(const char *line, long long old)
{
    static const char key[] = "Content-Length:";
    if (strncasecmp(line, key, sizeof key - 1) != 0)
        return old;
    char *end;
    const char *digits = line + sizeof key - 1;
    errno = 0;
    const long long n = strtoll(digits, &end, 10);
    while (*end == ' ')
        end++;
    return end == digits || *end || errno || n < 0 ? -2 : n;
}

static bool read_header(Wire *w, long long *length)
{
    char line[256];
    size_t total = 0;
    *length = -1;
    for (int lines = 0;; lines++) {
        if (!read_line(w, line, sizeof line, &total))
            return false;
        if (!*line && lines)
            return *length >= 0;
        *length = length_of(line, *length);
    }
}

WireKind wire_read(Wire *w, Arena *a, char **text, size_t *len)
{
    long long length;
    if (!read_header(w, &length))
        return w->ended ? WIRE_END : WIRE_BAD;
    const bool fits = length <= WIRE_LARGEST;
    size_t at = 0;
    *len = (size_t)length;
    *text = fits ? arena_alloc(a, *len + 1) : NULL;
    while (at < *len) {
        if (w->from == w->to && !fill(w))
            return WIRE_END;
        const size_t have = w->to - w->from, n = have < *len - at ? have : *len - at;
        if (fits)
            memcpy(&(*text)[at], &w->bytes[w->from], n);
        w->from += n, at += n;
    }
    return fits ? WIRE_MESSAGE : WIRE_HUGE;
}

bool wire_write(Wire *w, const char *text)
{
    char header[64];
    const size_t len = strlen(text);
    const int n = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", len);
    return file_put(w->out, header, (size_t)n) == 0 && file_put(w->out, text, len) == 0;
}

bool wire_wait(const Wire *w, int other, int milliseconds)
{
    struct pollfd ready[2] = {{.fd = w->in, .events = POLLIN}, {.fd = other, .events = POLLIN}};
    if (w->from < w->to || w->ended)
        return true;
    return poll(ready, 2, milliseconds) > 0 && ready[0].revents;
}

bool wire_ready(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

int64_t wire_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}
