/* compare.c -- `tenon results compare A B`: labels of this store, or two stores. */
#include "sweep/compare.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

static const Span nowhere;

/* The groups of one side. */
typedef struct Side {
    const char *word;
    Group *group;
    int n;
} Side;

static bool is_store(const char *word)
{
    const size_t n = strlen(word);
    return n > 3 && strcmp(word + n - 3, ".db") == 0;
}

static void details(Store *s, Run *run, int n)
{
    for (int i = 0; i < n; i++)
        store_details(s, &run[i]);
}

static bool side_of_store(Results *r, Side *s)
{
    Run *run;
    Store *store = store_read(r->arena, s->word, r->diag);
    if (!store)
        return false;
    const int n = store_runs(store, NULL, &run);
    details(store, run, n);
    const bool ok = !store_failed(store);
    store_close(store);
    results_group(r->arena, run, n, &s->group, &s->n);
    return ok;
}

/* Runs whose label is the word, or a pattern. */
static bool side_of_label(Results *r, Side *s)
{
    Run *run = NULL;
    const char **known = NULL;
    int n = 0, nknown = 0;
    for (int i = 0; i < r->nrun; i++) {
        if (text_glob(s->word, r->run[i].label))
            ARENA_PUSH(r->arena, run, n, r->run[i]);
        if (!i || strcmp(r->run[i].label, r->run[i - 1].label) != 0)
            ARENA_PUSH(r->arena, known, nknown, r->run[i].label);
    }
    if (!n) {
        diag_error(r->diag, nowhere, "no run in %s has the label '%s'", r->store_path, s->word);
        if (text_nearest(s->word, known, nknown))
            diag_suggest(r->diag, s->word, known, nknown);
        else
            diag_help(r->diag, "A and B are labels, or stores (.db); the last label is '%s'",
                      known[nknown - 1]);
        return false;
    }
    details(r->store, run, n);
    results_group(r->arena, run, n, &s->group, &s->n);
    return true;
}

static bool side(Results *r, const char *word, Side *s)
{
    *s = (Side){.word = word};
    return is_store(word) ? side_of_store(r, s) : side_of_label(r, s);
}

static const char *verdict(const Change *c)
{
    static const char *const text[] = {[CHANGE_NONE] = "no change",
                                       [CHANGE_SLOWER] = "SLOWER",
                                       [CHANGE_FASTER] = "faster",
                                       [CHANGE_UNKNOWN] = "too few runs to say"};
    return text[c->kind];
}

static void tell(Arena *a, Text *t, const Change *c)
{
    enum { MOST = 8 };
    text_printf(t, "%-44s %12s %12s  %.3f (%.3f .. %.3f)  %s\n", group_name(a, c->a->first),
                text_commas(a, llround(c->a->median)), text_commas(a, llround(c->b->median)),
                c->ratio.value, c->ratio.low, c->ratio.high, verdict(c));
    for (int i = 0; i < c->npart && i < MOST; i++) {
        const Part *p = &c->part[i];
        text_printf(t, "    %s%s%s%s%s: %+.3f ms a step (%+.0f %%)\n", p->layer->layer,
                    p->layer->kernel ? ", " : "", p->layer->kernel ? p->layer->kernel : "",
                    p->layer->place && *p->layer->place ? ", " : "",
                    p->layer->place ? p->layer->place : "", p->ms.value, 100 * p->share);
    }
}

static bool machines_differ(const Side *a, const Side *b)
{
    return strcmp(a->group[0].first->machine, b->group[0].first->machine) != 0;
}

/* All groups of both, to look for weights that differ. */
static int tell_bits(Results *r, Text *t, const Side *a, const Side *b)
{
    Group *all = NULL;
    const char **line = NULL;
    int n = 0;
    for (int i = 0; i < a->n; i++)
        ARENA_PUSH(r->arena, all, n, a->group[i]);
    for (int i = 0; i < b->n; i++)
        ARENA_PUSH(r->arena, all, n, b->group[i]);
    const int found = compare_bits(r->arena, all, n, &line);
    for (int i = 0; i < found; i++)
        text_printf(t, "WEIGHTS DIFFER where they must not: %s\n", line[i]);
    return found;
}

static void tell_versions(Text *t, const Change *c)
{
    const Run *a = c->a->first, *b = c->b->first;
    if (a->weights_hash && b->weights_hash && strcmp(a->weights_hash, b->weights_hash) != 0 &&
        a->seed == b->seed)
        text_printf(t,
                    "    other weights after training (%s, %s): the versions round differently\n",
                    a->weights_hash, b->weights_hash);
}

int results_compare(Results *r)
{
    Side a, b;
    Text t = text_new(r->arena);
    int slower = 0, faster = 0, unknown = 0, pairs = 0;
    if (!side(r, r->word[0], &a) || !side(r, r->word[1], &b))
        return 1;
    text_printf(&t, "%-44s %12s %12s  B / A, 99 %% interval\n", "samples/s", "A", "B");
    for (int i = 0; i < a.n; i++) {
        const Group *other = a.group[i].n ? compare_partner(b.group, b.n, &a.group[i]) : NULL;
        Change c;
        if (!other)
            continue;
        compare_groups(r->arena, &a.group[i], other, r->floor, &c);
        tell(r->arena, &t, &c);
        tell_versions(&t, &c);
        slower += c.kind == CHANGE_SLOWER;
        faster += c.kind == CHANGE_FASTER;
        unknown += c.kind == CHANGE_UNKNOWN;
        pairs++;
    }
    if (!pairs) {
        diag_error(r->diag, nowhere, "'%s' and '%s' have no configuration in common", a.word,
                   b.word);
        return 1;
    }
    if (machines_differ(&a, &b))
        text_add(&t, "note: the machines differ\n");
    const int bits = tell_bits(r, &t, &a, &b);
    text_printf(&t, "%d compared: %d slower, %d faster", pairs, slower, faster);
    if (unknown)
        text_printf(&t, ", %d with fewer than %d runs a side", unknown, COMPARE_LEAST);
    text_printf(&t, "; a change counts when its interval excludes 1 and it exceeds %.0f %%\n",
                100 * r->floor);
    return results_write(r, &t) || slower || bits;
}
