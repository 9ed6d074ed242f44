/* tune.c -- --tune: chooses algorithms by measuring them on this machine, once for each shape.
 *
 * Pass choose gives this file the convolutions whose variants have similar prices.  Cases without
 * an earlier measurement are compiled into one small program, which runs on one thread.  The
 * fastest variant is written to the file `tuned` of the cache directory, a line for each case, with
 * tabs between the fields:
 *
 *     shape    processor    kernels    variant    measured and predicted microseconds, FMA peak
 *
 * Lines can be read, edited or deleted.  `kernels` is a hash of the C code of the trial, its
 * headers, the C compiler and its flags: a new version of a kernel is measured again.
 */
#include "tool/tune.h"
#include "base/environment.h"
#include "cpu/trial.h"
#include "ir/choice.h"
#include "ops/conv_price.h"
#include "ops/op.h"
#include "tool/build.h"
#include "tool/cache.h"
#include "tool/file.h"
#include "tool/objects.h"
#include "tool/process.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const Span nowhere;
static const char HEAD[] =
    "# tenon build --tune: what was fastest here; a line that is taken out is measured again\n";

typedef struct TuneTool {
    Tuner tuner; /* first, for pass choose */
    Arena *arena;
    const Command *command;
    const char *dtype, *processor, *kernels;
} TuneTool;

/* A choice without an earlier measurement. */
typedef struct Case {
    Choice *choice;
    const char *shape;
    bool known;
    int call[CHOICE_MOST],
        pack[CHOICE_MOST]; /* indices of its trials; pack is -1 if it reads no filters */
} Case;

/* ---- the fields of a line */

static const char *algorithm_name(int64_t tile)
{
    static const char *const name[] = {"direct", NULL, "winograd-2x2", NULL, "winograd-4x4"};
    return name[tile];
}

static void add_attr(Text *t, const Attr *a)
{
    text_printf(t, " %s=", a->key);
    if (a->kind == ATTR_STRING)
        text_add(t, a->s);
    else if (a->kind == ATTR_INTS)
        for (int i = 0; i < a->nlist; i++)
            text_printf(t, "%s%lld", i ? "x" : "", (long long)a->list[i]);
    else
        text_printf(t, "%lld", (long long)a->i);
}

/* All values for which the kernel is specialised: "conv2d n=16 calls=8 x_shape=20x12x12 filters=50
 * ...". */
static const char *shape_of(const TuneTool *t, const Choice *c, int64_t chunk, int64_t calls)
{
    const Node *n = c->node;
    static const char *const key[] = {"x_shape",  "filters", "kernel", "stride", "pad_before",
                                      "dilation", "groups",  "pool",   "act",    "mask"};
    Text s = text_new(t->arena);
    text_printf(&s, "%s %s n=%lld calls=%lld", n->op->name, t->dtype, (long long)chunk,
                (long long)calls);
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        if (node_attr(n, key[i]))
            add_attr(&s, node_attr(n, key[i]));
    text_printf(&s, " out=%lldx%lld", (long long)n->shape.dim[1], (long long)n->shape.dim[2]);
    for (int i = 0; i < c->n; i++)
        text_printf(&s, "%s%s", i ? "," : " ways=", algorithm_name(c->tile[i]));
    return s.s;
}

/* Value of "key : value" in /proc/cpuinfo. */
static const char *cpuinfo(Arena *a, const char *text, const char *key)
{
    const char *at = strstr(text, key), *colon = at ? strchr(at, ':') : NULL;
    return colon ? arena_strndup(a, colon + 2, strcspn(colon + 2, "\n\t")) : "?";
}

static const char *processor(Arena *a)
{
    Text t = text_new(a);
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "r"); /* its size is 0, so file_read reads nothing */
    while (f && fgets(line, sizeof line, f) && *line != '\n')
        text_add(&t, line);
    if (f)
        fclose(f);
    return arena_printf(a, "%s (%s/%s/%s)", cpuinfo(a, t.s, "model name"),
                        cpuinfo(a, t.s, "cpu family"), cpuinfo(a, t.s, "model\t"),
                        cpuinfo(a, t.s, "stepping"));
}

/* ---- the file of measurements */

static const char *file_path(Arena *a)
{
    Cache c;
    return cache_open(a, &c) ? path_join(a, c.dir, "tuned") : NULL;
}

static const char *file_text(Arena *a)
{
    size_t len = 0;
    const char *path = file_path(a), *text = path ? file_read(a, path, &len) : NULL;
    return text ? text : "";
}

