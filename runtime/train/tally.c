/* tally.c -- see tally.h. */
#include "train/tally.h"
#include "base/error.h"
#include "base/memory.h"
#include "train/scores.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- memory */

/* The number of areas that the program does not report after each epoch (scores.h).  scores: of
 * each. */
static int areas_of(const RtProgram *p, const Compared *c, int64_t scores)
{
    if (c->kind == COMPARED_CLASS)
        return c->classes == 2 && c->count == 1 && !scores_reported(p);
    const bool few = c->count * scores <= TALLY_SCORES;
    return c->mask || !few ? 0 : (int)c->count;
}

/* The whole numbers of a target: its counts, `top` and `all`. */
static int64_t numbers_of(const TallyTarget *t)
{
    return t->n * (int64_t)(sizeof *t->count / sizeof(int64_t)) + 2;
}

/* Sets the targets and returns the bytes that their counts and scores need. */
static int64_t plan(Tally *t, int64_t scores)
{
    Compared c[RT_TARGETS];
    const int n = compared_targets(t->p, c);
    int64_t bytes = t->p->batch * t->p->outputs * t->p->real_bytes;
    for (int k = 0; k < n; k++) {
        if (c[k].kind == COMPARED_NUMBERS)
            continue;
        TallyTarget *one = &t->target[t->ntarget++];
        *one = (TallyTarget){.is = c[k], .areas = areas_of(t->p, &c[k], scores)};
        one->n = c[k].kind == COMPARED_CLASS ? c[k].classes : c[k].mask ? 1 : c[k].count;
        t->each += numbers_of(one);
        if (c[k].kind == COMPARED_CLASS)
            bytes += t->p->batch / t->comm->size * c[k].count * (int64_t)sizeof *one->found;
        bytes += one->areas * scores * (int64_t)sizeof **one->score;
    }
    return bytes + t->comm->size * t->each * (int64_t)sizeof *t->counts;
}

/* samples: of this rank in a batch. */
static void map_target(TallyTarget *t, int64_t samples, int64_t scores)
{
    if (t->is.kind == COMPARED_CLASS)
        t->found = rt_alloc(sizeof *t->found * (size_t)(samples * t->is.count));
    t->count = rt_alloc(sizeof *t->count * (size_t)t->n);
    t->score = rt_alloc(sizeof *t->score * (size_t)(t->areas + 1));
    t->area = rt_alloc(sizeof *t->area * (size_t)(t->areas + 1));
    for (int k = 0; k < t->areas; k++)
        t->score[k] =
            memory_map(scores * (int64_t)sizeof **t->score, false, "the scores of a split");
}

static int metrics_most(const TallyTarget *t)
{
    return 8 + (t->is.pixels > 0 && t->n <= TALLY_CLASSES ? (int)t->n : 0);
}

static void add_batch(OutputReader *self, const Batch *b, const char *output);

Tally *tally_new(const RtProgram *p, Pool *pool, Comm *c, int64_t samples, int64_t most)
{
    const int64_t scores = evaluate_batches(p, samples) * p->batch;
    Tally *t = rt_alloc(sizeof *t);
    int metrics = 0;
    *t = (Tally){.p = p, .pool = pool, .comm = c, .reader.add = add_batch};
    const int64_t bytes = plan(t, scores);
    if (t->ntarget == 0 || bytes > most)
        return NULL;
    t->counts = rt_alloc(sizeof *t->counts * (size_t)(c->size * t->each));
    t->reader.output = rt_alloc((size_t)(p->batch * p->outputs * p->real_bytes));
    for (int k = 0; k < t->ntarget; k++) {
        map_target(&t->target[k], p->batch / c->size, scores);
        metrics += metrics_most(&t->target[k]);
    }
    t->metric = rt_alloc(sizeof *t->metric * (size_t)metrics);
    return t;
}

/* ---- counts */

void tally_begin(Tally *t)
{
    t->kept = 0;
    for (int k = 0; k < t->ntarget; k++) {
        TallyTarget *one = &t->target[k];
        memset(one->count, 0, sizeof *one->count * (size_t)one->n);
        one->top = one->all = 0;
    }
}

/* Whether class `label` is one of the first TALLY_TOP, by its number and then by its index. */
static bool in_top(const Compared *c, const char *output, int i, int64_t k, int64_t label)
{
    const double own = compared_score(c, output, i, k, label);
    int before = 0;
    for (int64_t j = 0; j < c->classes && before < TALLY_TOP; j++) {
        const double x = compared_score(c, output, i, k, j);
        before += x > own || (x == own && j < label);
    }
    return before < TALLY_TOP;
}

