/* recipe.c -- values of places that describe a graph and its recipe, for training scripts.
 *
 * A boolean is a place with or without a value.  A number has the shortest text in Python.
 */
#include "scripts/recipe.h"
#include "base/quote.h"
#include "ops/op.h"
#include "scripts/network.h"
#include <string.h>

static void places_number(PlaceList *l, const char *name, double v)
{
    places_add(l, name, python_number(l->arena, v));
}

static const char *number_list(Arena *a, const double *v, int n)
{
    Text t = text_new(a);
    for (int i = 0; i < n; i++)
        text_printf(&t, "%s%s", i ? ", " : "", python_number(a, v[i]));
    return t.s;
}

/* ---- the network */

static bool has_op(const Graph *g, const char *op)
{
    for (int i = 0; i < g->nnode; i++)
        if (node_is(g->node[i], op))
            return true;
    return false;
}

/* The first call of a recurrent layer: lstm, gru or rnn; NULL: there is none. */
static const Node *recurrent_call(const Graph *g, const char *layer)
{
    for (int i = 0; i < g->nloop; i++)
        if (g->loop[i]->call && node_is(g->loop[i]->call, layer))
            return g->loop[i]->call;
    return NULL;
}

static bool has_masked_recurrent(const Graph *g)
{
    for (int i = 0; i < g->nloop; i++)
        if (g->loop[i]->call && python_mask(g->loop[i]->call))
            return true;
    return false;
}

static bool is_norm_with(const Node *n, const char *with, const char *without)
{
    return (node_is(n, "batch_norm") || node_is(n, "layer_norm") || node_is(n, "group_norm")) &&
           node_bool(n, with) && !node_bool(n, without);
}

/* The next functions find the nodes for which a script defines a class or a function. */

static bool is_padded_embedding(const Node *n)
{
    return node_is(n, "embedding") && node_attr(n, "padding");
}

static bool is_position_table(const Node *n)
{
    return node_is(n, "add") && n->in[1]->param;
}

static bool is_lone_bias(const Node *n)
{
    return node_is(n, "bias") && !network_is_layer(n->in[0]);
}

static bool is_prelu(const Node *n)
{
    return python_prelu(n);
}

static bool is_causal_softmax(const Node *n)
{
    return node_is(n, "softmax") && python_causal(n);
}

static bool is_smoothed_loss(const Node *n)
{
    const Attr *s = node_is(n, "softmax_cross_entropy") ? node_attr(n, "smoothing") : NULL;
    return s && s->f > 0;
}

static bool is_norm_without_scale(const Node *n)
{
    return is_norm_with(n, "shift", "scale");
}

static bool is_norm_without_shift(const Node *n)
{
    return is_norm_with(n, "scale", "shift");
}

static void flag_nodes(const Graph *g, PlaceList *l)
{
    static const struct {
        const char *name;
        bool (*is)(const Node *n);
    } kind[] = {{"padded_embedding", is_padded_embedding},
                {"position_table", is_position_table},
                {"lone_bias", is_lone_bias},
                {"prelu", is_prelu},
                {"causal_softmax", is_causal_softmax},
                {"smoothed_loss", is_smoothed_loss},
                {"norm_without_scale", is_norm_without_scale},
                {"norm_without_shift", is_norm_without_shift}};
    for (size_t k = 0; k < sizeof kind / sizeof *kind; k++) {
        bool found = false;
        for (int i = 0; i < g->nnode; i++)
            found |= kind[k].is(g->node[i]);
        places_flag(l, kind[k].name, found);
    }
}

