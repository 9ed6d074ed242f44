/* gradcheck.c -- the commands `gradcheck` and `grads`: compare the gradients with differences of
 * the loss.
 *
 * Central differences (L(w + h) - L(w - h)) / 2h of the mean loss of the first batch, for some
 * elements of each parameter. The program tries several h and takes the nearest difference: if a
 * kink of the loss (of relu, or of a maximum) lies within h of w, a smaller h is right. If a
 * gradient is small relative to the loss, rounding of the loss hides it at all these h, and a wide
 * difference of fourth order decides. If the loss bends within thousandths, as after batch_norm
 * over two close numbers, the same difference with a tenth of the width decides. The rounding error
 * of the loss is measured if nothing else decides; batch_norm can make it a hundred times the
 * rounding error of a number as large as the loss.
 *
 * At a kink itself (relu of biases that begin at 0, over padding), no h is right: the differences
 * on the two sides are two different numbers for each h. A gradient between them is a subgradient
 * of the loss; it cannot be compared more closely, and does not count.
 */
#include "base/error.h"
#include "base/random.h"
#include "commands/commands.h"
#include "files/file.h"
#include "files/params.h"
#include "files/safetensors.h"
#include "step/net.h"
#include "train/pick.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOUND 1e-6 /* largest relative error of a right gradient */
#define WIDE  1e-3 /* the step of a wide difference */

typedef struct Check {
    const RtProgram *p;
    Net *net;
    Batch batch;
    int loss;     /* index of the metric */
    double value; /* the loss with unchanged parameters */
    int kinks;    /* elements of the current parameter that lie at a kink */
} Check;

static void open_check(Check *c, const RtProgram *p, const Options *o)
{
    Pool *pool = pool_on(&o->place);
    Pick start = pick_start(p, o);
    pick_words(p, &start);
    Data *d = data_open(p, o->data ? o->data : p->recipe.data, "train", 0);
    *c = (Check){.p = p,
                 .net = net_new(p, pool, o->comm, o->groups, true),
                 .loss = net_metric_index(p, "loss")};
    data_fill(d, pool);
    pick_load(&start, c->net, d, pool, o->seed);
    static Order order; /* must live as long as the batch */
    order = order_stored(d->n, p->batch);
    c->batch = (Batch){.seed = o->seed, .epoch = 0};
    data_batch(d, pool, &order, 0, p->batch, &c->batch);
    if (c->loss < 0)
        rt_die("%s has no loss", p->model);
}

/* The mean loss of the batch.  Every sample counts, also a repeated one. */
static double loss(Check *c)
{
    net_changed(c->net);
    if (!net_gradients(c->net, &c->batch))
        rt_die("the loss of the first batch is not finite");
    return c->net->metric[c->loss] / c->p->batch;
}

/* The whole gradient of parameter i, in memory order; NULL: the loss does not depend on it. */
static const char *gradient(const Check *c, int i)
{
    for (int k = 0; k < c->p->nsum; k++)
        if (c->p->sum[k].param == i)
            return c->net->grad + c->p->sum[k].offset;
    return NULL;
}

static double difference(Check *c, const RtParam *w, int64_t place, double h)
{
    char *memory = c->net->fixed + w->offset;
    const double v = params_real(memory, c->p->real_bytes, place);
    params_set_real(memory, c->p->real_bytes, place, v + h);
    const double up = loss(c);
    params_set_real(memory, c->p->real_bytes, place, v - h);
    const double down = loss(c);
    params_set_real(memory, c->p->real_bytes, place, v);
    return (up - down) / (2 * h);
}

/* Richardson: the error is of order h^4, so h can be large, and rounding of the loss has little
 * effect. */
static double wide_difference(Check *c, const RtParam *w, int64_t place, double h)
{
    return (4 * difference(c, w, place, h) - difference(c, w, place, 2 * h)) / 3;
}

/* Change of the loss by rounding only: the element changes by 1e-12. The slope also contributes to
 * this change, but too little to hide an error: 4e-8 of the gradient in error_of. */
static double noise(Check *c, const RtParam *w, int64_t place)
{
    char *memory = c->net->fixed + w->offset;
    const double v = params_real(memory, c->p->real_bytes, place);
    double most = 0;
    for (int k = -4; k <= 4; k++) {
        params_set_real(memory, c->p->real_bytes, place, v + 1e-12 * k / 4);
        most = fmax(most, fabs(loss(c) - c->value));
    }
    params_set_real(memory, c->p->real_bytes, place, v);
    return most;
}

/* |analytic - numeric| relative to the larger of the two, or to a thousandth of the largest
 * gradient of the parameter. For a wide difference the divisor is at least the rounding error of
 * two losses. */
