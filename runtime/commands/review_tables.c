/* review_tables.c -- metrics, classes, the confusion matrix, residuals and the worst samples
 * (review.h). */
#include "base/error.h"
#include "commands/review.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- classes */

/* A row of classes.csv, or an object of metrics.json; of several labels, a row for each label. */
static void class_row(Review *r, const ReviewTarget *t, int64_t k)
{
    const TallyCount *c = &t->tally->count[k];
    const double value[] = {tally_precision(c), tally_recall(c), tally_f1(c), tally_iou(c)};
    review_print(r->folder, "%lld,", (long long)k);
    review_field(r->folder, review_class_name(t, k));
    review_print(r->folder, ",%lld,%lld,%lld", (long long)c->there, (long long)c->found,
                 (long long)c->right);
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        review_value(r->folder, value[i], 9);
    review_print(r->folder, "\n");
}

static void write_classes(Review *r, const ReviewTarget *t)
{
    review_begin(r->folder, review_name(t, "classes.csv"));
    review_print(r->folder, "class,name,support,predicted,right,precision,recall,f1,iou\n");
    for (int64_t k = 0; k < t->tally->n; k++)
        class_row(r, t, k);
    review_finish(r->folder);
}

/* The last column, `nan`, exists only if outputs are NaN. */
static void write_confusion(Review *r, const ReviewTarget *t)
{
    const int64_t n = t->is.classes;
    review_begin(r->folder, review_name(t, "confusion.csv"));
    review_print(r->folder, "true \\ predicted");
    for (int64_t k = 0; k < n; k++) {
        review_print(r->folder, ",");
        review_field(r->folder, review_class_name(t, k));
    }
    review_print(r->folder, t->nan > 0 ? ",nan" : "");
    for (int64_t i = 0; i < n; i++) {
        review_print(r->folder, "\n");
        review_field(r->folder, review_class_name(t, i));
        for (int64_t k = 0; k < n; k++)
            review_print(r->folder, ",%lld", (long long)t->confusion[i * n + k]);
        if (t->nan > 0)
            review_print(r->folder, ",%lld", (long long)t->nans[i]);
    }
    review_print(r->folder, "\n");
    review_finish(r->folder);
}