static void add_network(const Graph *g, PlaceList *l)
{
    static const char *const recurrent[] = {"lstm", "gru", "rnn"};
    const Node *lstm = recurrent_call(g, "lstm");
    const Shape *x = &g->input->shape, *y = &g->output->shape;
    flag_nodes(g, l);
    for (int i = 0; i < 3; i++)
        places_flag(l, recurrent[i], recurrent_call(g, recurrent[i]));
    places_add(l, "forget_bias",
               lstm ? python_number(l->arena, node_float(lstm, "forget_bias")) : NULL);
    places_flag(l, "recurrent", g->nloop);
    places_flag(l, "masked_recurrent", has_masked_recurrent(g));
    places_flag(l, "embedding", has_op(g, "embedding"));
    places_flag(l, "attention", has_op(g, "attention"));
    places_flag(l, "max_pool", has_op(g, "max_pool"));
    places_flag(l, "avg_pool", has_op(g, "avg_pool"));
    places_flag(l, "sigmoid_loss", has_op(g, "sigmoid_cross_entropy"));
    places_flag(l, "image", x->rank == 3);
    places_flag(l, "convolves_images", has_op(g, "conv2d") && x->rank == 3 && g->ninput == 1);
    places_flag(l, "binary", y->rank == 1 && y->dim[0] == 1);
    places_add(l, "shape", python_list(l->arena, x->dim, x->rank, 0));
}

/* ---- data */

/* Text for --help of the script: argparse formats it, so a percent sign is %%. */
static const char *data_help(Arena *a, const char *name)
{
    Text t = text_new(a);
    text_add(&t, "directory of the data set; default: ");
    for (; *name; name++)
        text_addn(&t, *name == '%' ? "%%" : name, *name == '%' ? 2 : 1);
    text_add(&t, " in $TENON_DATA, in models/data, or in the current directory");
    return t.s;
}

static int64_t synthetic_classes(const Graph *g, int64_t labels)
{
    enum { OF_NUMBERS = 10 }; /* as in runtime/data/data.c, where the target is no class */
    const int64_t outputs = shape_count(&g->output->shape);
    int64_t most = 0;
    for (int i = 0; i < g->recipe.ntarget && graph_several(g); i++)
        most = g->recipe.target[i].classes > most ? g->recipe.target[i].classes : most;
    if (most > 0)
        return most;
    if (g->recipe.target->kind != LEARN_CLASS || graph_several(g))
        return OF_NUMBERS;
    const bool binary = has_op(g, "sigmoid_cross_entropy") && outputs == labels;
    return binary ? 2 : outputs / labels;
}

/* Adds the names of several inputs, and the factors of their bytes; bytes of tokens are tokens. */
static void add_inputs(const Graph *g, const char *scale, PlaceList *l)
{
    const char *names = "", *scales = "";
    for (int i = 0; i < g->ninput; i++) {
        const Node *x = g->inputs[i];
        names = arena_printf(l->arena, "%s%s\"%s\"", names, i ? ", " : "", x->name);
        scales = arena_printf(l->arena, "%s%s%s", scales, i ? ", " : "",
                              x->dtype == DT_REAL ? scale : "1");
    }
    places_flag(l, "several", g->ninput > 1);
    places_add(l, "input_names", names);
    places_add(l, "first_input", g->input->name);
    places_add(l, "input_scales", scales);
}

/* Adds the places for the synthetic samples of Tenon's programs (runtime/data/synthetic.c).  A
 * block of four random words gives 16 stored bytes or 4 tokens.  At most 4,000,000 numbers are made
 * at a time. */
static void add_synthetic(const Graph *g, PlaceList *l)
{
    const DataSpec *data = &g->recipe.data;
    const bool tokens = g->ninput == 1 && g->input->dtype != DT_REAL;
    const bool classes = g->label && g->recipe.target->kind == LEARN_CLASS;
    const int64_t labels = classes ? shape_count(&g->label->shape) : 1;
    const int64_t features = graph_numbers(g), part = 4000000 / features;
    const int64_t each = tokens ? features : (features + labels - 1) / labels;
    const int64_t block = tokens ? 4 : 16;
    places_int(l, "purpose_data", RT_PURPOSE_DATA);
    places_flag(l, "synthetic", strcmp(data->name, "synthetic") == 0);
    places_int(l, "samples", data->samples);
    places_int(l, "test_samples", data->test_samples);
    places_int(l, "part_samples", part > 1 ? part : 1);
    places_int(l, "labels", labels);
    places_flag(l, "several_labels", labels > 1);
    places_flag(l, "uneven", tokens ? labels > 1 && labels != features : features % labels);
    places_int(l, "features", features);
    places_int(l, "label_features", each);
    places_int(l, "blocks", (each + block - 1) / block);
    places_int(l, "classes", synthetic_classes(g, labels));
}