static const char *line_key(const TuneTool *t, const Case *c)
{
    return arena_printf(t->arena, "%s\t%s\t%s\t", c->shape, t->processor, t->kernels);
}

/* Finds the line of a case.  A line with an unknown algorithm is ignored, so the case is measured
 * again. */
static bool look_up_case(const TuneTool *t, Case *c, const char *text)
{
    const char *key = line_key(t, c);
    const size_t n = strlen(key);
    for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n') {
        if (strncmp(s, key, n) != 0)
            continue;
        for (int i = 0; i < c->choice->n; i++) {
            const char *name = algorithm_name(c->choice->tile[i]);
            if (strncmp(s + n, name, strlen(name)) == 0 && s[n + strlen(name)] == '\t')
                return c->choice->pick = i, true;
        }
    }
    return false;
}

/* Appends lines to the file, after lines that other compilers have written meanwhile. */
static void append(const TuneTool *t, const char *lines, Diag *d)
{
    const char *path = file_path(t->arena), *text = file_text(t->arena), *old = *text ? text : HEAD;
    const bool whole = old[strlen(old) - 1] == '\n';
    const char *fresh = arena_printf(t->arena, "%s%s%s", old, whole ? "" : "\n", lines);
    const int error = path ? file_write(t->arena, path, fresh, strlen(fresh), 0666) : 0;
    if (!path)
        diag_warn(d, nowhere,
                  "--tune: there is no cache directory, so the measurements are not kept");
    else if (error)
        diag_warn(d, nowhere, "--tune: cannot write %s, so the measurements are not kept: %s", path,
                  strerror(error));
}

/* ---- measuring */

static bool tune_failed(Diag *d, const char *path)
{
    diag_error(d, nowhere, "--tune cannot use %s: %s", path, strerror(errno));
    return false;
}

/* Adds a trial of the packing of the filters that n reads; returns its index. */
static int add_packing(Trials *t, Graph *g, Node *n)
{
    Node pack = {.op = op_find("conv2d_pack"), .nin = 1, .in = &n->in[op_weights(n)]};
    const bool dx = n->op->role == ROLE_DX;
    const Attr *tile = node_attr(n, "winograd");
    const int64_t count = conv_packed_count(n, dx, tile ? tile->i : 0, t->options->vector);
    node_copy_attrs(g, &pack, n);
    node_set_int(g, &pack, "dx", dx);
    pack.shape = shape_make(false, NULL, &count, 1);
    return trials_add(t, &pack);
}

/* Adds the trials of one case: the call of each variant, and the packing of its filters. */
static void add_trials(Trials *t, const Graph *g, Case *c)
{
    Graph *mine = (Graph *)g; /* only its arena is used; *c->choice->node does not change */
    Node n = *c->choice->node;
    for (int i = 0; i < c->choice->n; i++) {
        node_drop_attr(g->arena, &n, "winograd");
        if (c->choice->tile[i])
            node_set_int(mine, &n, "winograd", c->choice->tile[i]);
        c->call[i] = trials_add(t, &n);
        c->pack[i] = op_weights(&n) < 0 ? -1 : add_packing(t, mine, &n);
    }
}

/* The number after "KEY " at the beginning of a line; -1 if there is none. */
static double tune_figure(const char *text, const char *key)
{
    const size_t n = strlen(key);
    for (const char *s = text; *s; s += strcspn(s, "\n"), s += *s == '\n')
        if (strncmp(s, key, n) == 0 && s[n] == ' ')
            return strtod(s + n, NULL);
    return -1;
}

/* Compiles and runs the trials, with the flags of the program that is being built, in a temporary
 * directory. */
static const char *run_trials(const TuneTool *t, EmitUnit unit, Diag *d)
{
    Arena *a = t->arena;
    Paths paths;
    bool made;
    if (!paths_find(a, &paths, d))
        return NULL;
    const char *dir = dir_temporary(a, "tenon-tune", &made);
    if (!made)
        return tune_failed(d, dir), NULL;
    Command command = *t->command;
    command.output = path_join(a, dir, "tune");
    command.keep = NULL;
    command.options.plain = command.options.blas = false;
    const BuildInput in = {.name = "tune",
                           .unit = &unit,
                           .nunit = 1,
                           .dtype = t->dtype,
                           .command = &command,
                           .machine = machine_find(command.options.cpu),
                           .paths = &paths};
    Argv v = {0};
    argv_add(a, &v, command.output);
    argv_end(a, &v);
    Process trials = process_of(a, v);
    const bool built = build_program(a, &in, d);
    if (built)
        process_run(&trials, "measuring algorithms");
    const char *output = trials.output.s;
    const int status = trials.status;
    const bool whole = tune_figure(output, "peak") > 0;
    unlink(command.output);
    rmdir(dir);
    process_pass_on();
    if (built && (status != 0 || !whole))
        diag_error(d, nowhere, "--tune: the trials failed (exit code %d): %s", status, output);
    return built && status == 0 && whole ? output : NULL;
}

