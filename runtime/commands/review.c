/* review.c -- collects what `test --report` writes (review.h). */
#include "commands/review.h"
#include "base/error.h"
#include "base/memory.h"
#include "data/classes.h"
#include "data/columns.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- memory */

static int64_t width_of(const Compared *c)
{
    if (c->kind == COMPARED_NUMBERS)
        return REVIEW_PAIRS + (c->count <= REVIEW_NUMBERS ? 2 * c->count : 0);
    return c->classes > 0 && c->count == 1 ? REVIEW_CLASS_WIDTH : REVIEW_LABELS_WIDTH;
}

bool review_has_pairs(const ReviewTarget *t)
{
    return t->is.kind == COMPARED_NUMBERS && t->is.count <= REVIEW_NUMBERS;
}

static const TallyTarget *tally_of(const Tally *t, const Compared *c)
{
    for (int k = 0; t && k < t->ntarget; k++)
        if (t->target[k].is.target == c->target)
            return &t->target[k];
    return NULL;
}

static void add_target(Review *r, const Tally *tally, const Compared *c)
{
    ReviewTarget *t = &r->target[r->ntarget++];
    const int64_t samples = r->each * r->comm->size;
    *t = (ReviewTarget){.is = *c, .tally = tally_of(tally, c), .width = width_of(c)};
    t->prefix = *c->suffix ? rt_format("%s_", c->name) : "";
    t->rows =
        memory_map(samples * t->width * (int64_t)sizeof *t->rows, false, "the rows of a report");
    if (c->kind == COMPARED_CLASS)
        t->found = rt_alloc(sizeof *t->found * (size_t)(r->p->batch / r->comm->size * c->count));
    if (c->kind != COMPARED_CLASS || c->classes > REVIEW_CLASSES)
        return;
    t->confusion =
        rt_alloc(sizeof *t->confusion * (size_t)(r->comm->size * c->classes * c->classes));
    t->nans = rt_alloc(sizeof *t->nans * (size_t)(r->comm->size * c->classes));
}

static void add_batch(OutputReader *self, const Batch *b, const char *output);

Review *review_new(const RtProgram *p, Pool *pool, Comm *c, const Data *d, const Tally *tally)
{
    Compared is[RT_TARGETS];
    Review *r = rt_alloc(sizeof *r);
    const int n = compared_targets(p, is);
    *r = (Review){.p = p, .pool = pool, .d = d, .comm = c, .reader.add = add_batch};
    r->each = evaluate_batches(p, d->n) * (p->batch / c->size);
    r->reader.output = rt_alloc((size_t)(p->batch * p->outputs * p->real_bytes));
    for (int k = 0; k < n; k++)
        add_target(r, tally, &is[k]);
    return r;
}

/* ---- rows */

/* Cross-entropy of label k, from the largest number of the sample on: log(sum of exp(x - top)).
 * Without softmax: the squared error from 1 at the label's class and 0 elsewhere.  share: of both
 * classes of `class`; class[1] is that with the largest number.  -1: a number is NaN, and so is the
 * result. */
static double loss_of_class(const Compared *c, const char *output, int i, int64_t k, int64_t label,
                            const int64_t class[2], double share[2])
{
    const bool logits = c->softmax || c->binary;
    if (class[1] < 0)
        return share[0] = share[1] = NAN;
    const double top = compared_score(c, output, i, k, class[1]);
    double sum = 0;
    for (int64_t j = 0; j < c->classes; j++) {
        const double x = compared_score(c, output, i, k, j);
        sum += logits ? exp(x - top) : (x - (j == label)) * (x - (j == label));
    }
    for (int m = 0; m < 2; m++) {
        const double x = compared_score(c, output, i, k, class[m]);
        share[m] = logits ? exp(x - top) / sum : x;
    }
    return logits ? log(sum) + top - compared_score(c, output, i, k, label) : sum;
}

/* found: for the predicted classes of the sample. */
static void fill_class(const Compared *c, const char *output, const Batch *b, int i, double *row,
                       int32_t *found)
{
    double loss = 0, all = 0, right = 0;
    for (int64_t k = 0; k < c->count; k++) {
        const int32_t label = compared_label(c, b, i, k);
        found[k] = REVIEW_NO_LABEL;
        if (label < 0)
            continue;
        const int64_t best = compared_best(c, output, i, k), class[2] = {label, best};
        double share[2];
        loss += loss_of_class(c, output, i, k, label, class, share);
        all++;
        right += best == label;
        found[k] = best < 0 ? REVIEW_NO_NUMBER : (int32_t)best;
        if (c->count > 1)
            continue;
        row[REVIEW_TRUE] = label;
        row[REVIEW_FOUND] = (double)best;
        row[REVIEW_TRUE_SHARE] = share[0];
        row[REVIEW_FOUND_SHARE] = share[1];
    }
    if (c->count > 1)
        row[REVIEW_RIGHT] = right;
    row[REVIEW_LOSS] = all > 0 ? loss / all : 0;
    row[REVIEW_ALL] = all;
}