/* Several targets: the names of their arrays, and the parts of a synthetic row.  Returns how many
 * random numbers the row has; *count: the number of all numbers of the row. */
static int64_t add_rows(const Graph *g, int64_t *count, PlaceList *l)
{
    const char *names = "", *parts = "";
    int64_t made = 0;
    *count = 0;
    for (int i = 0; i < g->recipe.ntarget; i++) {
        const TargetSpec *t = &g->recipe.target[i];
        const char *comma = i ? ", " : "";
        const int64_t n = shape_count(&g->targets[i]->shape);
        names = arena_printf(l->arena, "%s%s\"%s\"", names, comma, target_name(t));
        parts = t->kind == LEARN_CLASS
                    ? arena_printf(l->arena, "%s%s(y %% %lld)[:, None]", parts, comma,
                                   (long long)t->classes)
                    : arena_printf(l->arena,
                                   t->truths ? "%s%s(numbers[:, %lld:%lld] >= 0)"
                                             : "%s%snumbers[:, %lld:%lld]",
                                   parts, comma, (long long)made, (long long)(made + n));
        made += t->kind == LEARN_CLASS ? 0 : n;
        *count += n;
    }
    places_flag(l, "several_targets", g->recipe.ntarget > 1);
    places_add(l, "target_names", names);
    places_add(l, "target_parts", parts);
    return made;
}

static bool has_metric(const Graph *g, const char *name)
{
    return graph_metric(g, name) >= 0;
}

/* Adds the places of targets. numbers: a sample's target is numbers; arrays: targets are stored in
 * arrays of their own; own: the sample is the target.  Else, with several outputs or targets, a row
 * of numbers holds the targets. */
static void add_target(const Graph *g, PlaceList *l)
{
    const TargetSpec *t = g->recipe.target;
    const bool own = t->kind == LEARN_INPUT, rows = graph_several(g) && !own;
    int64_t count = 1, all;
    const char *shape = "";
    for (int i = 0; i < t->rank; i++) {
        count *= t->dim[i];
        shape = arena_printf(l->arena, "%s%s%lld", shape, i ? ", " : "", (long long)t->dim[i]);
    }
    const int64_t made = add_rows(g, &all, l);
    if (rows)
        shape = arena_printf(l->arena, "%lld", (long long)all);
    if (g->recipe.ntarget > 1)
        count = made;
    places_flag(l, "classes_learned", t->kind == LEARN_CLASS && !rows);
    places_flag(l, "numbers", t->kind == LEARN_NUMBERS || rows);
    places_flag(l, "arrays", t->kind == LEARN_NUMBERS || g->recipe.ntarget > 1);
    places_flag(l, "own", own);
    const bool numbers = t->kind != LEARN_CLASS && !graph_several(g);
    places_flag(l, "errors_known", has_metric(g, "mae") && numbers);
    places_flag(l, "truths_known", has_metric(g, "accuracy") && numbers);
    places_flag(l, "compared", numbers && (has_metric(g, "mae") || has_metric(g, "accuracy")));
    places_flag(l, "explained", has_metric(g, "r2") && numbers);
    places_flag(l, "mask", has_metric(g, "iou") && numbers);
    places_flag(l, "truths", t->truths && t->kind != LEARN_CLASS);
    places_add(l, "target_shape", shape);
    places_int(l, "targets", count);
    places_int(l, "target_blocks", count > 4 ? (count + 3) / 4 : 1);
}

