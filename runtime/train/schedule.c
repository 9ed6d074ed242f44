/* schedule.c -- learning rate = lr * warm-up * schedule, by progress t in finished epochs
 * (fractions count).
 *
 *   warm-up     (step + 1) / (warmup epochs in steps), while this is below 1; then the schedule
 *   step        factor ^ (number of entries of `at` that are reached)
 *   cosine      end + (1 - end) (1 + cos(pi s)) / 2    s = (t - warmup) / (epochs - warmup) <= 1
 *   polynomial  end + (1 - end) (1 - s)^power
 *
 * `epochs` is the number in the recipe, even if --epochs gives another: a longer run does not
 * change the rates of a shorter one. Source: Loshchilov & Hutter 2017 (cosine); Goyal et al. 2017
 * (warm-up).
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

static double factor(const RtRecipe *r, double t)
{
    const double span = (double)r->epochs - r->warmup;
    const double s = span > 0 ? fmin((t - r->warmup) / span, 1) : 1;
    switch (r->schedule) {
    case RT_SCHED_STEP:
        return steps_down(r, t);
    case RT_SCHED_COSINE:
        return r->end + (1 - r->end) * (1 + cos(M_PI * s)) / 2;
    case RT_SCHED_POLYNOMIAL:
        return r->end + (1 - r->end) * pow(1 - s, r->power);
    default:
        return 1;
    }
}

double schedule_lr(const RtRecipe *r, int64_t step, int64_t steps)
{
    const double rise = r->warmup * (double)steps;
    if ((double)(step + 1) < rise)
        return r->lr * (double)(step + 1) / rise;
    const double t = fmax((double)step / (double)steps, r->warmup);
    return r->lr * factor(r, t);
}
