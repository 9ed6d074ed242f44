/* curves.c -- reads the log records of a training (docs/reference/log.md), see curves.h. */
#include "sweep/curves.h"
#include "tool/file.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RECORD = 1 << 16 }; /* bytes of a record, at most; a program writes 4096 at most */

static const Span nowhere;

RunLog runlog_new(Arena *a, const char *path)
{
    return (RunLog){.arena = a, .path = path, .name = path_stem(a, path), .rest = text_new(a)};
}

bool runlog_has(const RunLog *l, CurveSplit split)
{
    bool found = false;
    for (int i = 0; i < l->n; i++)
        found |= l->curve[i].split == split && l->curve[i].n > 0;
    return found;
}

const Curve *runlog_find(const RunLog *l, const char *name, CurveSplit split, bool steps)
{
    for (int i = 0; i < l->n; i++)
        if (strcmp(l->curve[i].name, name) == 0 && l->curve[i].split == split &&
            l->curve[i].steps == steps)
            return &l->curve[i];
    return NULL;
}

static double real(const cJSON *o, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, name);
    return cJSON_IsNumber(v) ? v->valuedouble : NAN;
}

/* 0 if it is not there.  A wrong number stays within what an int64_t holds. */
static double number(const cJSON *o, const char *name)
{
    const double v = real(o, name), most = 1e15;
    return isfinite(v) ? fmax(-most, fmin(most, v)) : 0;
}

/* ---- records */

static Curve *curve_of(RunLog *l, const char *name, CurveSplit split, bool steps)
{
    Curve *found = (Curve *)runlog_find(l, name, split, steps);
    const Curve curve = {.name = arena_strdup(l->arena, name), .split = split, .steps = steps};
    if (!found) {
        ARENA_PUSH(l->arena, l->curve, l->n, curve);
        found = &l->curve[l->n - 1];
    }
    return found;
}

/* Adds the numbers of a record: train_loss, test_loss, validation_loss, and of an epoch lr and
 * samples_per_s. */
static void add_numbers(RunLog *l, const cJSON *o, bool steps, double x, int64_t step)
{
    static const char *const prefix[] =
        {[SPLIT_TRAIN] = "train_", [SPLIT_TEST] = "test_", [SPLIT_VALIDATION] = "validation_"};
    for (const cJSON *v = o->child; v; v = v->next) {
        const char *name = v->string;
        int split = 0;
        while (split < SPLITS && strncmp(name, prefix[split], strlen(prefix[split])) != 0)
            split++;
        const bool other = strcmp(name, "lr") == 0 || strcmp(name, "samples_per_s") == 0;
        if (!(split < SPLITS || other) || !(cJSON_IsNumber(v) || cJSON_IsNull(v)))
            continue;
        name += other ? 0 : strlen(prefix[split]);
        Curve *c = curve_of(l, name, other ? SPLIT_TRAIN : (CurveSplit)split, steps);
        const CurvePoint p = {x, step, cJSON_IsNumber(v) ? v->valuedouble : NAN, l->seconds};
        ARENA_PUSH(l->arena, c->point, c->n, p);
    }
}

static void read_start(RunLog *l, const cJSON *o)
{
    const cJSON *model = cJSON_GetObjectItemCaseSensitive(o, "model");
    l->model = cJSON_IsString(model) ? arena_strdup(l->arena, model->valuestring) : "?";
    l->epochs = (int64_t)number(o, "epochs");
    l->samples = (int64_t)number(o, "samples");
    l->batch = (int64_t)number(o, "batch");
    const double steps = l->batch > 0 ? ceil((double)l->samples / (double)l->batch) : 0;
    l->epoch = number(o, "epoch") + (steps > 0 ? number(o, "step") / steps : 0);
    l->ended = false;
    l->starts++;
    for (int i = 0; i < l->n; i++) { /* a resumed run begins before the end of the last one */
        Curve *c = &l->curve[i];
        while (c->n && c->point[c->n - 1].x > l->epoch + 1e-9)
            c->n--;
        c->kept = c->n;
    }
}