/* The mean of -t log p - (1 - t) log(1 - p), where p = sigmoid(x). */
static void fill_truths(const Compared *c, const char *output, const Batch *b, int i, double *row)
{
    double loss = 0, right = 0;
    for (int64_t k = 0; k < c->count; k++) {
        const double x = compared_output(c, output, i, k), y = compared_number(c, b, i, k);
        loss += fmax(x, 0) - x * y + log1p(exp(-fabs(x)));
        right += y > 0.5 ? x > 0 : x <= 0; /* NaN is not right */
    }
    row[REVIEW_LOSS] = loss / (double)c->count;
    row[REVIEW_ALL] = (double)c->count;
    row[REVIEW_RIGHT] = right;
}

/* The loss is the mean squared error. */
static void fill_numbers(const ReviewTarget *t, const char *output, const Batch *b, int i,
                         double *row)
{
    const Compared *c = &t->is;
    double square = 0, sum = 0, absolute = 0, most = 0;
    for (int64_t k = 0; k < c->count; k++) {
        const double x = compared_output(c, output, i, k), y = compared_number(c, b, i, k),
                     error = x - y;
        square += error * error;
        sum += error;
        absolute += fabs(error);
        if (!(fabs(error) <= most) && !isnan(most)) /* a NaN stays */
            most = fabs(error);
        if (review_has_pairs(t))
            row[REVIEW_PAIRS + 2 * k] = y, row[REVIEW_PAIRS + 2 * k + 1] = x;
    }
    row[REVIEW_LOSS] = square / (double)c->count;
    row[REVIEW_ALL] = (double)c->count;
    row[REVIEW_SUM] = sum;
    row[REVIEW_SUM_ABSOLUTE] = absolute;
    row[REVIEW_MOST] = most;
}

typedef struct Filling {
    Review *r;
    const Batch *b;
    const char *output;
    int first; /* sample of unit 0 */
} Filling;

/* Fills the rows of one sample.  Threads share the samples. */
static void fill_sample(void *arg, int thread, int unit)
{
    const Filling *f = arg;
    const Review *r = f->r;
    const int i = f->first + unit;
    (void)thread;
    for (int k = 0; k < r->ntarget; k++) {
        const ReviewTarget *t = &r->target[k];
        double *row = t->rows + (r->comm->rank * r->each + r->kept + unit) * t->width;
        if (t->is.kind == COMPARED_CLASS)
            fill_class(&t->is, f->output, f->b, i, row, t->found + unit * t->is.count);
        else if (t->is.kind == COMPARED_TRUTHS)
            fill_truths(&t->is, f->output, f->b, i, row);
        else
            fill_numbers(t, f->output, f->b, i, row);
    }
}

/* Adds the predictions of `samples` samples, from `first` on, to the confusion matrix. */
static void add_confusion(const Review *r, ReviewTarget *t, const Batch *b, int first, int samples)
{
    const Compared *c = &t->is;
    int64_t *count = t->confusion + r->comm->rank * c->classes * c->classes,
            *nans = t->nans + r->comm->rank * c->classes;
    for (int64_t m = 0; m < samples * c->count; m++) {
        if (t->found[m] == REVIEW_NO_LABEL)
            continue;
        const int32_t label = compared_label(c, b, first + (int)(m / c->count), m % c->count);
        if (t->found[m] == REVIEW_NO_NUMBER)
            nans[label]++;
        else
            count[label * c->classes + t->found[m]]++;
    }
}

static void add_batch(OutputReader *self, const Batch *b, const char *output)
{
    Review *r = (Review *)self; /* its first member */
    const int each = r->p->batch / r->comm->size, first = r->comm->rank * each,
              left = b->valid - first, samples = left < each ? left : each;
    Filling f = {r, b, output, first};
    if (samples > 0)
        pool_run(r->pool, fill_sample, &f, samples);
    for (int k = 0; k < r->ntarget; k++)
        if (r->target[k].confusion)
            add_confusion(r, &r->target[k], b, first, samples);
    r->kept += each;
}

const double *review_row(const Review *r, const ReviewTarget *t, int64_t i)
{
    const int64_t batch = r->p->batch, own = batch / r->comm->size, within = i % batch;
    return t->rows + (within / own * r->each + i / batch * own + within % own) * t->width;
}

/* Whether sample a is worse than b: its loss is larger, or no number. */
static bool is_worse(double a, double b)
{
    return a > b || (isnan(a) && !isnan(b));
}