enum { TOP = 1 << 30 }; /* in a prediction: the label's class is in the top 5 */

typedef struct Prediction {
    const TallyTarget *t;
    const Batch *b;
    const char *output;
    int first; /* sample of unit 0 */
} Prediction;

/* Predicts the labels of one sample.  A batch of images with a class for each pixel has millions of
 * numbers, so threads share the samples. */
static void predict_sample(void *arg, int thread, int unit)
{
    const Prediction *p = arg;
    const Compared *c = &p->t->is;
    const int i = p->first + unit;
    (void)thread;
    for (int64_t k = 0; k < c->count; k++) {
        const int32_t label = compared_label(c, p->b, i, k);
        const int32_t best = (int32_t)compared_best(c, p->output, i, k);
        const bool top = label >= 0 && best >= 0 && c->classes >= TALLY_TOP_CLASSES &&
                         in_top(c, p->output, i, k, label);
        p->t->found[unit * c->count + k] = top ? best | TOP : best;
    }
}

/* Counts the predictions of samples first .. end - 1. */
static void add_classes(TallyTarget *t, Pool *pool, const char *output, const Batch *b, int first,
                        int end)
{
    const Compared *c = &t->is;
    Prediction p = {t, b, output, first};
    pool_run(pool, predict_sample, &p, end - first);
    for (int64_t m = 0; m < (end - first) * c->count; m++) {
        const int32_t label = compared_label(c, b, first + (int)(m / c->count), m % c->count);
        if (label < 0)
            continue;
        t->count[label].there++;
        t->all++;
        if (t->found[m] < 0) /* NaN: no class is predicted */
            continue;
        const int32_t best = t->found[m] & (TOP - 1);
        t->count[best].found++;
        t->count[label].right += best == label;
        t->top += t->found[m] / TOP;
    }
}

static void add_truths(TallyTarget *t, const char *output, const Batch *b, int i)
{
    for (int64_t k = 0; k < t->is.count; k++) {
        const bool there = compared_number(&t->is, b, i, k) > 0.5,
                   found = compared_output(&t->is, output, i, k) > 0;
        TallyCount *c = &t->count[t->is.mask ? 0 : k];
        c->there += there;
        c->found += found;
        c->right += there && found;
        t->all++;
    }
}

/* Keeps the scores of sample i, which counts or fills the last batch, as number `at`. */
static void keep_scores(TallyTarget *t, const char *output, const Batch *b, int i, int64_t at)
{
    const bool classes = t->is.kind == COMPARED_CLASS;
    for (int k = 0; k < t->areas; k++) {
        Score *s = &t->score[k][at];
        s->score = classes ? compared_score(&t->is, output, i, 0, 1) -
                                 compared_score(&t->is, output, i, 0, 0)
                           : compared_output(&t->is, output, i, k);
        s->positive = i >= b->valid ? -1
                      : classes     ? compared_label(&t->is, b, i, 0)
                                    : compared_number(&t->is, b, i, k) > 0.5;
    }
}

static void add_batch(OutputReader *self, const Batch *b, const char *output)
{
    Tally *t = (Tally *)self; /* its first member */
    const int each = t->p->batch / t->comm->size, first = t->comm->rank * each, all = first + each,
              end = all < b->valid ? all : b->valid;
    for (int k = 0; k < t->ntarget; k++) {
        TallyTarget *one = &t->target[k];
        for (int i = first; i < all; i++)
            keep_scores(one, output, b, i, t->kept + i - first);
        if (one->is.kind == COMPARED_CLASS && end > first)
            add_classes(one, t->pool, output, b, first, end);
        for (int i = first; i < end && one->is.kind == COMPARED_TRUTHS; i++)
            add_truths(one, output, b, i);
    }
    t->kept += each;
}

/* Copies the counts of all targets to (pack) or from a row of numbers. */
static void move_counts(Tally *t, int64_t *row, bool pack)
{
    for (int k = 0; k < t->ntarget; k++) {
        TallyTarget *one = &t->target[k];
        const int64_t n = numbers_of(one) - 2;
        memcpy(pack ? row : (int64_t *)one->count, pack ? (int64_t *)one->count : row,
               sizeof *row * (size_t)n);
        if (pack)
            row[n] = one->top, row[n + 1] = one->all;
        else
            one->top = row[n], one->all = row[n + 1];
        row += n + 2;
    }
}