static double error_of(Check *c, const RtParam *w, int64_t place, double analytic, double scale)
{
    static const struct {
        double h;
        bool wide, measure;
    } method[] = {{1e-4, false, false}, {1e-5, false, false},     {1e-6, false, false},
                  {WIDE, true, false},  {WIDE / 10, true, false}, {1e-7, false, false},
                  {WIDE, true, true},   {WIDE / 10, true, true}};
    enum { METHODS = sizeof method / sizeof *method, NARROW = 3 };
    double best = INFINITY;
    for (int k = 0; k < METHODS && !(best < (k <= NARROW ? BOUND / 10 : BOUND)); k++) {
        const double h = method[k].h, numeric = method[k].wide ? wide_difference(c, w, place, h)
                                                               : difference(c, w, place, h);
        const double least = method[k].measure ? 4 * noise(c, w, place) / h / BOUND
                             : method[k].wide  ? 8 * DBL_EPSILON * fabs(c->value) / WIDE / BOUND
                                               : 1e-8;
        const double size = fmax(fmax(fabs(analytic), fabs(numeric)), fmax(1e-3 * scale, least));
        best = fmin(best, fabs(analytic - numeric) / size);
    }
    return best;
}

/* (L(w + h) - L(w)) / h for one element. */
static double one_sided(Check *c, const RtParam *w, int64_t place, double h)
{
    char *memory = c->net->fixed + w->offset;
    const double v = params_real(memory, c->p->real_bytes, place);
    params_set_real(memory, c->p->real_bytes, place, v + h);
    const double moved = loss(c);
    params_set_real(memory, c->p->real_bytes, place, v);
    return (moved - c->value) / h;
}

/* Whether w is at a kink and the gradient is a subgradient. At a kink, the slopes of the two sides
 * differ at h by as much as at h / 10; on a curve, the difference at h / 10 is a tenth. The
 * difference must exceed the rounding error of the losses and the tolerance of a right gradient,
 * and the gradient must lie between the slopes. A smaller h excludes other kinks nearby. */
static bool at_kink(Check *c, const RtParam *w, int64_t place, double analytic)
{
    double before = INFINITY;
    for (double h = 1e-5; h > 0.5e-8; h /= 10) {
        const double up = one_sided(c, w, place, h), down = one_sided(c, w, place, -h),
                     jump = fabs(up - down),
                     rounding = 16 * DBL_EPSILON * fmax(fabs(c->value), 1) / h,
                     slack = 0.01 * jump + rounding;
        if (jump > 100 * rounding && jump > BOUND * fabs(analytic) &&
            fabs(before - jump) < 0.2 * jump && analytic > fmin(up, down) - slack &&
            analytic < fmax(up, down) + slack)
            return true;
        before = jump;
    }
    return false;
}

/* The largest error over `samples` elements of parameter i; over all elements if there are no
 * more. */
static double check_param(Check *c, int i, const double *analytic, int64_t samples, uint64_t seed)
{
    const RtParam *w = &c->p->param[i];
    const int64_t count = params_count(w), n = samples < count ? samples : count;
    Random r = random_from(seed, RT_PURPOSE_INIT, (uint32_t)i, 1);
    double worst = 0, scale = 0;
    c->kinks = 0;
    for (int64_t e = 0; e < count; e++)
        scale = fmax(scale, fabs(analytic[e]));
    for (int64_t k = 0; k < n; k++) {
        const int64_t e = n == count ? k : random_below(&r, (uint32_t)count);
        int64_t place;
        params_places(w, e, 1, &place);
        const double error = error_of(c, w, place, analytic[e], scale);
        if (error >= BOUND && at_kink(c, w, place, analytic[e]))
            c->kinks++;
        else
            worst = fmax(worst, error);
    }
    return worst;
}

static double *copy_gradient(const Check *c, int i)
{
    const RtParam *w = &c->p->param[i];
    const int64_t count = params_count(w);
    const char *from = gradient(c, i);
    double *g = rt_alloc(sizeof *g * (size_t)count);
    for (int64_t e = 0; from && e < count; e++) {
        int64_t place;
        params_places(w, e, 1, &place);
        g[e] = params_real(from, c->p->real_bytes, place);
    }
    return g;
}

/* Whether all numbers of the gradient are 0.  Such a gradient agrees with any loss that does not
 * change: weights that all start at 0 would pass without a test. */
static bool all_zero(const Check *c, int i, const double *g)
{
    const int64_t count = params_count(&c->p->param[i]);
    int64_t e = 0;

    while (e < count && g[e] == 0)
        e++;
    return gradient(c, i) && e == count;
}

