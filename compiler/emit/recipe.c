/* recipe.c -- writes the recipe as a field of RtProgram (RtRecipe), and lists of names. */
#include "emit/writer.h"

/* Writes a list of names of columns, or of patterns. */
static void name_table(Writer *w, Text *t, const char *list, const Texts *names)
{
    if (names->n == 0)
        return;
    text_printf(t, "static const char *const %s[] = {", list);
    for (int i = 0; i < names->n; i++)
        text_printf(t, "%s%s", i ? ", " : "", quote_c(w->arena, names->v[i]));
    text_add(t, "};\n");
}

void recipe_names(Writer *w, Text *t)
{
    const DataSpec *d = &w->in->train->recipe.data;
    const StartSpec *s = &w->in->train->recipe.start;

    if (d->columns) {
        name_table(w, t, "table_inputs", &d->input);
        name_table(w, t, "table_excluded", &d->exclude);
        name_table(w, t, "table_targets", &d->target);
        name_table(w, t, "table_categories", &d->category);
    }
    name_table(w, t, "start_only", &s->only);
    name_table(w, t, "start_except", &s->except);
    if (d->columns || s->only.n > 0 || s->except.n > 0)
        text_add(t, "\n");
}

static void columns(Text *t, const DataSpec *d)
{
    text_add(t, "        .table = {.given = true");
    if (d->input.n > 0)
        text_printf(t, ", .input = {%d, table_inputs}", d->input.n);
    if (d->exclude.n > 0)
        text_printf(t, ", .exclude = {%d, table_excluded}", d->exclude.n);
    if (d->target.n > 0)
        text_printf(t, ", .target = {%d, table_targets}", d->target.n);
    if (d->category.n > 0)
        text_printf(t, ", .category = {%d, table_categories}", d->category.n);
    text_printf(t, "%s%s%s},\n", d->standardize ? ", .standardize = true" : "",
                d->missing ? ", .mean = true" : "", d->unknown ? ", .other = true" : "");
}

/* Writes the fields that say what a sample is, and which samples a split has. */
static void data_fields(Writer *w, Text *t, const Recipe *r)
{
    static const char *const unit[] = {"RT_TEXT_NONE", "RT_TEXT_CHAR", "RT_TEXT_BYTE",
                                       "RT_TEXT_WORD", "RT_TEXT_BPE"};
    const DataSpec *d = &r->data;

    text_printf(t, "        .data = %s, .samples = %lld, .test_samples = %lld, .x_scale = %.17g,\n",
                d->name ? quote_c(w->arena, d->name) : "NULL", (long long)d->samples,
                (long long)d->test_samples, d->scale);
    if (d->unit)
        text_printf(t, "        .text = {.unit = %s, .table = %s, .step = %lld},\n", unit[d->unit],
                    d->table ? "true" : "false", (long long)d->step);
    if (d->columns)
        columns(t, d);
    if (d->test > 0 || d->validation > 0)
        text_printf(t, "        .test = %.17g, .validation = %.17g,\n", d->test, d->validation);
    if (r->resize)
        text_add(t, "        .resize = true,\n");
    if (d->images && d->fit)
        text_add(t, "        .stretch = true,\n");
}

static void optimizer_fields(Text *t, const Recipe *r)
{
    static const char *const opt[] =
        {[OPT_SGD] = "RT_SGD",     [OPT_RMSPROP] = "RT_RMSPROP", [OPT_ADAM] = "RT_ADAM",
         [OPT_ADAMW] = "RT_ADAMW", [OPT_ADAGRAD] = "RT_ADAGRAD", [OPT_LION] = "RT_LION",
         [OPT_LARS] = "RT_LARS",   [OPT_LAMB] = "RT_LAMB"};
    const Optimizer *o = &r->optimizer;

    text_printf(t,
                "        .optimizer = %s, .lr = %.17g, .momentum = %.17g, .weight_decay = %.17g, "
                ".rho = %.17g,\n",
                opt[o->kind], o->lr, o->momentum, o->weight_decay, o->rho);
    text_printf(t,
                "        .beta1 = %.17g, .beta2 = %.17g, .eps = %.17g, .clip_norm = %.17g, "
                ".clip_value = %.17g, .nesterov = %s,\n",
                o->beta1, o->beta2, o->eps, r->clip_norm, r->clip_value,
                o->nesterov ? "true" : "false");
    if (o->trust > 0)
        text_printf(t, "        .trust = %.17g,\n", o->trust);
}

