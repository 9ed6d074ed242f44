/* expect.c -- see expect.h. */
#include "train/expect.h"
#include "base/error.h"
#include "step/net.h"
#include "train/evaluate.h"
#include <string.h>

double expect_value(const RtProgram *p, const Result *r, const char *result)
{
    const double *mean = strncmp(result, "test_", 5) == 0          ? r->test
                         : strncmp(result, "validation_", 11) == 0 ? r->validation
                                                                   : r->train;
    if (strcmp(result, "test_auc") == 0)
        return r->test_auc;
    if (strcmp(result, "validation_auc") == 0)
        return r->validation_auc;
    if (strstr(result, "_perplexity"))
        return evaluate_perplexity(p, mean);
    const int m = net_metric_index(p, strchr(result, '_') + 1);
    return m < 0 ? __builtin_nan("") : mean[m];
}

void expect_split(const char *who, const char *result, const char *data, const char *way)
{
    if (strncmp(result, "validation_", 11) != 0)
        return;
    if (strcmp(data, "synthetic") == 0)
        rt_die("%s %s, and synthetic data have no validation split: %s, or name other data", who,
               result, way);
    rt_die("%s %s, and the data %s have no validation split: write validation = 0.1 in the "
           "parentheses of the data, or %s",
           who, result, data, way);
}

void expect_check(const RtProgram *p, const char *data, bool validated)
{
    const char *metric = p->recipe.expect_metric;
    if (metric && !validated)
        expect_split("the recipe expects", metric, data,
                     rt_format("expect test_%s", strchr(metric, '_') + 1));
}

static bool relation_holds(double a, const char *op, double b)
{
    if (op[0] == '>')
        return op[1] ? a >= b : a > b;
    return op[1] ? a <= b : a < b;
}

/* The metric that --stop-at watches: the accuracy; for masks the iou, because most pixels of a mask
 * are easy.  -1: none. */
static int watched(const RtProgram *p)
{
    const int iou = net_metric_index(p, "iou");
    return iou >= 0 ? iou : net_metric_index(p, "accuracy");
}

bool expect_reached(const RtProgram *p, const Options *o, const Result *r)
{
    const int m = watched(p);
    return o->stop_at > 0 && m >= 0 && (r->validated ? r->validation : r->test)[m] >= o->stop_at;
}

void expect_say_reached(const RtProgram *p, const Options *o, const Result *r, int64_t epoch)
{
    const int m = watched(p);
    rt_print("stopped after epoch %lld of %lld: the %s %s is %.4f, at least %g (--stop-at)\n",
             (long long)epoch, (long long)o->epochs, r->validated ? "validation" : "test",
             p->metric[m], (r->validated ? r->validation : r->test)[m], o->stop_at);
}

/* Prints the expectation; returns 1 if a --strict run has missed it. */
static int compare_expected(const RtProgram *p, const Options *o, const Result *r)
{
    const RtRecipe *q = &p->recipe;
    const double v = expect_value(p, r, q->expect_metric);
    const bool met = relation_holds(v, q->expect_op, q->expect_value);
    rt_print("expected %s %s %.6g: %.4f, %s\n", q->expect_metric, q->expect_op, q->expect_value, v,
             met ? "met" : "missed");
    return o->strict && !met;
}

int expect_report(const RtProgram *p, const Options *o, const Result *r, int64_t epochs,
                  bool patience, double seconds)
{
    char text[EVALUATE_TEXT], area[64];
    const bool full =
        !o->epochs_given && !o->limit && r->known && (epochs >= p->recipe.epochs || patience);
    const int accuracy = net_metric_index(p, "accuracy"), loss = net_metric_index(p, "loss"),
              rmse = net_metric_index(p, "rmse"), r2 = net_metric_index(p, "r2"),
              iou = net_metric_index(p, "iou");
    const char *s = epochs == 1 ? "" : "s";
    int code = 0;
    if (p->recipe.expect_metric && full)
        code = compare_expected(p, o, r);
    if (r->unscored)
        rt_print("no label of the test split counts, %lld epoch%s, %.1f s\n", (long long)epochs, s,
                 seconds);
    else if (iou >= 0)
        rt_print("test iou %.4f, dice %.4f, %lld epoch%s, %.1f s\n", r->test[iou],
                 r->test[net_metric_index(p, "dice")], (long long)epochs, s, seconds);
    else if (accuracy >= 0)
        rt_print("test accuracy %.4f%s, %lld epoch%s, %.1f s\n", r->test[accuracy],
                 evaluate_auc_text(r->test_auc, "", area), (long long)epochs, s, seconds);
    else if (r2 >= 0)
        rt_print("test rmse %.6g, r2 %.4f, %lld epoch%s, %.1f s\n", r->test[rmse], r->test[r2],
                 (long long)epochs, s, seconds);
    else if (p->ntarget > 0)
        rt_print("%s, %lld epoch%s, %.1f s\n", evaluate_brief(p, r->test, "test ", text),
                 (long long)epochs, s, seconds);
    else if (loss >= 0)
        rt_print("test loss %.6f, %lld epoch%s, %.1f s\n", r->test[loss], (long long)epochs, s,
                 seconds);
    if (o->stop_at > 0 && !r->reached && !expect_reached(p, o, r)) {
        rt_note("the %s %s stayed below %g", r->validated ? "validation" : "test",
                p->metric[watched(p)], o->stop_at);
        code = 1;
    }
    return code;
}