static const char *name_list(Arena *a, const Texts *names)
{
    Text t = text_new(a);
    for (int i = 0; i < names->n; i++)
        text_printf(&t, "%s%s", i ? ", " : "", quote_python(a, names->v[i]));
    return t.s;
}

/* Adds the places for a table. */
static void add_columns(const Recipe *r, PlaceList *l)
{
    const DataSpec *data = &r->data;
    places_flag(l, "columns", data->columns);
    places_add(l, "table_inputs", data->input.n ? name_list(l->arena, &data->input) : NULL);
    places_add(l, "table_excluded", data->exclude.n ? name_list(l->arena, &data->exclude) : NULL);
    places_add(l, "table_targets", name_list(l->arena, &data->target));
    places_flag(l, "standardized", data->standardize);
    places_flag(l, "missing_mean", data->missing);
    places_number(l, "test_share", data->test > 0 ? data->test : RT_TEST_SHARE);
    places_int(l, "purpose_split", RT_PURPOSE_SPLIT);
}

static void add_data(const Graph *g, PlaceList *l)
{
    const DataSpec *data = &g->recipe.data;
    const bool each = g->label && g->recipe.target->kind == LEARN_CLASS && g->label->shape.rank > 0;
    const int64_t length = g->input->shape.dim[0];
    places_flag(l, "text", data->unit);
    places_flag(l, "table", data->unit && data->table);
    places_flag(l, "bytes", data->unit == TEXT_BYTE);
    places_flag(l, "tokens", g->ninput == 1 && g->input->dtype != DT_REAL);
    places_flag(l, "each", each);
    places_flag(l, "pixels", g->pixels);
    places_add(l, "ignored",
               g->recipe.target->ignored
                   ? arena_printf(l->arena, "%lld", (long long)g->recipe.target->ignored - 1)
                   : NULL);
    places_int(l, "length", length);
    places_int(l, "step", data->step ? data->step : each ? length : 1);
    places_int(l, "vocab", data->vocab);
    places_int(l, "known_words", data->vocab - 3);
    places_flag(l, "data_path", strchr(data->name, '/'));
    places_add(l, "data_name", quote_python(l->arena, data->name));
    places_add(l, "data_help", quote_python(l->arena, data_help(l->arena, data->name)));
    const char *scale = data->scale == 1.0 / 255 ? "1 / 255" : python_number(l->arena, data->scale);
    places_add(l, "scale", scale);
    add_inputs(g, scale, l);
    add_columns(&g->recipe, l);
    add_synthetic(g, l);
    add_target(g, l);
}

static void add_preprocessing(const Normalize *n, const Augment *u, PlaceList *l)
{
    places_flag(l, "normalizes_pixels", n->kind == NORM_PIXEL);
    places_flag(l, "normalizes_channels", n->kind == NORM_CHANNEL);
    places_add(l, "mean", number_list(l->arena, n->mean, n->nmean));
    places_add(l, "std", number_list(l->arena, n->std, n->nstd));
    places_flag(l, "several_means", n->nmean > 1);
    places_flag(l, "several_stds", n->nstd > 1);
    places_flag(l, "augments", u->shift || u->flip || u->upside || u->cutout || u->brightness > 0);
    places_add(l, "brightness", u->brightness > 0 ? python_number(l->arena, u->brightness) : NULL);
    places_int(l, "shift", u->shift);
    places_int(l, "shift_end", u->shift + 1);
    places_flag(l, "zero_border", u->shift && !u->edge);
    places_flag(l, "flip", u->flip);
    places_flag(l, "upside", u->upside);
    places_add(l, "cutout",
               u->cutout ? arena_printf(l->arena, "%lld", (long long)u->cutout) : NULL);
    places_int(l, "cutout_half", u->cutout / 2);
    places_flag(l, "mixes", augment_mixes(u));
    places_add(l, "mixup", u->mixup > 0 ? python_number(l->arena, u->mixup) : NULL);
    places_add(l, "cutmix", u->cutmix > 0 ? python_number(l->arena, u->cutmix) : NULL);
    places_number(l, "mixup_p", u->mixup_p);
    places_number(l, "cutmix_p", u->cutmix_p);
}

