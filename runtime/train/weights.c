/* weights.c -- see weights.h. */
#include "train/weights.h"
#include "base/error.h"
#include "data/classes.h"
#include "data/columns.h"
#include "data/vocab.h"
#include "step/average.h"
#include <stdio.h>
#include <string.h>

/* A list of the tensors that differ, as text. */
enum { SHOWN = 10 }; /* lines that are printed, at most */
typedef struct Report {
    char text[SHOWN * 340];
    int lines;
} Report;

static void param_shape_text(char *to, size_t room, int rank, const int64_t *dim)
{
    size_t n = (size_t)snprintf(to, room, "(");
    for (int i = 0; i < rank && n < room - 24; i++)
        n += (size_t)snprintf(to + n, room - n, "%s%lld", i ? ", " : "", (long long)dim[i]);
    snprintf(to + n, room - n, ")");
}

static void add_difference(Report *r, const char *what, const char *name, const char *more)
{
    const size_t have = strlen(r->text);
    if (r->lines++ < SHOWN)
        snprintf(r->text + have, sizeof r->text - have, "\n  %s %.100s%.200s", what, name, more);
}

static void compare_param(const RtParam *p, const StEntry *e, Report *r)
{
    char want[160], more[420], have[160];
    param_shape_text(want, sizeof want, p->rank, p->dim);
    if (!e) {
        snprintf(more, sizeof more, " %s", want);
        add_difference(r, "missing: ", p->name, more);
    } else if (!st_same_shape(e, p)) {
        param_shape_text(have, sizeof have, e->rank, e->dim);
        snprintf(more, sizeof more, " is %s in the file, but %s in the program", have, want);
        add_difference(r, "mismatch:", p->name, more);
    } else if (!st_is_float(e)) {
        snprintf(more, sizeof more, " is of type %s, not of floating point", e->dtype);
        add_difference(r, "mismatch:", p->name, more);
    }
}

static bool known(const RtProgram *p, const char *name)
{
    if ((p->vocab && strcmp(name, ST_VOCABULARY) == 0) || strcmp(name, ST_CLASSES) == 0 ||
        strcmp(name, ST_COLUMNS) == 0 || strcmp(name, RT_SCALING) == 0)
        return true;
    for (int i = 0; i < p->nparam; i++) {
        const size_t n = strlen(p->param[i].name);
        if (strncmp(p->param[i].name, name, n) != 0)
            continue;
        if (!name[n] || strcmp(name + n, ".state0") == 0 || strcmp(name + n, ".state1") == 0 ||
            strcmp(name + n, ".average") == 0)
            return true; /* the file is a checkpoint: its states are not used */
    }
    return false;
}

static char *average_name(const RtParam *p)
{
    return rt_format("%s.average", p->name);
}

/* The values of a parameter that evaluations have used: its average, if the file is a checkpoint
 * with averages. */
static const StEntry *find_evaluated(const StFile *f, const RtParam *q)
{
    const StEntry *average = st_find(f, average_name(q));
    return average && st_same_shape(average, q) && st_is_float(average) ? average
                                                                        : st_find(f, q->name);
}

StFile *weights_open(const char *path)
{
    char why[256];
    StFile *f = st_open(path, why);
    if (!f)
        rt_die("%s cannot be read: %s", path, why);
    return f;
}

/* Compares the file with the parameters of `take`, or with all of them if it is NULL.  fits[i]
 * becomes false for each parameter that differs. */
static Report compare(const StFile *f, const RtProgram *p, const bool *take, bool part, bool *fits)
{
    Report r = {.lines = 0};
    for (int i = 0; i < p->nparam; i++) {
        const int lines = r.lines;
        if (!take || take[i])
            compare_param(&p->param[i], st_find(f, p->param[i].name), &r);
        if (fits)
            fits[i] = r.lines == lines;
    }
    for (int64_t i = 0; i < f->n && !part; i++)
        if (!known(p, f->entry[i].name))
            add_difference(&r, "unknown: ", f->entry[i].name, "");
    return r;
}

bool weights_fit(const StFile *f, const RtProgram *p, const bool *take, bool part, bool *fits)
{
    return compare(f, p, take, part, fits).lines == 0;
}

void weights_refuse(const StFile *f, const RtProgram *p, const bool *take, bool part,
                    const char *way_out)
{
    const Report r = compare(f, p, take, part, NULL);
    const char *model = st_meta(f, "model"), *own = p->trained ? p->trained : p->model;
    const bool other = model && strcmp(model, own) != 0;
    rt_die("%s does not hold the weights of %s%s%s%s: %d tensor%s differ%s%s%s%s", f->path, own,
           p->trained ? rt_format(" that %s needs", p->model) : "", other ? ", but of " : "",
           other ? model : "", r.lines, r.lines == 1 ? "" : "s", r.lines == 1 ? "s" : "", r.text,
           r.lines > SHOWN ? rt_format("\n  and %d more", r.lines - SHOWN) : "", way_out);
}

