/* merge.c -- `tenon results merge A.db B.db ... --store OUT`: the runs of several stores, each once, in one.
 *
 * Two runs are the same if key, attempt and time agree, so a second merge adds nothing.  Another run with the same key and
 * attempt (made elsewhere) becomes one more attempt.  No run of any store is lost.
 */
#include "sweep/results.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const Span nowhere;

/* The runs that the store already has. */
typedef struct Held {
    Run *run;
    int n, added, known;
} Held;

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The duration identifies a run: two runs never take the same number of nanoseconds. */
static bool is_same(const Run *a, const Run *b)
{
    return strcmp(a->started, b->started) == 0 && a->seconds == b->seconds;
}

/* Whether the store has the run.  If not, *attempt is the first free attempt of its key, from the run's own attempt on. */
static bool holds(const Held *h, const Run *r, int64_t *attempt)
{
    *attempt = r->attempt;
    for (int i = 0; i < h->n; i++) {
        const Run *q = &h->run[i];
        if (strcmp(q->key, r->key) != 0)
            continue;
        if (is_same(q, r))
            return true;
        *attempt = q->attempt >= *attempt ? q->attempt + 1 : *attempt;
    }
    return false;
}

static bool add(Results *r, Store *from, Held *h, Run *run)
{
    const char **text[] = {&run->source, &run->info, &run->machine};
    if (holds(h, run, &run->attempt)) {
        h->known++;
        return true;
    }
    if (!store_details(from, run))
        return false;
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        *text[i] = store_text(r->store, store_text_of(from, *text[i]));
    if (store_failed(r->store) || !store_add(r->store, run))
        return false;
    ARENA_PUSH(r->arena, h->run, h->n, *run);
    h->added++;
    return true;
}

static bool merge(Results *r, const char *path, Held *h)
{
    Run *run;
    if (same_file(path, r->store_path)) {
        diag_error(r->diag, nowhere, "%s is the store to merge into", path);
        diag_help(r->diag, "name another one: --store FILE");
        return false;
    }
    Store *from = store_read(r->arena, path, r->diag);
    if (!from)
        return false;
    const int n = store_runs(from, NULL, &run);
    bool ok = !store_failed(from);
    for (int i = 0; i < n && ok; i++)
        ok = add(r, from, h, &run[i]);
    store_close(from);
    return ok;
}

int results_merge(Results *r)
{
    Held h = {0};
    bool ok = true;
    h.n = store_runs(r->store, NULL, &h.run);
    for (int i = 0; i < r->nword && ok; i++)
        ok = merge(r, r->word[i], &h);
    if (ok)
        printf("%s: %d run%s added, %d were there\n", r->store_path, h.added,
               h.added == 1 ? "" : "s", h.known);
    return !ok || store_failed(r->store);
}
