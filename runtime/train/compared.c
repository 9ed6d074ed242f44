/* compared.c -- see compared.h. */
#include "train/compared.h"
#include "base/error.h"
#include "files/params.h"
#include "step/net.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whether p reports the metric of this kind for the target; suffix: "_digit", or "". */
static bool has_metric(const RtProgram *p, const char *kind, const char *suffix)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", kind, suffix);
    return net_metric_index(p, name) >= 0;
}

/* Sets the place of the output that the metrics of target k compare. */
static void place_output(const RtProgram *p, int k, Compared *c)
{
    c->row = p->outputs;
    c->softmax = p->softmax_output;
    c->pixels = p->pixels;
    for (int i = 0; i < p->compared[k] && p->noutput > 0; i++)
        c->from += data_numbers(p->output[i].rank, p->output[i].dim);
    if (p->noutput == 0)
        return;
    const RtOutput *o = &p->output[p->compared[k]];
    c->softmax = o->classes > 0;
    c->pixels = o->pixels;
}

static void compare_classes(const RtProgram *p, int k, Compared *c)
{
    const RtTarget *t = p->ntarget > 0 ? &p->targets[k] : NULL;
    const RtOutput *o = p->noutput > 0 ? &p->output[p->compared[k]] : NULL;
    c->classes = t ? t->classes : p->classes;
    c->count = t ? 1 : p->labels;
    c->binary = (o ? data_numbers(o->rank, o->dim) : p->outputs) == c->count;
    c->ignored = t ? 0 : p->ignored;
}

static bool compare(const RtProgram *p, int k, Compared *c)
{
    const RtTarget *t = p->ntarget > 0 ? &p->targets[k] : NULL;
    const int kind = t ? t->kind : p->target_kind;
    const bool truths = t ? t->truths : p->target_truths;
    *c = (Compared){.target = k,
                    .name = t                ? t->name
                            : p->target_name ? p->target_name
                                             : "label",
                    .suffix = t ? rt_format("_%s", t->name) : "",
                    .several = t != NULL,
                    .at = t ? t->at : 0,
                    .real_bytes = p->real_bytes};
    place_output(p, k, c);
    if (kind == RT_TARGET_CLASS) {
        compare_classes(p, k, c);
        return c->classes > 1 && has_metric(p, "accuracy", c->suffix);
    }
    c->kind = truths ? COMPARED_TRUTHS : COMPARED_NUMBERS;
    c->count = t ? target_count(t) : data_numbers(p->target_rank, p->target_dim);
    c->mask = truths && (t ? t->rank : p->target_rank) > 1;
    return kind == RT_TARGET_NUMBERS && has_metric(p, truths ? "accuracy" : "mae", c->suffix);
}

int compared_targets(const RtProgram *p, Compared c[RT_TARGETS])
{
    int n = 0;
    for (int k = 0; k < (p->ntarget > 0 ? p->ntarget : 1) && !p->perplexity; k++)
        n += compare(p, k, &c[n]);
    return n;
}

static const char *row_of(const Compared *c, const Batch *b, int i)
{
    return (const char *)b->label + (int64_t)b->index[i] * b->label_stride + c->at;
}

int32_t compared_label(const Compared *c, const Batch *b, int i, int64_t k)
{
    return rt_integer_at(row_of(c, b, i), c->several ? RT_I32 : b->label_type, k);
}

double compared_number(const Compared *c, const Batch *b, int i, int64_t k)
{
    return params_real(row_of(c, b, i), c->real_bytes, k);
}

double compared_output(const Compared *c, const char *output, int i, int64_t k)
{
    return params_real(output, c->real_bytes, i * c->row + c->from + k);
}

double compared_score(const Compared *c, const char *output, int i, int64_t k, int64_t j)
{
    if (c->binary)
        return j == 0 ? 0 : compared_output(c, output, i, k);
    return compared_output(c, output, i, c->pixels ? j * c->pixels + k : k * c->classes + j);
}

int64_t compared_best(const Compared *c, const char *output, int i, int64_t k)
{
    int64_t best = 0;
    double top = compared_score(c, output, i, k, 0);
    if (isnan(top))
        return -1;
    for (int64_t j = 1; j < c->classes; j++) {
        const double x = compared_score(c, output, i, k, j);
        if (isnan(x))
            return -1;
        if (x > top)
            best = j, top = x;
    }
    return best;
}