/* Lists the samples with the highest loss; of equal ones, the first. */
static void find_worst(const Review *r, ReviewTarget *t)
{
    for (int64_t i = 0; i < r->d->n; i++) {
        const double *row = review_row(r, t, i);
        int at = t->nworst;
        while (at > 0 &&
               is_worse(row[REVIEW_LOSS], review_row(r, t, t->worst[at - 1])[REVIEW_LOSS]))
            at--;
        if (row[REVIEW_ALL] == 0 || at == REVIEW_WORST)
            continue;
        t->nworst += t->nworst < REVIEW_WORST;
        memmove(t->worst + at + 1, t->worst + at, sizeof *t->worst * (size_t)(t->nworst - 1 - at));
        t->worst[at] = i;
    }
}

static void gather(Review *r, ReviewTarget *t)
{
    const int64_t cells = t->is.classes * t->is.classes;
    comm_gather(r->comm, t->rows, r->each * t->width * (int64_t)sizeof *t->rows,
                "the rows of a report");
    if (!t->confusion)
        return;
    comm_gather(r->comm, t->confusion, cells * (int64_t)sizeof *t->confusion, "a confusion matrix");
    comm_gather(r->comm, t->nans, t->is.classes * (int64_t)sizeof *t->nans, "counts of NaN");
    for (int64_t i = cells; i < r->comm->size * cells; i++)
        t->confusion[i % cells] += t->confusion[i];
    for (int64_t i = 0; i < r->comm->size * t->is.classes; i++) {
        t->nan += t->nans[i];
        if (i >= t->is.classes)
            t->nans[i % t->is.classes] += t->nans[i];
    }
}

/* ---- names */

/* Classes of folders and of tables have names; others are numbers. */
static const char *name_of(const Review *r, const ReviewTarget *t, int64_t k)
{
    const Columns *c = columns_now();
    const Column *column =
        c && c->ninput + t->is.target < c->n ? &c->at[c->ninput + t->is.target] : NULL;
    const Classes *names = t->is.classes > 0 && r->p->ntarget == 0 ? classes_now() : NULL;
    if (t->is.classes > 0 && column && column->category && k < column->value.n)
        return rt_format("%.*s", (int)column->value.piece[k].length, column->value.piece[k].bytes);
    return names && k < names->n ? names->name[k] : rt_format("%lld", (long long)k);
}

static void name_classes(const Review *r, ReviewTarget *t)
{
    const int64_t n = t->tally ? t->tally->n : 0;
    t->class_name = rt_alloc(sizeof *t->class_name * (size_t)(n + 1));
    for (int64_t k = 0; k < n; k++)
        t->class_name[k] = name_of(r, t, k);
}

const char *review_class_name(const ReviewTarget *t, int64_t k)
{
    return t->class_name[k];
}

const char *review_number_name(const Review *r, const ReviewTarget *t, int64_t k)
{
    const Columns *c = columns_now();
    if (c && r->p->ntarget == 0 && c->n - c->ninput == t->is.count)
        return c->at[c->ninput + k].name;
    return t->is.count == 1 ? t->is.name : rt_format("%s_%lld", t->is.name, (long long)k);
}

const char *review_name(const ReviewTarget *t, const char *name)
{
    return rt_format("%s%s", t->prefix, name);
}

/* ---- files */

static void write_target(Review *r, const ReviewTarget *t)
{
    review_tables(r, t);
    if (t->confusion)
        review_confusion_chart(r, t);
    else if (t->is.kind == COMPARED_CLASS)
        rt_note("the report has no confusion matrix of %lld classes: it is for up to %d",
                (long long)t->is.classes, REVIEW_CLASSES);
    if (t->is.kind == COMPARED_NUMBERS && review_has_pairs(t))
        review_scatter(r, t);
    else if (t->is.kind == COMPARED_NUMBERS)
        rt_note("the report has no residuals of %lld numbers of a sample: they are for up to %d",
                (long long)t->is.count, REVIEW_NUMBERS);
    review_sheet(r, t);
}

void review_write(Review *r, ReviewFolder *f, const ReviewMetric *metric, int n, int64_t nans)
{
    for (int k = 0; k < r->ntarget; k++)
        gather(r, &r->target[k]);
    if (r->comm->rank > 0)
        return;
    r->folder = f;
    r->nans = nans;
    review_folder_open(f);
    for (int k = 0; k < r->ntarget; k++) {
        name_classes(r, &r->target[k]);
        find_worst(r, &r->target[k]);
        write_target(r, &r->target[k]);
    }
    review_metrics(r, metric, n);
    review_folder_commit(f);
    printf("report in %s:", f->path);
    for (int i = 0; i < f->n; i++)
        printf(" %s%s", f->written[i], i + 1 < f->n ? "," : "\n");
}