static void add_ranks(Tally *t)
{
    move_counts(t, t->counts + t->comm->rank * t->each, true);
    comm_gather(t->comm, t->counts, t->each * (int64_t)sizeof *t->counts, "counts of classes");
    for (int r = 1; r < t->comm->size; r++)
        for (int64_t i = 0; i < t->each; i++)
            t->counts[i] += t->counts[r * t->each + i];
    move_counts(t, t->counts, false);
}

/* ---- metrics */

double tally_precision(const TallyCount *c)
{
    return c->found ? (double)c->right / (double)c->found : 0;
}

double tally_recall(const TallyCount *c)
{
    return c->there ? (double)c->right / (double)c->there : 0;
}

double tally_f1(const TallyCount *c)
{
    return c->found + c->there ? 2 * (double)c->right / (double)(c->found + c->there) : 0;
}

double tally_iou(const TallyCount *c)
{
    const int64_t either = c->found + c->there - c->right;
    return either ? (double)c->right / (double)either : 0;
}

/* The mean over the classes that occur or are predicted; of two classes, the value of class 1.
 * NaN: no label counts. */
static double mean_of(const TallyTarget *t, double (*of)(const TallyCount *c))
{
    const bool classes = t->is.kind == COMPARED_CLASS;
    double sum = 0, n = 0;
    if (t->all == 0)
        return NAN;
    if (classes && t->n == 2 && t->is.pixels == 0)
        return of(&t->count[1]);
    for (int64_t k = 0; k < t->n; k++) {
        const bool counts = !classes || t->count[k].found + t->count[k].there > 0;
        if (counts && !(classes && k == t->is.ignored - 1))
            sum += of(&t->count[k]), n++;
    }
    return n > 0 ? sum / n : 0;
}

static void add_metric(Tally *t, const TallyTarget *one, const char *name, double value)
{
    TallyMetric *m = &t->metric[t->nmetric];
    if (isnan(value))
        return;
    snprintf(m->name, sizeof m->name, "%s%.64s", name, one->is.suffix);
    m->value = value;
    t->nmetric++;
}

/* The mean of the areas that exist; NaN: none does. */
static double mean_area(const TallyTarget *t)
{
    double sum = 0, n = 0;
    for (int k = 0; k < t->areas; k++)
        if (!isnan(t->area[k]))
            sum += t->area[k], n++;
    return n > 0 ? sum / n : NAN;
}

static void add_pixels(Tally *t, const TallyTarget *one)
{
    char name[32];
    add_metric(t, one, "iou", mean_of(one, tally_iou));
    add_metric(t, one, "dice", mean_of(one, tally_f1));
    for (int64_t k = 0; k < one->n && one->n <= TALLY_CLASSES; k++) {
        const TallyCount *c = &one->count[k];
        snprintf(name, sizeof name, "iou_%lld", (long long)k);
        add_metric(t, one, name, c->found + c->there ? tally_iou(c) : NAN);
    }
}

static void add_metrics(Tally *t, const TallyTarget *one)
{
    if (one->is.pixels > 0) {
        add_pixels(t, one);
        return;
    }
    if (one->is.classes >= TALLY_TOP_CLASSES)
        add_metric(t, one, "top5", one->all ? (double)one->top / (double)one->all : NAN);
    add_metric(t, one, "precision", mean_of(one, tally_precision));
    add_metric(t, one, "recall", mean_of(one, tally_recall));
    if (!one->is.mask) /* f1 of a mask is its dice, which the program reports */
        add_metric(t, one, "f1", mean_of(one, tally_f1));
    add_metric(t, one, "auc", mean_area(one));
}

void tally_end(Tally *t)
{
    add_ranks(t);
    t->nmetric = 0;
    for (int k = 0; k < t->ntarget; k++) {
        TallyTarget *one = &t->target[k];
        for (int a = 0; a < one->areas; a++)
            one->area[a] = scores_of_ranks(t->comm, one->score[a], t->kept);
        const int before = t->nmetric;
        add_metrics(t, one);
        one->nmetric = t->nmetric - before;
    }
}

void tally_log(const Tally *t, Log *l)
{
    char key[TALLY_NAME + 8];
    for (int m = 0; m < t->nmetric; m++) {
        snprintf(key, sizeof key, "test_%s", t->metric[m].name);
        log_real(l, key, t->metric[m].value);
    }
}

void tally_print(const Tally *t)
{
    int m = 0;
    for (int k = 0; k < t->ntarget; k++) {
        const int end = m + t->target[k].nmetric;
        for (const char *before = "test "; m < end; m++, before = ", ")
            printf("%s%s %.4f", before, t->metric[m].name, t->metric[m].value);
        printf("\n");
    }
}
