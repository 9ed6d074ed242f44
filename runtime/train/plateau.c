/* plateau.c -- see plateau.h. */
#include "train/plateau.h"
#include "base/error.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Plateau plateau_new(const RtRecipe *r)
{
    return (Plateau){.rate = r->lr, .best = NAN};
}

void plateau_check(const RtProgram *p, const char *data, bool validated)
{
    const char *result = p->recipe.plateau.result;
    if (result && !validated && strncmp(result, "validation_", 11) == 0)
        rt_die("the schedule of the recipe watches %s, and the data %s have no validation split: "
               "%sbuild with --set 'schedule=plateau(test_%s)'",
               result, data,
               strcmp(data, "synthetic") == 0
                   ? ""
                   : "write validation = 0.1 in the parentheses of the data, or ",
               result + 11);
}

static bool improves(const RtRecipe *r, double best, double v)
{
    if (isnan(v) || isnan(best))
        return !isnan(v);
    const double least = r->threshold * fabs(best);
    return r->plateau.larger ? v > best + least : v < best - least;
}

bool plateau_epoch(Plateau *s, const RtProgram *p, const Result *result)
{
    const RtRecipe *r = &p->recipe;
    if (!r->plateau.result)
        return false;
    const double v = expect_value(p, result, r->plateau.result);
    if (improves(r, s->best, v)) {
        s->best = v;
        s->bad = 0;
    } else {
        s->bad++;
    }
    if (s->cooldown > 0) {
        s->cooldown--;
        s->bad = 0;
    }
    if (s->bad <= r->plateau.epochs)
        return false;
    const double before = s->rate;
    s->rate = fmax(s->rate * r->factor, r->end * r->lr);
    s->cooldown = r->cooldown;
    s->bad = 0;
    return s->rate < before;
}

void plateau_text(const Plateau *s, const RtRecipe *r, char *text, size_t room)
{
    snprintf(text, room, "%s %a %a %lld %lld", r->plateau.result, s->best, s->rate,
             (long long)s->bad, (long long)s->cooldown);
}

bool plateau_read(Plateau *s, const RtRecipe *r, const char *text)
{
    const size_t n = strlen(r->plateau.result);
    long long bad, cooldown;
    int at = 0;
    char *best_end, *rate_end;
    if (strncmp(text, r->plateau.result, n) != 0 || text[n] != ' ')
        return false;
    const double best = strtod(text + n, &best_end), rate = strtod(best_end, &rate_end);
    if (best_end == text + n || rate_end == best_end ||
        sscanf(rate_end, " %lld %lld%n", &bad, &cooldown, &at) != 2 || rate_end[at] || bad < 0 ||
        cooldown < 0 || !(rate >= 0))
        return false;
    *s = (Plateau){rate, best, bad, cooldown};
    return true;
}
