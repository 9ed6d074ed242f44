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

/* The arguments of the schedule after the result, as in the recipe; those with the default value
 * (compiler/front/recipe_forms.c) are left out. */
static const char *arguments(const RtRecipe *r)
{
    const struct {
        const char *name;
        double value, fallback;
    } list[] = {{"factor", r->factor, 0.1},
                {"patience", (double)r->plateau.epochs, 10},
                {"threshold", r->threshold, 1e-4},
                {"cooldown", (double)r->cooldown, 0},
                {"end", r->end, 0},
                {"warmup", r->warmup, 0}};
    const char *text = "";
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i].value != list[i].fallback)
            text = rt_format("%s, %s = %.10g", text, list[i].name, list[i].value);
    return text;
}

void plateau_check(const RtProgram *p, const char *data, bool validated)
{
    const char *result = p->recipe.plateau.result;
    if (result && !validated)
        expect_split("the schedule of the recipe watches", result, data,
                     rt_format("build with --set 'schedule=plateau(test_%s%s)'",
                               strchr(result, '_') + 1, arguments(&p->recipe)));
}

static bool improves(const RtRecipe *r, double best, double v)
{
    if (isnan(v) || isnan(best))
        return !isnan(v);
    if (isinf(best)) /* inf - inf would be NaN */
        return r->plateau.larger ? v > best : v < best;
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
