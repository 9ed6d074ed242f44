/* schedule.c -- learning rate = lr * warm-up * schedule, by progress t in finished epochs
 * (fractions count).
 *
 *   warm-up     (step + 1) / (warmup epochs in steps), while this is below 1; then the schedule
 *   step        factor ^ (number of entries of `at` that are reached)
 *   cosine      end + (1 - end) (1 + cos(pi s)) / 2    s = (t - warmup) / (epochs - warmup) <= 1
 *   polynomial  end + (1 - end) (1 - s)^power
 *   one_cycle   s <= rise: from start to 1, else from 1 to end, each along half a cosine
 *   restarts    cosine over cycle k, which has first factor^k epochs
 *   plateau     1: `rate` is that of the epoch (train/plateau.h)
 *
 * `epochs` is the number in the recipe, even if --epochs gives another: a longer run does not
 * change the rates of a shorter one. Sources: Loshchilov & Hutter 2017 (cosine, restarts); Goyal et
 * al. 2017 (warm-up); Smith & Topin 2018 (one_cycle), with cosines as in PyTorch.
 */
#include "train/schedule.h"
#include <math.h>

static double steps_down(const RtRecipe *r, double t)
{
    double f = 1;
    for (int i = 0; i < r->nat; i++)
        if (t >= r->at[i])
            f *= r->factor;
    return f;
}

/* From a to b along half a cosine, at s of 0 to 1. */
static double half_cosine(double a, double b, double s)
{
    return b + (a - b) * (1 + cos(M_PI * s)) / 2;
}

/* The position in its cycle, 0 to 1, after u epochs. */
static double cycle_position(const RtRecipe *r, double u)
{
    double epochs = r->first, begin = r->factor > 1 ? 0 : epochs * floor(u / epochs);
    while (u >= begin + epochs) {
        begin += epochs;
        epochs *= r->factor;
    }
    return (u - begin) / epochs;
}

static double factor(const RtRecipe *r, double t)
{
    const double span = (double)r->epochs - r->warmup;
    const double s = span > 0 ? fmin((t - r->warmup) / span, 1) : 1;
    switch (r->schedule) {
    case RT_SCHED_STEP:
        return steps_down(r, t);
    case RT_SCHED_COSINE:
        return half_cosine(1, r->end, s);
    case RT_SCHED_POLYNOMIAL:
        return r->end + (1 - r->end) * pow(1 - s, r->power);
    case RT_SCHED_ONE_CYCLE:
        return s < r->rise ? half_cosine(r->start, 1, s / r->rise)
                           : half_cosine(1, r->end, (s - r->rise) / (1 - r->rise));
    case RT_SCHED_RESTARTS:
        return half_cosine(1, r->end, cycle_position(r, t - r->warmup));
    default:
        return 1;
    }
}

double schedule_lr(const RtRecipe *r, double rate, int64_t step, int64_t steps)
{
    const double rise = r->warmup * (double)steps;
    if ((double)(step + 1) < rise)
        return rate * (double)(step + 1) / rise;
    const double t = fmax((double)step / (double)steps, r->warmup);
    return rate * factor(r, t);
}