/* The number of characters of UTF-8 text. */
static int characters(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

/* Prints the first `width` characters of a text, after spaces. */
static void print_cell(const char *text, int width)
{
    int n = characters(text), bytes = 0;
    for (int k = 0; text[bytes] && (((unsigned char)text[bytes] & 0xc0) == 0x80 || k < width);
         bytes++)
        k += ((unsigned char)text[bytes + 1] & 0xc0) != 0x80;
    printf(" %*s%.*s", n < width ? width - n : 0, "", bytes, text);
}

static void print_confusion(const ReviewTarget *t)
{
    enum { WIDEST = 12 };
    const int64_t n = t->is.classes;
    int width = 4;
    for (int64_t i = 0; i < n * n; i++)
        width = (int)fmax(width, snprintf(NULL, 0, "%lld", (long long)t->confusion[i]));
    width = (int)fmax(width, snprintf(NULL, 0, "%lld", (long long)t->nan));
    for (int64_t k = 0; k < n; k++)
        width = (int)fmax(width, fmin(WIDEST, characters(review_class_name(t, k))));
    printf("confusion matrix%s%s: a row for each true class, a column for each predicted one\n",
           *t->prefix ? " of " : "", *t->prefix ? t->is.name : "");
    for (int64_t i = -1; i < n; i++) {
        print_cell(i < 0 ? "" : review_class_name(t, i), width);
        for (int64_t k = 0; k < n; k++)
            if (i < 0)
                print_cell(review_class_name(t, k), width);
            else
                printf(" %*lld", width, (long long)t->confusion[i * n + k]);
        if (t->nan > 0 && i < 0)
            print_cell("nan", width);
        else if (t->nan > 0)
            printf(" %*lld", width, (long long)t->nans[i]);
        printf("\n");
    }
}

/* Prints the most frequent errors, where the matrix is too large for the screen.  Of equal counts,
 * the first one in the order of the rows comes first. */
static void print_errors(const ReviewTarget *t)
{
    const int64_t n = t->is.classes, *count = t->confusion;
    int64_t worst[REVIEW_ERRORS];
    int found = 0;
    for (int64_t i = 0; i < n * n; i++) {
        int at = found;
        while (at > 0 && count[i] > count[worst[at - 1]])
            at--;
        if (count[i] == 0 || i / n == i % n || at == REVIEW_ERRORS)
            continue;
        found += found < REVIEW_ERRORS;
        memmove(worst + at + 1, worst + at, sizeof *worst * (size_t)(found - 1 - at));
        worst[at] = i;
    }
    printf("most frequent errors%s%s:%s\n", *t->prefix ? " of " : "", *t->prefix ? t->is.name : "",
           found || t->nan ? "" : " none");
    for (int k = 0; k < found; k++)
        printf("  true %s, predicted %s: %lld\n", review_class_name(t, worst[k] / n),
               review_class_name(t, worst[k] % n), (long long)count[worst[k]]);
    if (t->nan > 0)
        printf("  predicted nan: %lld\n", (long long)t->nan);
}

/* ---- residuals: prediction - target */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The quantile of n sorted numbers, between two of them by their distance. */
static double quantile(const double *v, int64_t n, double share)
{
    const double at = share * (double)(n - 1);
    const int64_t i = (int64_t)at;
    return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}

/* The row of number k.  residual: room for a number of each sample. */
static void residual_row(Review *r, const ReviewTarget *t, int64_t k, double *residual)
{
    static const double share[] = {0, 0.05, 0.25, 0.5, 0.75, 0.95, 1};
    const int64_t n = r->d->n;
    double sum = 0, target = 0, absolute = 0, square = 0, variance = 0;
    bool numbers = true; /* as in NumPy, quantiles are NaN if one number is */
    for (int64_t i = 0; i < n; i++) {
        const double *pair = review_row(r, t, i) + REVIEW_PAIRS + 2 * k;
        residual[i] = pair[1] - pair[0];
        numbers = numbers && !isnan(residual[i]);
        target += pair[0];
        sum += residual[i];
        absolute += fabs(residual[i]);
        square += residual[i] * residual[i];
    }
    for (int64_t i = 0; i < n; i++) {
        const double d = review_row(r, t, i)[REVIEW_PAIRS + 2 * k] - target / (double)n;
        variance += d * d;
    }
    const double r2 = evaluate_r2(square, variance);
    qsort(residual, (size_t)n, sizeof *residual, by_value);
    review_field(r->folder, review_number_name(r, t, k));
    const double value[] = {target / (double)n, sum / (double)n, absolute / (double)n,
                            sqrt(square / (double)n), r2};
    review_print(r->folder, ",%lld", (long long)n);
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        review_value(r->folder, value[i], 9);
    for (size_t i = 0; i < sizeof share / sizeof *share; i++)
        review_value(r->folder, numbers ? quantile(residual, n, share[i]) : NAN, 9);
    review_print(r->folder, "\n");
}

static void write_residuals(Review *r, const ReviewTarget *t)
{
    double *residual = rt_alloc(sizeof *residual * (size_t)r->d->n);
    review_begin(r->folder, review_name(t, "residuals.csv"));
    review_print(r->folder, "number,samples,mean_target,mean_residual,mae,rmse,r2,least,"
                            "quantile_5,quantile_25,median,quantile_75,quantile_95,largest\n");
    for (int64_t k = 0; k < t->is.count; k++)
        residual_row(r, t, k, residual);
    review_finish(r->folder);
    free(residual);
}

/* ---- the worst samples */

/* sample: index in the split.  row: index in the stored arrays, of which a split can be a share.
 * file: an image, or a line of a table.  Other columns depend on the target. */
static void worst_head(Review *r, const ReviewTarget *t)
{
    review_print(r->folder, "rank,sample,row,file,loss");
    if (t->width == REVIEW_CLASS_WIDTH && t->is.kind == COMPARED_CLASS) {
        review_print(r->folder, ",true,predicted,probability,probability_of_true");
    } else if (t->is.kind != COMPARED_NUMBERS) {
        review_print(r->folder, ",labels,right");
    } else {
        review_print(r->folder, ",mean_residual,mean_absolute,largest_absolute");
        for (int64_t k = 0; k < t->is.count && review_has_pairs(t); k++) {
            review_print(r->folder, ",");
            review_field(r->folder, rt_format("target_%s", review_number_name(r, t, k)));
            review_print(r->folder, ",");
            review_field(r->folder, rt_format("prediction_%s", review_number_name(r, t, k)));
        }
    }
    review_print(r->folder, "\n");
}

static void worst_row(Review *r, const ReviewTarget *t, int rank)
{
    const int64_t i = t->worst[rank];
    const double *row = review_row(r, t, i);
    const Data *d = r->d;
    ReviewFolder *f = r->folder;
    review_print(f, "%d,%lld,%lld,", rank + 1, (long long)i, (long long)(d->row ? d->row[i] : i));
    review_field(f, d->images ? images_path(d, i)
                    : d->line ? rt_format("%s:%lld", d->table, (long long)d->line[i])
                              : "");
    review_value(f, row[REVIEW_LOSS], 9);
    if (t->is.kind == COMPARED_CLASS && t->is.count == 1) {
        review_print(f, ",");
        review_field(f, review_class_name(t, (int64_t)row[REVIEW_TRUE]));
        review_print(f, ",");
        review_field(f, row[REVIEW_FOUND] < 0 ? "nan"
                                              : review_class_name(t, (int64_t)row[REVIEW_FOUND]));
        review_value(f, row[REVIEW_FOUND_SHARE], 9);
        review_value(f, row[REVIEW_TRUE_SHARE], 9);
    } else if (t->is.kind != COMPARED_NUMBERS) {
        review_print(f, ",%.0f,%.0f", row[REVIEW_ALL], row[REVIEW_RIGHT]);
    } else {
        review_value(f, row[REVIEW_SUM] / row[REVIEW_ALL], 9);
        review_value(f, row[REVIEW_SUM_ABSOLUTE] / row[REVIEW_ALL], 9);
        review_value(f, row[REVIEW_MOST], 9);
        for (int64_t k = 0; k < 2 * t->is.count && review_has_pairs(t); k++)
            review_value(f, row[REVIEW_PAIRS + k], 9);
    }
    review_print(f, "\n");
}

static void write_worst(Review *r, const ReviewTarget *t)
{
    review_begin(r->folder, review_name(t, "worst.csv"));
    worst_head(r, t);
    for (int rank = 0; rank < t->nworst; rank++)
        worst_row(r, t, rank);
    review_finish(r->folder);
}

void review_tables(Review *r, const ReviewTarget *t)
{
    if (t->tally)
        write_classes(r, t);
    if (t->confusion)
        write_confusion(r, t);
    if (t->confusion && t->is.classes <= REVIEW_TEXT_CLASSES)
        print_confusion(t);
    else if (t->confusion)
        print_errors(t);
    if (review_has_pairs(t))
        write_residuals(r, t);
    write_worst(r, t);
}

/* ---- metrics */

static const char *kind_of(const Compared *c)
{
    return c->kind == COMPARED_NUMBERS  ? "numbers"
           : c->kind == COMPARED_TRUTHS ? "truths"
           : c->pixels > 0              ? "class of each pixel"
           : c->count > 1               ? "class of each position"
                                        : "class";
}

static void json_target(Review *r, const ReviewTarget *t)
{
    ReviewFolder *f = r->folder;
    review_print(f, "\n  {\"name\": ");
    review_string(f, t->is.name);
    review_print(f, ", \"kind\": \"%s\", \"classes\": [", kind_of(&t->is));
    for (int64_t k = 0; t->tally && k < t->tally->n; k++) {
        const TallyCount *c = &t->tally->count[k];
        review_print(f, "%s\n    {\"class\": %lld, \"name\": ", k ? "," : "", (long long)k);
        review_string(f, review_class_name(t, k));
        review_print(f,
                     ", \"support\": %lld, \"predicted\": %lld, \"right\": %lld, "
                     "\"precision\": %.9g, \"recall\": %.9g, \"f1\": %.9g, \"iou\": %.9g}",
                     (long long)c->there, (long long)c->found, (long long)c->right,
                     tally_precision(c), tally_recall(c), tally_f1(c), tally_iou(c));
    }
    review_print(f, "]}");
}

static void write_json(Review *r, const ReviewMetric *metric, int n)
{
    ReviewFolder *f = r->folder;
    review_begin(f, "metrics.json");
    review_print(f, REVIEW_MARK);
    for (int i = 0; i < f->n; i++) {
        review_string(f, f->written[i]);
        review_print(f, ", ");
    }
    review_print(f, "\"metrics.json\"],\n\"model\": ");
    review_string(f, r->p->model);
    review_print(f,
                 ",\n\"program\": \"%s\",\n\"samples\": %lld,\n\"nan_samples\": %lld,\n"
                 "\"metrics\": {",
                 r->p->source_hash, (long long)r->d->n, (long long)r->nans);
    for (int i = 0; i < n; i++) {
        review_print(f, i ? ", " : "");
        review_string(f, metric[i].name);
        review_print(f, ": ");
        review_number(f, metric[i].value);
    }
    review_print(f, "},\n\"targets\": [");
    for (int k = 0; k < r->ntarget; k++) {
        review_print(f, k ? "," : "");
        json_target(r, &r->target[k]);
    }
    review_print(f, "\n]\n}\n");
    review_finish(f);
}

void review_metrics(Review *r, const ReviewMetric *metric, int n)
{
    review_begin(r->folder, "metrics.csv");
    review_print(r->folder, "metric,value\n");
    for (int i = 0; i < n; i++) {
        review_print(r->folder, "%s", metric[i].name);
        review_value(r->folder, metric[i].value, 12);
        review_print(r->folder, "\n");
    }
    review_finish(r->folder);
    write_json(r, metric, n);
}