/* Moves every number of parameter i, or of all trained parameters if i < 0, by at most 0.01. */
static void move_params(Check *c, int i, uint64_t seed)
{
    for (int k = 0; k < c->p->nparam; k++) {
        const RtParam *w = &c->p->param[k];
        Random r = random_from(seed, RT_PURPOSE_INIT, (uint32_t)k, 2);
        if ((i >= 0 && k != i) || w == c->p->input_mean || w->frozen)
            continue;
        for (int64_t e = 0, place; e < params_count(w); e++) {
            params_places(w, e, 1, &place);
            char *memory = c->net->fixed + w->offset;
            const double by = (double)random_below(&r, 2001) / 1e5 - 0.01;
            params_set_real(memory, c->p->real_bytes, place,
                            params_real(memory, c->p->real_bytes, place) + by);
        }
    }
}

/* Whether the loss has the same bits for all values of parameter i, at random values of the other
 * parameters: a recurrent weight has a gradient of zeros if sequences have one step. Later weights
 * that begin at 0 are moved first. */
static bool without_effect(Check *c, int i, uint64_t seed)
{
    const size_t bytes = (size_t)c->p->fixed_bytes;
    char *kept = memcpy(rt_alloc(bytes), c->net->fixed, bytes);
    move_params(c, -1, seed);
    const double before = loss(c);
    move_params(c, i, seed + 1);
    const bool same = loss(c) == before;
    memcpy(c->net->fixed, kept, bytes);
    free(kept);
    return same;
}

int gradcheck_run(const RtProgram *p, const Options *o)
{
    Check c;
    bool right = true;
    open_check(&c, p, o);
    c.value = loss(&c);
    printf("loss of the first batch %.12g\n", c.value);
    double **g = rt_alloc(sizeof *g * (size_t)p->nparam);
    for (int i = 0; i < p->nparam; i++)
        g[i] = copy_gradient(&c, i);
    for (int i = 0; i < p->nparam; i++) {
        if (&p->param[i] == p->input_mean ||
            p->param[i].frozen) /* the mean of the data, or not trained */
            continue;
        const double error = check_param(&c, i, g[i], o->samples, o->seed);
        const bool zero = all_zero(&c, i, g[i]),
                   idle = zero && error < BOUND && without_effect(&c, i, o->seed),
                   empty = zero && !idle, fine = error < BOUND && !empty;
        printf("%-32s largest relative error %.2e%s%s", p->param[i].name, error,
               empty  ? "  all zero: nothing was compared"
               : fine ? ""
                      : "  WRONG",
               !gradient(&c, i) && fine ? "  (the loss does not depend on it)"
               : !gradient(&c, i) ? "  (no gradient, and the loss depends on it: right only behind "
                                    "stop_gradient, a comparison or argmax)"
               : idle             ? "  (all zero, and the loss does not depend on it)"
                                  : "");
        if (c.kinks)
            printf("  (%d of its elements at a kink, not compared)", c.kinks);
        printf("\n");
        right &= fine;
    }
    fflush(stdout);
    if (!right)
        rt_note("a gradient is further than %g from the central difference, or zero throughout",
                BOUND);
    return right ? 0 : 1;
}

static bool all_finite(const Check *c)
{
    for (int k = 0; k < c->p->ngradient; k++)
        for (int64_t i = 0; i < c->p->sum[k].count; i++)
            if (!isfinite(params_real(c->net->grad + c->p->sum[k].offset, c->p->real_bytes, i)))
                return false;
    return true;
}

/* The loss.  In f16, halves the requested scale until the gradients are finite. */
static double scaled_loss(Check *c, const Options *o)
{
    net_scale(c->net, o->loss_scale, 0);
    double value = loss(c);
    while (c->p->scaling && c->net->scaling.scale > RT_SCALE_LEAST && !all_finite(c)) {
        net_scale(c->net, fmax(1, c->net->scaling.scale / 2), 0);
        value = loss(c);
    }
    return value;
}

int grads_run(const RtProgram *p, const Options *o)
{
    static const RtParam scalar = {.name = "loss", .naxis = 1, .axis = {{1, 1, 0, 0}}};
    Check c;
    file_check(o->output);
    open_check(&c, p, o);
    const double value = scaled_loss(&c, o);
    char *memory = rt_alloc(sizeof value);
    params_set_real(memory, p->real_bytes, 0, value);
    StWriter *w = st_writer_new(p, p->nparam + 1);
    w->tensor[0] = (StTensor){"loss", &scalar, memory};
    for (int i = 0; i < p->nparam; i++) {
        const char *from = gradient(&c, i);
        if (!from)
            from = rt_alloc((size_t)(p->param[i].count_memory * p->real_bytes));
        w->tensor[i + 1] = (StTensor){p->param[i].name, &p->param[i], from};
    }
    st_writer_item(w, "format", "tenon gradients 2", 0);
    st_writer_ready(w, o->output);
    st_write(w, o->output);
    printf("loss %.9g; gradients of %d parameters in %s\n", value, p->nparam, o->output);
    return 0;
}