static void schedule_fields(Text *t, const Schedule *c)
{
    static const char *const sched[] =
        {[SCHED_CONSTANT] = "RT_SCHED_CONSTANT",   [SCHED_STEP] = "RT_SCHED_STEP",
         [SCHED_COSINE] = "RT_SCHED_COSINE",       [SCHED_POLYNOMIAL] = "RT_SCHED_POLYNOMIAL",
         [SCHED_ONE_CYCLE] = "RT_SCHED_ONE_CYCLE", [SCHED_RESTARTS] = "RT_SCHED_RESTARTS",
         [SCHED_PLATEAU] = "RT_SCHED_PLATEAU"};

    text_printf(t, "        .schedule = %s, .nat = %d, .at = {", sched[c->kind], c->nat);
    for (int i = 0; i < c->nat; i++)
        text_printf(t, "%s%.17g", i ? ", " : "", c->at[i]);
    text_printf(t, "%s}, .factor = %.17g, .power = %.17g, .end = %.17g, .warmup = %.17g,\n",
                c->nat ? "" : "0", c->factor, c->power, c->end, c->warmup);
    if (c->kind == SCHED_ONE_CYCLE)
        text_printf(t, "        .start = %.17g, .rise = %.17g,\n", c->start, c->rise);
    if (c->kind == SCHED_RESTARTS)
        text_printf(t, "        .first = %.17g,\n", c->first);
    if (c->kind == SCHED_PLATEAU)
        text_printf(t, "        .threshold = %.17g, .cooldown = %lld,\n", c->threshold,
                    (long long)c->cooldown);
}

static void start_fields(Writer *w, Text *t, const StartSpec *s)
{
    if (!s->file)
        return;
    text_printf(t, "        .weights = {.file = %s", quote_c(w->arena, s->file));
    if (s->only.n > 0)
        text_printf(t, ", .only = {%d, start_only}", s->only.n);
    if (s->except.n > 0)
        text_printf(t, ", .except = {%d, start_except}", s->except.n);
    text_add(t, "},\n");
}

static void watch_fields(Arena *a, Text *t, const char *key, const Watch *w)
{
    if (!w->result)
        return;
    text_printf(t, "        .%s = {.result = %s, .larger = %s, .epochs = %lld", key,
                quote_c(a, w->result), w->larger ? "true" : "false", (long long)w->epochs);
    if (w->meaning)
        text_printf(t, ", .meaning = %s", quote_c(a, w->meaning));
    text_add(t, "},\n");
}

static void training_fields(Writer *w, Text *t, const Recipe *r)
{
    optimizer_fields(t, r);
    schedule_fields(t, &r->schedule);
    text_printf(t, "        .epochs = %lld, .seed = %lld,\n", (long long)r->epochs,
                (long long)r->seed);
    start_fields(w, t, &r->start);
    if (r->average.kind == AVERAGE_EMA)
        text_printf(t, "        .average = RT_AVERAGE_EMA, .average_decay = %.17g,\n",
                    r->average.decay);
    if (r->average.kind == AVERAGE_SWA)
        text_printf(t, "        .average = RT_AVERAGE_SWA, .average_from = %lld,\n",
                    (long long)r->average.from);
    watch_fields(w->arena, t, "plateau", &r->schedule.watch);
    watch_fields(w->arena, t, "keep", &r->keep);
    watch_fields(w->arena, t, "stop", &r->stop);
    if (r->expect.metric)
        text_printf(t,
                    "        .expect_metric = \"%s\", .expect_op = \"%s\", .expect_value = "
                    "%.17g,\n",
                    r->expect.metric, r->expect.op, r->expect.value);
}

void recipe_write(Writer *w, Text *t)
{
    const Recipe *r = &w->in->train->recipe;

    text_add(t, "    .recipe = {\n");
    data_fields(w, t, r);
    if (w->in->train->training)
        training_fields(w, t, r);
    text_add(t, "    },\n");
}
