/* checkpoint.c -- see checkpoint.h. The state is a safetensors file; values that are no tensors are
 * in its metadata. */
#define _GNU_SOURCE
#include "train/checkpoint.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "data/vocab.h"
#include "files/lease.h"
#include "files/names.h"
#include "step/average.h"
#include "train/evaluate.h"
#include "train/weights.h"
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLES ", samples whose bytes have the hash "
enum { FOUND = 1024, ROOM = 256 /* bytes of a name in the directory */ };
enum { KEPT = 2, MARKS = 2, MARK_ROOM = 96 /* bytes of a mark after the name of its result */ };
enum { SUMS_TEXT = 32 * RT_METRICS }; /* %a of a double has at most 24 characters, and a blank */

struct Checkpoint {
    const RtProgram *p;
    const Options *o;
    Net *net;
    StWriter *writer;
    Lease *lease;
    char *same, *build; /* metadata of the run: `same` must agree; if `build` differs, a note */
    char position[128], sums[SUMS_TEXT], seconds[64], averaged[32];
    Best *best;
    Plateau *plateau;
    char *plateau_text;              /* its state; NULL: another schedule */
    char *mark[MARKS];               /* marks of `keep` and `stop` as text; NULL: not watched */
    int64_t found[FOUND + 2 * KEPT]; /* steps of the files in the directory, newest first */
    int nfound;
    /* steps of the last two files that are known to be good, and of the files with the best weights
     * at those times; -1: none */
    int64_t kept[KEPT], holds_best[KEPT];
};

/* The recipe's row of mark i: `keep`, then `stop`.  mark_key[i] is the mark's key in the
 * metadata. */
static const RtWatch *watch_of(const Checkpoint *c, int i)
{
    return i == 0 ? &c->p->recipe.keep : &c->p->recipe.stop;
}

static Mark *mark_of(const Checkpoint *c, int i)
{
    return i == 0 ? &c->best->keep : &c->best->stop;
}

static const char *const mark_key[MARKS] = {"keep", "stop"};

static void checkpoint_path(const Checkpoint *c, int64_t step, char path[4096])
{
    snprintf(path, 4096, "%s/" FILE_CHECKPOINT, c->o->checkpoint, (long long)step);
}