/* ---- initial weights, optimizer, schedule */

/* init_magnitude: weights are normal with standard deviation sqrt(magnitude / fan), or uniform in
 * +-sqrt(magnitude / fan). */
static void add_init(const Init *i, PlaceList *l)
{
    static const char *const fans[] = {[FAN_IN] = "in", [FAN_OUT] = "out", [FAN_AVG] = "avg"};
    const bool glorot = i->kind == INIT_GLOROT, lecun = i->kind == INIT_LECUN;
    const bool varies = i->kind == INIT_XAVIER || i->kind == INIT_HE || glorot || lecun;
    const Fan fan = glorot ? FAN_AVG : lecun ? FAN_IN : i->fan;
    const double magnitude =
        i->kind == INIT_XAVIER ? i->a : (i->kind == INIT_HE ? 2 : 1) * (i->gaussian ? 1.0 : 3.0);
    places_number(l, "init_magnitude", magnitude);
    places_add(l, "init_variance",
               varies ? python_number(l->arena, i->gaussian ? magnitude : magnitude / 3) : NULL);
    places_flag(l, "init_gaussian", i->gaussian);
    places_flag(l, "init_glorot", glorot);
    places_flag(l, "init_orthogonal", i->kind == INIT_ORTHOGONAL);
    places_flag(l, "init_uniform", i->kind == INIT_UNIFORM);
    places_flag(l, "init_normal", i->kind == INIT_NORMAL);
    places_number(l, "init_a", i->a);
    places_number(l, "init_b", i->b);
    places_add(l, "fan", fans[fan]);
    places_flag(l, "fan_avg", fan == FAN_AVG);
}

static void add_optimizer(const Optimizer *o, PlaceList *l)
{
    const bool sgd = o->kind == OPT_SGD, rmsprop = o->kind == OPT_RMSPROP, moves = o->momentum > 0;
    const int states = optimizer_states(o);
    places_flag(l, "sgd", sgd);
    places_flag(l, "rmsprop", rmsprop);
    places_flag(l, "adam", o->kind == OPT_ADAM);
    places_flag(l, "adamw", o->kind == OPT_ADAMW);
    places_flag(l, "adagrad", o->kind == OPT_ADAGRAD);
    places_flag(l, "lion", o->kind == OPT_LION);
    places_flag(l, "lars", o->kind == OPT_LARS);
    places_flag(l, "lamb", o->kind == OPT_LAMB);
    places_flag(l, "nesterov", sgd && o->nesterov);
    places_flag(l, "lars_nesterov", o->kind == OPT_LARS && o->nesterov);
    places_number(l, "trust", o->trust);
    places_flag(l, "with_momentum", moves);
    places_flag(l, "with_decay", o->weight_decay != 0);
    places_add(l, "optimizer_states",
               states == 0   ? NULL
               : states == 1 ? "v"
               : rmsprop     ? "v m"
                             : "m v");
    places_number(l, "lr", o->lr);
    places_number(l, "momentum", o->momentum);
    places_number(l, "weight_decay", o->weight_decay);
    places_number(l, "rho", o->rho);
    places_number(l, "beta1", o->beta1);
    places_number(l, "beta2", o->beta2);
    places_number(l, "eps", o->eps);
}

