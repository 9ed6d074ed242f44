/* tfevents.c -- event files of TensorBoard: TFRecords with messages of protocol buffers.
 *
 *   record    length (8 bytes), CRC of the length (4), message, CRC of the message (4); little-endian
 *   Event     1 wall_time double, 2 step int64, 3 file_version string, 5 summary, 7 session_log
 *   Summary   1 value: 1 tag string, 2 simple_value float
 *
 * The directories DIR/RUN/train and DIR/RUN/test have the records `epoch`, with equal tags, so
 * TensorBoard draws both in one chart.  DIR/RUN/steps has the records `step`.
 *
 * Source: tensorflow/core/util/event.proto, framework/summary.proto, lib/io/record_writer.h.
 */
#include "sweep/tfevents.h"
#include "tool/file.h"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const Span nowhere;

/* CRC-32C, of Castagnoli, with TensorFlow's mask. */
static uint32_t events_crc(const void *bytes, size_t n)
{
    const unsigned char *u = bytes;
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= u[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
    }
    crc = ~crc;
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

/* ---- bytes */

static void add_fixed(Text *t, uint64_t v, int bytes)
{
    char b[8];
    for (int i = 0; i < bytes; i++)
        b[i] = (char)(v >> 8 * i & 0xff);
    text_addn(t, b, (size_t)bytes);
}

static void add_varint(Text *t, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        add_fixed(t, (v & 0x7f) | 0x80, 1);
    add_fixed(t, v, 1);
}

/* A field of a message; kinds: 0 varint, 1 eight bytes, 2 bytes with their length, 5 four bytes. */
static void add_key(Text *t, int field, int kind)
{
    add_varint(t, (uint64_t)(field << 3 | kind));
}

static void add_bytes(Text *t, int field, const char *bytes, size_t n)
{
    add_key(t, field, 2);
    add_varint(t, n);
    text_addn(t, bytes, n);
}

static void add_double(Text *t, int field, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    add_key(t, field, 1);
    add_fixed(t, bits, 8);
}

static void add_float(Text *t, int field, double v)
{
    const float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    add_key(t, field, 5);
    add_fixed(t, bits, 4);
}

static void add_record(Text *t, const Text *message)
{
    Text length = text_new(t->arena);
    add_fixed(&length, message->len, 8);
    text_addn(t, length.s, 8);
    add_fixed(t, events_crc(length.s, 8), 4);
    text_addn(t, message->s, message->len);
    add_fixed(t, events_crc(message->s, message->len), 4);
}

/* ---- events */

static Text event_begin(Arena *a, double time, int64_t step)
{
    Text t = text_new(a);
    add_double(&t, 1, time);
    add_key(&t, 2, 0);
    add_varint(&t, (uint64_t)step);
    return t;
}

static void add_version(Text *out, double time)
{
    Text event = event_begin(out->arena, time, 0);
    static const char version[] = "brain.Event:2";
    add_bytes(&event, 3, version, strlen(version));
    add_record(out, &event);
}

/* A resumed run: TensorBoard drops the points from this step on. */
static void add_restart(Text *out, double time, int64_t step)
{
    Text event = event_begin(out->arena, time, step), session = text_new(out->arena);
    add_key(&session, 1, 0);
    add_varint(&session, 1); /* START */
    add_bytes(&event, 7, session.s, session.len);
    add_record(out, &event);
}

static void add_number(Text *out, const char *tag, const CurvePoint *p, double begin)
{
    Text event = event_begin(out->arena, begin + p->time, p->step);
    Text value = text_new(out->arena), summary = text_new(out->arena);
    add_bytes(&value, 1, tag, strlen(tag));
    add_float(&value, 2, p->y);
    add_bytes(&summary, 1, value.s, value.len);
    add_bytes(&event, 5, summary.s, summary.len);
    add_record(out, &event);
}

/* ---- files */

Events events_new(Arena *a, const char *directory, const char *run)
{
    return (Events){.arena = a, .run = run, .directory = path_join(a, directory, run)};
}

static const char *const set_name[EVENT_SETS] = {"train", "test", "validation", "steps"};

static int set_of(const Curve *c)
{
    return c->steps ? EVENT_SETS - 1 : (int)c->split;
}

static const char *file_of(Arena *a, const char *directory)
{
    return path_join(a, directory, "events.out.tfevents.0.tenon");
}

/* Appends records to the file of a set, or begins it. */
static int store(Events *e, int set, const Text *records)
{
    Arena *a = e->arena;
    const char *dir = path_join(a, e->directory, set_name[set]);
    if (e->file[set])
        return file_append(e->file[set], records->s, records->len);
    Text all = text_new(records->arena);
    add_version(&all, e->begin);
    text_addn(&all, records->s, records->len);
    e->file[set] = file_of(a, dir);
    const int error = dir_make(a, dir);
    return error ? error : file_write(a, e->file[set], all.s, all.len, 0666);
}

/* A resumed run can replace written points: says so before the new points. */
static void add_restarts(Text *out, Events *e, int set, const RunLog *l)
{
    int64_t from = INT64_MAX;
    for (int i = 0; i < l->n; i++) {
        const Curve *c = &l->curve[i];
        while (e->ncurve <= i)
            ARENA_PUSH(e->arena, e->written, e->ncurve, 0);
        if (set_of(c) != set || l->starts == e->starts || e->written[i] <= c->kept)
            continue;
        const int64_t step = c->kept ? c->point[c->kept - 1].step + 1 : 0;
        from = step < from ? step : from;
        e->written[i] = c->kept;
    }
    if (from < INT64_MAX)
        add_restart(out, e->begin + l->seconds, from);
}

static void add_points(Text *out, Events *e, int set, const RunLog *l)
{
    for (int i = 0; i < l->n; i++) {
        const Curve *c = &l->curve[i];
        const char *tag = arena_printf(out->arena, "%s/%s", c->steps ? "step" : "epoch", c->name);
        for (; set_of(c) == set && e->written[i] < c->n; e->written[i]++)
            if (isfinite(c->point[e->written[i]].y))
                add_number(out, tag, &c->point[e->written[i]], e->begin);
    }
}

/* Removes the file that an earlier conversion has left for a set without records. */
static int remove_old(Arena *a, const Events *e, int set)
{
    const char *file = file_of(a, path_join(a, e->directory, set_name[set]));
    return unlink(file) == 0 || errno == ENOENT || errno == ENOTDIR ? 0 : errno;
}

bool events_write(Events *e, const RunLog *l, Diag *d)
{
    Arena *page = arena_new(); /* a run of days writes often */
    struct stat s;
    int error = 0;
    if (e->files != l->files)
        *e = (Events){.arena = e->arena,
                      .run = e->run,
                      .directory = e->directory,
                      .files = l->files};
    const bool first = e->starts == 0 && e->ncurve == 0;
    if (e->begin == 0 && stat(l->path, &s) == 0) /* a log has no time of day */
        e->begin = (double)s.st_mtim.tv_sec - l->seconds;
    for (int set = 0; set < EVENT_SETS && !error; set++) {
        Text out = text_new(page);
        add_restarts(&out, e, set, l);
        add_points(&out, e, set, l);
        error = out.len ? store(e, set, &out) : first ? remove_old(page, e, set) : 0;
        if (error)
            diag_error(d, nowhere, "cannot write %s: %s",
                       path_join(page, e->directory, set_name[set]), strerror(error));
    }
    e->starts = l->starts;
    arena_free(page);
    return !error;
}