int64_t weights_unused(const StFile *f, const RtProgram *p, const char ***name)
{
    int64_t n = 0;
    *name = rt_alloc(sizeof **name * (size_t)(f->n + 1));
    for (int64_t i = 0; i < f->n; i++)
        if (!known(p, f->entry[i].name))
            (*name)[n++] = f->entry[i].name;
    return n;
}

void weights_take(Net *n, const StFile *f, const bool *take)
{
    const RtProgram *p = n->p;
    if (!st_intact(f, false))
        rt_die("%s is damaged: its content does not match its checksum", f->path);
    for (int i = 0; i < p->nparam; i++)
        if (!take || take[i])
            st_load(f, find_evaluated(f, &p->param[i]), &p->param[i], p->real_bytes,
                    n->fixed + p->param[i].offset);
}

void weights_load(Net *n, const char *path)
{
    StFile *f = weights_open(path);
    const bool part = n->p->trained != NULL; /* the file holds the whole trained model */
    if (!weights_fit(f, n->p, NULL, part, NULL))
        weights_refuse(f, n->p, NULL, part, "");
    weights_take(n, f, NULL);
    st_close(f);
}

static int states(const RtParam *p)
{
    return (p->state[0] >= 0) + (p->state[1] >= 0);
}

/* Adds the columns of a table, the vocabulary of texts, or the names of classes: no program needs
 * two of them, because columns name their classes. */
static void add_words(StWriter *w)
{
    const Vocab *v = vocab_now();
    const Classes *c = classes_now();
    const Columns *t = columns_now();
    if (t) {
        w->extra = ST_COLUMNS;
        w->extra_text = t->text;
        w->extra_bytes = t->text_bytes;
    } else if (v) {
        w->extra = ST_VOCABULARY;
        w->extra_text = v->text;
        w->extra_bytes = v->text_bytes;
    } else if (c) {
        w->extra = ST_CLASSES;
        w->extra_text = c->text;
        w->extra_bytes = c->text_bytes;
    }
}

StWriter *weights_writer(const Net *n, const char *path)
{
    const RtProgram *p = n->p;
    StWriter *w = st_writer_new(p, p->nparam);
    for (int i = 0; i < p->nparam; i++)
        w->tensor[i] = (StTensor){p->param[i].name, &p->param[i], n->fixed + p->param[i].offset};
    add_words(w);
    st_writer_item(w, "format", "tenon weights 2", 0);
    st_writer_item(w, "model", p->model, 0);
    st_writer_ready(w, path);
    return w;
}

static char *state_name(const RtParam *p, int k)
{
    return rt_format("%s.state%d", p->name, k);
}

static bool averaged(const Net *n, int param)
{
    return n->average && n->average->averaged[param];
}

StWriter *weights_state_writer(const Net *n)
{
    const RtProgram *p = n->p;
    int count = p->nparam + (p->scaling != NULL);
    for (int i = 0; i < p->nparam; i++)
        count += states(&p->param[i]) + averaged(n, i);
    StWriter *w = st_writer_new(p, count);
    StTensor *t = w->tensor;
    add_words(w);
    for (int i = 0; i < p->nparam; i++) {
        const RtParam *q = &p->param[i];
        *t++ = (StTensor){q->name, q, n->fixed + q->offset};
        for (int k = 0; k < 2; k++)
            if (q->state[k] >= 0)
                *t++ = (StTensor){state_name(q, k), q, n->fixed + q->state[k]};
        if (averaged(n, i))
            *t++ = (StTensor){average_name(q), q, n->average->memory + q->offset};
    }
    if (p->scaling)
        *t = (StTensor){p->scaling->name, p->scaling, n->fixed + p->scaling->offset};
    return w;
}

static bool load_one(Net *n, const StFile *f, const char *name, const RtParam *q, char *to)
{
    const StEntry *e = st_find(f, name);
    if (!e || !st_same_shape(e, q) || !st_is_float(e))
        return false;
    st_load(f, e, q, n->p->real_bytes, to);
    return true;
}

bool weights_load_evaluated(Net *n, const StFile *f, char *to)
{
    bool ok = true;
    for (int i = 0; i < n->p->nparam && ok; i++) {
        const RtParam *q = &n->p->param[i];
        ok = load_one(n, f, averaged(n, i) ? average_name(q) : q->name, q, to + q->offset);
    }
    return ok;
}

bool weights_load_state(Net *n, const StFile *f)
{
    bool ok = true;
    for (int i = 0; i < n->p->nparam; i++) {
        const RtParam *q = &n->p->param[i];
        ok = ok && load_one(n, f, q->name, q, n->fixed + q->offset);
        for (int k = 0; k < 2; k++)
            if (q->state[k] >= 0)
                ok = ok && load_one(n, f, state_name(q, k), q, n->fixed + q->state[k]);
        if (averaged(n, i))
            ok = ok && load_one(n, f, average_name(q), q, n->average->memory + q->offset);
    }
    const RtParam *s = n->p->scaling;
    if (s && !st_find(f, s->name)) /* the file is of a program in another type */
        rt_note("%s holds no loss scale: it begins at %.10g", f->path, n->scaling.scale);
    else if (s)
        ok = ok && load_one(n, f, s->name, s, n->fixed + s->offset);
    return ok;
}
