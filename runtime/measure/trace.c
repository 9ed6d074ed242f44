/* trace.c -- --trace FILE.json: the measured steps as events for Chrome's tracing and Perfetto.
 *
 * "Complete" events (ph X) with start and duration in microseconds, to the nanosecond: each time
 * slice of a thread once, so the durations of a thread add up to its steps. Source: Trace Event
 * Format (Google, 2016).
 */
#include "base/json.h"
#include "files/file.h"
#include "measure/ticks.h"
#include <stdarg.h>
#include <stdio.h>

enum { TRACE_TEXT = 1024 }; /* bytes of a quoted name */

static void __attribute__((format(printf, 2, 3))) trace_put(File *f, const char *format, ...)
{
    char line[4 * TRACE_TEXT];
    va_list ap;
    va_start(ap, format);
    const int n = vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    file_write(f, line, n < (int)sizeof line ? n : (int)sizeof line - 1);
}

static const char *quoted(char to[TRACE_TEXT], const char *s)
{
    json_quote(to, TRACE_TEXT, s ? s : "");
    return to;
}

/* Writes ns nanoseconds as microseconds with three decimals, so no digit is lost. */
static void put_time(File *f, const char *key, int64_t ns)
{
    trace_put(f, ",\"%s\":%lld.%03d", key, (long long)(ns / 1000), (int)(ns % 1000));
}

static void put_call(File *f, const RtCall *c)
{
    char kernel[TRACE_TEXT], place[TRACE_TEXT], algorithm[TRACE_TEXT];
    trace_put(f,
              ",\"args\":{\"kernel\":%s,\"place\":%s,\"algorithm\":%s,\"flops_per_sample\":%.0f}",
              quoted(kernel, c->kernel), quoted(place, c->place), quoted(algorithm, c->algorithm),
              c->flops);
}

static void put_event(File *f, const Ticks *t, int thread, const Event *e, int64_t zero)
{
    char name[TRACE_TEXT];
    const bool call = e->entry < t->p->ncall;
    trace_put(f, ",\n{\"name\":%s,\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d",
              quoted(name, ticks_name(t->p, e->entry)), call ? "kernel" : "wait", thread);
    put_time(f, "ts", e->begin - zero);
    put_time(f, "dur", e->end - e->begin);
    if (call)
        put_call(f, &t->p->call[e->entry]);
    trace_put(f, "}");
}

void trace_write(const Ticks *t, const char *path)
{
    static File f; /* its buffer makes it large */
    char name[TRACE_TEXT];
    int64_t zero = INT64_MAX;

    for (int i = 0; i < t->threads; i++)
        if (t->lane[i].nevent && t->lane[i].event[0].begin < zero)
            zero = t->lane[i].event[0].begin;
    file_create(&f, path);
    trace_put(&f,
              "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":\"%s\",\"batch\":%d,"
              "\"threads\":%d,"
              "\"steps\":%lld,"
              "\"flops_per_sample\":%.0f},\n\"traceEvents\":[\n",
              t->p->source_hash, t->p->batch, t->threads, (long long)t->steps,
              t->p->flops_per_sample);
    trace_put(&f,
              "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":0,\"args\":{\"name\":%s}}",
              quoted(name, t->p->model));
    for (int i = 0; i < t->threads; i++)
        trace_put(&f,
                  ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{"
                  "\"name\":"
                  "\"thread %d\"}}",
                  i, i);
    for (int i = 0; i < t->threads; i++)
        for (int64_t k = 0; k < t->lane[i].nevent; k++)
            put_event(&f, t, i, &t->lane[i].event[k], zero);
    trace_put(&f, "\n]}\n");
    file_commit(&f);
}
