/* trace.c -- checks that a file is strict JSON (RFC 8259), and adds up its trace events.
 *
 *   trace FILE     prints "thread T MICROSECONDS" for each thread, "name MICROSECONDS NAME" for each
 *                  name of events of kind X, and "steps N".  Exit code 1, with the place, if the file
 *                  is not JSON, if a duration is negative, or if two events of a thread overlap.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, NAMES = 512, TEXT = 256, DEEP = 64 };

static const char *text, *at, *end;
static int64_t thread_ns[THREADS], thread_end[THREADS], name_ns[NAMES], steps = -1;
static char name_of[NAMES][TEXT];
static int names, events;

/* The event that is being read: what its members said. */
static struct { char name[TEXT], ph[8]; int64_t ts, dur, tid; } event;

static void die(const char *what)
{
    fprintf(stderr, "trace: byte %ld: %s\n", (long)(at - text), what);
    exit(1);
}

static void blanks(void)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
}

static void need(char c)
{
    blanks();
    if (at == end || *at != c)
        die("a punctuation mark is missing");
    at++;
}

static void string(char to[TEXT])
{
    int n = 0;
    need('"');
    for (; at < end && *at != '"'; at++) {
        if ((unsigned char)*at < 32)
            die("a control character in a string");
        if (*at == '\\') {
            at++;
            if (at == end || !strchr("\"\\/bfnrtu", *at))
                die("an unknown escape");
            if (*at == 'u')
                for (int k = 0; k < 4; k++)
                    if (++at == end || !strchr("0123456789abcdefABCDEF", *at))
                        die("\\u needs four hex digits");
        }
        if (n < TEXT - 1)
            to[n++] = *at;
    }
    to[n] = 0;
    need('"');
}

static void digits(void)
{
    if (at == end || *at < '0' || *at > '9')
        die("a digit is missing");
    while (at < end && *at >= '0' && *at <= '9')
        at++;
}

/* Times a thousand, as a whole number: three decimals are what nanoseconds in microseconds have. */
static int64_t number(void)
{
    const char *from = at;
    if (at < end && *at == '-')
        at++;
    if (at < end && *at == '0')
        at++;
    else
        digits();
    if (at < end && *at == '.')
        at++, digits();
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        digits();
    }
    const double v = strtod(from, NULL) * 1000;
    return (int64_t)(v < 0 ? v - .5 : v + .5);
}

static void word(const char *w)
{
    if ((size_t)(end - at) < strlen(w) || strncmp(at, w, strlen(w)))
        die("an unknown word");
    at += strlen(w);
}

static void finish_event(void)
{
    int k = 0;
    if (strcmp(event.ph, "X"))
        return;
    if (event.dur < 0 || event.ts < 0 || event.tid < 0 || event.tid >= THREADS)
        die("an event out of range");
    if (event.ts < thread_end[event.tid])
        die("two events of a thread overlap");
    thread_end[event.tid] = event.ts + event.dur;
    thread_ns[event.tid] += event.dur;
    while (k < names && strcmp(name_of[k], event.name))
        k++;
    if (k == NAMES)
        die("too many names");
    names += k == names;
    strcpy(name_of[k], event.name);
    name_ns[k] += event.dur;
    events++;
}

static void value(int depth, const char *key, bool in_event);

static void members(int depth, bool in_event)
{
    char key[TEXT];
    bool first = true;
    need('{');
    for (blanks(); at < end && *at != '}'; blanks()) {
        if (!first)
            need(',');
        first = false;
        blanks();
        string(key);
        need(':');
        value(depth + 1, key, in_event);
    }
    need('}');
}

static void items(int depth, bool events_here)
{
    bool first = true;
    need('[');
    for (blanks(); at < end && *at != ']'; blanks()) {
        if (!first)
            need(',');
        first = false;
        if (!events_here) {
            value(depth + 1, "", false);
            continue;
        }
        memset(&event, 0, sizeof event);
        blanks();
        members(depth + 1, true);
        finish_event();
    }
    need(']');
}

static void value(int depth, const char *key, bool in_event)
{
    char s[TEXT];
    blanks();
    if (depth > DEEP)
        die("too deep");
    if (at == end)
        die("a value is missing");
    if (*at == '"') {
        string(s);
        if (in_event && !strcmp(key, "name"))
            strcpy(event.name, s);
        if (in_event && !strcmp(key, "ph"))
            snprintf(event.ph, sizeof event.ph, "%.7s", s);
    } else if (*at == '{') {
        members(depth, false);
    } else if (*at == '[') {
        items(depth, depth == 1 && !strcmp(key, "traceEvents"));
    } else if (*at == 't') {
        word("true");
    } else if (*at == 'f') {
        word("false");
    } else if (*at == 'n') {
        word("null");
    } else {
        const int64_t v = number();
        if (in_event && !strcmp(key, "ts"))
            event.ts = v;
        if (in_event && !strcmp(key, "dur"))
            event.dur = v;
        if (in_event && !strcmp(key, "tid"))
            event.tid = v / 1000;
        if (!strcmp(key, "steps"))
            steps = v / 1000;
    }
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        fprintf(stderr, "trace: cannot read %s\n", argc == 2 ? argv[1] : "FILE");
        return 1;
    }
    const size_t size = (size_t)ftell(f);
    char *all = malloc(size + 1);
    rewind(f);
    if (!all || fread(all, 1, size, f) != size)
        return 1;
    all[size] = 0;
    text = at = all, end = all + size;
    value(0, "", false);
    blanks();
    if (at != end)
        die("more behind the end");
    if (!events)
        die("no event");
    for (int i = 0; i < THREADS; i++)
        if (thread_ns[i])
            printf("thread %d %.3f\n", i, (double)thread_ns[i] / 1000);
    for (int i = 0; i < names; i++)
        printf("name %.3f %s\n", (double)name_ns[i] / 1000, name_of[i]);
    printf("steps %lld\n", (long long)steps);
    return 0;
}