static double trial_us(Arena *a, const char *text, int trial)
{
    return tune_figure(text, arena_printf(a, "%d", trial));
}

/* Sets the choice to the fastest algorithm; returns the line for the file. */
static const char *settle_case(const TuneTool *t, Case *c, double calls, const char *measured)
{
    Choice *h = c->choice;
    Text times = text_new(t->arena);
    double best = 0;
    for (int i = 0; i < h->n; i++) {
        const double packing = c->pack[i] < 0 ? 0 : trial_us(t->arena, measured, c->pack[i]);
        const double us = calls * trial_us(t->arena, measured, c->call[i]) + packing;
        if (i == 0 || us < best)
            best = us, h->pick = i;
        text_printf(&times, "%s%s %.1f (%.1f predicted)", i ? ", " : "", algorithm_name(h->tile[i]),
                    us, 1e6 * h->predicted[i]);
    }
    return arena_printf(t->arena, "%s%s\t%s, peak %.1f\n", line_key(t, c),
                        algorithm_name(h->tile[h->pick]), times.s, tune_figure(measured, "peak"));
}

/* The first case of the same shape, or NULL: equal shapes are measured once. */
static Case *same_shape(Case *c, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(c[i].shape, c[n].shape) == 0)
            return &c[i];
    return NULL;
}

static void settle(Tuner *tuner, const Graph *g, Choice *choice, int n, Diag *d)
{
    const TuneTool *t = (const TuneTool *)tuner;
    Arena *a = t->arena;
    Step step = {0};
    schedule_cut(g, &step);
    const int64_t calls = step.batch / step.chunk;
    Trials trials = trials_new(a, &t->command->options, t->dtype, step.chunk);
    Case *c = arena_alloc(a, sizeof *c * (size_t)n);
    const char *text = file_text(a), *measured = NULL;

    for (int i = 0; i < n; i++) {
        c[i] = (Case){.choice = &choice[i], .shape = shape_of(t, &choice[i], step.chunk, calls)};
        c[i].known = look_up_case(t, &c[i], text);
        if (!c[i].known && !same_shape(c, i))
            add_trials(&trials, g, &c[i]);
    }
    if (trials.n && !(measured = run_trials(t, trials_unit(&trials), d)))
        return;
    Text lines = text_new(a);
    for (int i = 0; i < n; i++) {
        const Case *first = same_shape(c, i);
        if (first)
            choice[i].pick = first->choice->pick;
        else if (!c[i].known)
            text_add(&lines, settle_case(t, &c[i], (double)calls, measured));
    }
    if (lines.len)
        append(t, lines.s, d);
    if (t->command->verbose)
        fputs(lines.s, stderr);
}

/* ---- the version of the kernels */

/* Hash of all headers that a trial includes, of the C compiler and of its flags. */
static const char *kernels_id(const TuneTool *t, const Paths *p)
{
    Arena *a = t->arena;
    const char *cc = environment(ENV_CC), *more = environment(ENV_TENON_CFLAGS);
    Key k = {0, 0};
    key_text(&k, TENON_NAME);
    key_text(&k, cc ? cc : "");
    key_text(&k, more ? more : "");
    key_text(&k, t->command->options.cpu ? t->command->options.cpu : "");
    const EmitHeaders headers = trials_headers();
    key_headers(a, p, &headers, &k);
    return arena_printf(a, "%016llx", (unsigned long long)k.a);
}

struct Tuner *tune_new(Arena *a, const Command *c, const char *dtype, Diag *d)
{
    TuneTool *t = arena_alloc(a, sizeof *t);
    Paths paths;
    if (!paths_find(a, &paths, d))
        return NULL;
    *t = (TuneTool){.tuner = {settle},
                    .arena = a,
                    .command = c,
                    .dtype = dtype,
                    .processor = processor(a)};
    t->kernels = kernels_id(t, &paths);
    return &t->tuner;
}