static void add_schedule(const Schedule *s, PlaceList *l)
{
    Text epochs = text_new(l->arena);
    for (int i = 0; i < s->nat; i++)
        text_printf(&epochs, "%s, ", python_number(l->arena, s->at[i]));
    places_flag(l, "changing_rate", s->kind != SCHED_CONSTANT || s->warmup > 0);
    places_flag(l, "constant_rate", s->kind == SCHED_CONSTANT);
    places_flag(l, "step_rate", s->kind == SCHED_STEP);
    places_flag(l, "cosine_rate", s->kind == SCHED_COSINE);
    places_flag(l, "one_cycle_rate", s->kind == SCHED_ONE_CYCLE);
    places_flag(l, "restarts_rate", s->kind == SCHED_RESTARTS);
    places_flag(l, "with_warmup", s->warmup > 0);
    places_number(l, "warmup", s->warmup);
    places_number(l, "rate_factor", s->factor);
    places_add(l, "rate_epochs", epochs.s);
    places_number(l, "rate_end", s->end);
    places_number(l, "rate_rest", 1 - s->end);
    places_number(l, "rate_power", s->power);
    places_number(l, "rate_start", s->start);
    places_number(l, "rate_rise", s->rise);
    places_number(l, "rate_first", s->first);
}

/* ---- parameters */

/* "NAME": (lr, decay), a line for each parameter whose factors are not the default.  A frozen
 * parameter has lr None, or no line. */
static const char *factor_lines(const Graph *g, const char *indent, bool frozen)
{
    Text t = text_new(g->arena);
    for (int i = 0; i < g->nparam; i++) {
        const Param *p = g->param[i];
        const bool usual = p->lr == 1 && p->decay == (p->file.rank > 1 ? 1 : 0);
        if (p->average || (p->frozen ? !frozen : usual))
            continue;
        text_printf(&t, "%s%s\"%s\": (%s, %s)", t.len ? ",\n" : "", indent, p->name,
                    p->frozen ? "None" : python_number(g->arena, p->lr),
                    python_number(g->arena, p->decay));
    }
    return t.len ? t.s : NULL;
}

static bool is_frozen(const Param *p)
{
    return p->frozen && !p->average;
}

static bool is_candidate_bias(const Param *p)
{
    return text_glob("*.candidate_bias", p->name);
}

/* Adds "a", "b": the names of the parameters for which `is` is true. tuple: a comma also after the
 * last one. */
static void add_names(const Graph *g, PlaceList *l, const char *place, bool (*is)(const Param *p),
                      bool tuple)
{
    Text t = text_new(l->arena);
    for (int i = 0; i < g->nparam; i++)
        if (is(g->param[i]))
            text_printf(&t, "%s\"%s\"%s", t.len && !tuple ? ", " : "", g->param[i]->name,
                        tuple ? ", " : "");
    places_add(l, place, t.len ? t.s : NULL);
}

/* ---- all of them */

static void add_run(const Recipe *r, PlaceList *l)
{
    places_flag(l, "f64", strcmp(r->dtype, "f64") == 0);
    places_int(l, "batch", r->batch);
    places_int(l, "epochs", r->epochs);
    places_int(l, "seed", r->seed);
    places_add(l, "clip_norm", r->clip_norm > 0 ? python_number(l->arena, r->clip_norm) : NULL);
    places_add(l, "clip_value", r->clip_value > 0 ? python_number(l->arena, r->clip_value) : NULL);
    places_flag(l, "averages_steps", r->average.kind == AVERAGE_EMA);
    places_flag(l, "averages_epochs", r->average.kind == AVERAGE_SWA);
    places_number(l, "average_decay", r->average.decay);
    places_int(l, "average_from", r->average.from);
}

void recipe_places(const Graph *g, const char *source, PlaceList *l)
{
    const Recipe *r = &g->recipe;
    places_add(l, "name", g->name);
    places_add(l, "class", python_class(l->arena, g->name));
    places_add(l, "source", quote_python_doc(l->arena, source));
    add_network(g, l);
    add_data(g, l);
    add_preprocessing(&r->normalize, &r->augment, l);
    add_init(&r->init, l);
    add_optimizer(&r->optimizer, l);
    add_schedule(&r->schedule, l);
    add_run(r, l);
    places_add(l, "factors", factor_lines(g, "        ", true));
    places_add(l, "trained_factors", factor_lines(g, "    ", false));
    add_names(g, l, "frozen", is_frozen, false);
    add_names(g, l, "candidate_biases", is_candidate_bias, true);
}
