/* places.c -- whether the columns of a table fit the inputs and targets of a program (tabular.h).
 */
#include "base/error.h"
#include "data/tabular.h"

/* "area 1, town 12, age 1": the numbers that each column gives. */
static const char *counts_text(const Tabular *t)
{
    enum { SHOWN = 12 };
    const char *all = "";
    for (int64_t k = 0; k < t->columns.ninput && k < SHOWN; k++)
        all = rt_format("%s%s%s %lld", all, k ? ", " : "", t->columns.at[k].name,
                        (long long)t->place[k].count);
    return t->columns.ninput > SHOWN ? rt_format("%s, ...", all) : all;
}

static void __attribute__((noreturn)) wrong_size(const Tabular *t)
{
    const RtProgram *p = t->p;
    const char *inputs = "";
    int64_t all = 0;
    for (int64_t k = 0; k < t->columns.ninput; k++)
        all += t->place[k].count;
    if (p->ninput == 0)
        rt_die("the columns of %s give %lld %s (%s), but the input of %s takes %lld: declare it "
               "with %lld, or choose columns with csv(..., input = [...])",
               t->sheet.path, (long long)all, p->vocab ? "tokens" : "numbers", counts_text(t),
               p->model, (long long)data_features(p), (long long)all);
    for (int i = 0; i < p->ninput; i++)
        inputs = rt_format("%s%s%s %lld", inputs, i ? ", " : "", p->input[i].name,
                           (long long)data_count(&p->input[i]));
    rt_die("the columns of %s (%s) do not fill the inputs of %s in order (%s): declare the inputs "
           "with the sizes of their columns",
           t->sheet.path, counts_text(t), p->model, inputs);
}

static void check_tokens(const Tabular *t, const Column *c, const Place *at)
{
    if (!c->category)
        rt_die("the column '%s' of %s holds numbers, and an input of tokens takes categories: name "
               "it in categories = [\"%s\"], or declare the input as f32",
               c->name, t->sheet.path, c->name);
    if (at->first + c->value.n > t->p->vocab)
        rt_die("the columns of %s have %lld categories up to '%s', but data.vocab is %lld: build "
               "with --set data.vocab=%lld",
               t->sheet.path, (long long)(at->first + c->value.n), c->name, (long long)t->p->vocab,
               (long long)(at->first + c->value.n));
}

void places_find(Tabular *t)
{
    const RtProgram *p = t->p;
    int64_t used = 0, tokens = 0;
    int i = 0;
    bool fits = true;
    t->place = rt_alloc(sizeof *t->place * (size_t)t->columns.ninput);
    for (int64_t k = 0; k < t->columns.ninput; k++) {
        const Column *c = &t->columns.at[k];
        if (used >= numbers_of_input(p, i) && i + 1 < number_of_inputs(p))
            i++, used = tokens = 0;
        const bool token = input_is_tokens(p, i);
        t->place[k] = (Place){i, used, token || !c->category ? 1 : c->value.n, tokens};
        used += t->place[k].count;
        fits &= used <= numbers_of_input(p, i);
        if (token)
            check_tokens(t, c, &t->place[k]);
        tokens += token ? c->value.n : 0;
    }
    if (!fits || i + 1 < number_of_inputs(p) || used < numbers_of_input(p, i))
        wrong_size(t);
}

const char *places_values_text(const Column *c)
{
    enum { SHOWN = 8 };
    const char *all = "";
    for (int32_t i = 0; i < c->value.n && i < SHOWN; i++)
        all = rt_format("%s%s%s", all, i ? ", " : "",
                        csv_shown(rt_format("%.*s", (int)c->value.piece[i].length,
                                            c->value.piece[i].bytes)));
    return c->value.n > SHOWN ? rt_format("%s, ...", all) : all;
}

static void check_classes(const Tabular *t, int k, const Column *c)
{
    const RtProgram *p = t->p;
    const int64_t classes = p->ntarget > 0 ? p->targets[k].classes : p->classes;
    if (c->value.n == 1)
        rt_die("the column '%s' of %s has the class %s in each row of the training split: there is "
               "nothing to learn",
               c->name, t->sheet.path, places_values_text(c));
    if (classes == 0 || c->value.n == classes || (c->value.n < classes && !p->softmax_output))
        return;
    rt_die("the column '%s' of %s has %d class%s (%s), but %s has %lld: give its last layer "
           "as many outputs, or correct the column",
           c->name, t->sheet.path, c->value.n, c->value.n == 1 ? "" : "es", places_values_text(c),
           p->model, (long long)classes);
}

void places_check_targets(const Tabular *t)
{
    int64_t column = t->columns.ninput;
    for (int k = 0; k < number_of_targets(t->p); k++) {
        if (target_is_class(t->p, k))
            check_classes(t, k, &t->columns.at[column]);
        column += columns_of_target(t->p, k);
    }
}