static void read_step(RunLog *l, const cJSON *o)
{
    const double steps = l->batch > 0 ? ceil((double)l->samples / (double)l->batch) : 0;
    const double step = number(o, "step");
    l->epoch = steps > 0 ? step / steps : l->epoch;
    add_numbers(l, o, true, l->epoch, (int64_t)step);
}

static void read_epoch(RunLog *l, const cJSON *o)
{
    l->epoch = number(o, "epoch");
    l->per_epoch = number(o, "seconds");
    l->seconds += l->per_epoch;
    l->rate = number(o, "samples_per_s");
    l->best = (int64_t)number(o, "best_epoch");
    add_numbers(l, o, false, l->epoch, (int64_t)l->epoch);
}

static bool no_record(const RunLog *l, int line, Diag *d)
{
    diag_error(d, nowhere, "%s:%d: this is no log record", l->path, line);
    diag_help(d, "name files that a program has written with --log");
    return false;
}

static bool read_line(RunLog *l, const char *line, Diag *d)
{
    l->line++;
    if (!line[strspn(line, " \t\r")])
        return true;
    cJSON *o = cJSON_Parse(line);
    const cJSON *event = cJSON_GetObjectItemCaseSensitive(o, "event");
    const bool fine = cJSON_IsString(event);
    if (!fine) {
        no_record(l, l->line, d);
    } else if (strcmp(event->valuestring, "start") == 0) {
        read_start(l, o);
    } else if (strcmp(event->valuestring, "step") == 0) {
        read_step(l, o);
    } else if (strcmp(event->valuestring, "epoch") == 0) {
        read_epoch(l, o);
    } else if (strcmp(event->valuestring, "best") == 0) {
        l->best = (int64_t)number(o, "epoch");
    } else if (strcmp(event->valuestring, "metrics") == 0) {
        add_numbers(l, o, false, l->epoch, (int64_t)l->epoch);
    } else if (strcmp(event->valuestring, "end") == 0) {
        l->ended = true;
    }
    cJSON_Delete(o);
    return fine;
}

/* ---- the file */

/* Forgets all records if another file has this name now, or a shorter one. */
static void begin_again(RunLog *l, const struct stat *s)
{
    const bool same = s->st_dev == l->device && s->st_ino == l->inode && s->st_size >= l->at;
    if (l->at > 0 && !same) {
        RunLog other = runlog_new(l->arena, l->path);
        other.name = l->name;
        other.files = l->files + 1;
        *l = other;
    }
    l->device = s->st_dev;
    l->inode = s->st_ino;
}

bool runlog_read(RunLog *l, bool *changed, Diag *d)
{
    char room[65536];
    struct stat s;
    *changed = false;
    const int fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) {
        diag_error(d, nowhere, "cannot read %s: %s", l->path,
                   fd < 0               ? strerror(errno)
                   : S_ISDIR(s.st_mode) ? "it is a directory"
                                        : "it is no file");
        diag_help(d, "a program writes its log with --log FILE");
        if (fd >= 0)
            close(fd);
        return false;
    }
    begin_again(l, &s);
    bool fine = true;
    for (ssize_t n; fine && (n = pread(fd, room, sizeof room, l->at)) > 0;) {
        l->at += n;
        for (char *at = room, *end = room + n; fine && at < end;) {
            char *line_end = memchr(at, '\n', (size_t)(end - at));
            text_addn(&l->rest, at, (size_t)((line_end ? line_end : end) - at));
            at = line_end ? line_end + 1 : end;
            if (l->rest.len > RECORD)
                fine = no_record(l, l->line + 1, d);
            if (!line_end || !fine)
                continue;
            fine = read_line(l, l->rest.s, d);
            l->rest.len = 0;
            l->rest.s[0] = 0;
            *changed = true;
        }
    }
    close(fd);
    return fine;
}