static int newest_first(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static void scan(Checkpoint *c)
{
    DIR *d = opendir(c->o->checkpoint);
    if (!d)
        rt_die("%s cannot be opened: %s", c->o->checkpoint, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        long long step;
        int end = 0;
        if (sscanf(e->d_name, "step-%lld.safetensors%n", &step, &end) != 1 || !end)
            continue;
        if (!e->d_name[end] && c->nfound < FOUND)
            c->found[c->nfound++] = step;
        else if (strncmp(e->d_name + end, ".tmp", 4) == 0) /* a run was killed while it saved */
            unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
    qsort(c->found, (size_t)c->nfound, sizeof *c->found, newest_first);
}

Checkpoint *checkpoint_open(const RtProgram *p, const Options *o, Net *n, Best *b, Plateau *s)
{
    Checkpoint *c = rt_alloc(sizeof *c);
    *c = (Checkpoint){.p = p,
                      .o = o,
                      .net = n,
                      .best = b,
                      .plateau = s,
                      .kept = {-1, -1},
                      .holds_best = {-1, -1}};
    if (strlen(o->checkpoint) + ROOM > PATH_MAX)
        rt_die("the path %.60s... is too long", o->checkpoint);
    if (mkdir(o->checkpoint, 0777) == 0)
        rt_unfinished(o->checkpoint); /* an error before the first checkpoint leaves nothing */
    else if (errno != EEXIST)
        rt_die("the checkpoint directory %s cannot be created: %s", o->checkpoint, strerror(errno));
    c->lease = lease_take(o->checkpoint); /* two runs would remove each other's files */
    scan(c);
    if (c->nfound && !o->resume)
        rt_die("%s already holds a run: continue it with --resume, or name another directory",
               o->checkpoint);
    return c;
}

/* The text as it will be read from a file: bytes that are not UTF-8 are replaced (json_quote). */
static char *as_saved(const char *text)
{
    const int64_t room = json_room((int64_t)strlen(text));
    char *quoted = rt_alloc((size_t)room), *back = rt_alloc((size_t)room);
    Json j = json_read(quoted, json_quote(quoted, room, text));
    json_string(&j, back, room);
    free(quoted);
    return back;
}

/* "loss loss_fit mae": the metrics of training steps in the order of their sums. */
static const char *metric_names(const RtProgram *p)
{
    const char *all = "";
    for (int m = 0; m < evaluate_trained(p); m++)
        all = rt_format("%s%s%s", all, m ? " " : "", p->metric[m]);
    return all;
}

static size_t plateau_room(const Checkpoint *c)
{
    return strlen(c->p->recipe.plateau.result) + PLATEAU_ROOM;
}

static void open_writer(Checkpoint *c)
{
    StWriter *w = c->writer = weights_state_writer(c->net);
    st_writer_item(w, "format", "tenon checkpoint 1", 0);
    st_writer_item(w, "model", c->p->model, 0);
    st_writer_item(w, "program", c->p->source_hash, 0);
    st_writer_item(w, "same", c->same, 0);
    st_writer_item(w, "build", c->build, 0);
    st_writer_item(w, "position", c->position, sizeof c->position);
    st_writer_item(w, "metrics", metric_names(c->p), 0);
    st_writer_item(w, "sums", c->sums, sizeof c->sums);
    st_writer_item(w, "seconds", c->seconds, sizeof c->seconds);
    if (c->net->average)
        st_writer_item(w, "averaged", c->averaged, sizeof c->averaged);
    for (int i = 0; i < MARKS; i++)
        if (watch_of(c, i)->result) {
            const size_t room = strlen(watch_of(c, i)->result) + MARK_ROOM;
            c->mark[i] = rt_alloc(room);
            st_writer_item(w, mark_key[i], c->mark[i], (int64_t)room);
        }
    if (c->p->recipe.plateau.result) {
        const size_t room = plateau_room(c);
        c->plateau_text = rt_alloc(room);
        st_writer_item(w, "plateau", c->plateau_text, (int64_t)room);
    }
    st_writer_ready(w, c->o->checkpoint);
}

/* The end of the description of a build whose products in bf16 have the bits of VDPBF16PS: --isa of
 * a program built with --fast, or its processor, decides. */
static const char by_chains[] = ", products by AVX512_BF16";

static bool is_by_chains(const char *build)
{
    const size_t n = strlen(build), end = strlen(by_chains);
    return n >= end && strcmp(build + n - end, by_chains) == 0;
}

/* Says that the last bits will differ if another build, or other instructions, made the file. */
static void compare_builds(const char *path, const char *build, const char *now)
{
    const bool then = is_by_chains(build);
    const size_t n = strlen(build) - (then ? strlen(by_chains) : 0);
    if (strcmp(build, now) == 0)
        return;
    if (then != is_by_chains(now) && strncmp(build, now, n) == 0 &&
        strcmp(then ? "" : by_chains, now + n) == 0)
        rt_note("%s was made with products by %s, and this run computes them by %s: the run goes "
                "on, but its last bits will differ; --isa %s continues with the same bits",
                path, then ? "AVX512_BF16" : "AVX-512 or AMX",
                then ? "AVX-512 or AMX" : "AVX512_BF16", then ? "avx512_bf16" : "avx512");
    else
        rt_note("%s was made by another build (%s): the run goes on, but its last bits will differ",
                path, build);
}

/* samples_hash 0: data_hash covers the samples, too. */
void checkpoint_bind(Checkpoint *c, uint64_t data_hash, uint64_t samples_hash)
{
    const char *vocabulary =
        vocab_now() ? rt_format(", vocabulary %016llx", (unsigned long long)vocab_now()->hash) : "";
    const char *samples =
        samples_hash ? rt_format(SAMPLES "%016llx", (unsigned long long)samples_hash) : "";
    c->same = rt_format("seed %llu, shuffle %s, limit-samples %lld, data %016llx%s%s",
                        (unsigned long long)c->o->seed, c->o->shuffle ? "on" : "off",
                        (long long)c->o->limit, (unsigned long long)data_hash, vocabulary, samples);
    c->build =
        as_saved(rt_format("%s, %s, %s, algorithms %016llx, %s%s", c->p->compiler, c->p->target,
                           c->p->cpu, (unsigned long long)hash_algorithms(c->p), c->p->flags,
                           rt_tiles_form() == RT_TILES_CHAINS ? by_chains : ""));
    open_writer(c);
}

/* Doubles as hex: exact. */
static void sums_text(const Position *at, char text[SUMS_TEXT])
{
    int n = 0;
    for (int i = 0; i < RT_METRICS; i++)
        n += snprintf(text + n, (size_t)(SUMS_TEXT - n), "%s%a", i ? " " : "", at->sum[i]);
}

static int sums_read(const char *text, double sum[RT_METRICS])
{
    for (int i = 0; i < RT_METRICS; i++) {
        char *end;
        sum[i] = strtod(text, &end);
        if (end == text)
            return i;
        text = end;
    }
    return RT_METRICS;
}

/* The index of a word in a list with a blank between two words; -1: it is not there. */
static int word_index(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (int i = 0;; i++) {
        const char *end = strchrnul(list, ' ');
        if ((size_t)(end - list) == n && strncmp(list, word, n) == 0)
            return i;
        if (!*end)
            return -1;
        list = end + 1;
    }
}

/* Gives each metric its sum.  The program that made the file has the same network and loss, but its
 * loss can have other terms. Older files have no names of metrics.  After the last step of an epoch
 * all sums are 0. */
static void take_sums(const RtProgram *p, const StFile *f, const char *path, Position *at)
{
    double saved[RT_METRICS];
    const char *names = st_meta(f, "metrics");
    const int n = sums_read(st_meta(f, "sums"), saved);
    for (int m = 0; m < evaluate_trained(p); m++) {
        const int i = names ? word_index(names, p->metric[m]) : m;
        if (i >= 0 && i < n)
            at->sum[m] = saved[i];
        else if (at->step > 0)
            rt_die("%s was saved in the middle of an epoch and has no sum of %s, because its loss "
                   "had other terms (it has %s): finish the epoch with the program that made it",
                   path, p->metric[m], names ? names : "sums without names");
    }
}

static void describe_state(Checkpoint *c, const Position *at)
{
    snprintf(c->position, sizeof c->position, "%lld %lld %lld %lld", (long long)at->epoch,
             (long long)at->step, (long long)at->total, (long long)at->samples);
    sums_text(at, c->sums);
    snprintf(c->seconds, sizeof c->seconds, "%.3f", at->seconds);
    if (c->net->average)
        snprintf(c->averaged, sizeof c->averaged, "%lld", (long long)c->net->average->epochs);
    for (int i = 0; i < MARKS; i++)
        if (c->mark[i])
            best_mark_text(watch_of(c, i), mark_of(c, i), c->mark[i],
                           strlen(watch_of(c, i)->result) + MARK_ROOM);
    if (c->plateau_text)
        plateau_text(c->plateau, &c->p->recipe, c->plateau_text, plateau_room(c));
}

static bool is_needed(const Checkpoint *c, int64_t step)
{
    for (int i = 0; i < KEPT; i++)
        if (step == c->kept[i] || step == c->holds_best[i])
            return true;
    return false;
}

/* Keeps the files of this step and of the one before, with those of their best weights, and removes
 * all others. */
static void keep_files(Checkpoint *c, int64_t step)
{
    for (int i = 0; i < KEPT; i++) {
        c->found[c->nfound++] = c->kept[i];
        c->found[c->nfound++] = c->holds_best[i];
    }
    if (c->kept[0] != step) {
        c->kept[1] = c->kept[0];
        c->holds_best[1] = c->holds_best[0];
    }
    c->kept[0] = step;
    c->holds_best[0] = c->best->weights ? c->best->keep.total : -1;
    for (int i = 0; i < c->nfound; i++)
        if (c->found[i] >= 0 && !is_needed(c, c->found[i])) {
            char path[4096];
            checkpoint_path(c, c->found[i], path);
            unlink(path);
        }
    c->nfound = 0;
}

void checkpoint_save(Checkpoint *c, const Position *at)
{
    char path[4096];
    checkpoint_path(c, at->total, path);
    describe_state(c, at);
    lease_check(c->lease);
    st_write(c->writer, path); /* reads the file back, so an older one can be removed */
    keep_files(c, at->total);
}

/* A piece of a list "a x, b y", for a message. */
static const char *piece_words(const char *piece, const char *none)
{
    piece = piece ? piece + (*piece == ' ') : none;
    return strcmp(piece, "limit-samples 0") == 0 ? "all samples" : piece;
}

/* Whether weights of a file change what the samples are: their columns, or their vocabulary. */
static bool weights_describe_data(const RtProgram *p)
{
    return p->recipe.table.given || p->recipe.text.unit;
}

/* Reports the first piece in which two lists of the form "a x, b y" differ. */
static void __attribute__((noreturn)) differ(const Checkpoint *c, const char *path, const char *was)
{
    char then[640], now[640], *save_then, *save_now;
    snprintf(then, sizeof then, "%s", was);
    snprintf(now, sizeof now, "%s", c->same);
    char *a = strtok_r(then, ",", &save_then), *b = strtok_r(now, ",", &save_now);
    while (a && b && strcmp(a, b) == 0)
        a = strtok_r(NULL, ",", &save_then), b = strtok_r(NULL, ",", &save_now);
    const char *made_with = piece_words(a, "other settings");
    const bool data = strncmp(made_with, "data ", 5) == 0 || strncmp(made_with, "samples ", 8) == 0;
    const char *again =
        data && weights_describe_data(c->p) && !c->o->weights && !c->p->recipe.weights.file
            ? "; if the run began with --weights, name the same file again, with its --only and "
              "--except"
            : "";
    rt_die("%s cannot be resumed by this run: it was made with %s, this run has %s%s%s", path,
           made_with, piece_words(b, "others"),
           data ? rt_format(": the training samples have changed; give the earlier ones, or begin "
                            "a new run with --weights %s",
                            path)
                : "",
           again);
}

/* Whether a checkpoint is of a version of Tenon that did not hash samples, and agrees otherwise. */
static bool knows_no_samples(const Checkpoint *c, const char *same)
{
    const char *samples = strstr(c->same, SAMPLES);
    const size_t n = samples ? (size_t)(samples - c->same) : 0;
    return samples && strlen(same) == n && strncmp(same, c->same, n) == 0;
}

static bool read_position(const StFile *f, Position *at)
{
    const char *position = st_meta(f, "position"), *s = st_meta(f, "seconds");
    long long v[4];
    if (!position || !st_meta(f, "sums") || !s ||
        sscanf(position, "%lld %lld %lld %lld", v, v + 1, v + 2, v + 3) != 4)
        return false;
    *at =
        (Position){.epoch = v[0], .step = v[1], .total = v[2], .samples = v[3], .seconds = atof(s)};
    return at->epoch >= 0 && at->step >= 0 && at->total >= 0 && at->samples >= 0;
}

/* Takes the mark of an earlier epoch, if the run watched this result then. */
static void take_mark(const Checkpoint *c, int i, const StFile *f, const Position *at)
{
    const RtWatch *w = watch_of(c, i);
    const char *text = st_meta(f, mark_key[i]);
    if (!w->result || (text && best_mark_read(w, text, mark_of(c, i))))
        return;
    *mark_of(c, i) = (Mark){at->epoch, -1, __builtin_nan("")};
    if (at->epoch > 0)
        rt_note("%s has no best %s: '%s' counts from epoch %lld on", f->path, w->result,
                mark_key[i], (long long)at->epoch + 1);
}

/* The hash of the program covers the schedule, so the file has its state. */
static void take_plateau(const Checkpoint *c, const StFile *f)
{
    const char *text = st_meta(f, "plateau");
    if (c->plateau_text && (!text || !plateau_read(c->plateau, &c->p->recipe, text)))
        rt_die("%s does not hold the state of the schedule: begin a new run with --weights %s",
               f->path, f->path);
}

/* The number of epochs when weights were last added to the average.  Older files do not have it. */
static void take_averaged(const Checkpoint *c, const StFile *f, const Position *at)
{
    const char *text = st_meta(f, "averaged");
    if (c->net->average)
        c->net->average->epochs = text ? atoll(text) : at->epoch;
}

/* Whether a file holds the weights at the end of the epoch of a mark, in this run. */
static bool is_best_file(const Checkpoint *c, const StFile *f, const Mark *m)
{
    const char *program = st_meta(f, "program"), *same = st_meta(f, "same");
    Position at;
    return program && strcmp(program, c->p->source_hash) == 0 && same &&
           strcmp(same, c->same) == 0 && read_position(f, &at) && at.epoch == m->epoch &&
           at.step == 0 && at.total == m->total;
}

/* Loads the weights of the best epoch. */
static void load_best(Checkpoint *c, const char *path)
{
    const Mark *m = &c->best->keep;
    char from[4096], why[256];
    if (!c->best->weights || m->total < 0)
        return;
    checkpoint_path(c, m->total, from);
    StFile *f = st_open(from, why);
    if (!f || !st_intact(f, true) || !is_best_file(c, f, m))
        rt_die("%s cannot be resumed: the best weights so far are those of epoch %lld in %s, and "
               "this file %s; put it back, or begin a new run with --weights %s",
               path, (long long)m->epoch, from,
               !f ? rt_format("cannot be read: %s", why)
                  : "is damaged, of another run, or not of the end of that epoch",
               path);
    if (!weights_load_evaluated(c->net, f, c->best->weights))
        rt_die("%s does not hold the weights of %s", from, c->p->model);
    st_close(f);
}

/* False when the file is damaged. */
static bool load_checkpoint(Checkpoint *c, const char *path, Position *at)
{
    char why[256];
    StFile *f = st_open(path, why);
    const char *program = f ? st_meta(f, "program") : NULL;
    const char *same = f ? st_meta(f, "same") : NULL, *build = f ? st_meta(f, "build") : NULL;
    if (!f || !st_intact(f, true) || !program || !same || !build || !read_position(f, at)) {
        rt_note("%s is damaged (%s) and is not used", path, f ? "its checksum is wrong" : why);
        return false;
    }
    if (strcmp(program, c->p->source_hash) != 0)
        rt_die("%s was made by another program: %s %s, this is %s %s (network, recipe, batch, "
               "shards or dtype differ)",
               path, st_meta(f, "model"), program, c->p->model, c->p->source_hash);
    take_sums(c->p, f, path, at);
    if (knows_no_samples(c, same))
        rt_note("%s was written by a version of Tenon that compared labels only: the run goes on "
                "without a comparison of its samples",
                path);
    else if (strcmp(same, c->same) != 0)
        differ(c, path, same);
    compare_builds(path, build, c->build);
    if (!weights_load_state(c->net, f))
        rt_die("%s does not hold the state of %s", path, c->p->model);
    for (int i = 0; i < MARKS; i++)
        take_mark(c, i, f, at);
    take_averaged(c, f, at);
    take_plateau(c, f);
    st_close(f);
    load_best(c, path);
    return true;
}

static void say_where(const Checkpoint *c, const char *path, const Position *at)
{
    const long long done = at->epoch, epochs = c->o->epochs;
    const char *s = epochs == 1 ? "" : "s";
    if (done == epochs)
        rt_note("%s: the run is already complete, %lld of %lld epoch%s; continue it with --epochs "
                "N",
                path, done, epochs, s);
    else if (done > epochs)
        rt_note("%s: %lld epochs are done, and this run is for %lld: nothing is left to train",
                path, done, epochs);
    else if (at->step == 0)
        rt_note("resumed from %s: after epoch %lld of %lld", path, done, epochs);
    else
        rt_note("resumed from %s: epoch %lld, step %lld", path, done + 1, (long long)at->step);
}

bool checkpoint_resume(Checkpoint *c, Position *at)
{
    for (int i = 0; i < c->nfound; i++) {
        char path[4096];
        checkpoint_path(c, c->found[i], path);
        if (!load_checkpoint(c, path, at))
            continue;
        c->kept[0] = c->found[i];
        c->holds_best[0] = c->best->weights ? c->best->keep.total : -1;
        say_where(c, path, at);
        return true;
    }
    if (c->nfound)
        rt_die("no checkpoint in %s can be read", c->o->checkpoint);
    rt_note("%s holds no checkpoint: starting from the beginning", c->o->checkpoint);
    return false;
}

void checkpoint_close(Checkpoint *c)
{
    if (c)
        lease_give(c->lease);
}
