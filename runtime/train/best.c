/* best.c -- see best.h. */
#include "train/best.h"
#include "base/error.h"
#include "base/memory.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_one(const RtWatch *w, const char *key, const char *data)
{
    if (w->result)
        expect_split(rt_format("'%s' of the recipe watches", key), w->result, data,
                     rt_format("build without '%s'", key));
}

void best_check(const RtProgram *p, const char *data, bool validated)
{
    if (validated)
        return;
    check_one(&p->recipe.keep, "keep", data);
    check_one(&p->recipe.stop, "stop", data);
}

void best_open(Best *b, const RtProgram *p)
{
    const Mark none = {0, -1, NAN};
    *b = (Best){.p = p, .keep = none, .stop = none};
    if (p->kept_bytes > 0)
        b->weights = memory_map(p->kept_bytes, true, "the best weights");
}

/* Whether v is better than all values before. */
static bool is_new_best(const RtWatch *w, const Mark *m, double v)
{
    return !isnan(v) && (isnan(m->value) || (w->larger ? v > m->value : v < m->value));
}

static bool compare(const RtProgram *p, const RtWatch *w, Mark *m, const Result *r, int64_t epoch,
                    int64_t total)
{
    const double v = w->result ? expect_value(p, r, w->result) : NAN;
    const bool better = is_new_best(w, m, v);
    if (better)
        *m = (Mark){epoch, total, v};
    return better;
}

void best_compare(Best *b, const Result *r, const char *fixed, int64_t epoch, int64_t total)
{
    const RtRecipe *q = &b->p->recipe;
    compare(b->p, &q->stop, &b->stop, r, epoch, total);
    if (compare(b->p, &q->keep, &b->keep, r, epoch, total))
        memcpy(b->weights, fixed, (size_t)b->p->kept_bytes);
}

int64_t best_waited(const Best *b, int64_t epoch)
{
    return epoch - b->stop.epoch;
}

bool best_ends(const Best *b, int64_t epoch)
{
    const RtWatch *stop = &b->p->recipe.stop;
    return stop->result && best_waited(b, epoch) >= stop->epochs;
}

bool best_restore(const Best *b, Net *n, int64_t epoch)
{
    if (!b->weights || isnan(b->keep.value) || b->keep.epoch == epoch)
        return false;
    net_settle(n);
    memcpy(n->fixed, b->weights, (size_t)b->p->kept_bytes);
    net_changed(n);
    return true;
}

enum { NAME = 160 }; /* bytes of a result's name in a checkpoint */

/* Writes the name: two recipes can give one name to different metrics. */
static void write_name(const RtWatch *w, char *name)
{
    snprintf(name, NAME, "%s%s%s", w->result, w->meaning ? ":" : "", w->meaning ? w->meaning : "");
}

void best_mark_text(const RtWatch *w, const Mark *m, char *text, size_t room)
{
    char name[NAME];
    write_name(w, name);
    snprintf(text, room, "%s %lld %lld %a", name, (long long)m->epoch, (long long)m->total,
             m->value);
}

bool best_mark_read(const RtWatch *w, const char *text, Mark *m)
{
    char name[NAME];
    write_name(w, name);
    const size_t n = strlen(name);
    long long epoch, total;
    int at = 0;
    char *end;
    if (strncmp(text, name, n) != 0 ||
        sscanf(text + n, " %lld %lld %n", &epoch, &total, &at) != 2 || at == 0)
        return false;
    const double value = strtod(text + n + at, &end);
    *m = (Mark){epoch, total, value};
    return end != text + n + at && !*end && epoch >= 0 && (total >= 0 || isnan(value));
}
