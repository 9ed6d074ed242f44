/* target_cuda.c -- the generated program for a GPU: the same step as the processor's, a kernel launch for each call.
 *
 * A phase is a function of the host that launches kernels one after another; a unit of a slice phase is a shard, and a kernel
 * takes all its samples.  One stream keeps the order, so barriers between phases need no words.  The file is C++ for nvcc and,
 * for the tests, for any C++ compiler (runtime/cuda/cuda.cuh); tables and main are the processor's.
 */
#include "emit/cuda_group.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <ctype.h>
#include <string.h>

/* The largest: two strips of a product, 8,320 bytes, or an attention's three tiles, 12,672. */
int stage_shared(const Writer *w)
{
    return strcmp(w->in->dtype, "f64") ? 16384 : 32768;
}

static int parameters_updated(const Writer *w)
{
    int n = 0;
    for (int i = 0; i < w->in->train->step->nsum; i++)
        n += w->in->train->step->sum[i].param != NULL;
    return n;
}

static void head(Writer *w, Text *t)
{
    const Step *s = w->in->train->step;

    program_head(w, ".cu", t);
    text_printf(t,
                " *   for %s; a step takes %lld launches; each library call counts as one\n "
                "*/\n",
                w->in->options->arch, (long long)w->launches);
    text_printf(t, "#define RT_ROOM %d /* bytes of shared memory of a block; the kernels of a launch use it in turn */\n", stage_shared(w));
    if (w->in->options->persistent)
        text_printf(t, "#define RT_PERSISTENT /* many steps are one launch */\n"
                       "#define RT_OWNED %d /* rows of update_rows: parameters that can stay on the chip */\n",
                    parameters_updated(w));
    text_add(t, "#include \"rt.h\"\n#include \"cuda/kernels.cuh\"\n");
    if (w->in->options->persistent)
        text_add(t, "#include \"cuda/persistent.cuh\"\n");
    library_includes(w, t);
    text_printf(t, "\nenum { SHARD = %lld, CHUNK = SHARD, SLICES = 1 };\n\n", (long long)s->shard);
    text_add(t, "/* Addresses in GPU memory: parameters, scratch, values of a shard, sums of a "
                "shard. */\n");
    text_add(t, w->in->options->persistent
                    ? "#define FIXED(type, at) ((type *)(fixed_of(r) + (at)))\n"
                    : "#define FIXED(type, at) ((type *)(r->fixed + (at)))\n");
    text_add(t,
                "#define LOCAL(type, at) ((type *)(t + (at)))\n"
                "#define BATCH(type, at, bytes) ((type *)(shard + (at)))\n"
                "#define PARTIAL(type, at, bytes) ((type *)(shard + (at)))\n\n");
}

static void open_phase(Writer *w, const char *type, const char *fn, const char *about, bool shards)
{
    text_printf(&w->body, "/* %s */\nstatic %s %s(const Rt *r, char *t, int unit)\n{\n", about,
                type, fn);
    if (shards)
        text_add(&w->body, "    char *const shard = r->shard + unit * r->shard_bytes;\n"
                           "    const int first = (r->first_shard + unit) * SHARD;\n\n    "
                           "(void)shard, (void)first, (void)t;\n");
    else
        text_add(&w->body, "    (void)t, (void)unit;\n");
}

/* A launch, or a stage of a step that is one launch with others. */
static void statement(Writer *w, const char *s)
{
    if (stage_together(w))
        stage_write(w, s);
    else if (w->stages)
        group_write(w, NULL, "", s, "    ");
    else
        statement_wrapped(&w->body, s, "    ");
}

/* Sums that several calls add to begin as 0. */
void cuda_clear_sums(Writer *w, int phase, bool backward)
{
    const Step *s = w->g->step;

    for (int i = 0; i < s->nbuffer; i++) {
        const Buffer *b = &s->buffer[i];
        if (b->place == PLACE_PARTIAL && b->first == phase && (backward || !b->node->backward) &&
            !step_writes_sum(w->g, b->node, w->in->options))
            statement(w,
                      arena_printf(w->arena, "%s(%s, %lld);",
                                   stage_together(w) ? "clear_stage" : "rt_cuda_clear",
                                   pointer_to(w, b->node), (long long)b->bytes));
    }
}

const char *cuda_metric(Writer *w, int i)
{
    const Graph *g = w->g;
    const char *launch =
        kernel_launch(w, "rt_metric",
                      "const Rt *r, int unit, int metric, int first, const real *a",
                      arena_printf(w->arena, "    rt_metric(r, unit, metric, first, %lld, a);\n",
                                   (long long)g->step->chunk),
                      arena_printf(w->arena, "r->there, unit, %d, first, %s", i,
                                   pointer_to(w, g->metric[i].node)),
                      "1");
    return arena_printf(w->arena, "%s /* %s */", launch, g->metric[i].name);
}

static void metrics(Writer *w, int phase)
{
    const Graph *g = w->g;
    const long long n = g->step->chunk;

    for (int i = 0; i < g->nmetric; i++) {
        if (g->metric[i].node->phase != phase || w->stages->told >> i & 1)
            continue;
        statement(w, cuda_metric(w, i));
    }
    if (g->training || g->output->phase != phase)
        return;
    const long long outputs = shape_count(&g->output->shape);
    const char *launch =
        kernel_launch(w, "rt_output", "const Rt *r, int first, const real *a",
                      arena_printf(w->arena, "    rt_output(r, first, %lld, %lld, a);\n", n,
                                   outputs),
                      arena_printf(w->arena, "r->there, first, %s", pointer_to(w, g->output)),
                      arena_printf(w->arena, "each_blocks(%lld)", n * outputs));
    statement(w, launch);
}

static void prepare(Writer *w, const Phase *p, const char *fn)
{
    int line = 0;

    open_phase(w, "void", fn, "Once a step: what depends on the parameters only.", false);
    group_open(w, w->g->training);
    for (int i = 0; i < p->nnode; i++)
        group_call(w, p->node[i], &line, "    ");
    group_close(w);
    text_add(&w->body, "}\n\n");
}

static void slice(Writer *w, int phase, const char *fn)
{
    const Phase *p = &w->g->step->phase[phase];
    int line = 0;

    open_phase(w, "void", fn,
               w->g->training ? "Forward, loss and backward of one shard."
                              : "Forward of one shard of an evaluation batch.",
               true);
    cuda_clear_sums(w, phase, true);
    group_open(w, w->g->training ? w->g->step->shards : 0);
    phase_calls(w, p, group_call, &line, false, "    ");
    metrics(w, phase);
    group_close(w);
    text_add(&w->body, "}\n\n");
}

/* One call of the forward pass again, and the look at what it made. */
static void check(Writer *w, const Node *n, int *line, const char *indent)
{
    Text *t = &w->body;
    const char *s = n->backward || !kernel_needed(n) ? "" : kernel_statement(w, n);

    (void)line;
    if (!*s)
        return;
    statement_wrapped(t, s, indent);
    if (n->within || n->dtype != DT_REAL || !n->shape.batched)
        return;
    text_printf(t, "%sif (!rt_cuda_finite%s(%s, %lld))\n%s    return %d;\n", indent,
                n->half == HALF_F16 ? "_f16" : n->half ? "_bf16" : "", pointer_to(w, n),
                (long long)(node_reals(n) * w->g->step->chunk), indent, w->nlayer);
    phase_layer_name(w, n);
}

/* After a loss that is not finite: forward again, and a look at each value. */
static void nonfinite(Writer *w, int phase)
{
    Text *t = &w->body;
    const Phase *p = &w->g->step->phase[phase];

    if (!phase_goes_forward(p))
        return;
    open_phase(w, "int", arena_printf(w->arena, "nonfinite_%d", w->nforward++),
               "After a loss that is not finite: the forward pass again, up to the first value "
               "that is not.",
               true);
    cuda_clear_sums(w, phase, false);
    phase_calls(w, p, check, NULL, true, "    ");
    text_add(t, "    return -1;\n}\n\n");
}

/* ------------------------------------------------------------------------------- the update */

/* The table of updates: one row for each parameter, with offsets, number of elements, and factors of rate and decay. */
static void update_rows(Writer *w, Text *t, bool rest)
{
    const Step *s = w->in->train->step;

    text_printf(t, "%sstatic RT_TABLE UpdateRow %s[] = {\n",
                rest ? "/* The rows of parameters that a stage of their own updates. */\n"
                     : "/* One row for each parameter: offsets of its sum in a shard and in the gradients, of its weights "
                       "and its states; their number;\n"
                       " * factors of the recipe's learning rate and decay. */\n",
                rest ? "rest_rows" : "update_rows");
    for (int i = 0; i < s->nsum; i++) {
        const Sum *m = &s->sum[i];
        const Param *p = m->param;
        if (!p || (rest && w->owned[i]))
            continue;
        text_printf(t, "    {%s, %lld, %s, %s, %s, %lld, %.17g, %.17g}, /* %s */\n",
                    name_of(w, node_root(m->root)), (long long)m->offset, name_of_param(w, p),
                    p->offset_state[0] < 0 ? "-1" : name_of_state(w, p, 0),
                    p->offset_state[1] < 0 ? "-1" : name_of_state(w, p, 1), (long long)m->count,
                    p->lr, p->decay, sum_name(m));
    }
    text_add(t, "};\n\n");
}

/* Some of the step's sums: all of them, or a bucket's. */
typedef struct Part {
    int first, sums;
} Part;

static Part whole(const Step *s)
{
    return (Part){0, s->nsum};
}

static Part bucket_part(const Step *s, int b)
{
    return (Part){s->bucket[b].first, s->bucket[b].sums};
}

/* Parameters: the other sums are statistics.  In a step that is one launch, those that nobody owns. */
static bool is_updated(const Writer *w, int sum)
{
    return w->g->step->sum[sum].param && !(stage_together(w) && w->owned[sum]);
}

static int update_count(const Writer *w, Part p)
{
    int n = 0;
    for (int i = p.first; i < p.first + p.sums; i++)
        n += is_updated(w, i);
    return n;
}

static int64_t update_blocks(const Writer *w, Part p)
{
    const Step *s = w->g->step;
    int64_t n = 0;

    for (int i = p.first; i < p.first + p.sums; i++)
        n += is_updated(w, i) ? (s->sum[i].count + RT_UPDATE_EACH - 1) / RT_UPDATE_EACH : 0;
    return n;
}

/* The first of its rows, how many, and pieces that blocks take. */
static const char *rows_of(Writer *w, Part p)
{
    const char *rows = stage_together(w) && w->nowned > 0 ? "rest_rows" : "update_rows";
    const int before = update_count(w, (Part){0, p.first}), n = update_count(w, p);
    const long long blocks = update_blocks(w, p);
    return before ? arena_printf(w->arena, "%s + %d, %d, %lld", rows, before, n, blocks)
                  : arena_printf(w->arena, "%s, %d, %lld", rows, n, blocks);
}

/* One of those with which the update begins: nothing that it changes is read by the others. */
static void unordered(Writer *w, const char *s)
{
    if (stage_together(w))
        stage_unordered(w, s);
    else
        statement(w, s);
}

/* A launch that reads what the one before it has made. */
static void follows(Writer *w, const char *s)
{
    if (stage_together(w))
        stage_meet(w);
    unordered(w, s);
}

/* Running averages follow the statistics of the step's shards, or (from_grad) what ranks have made of them. */
static void record(Writer *w, const Sum *s, int loss, bool from_grad)
{
    Arena *a = w->arena;
    const Node *n = s->update;
    const Step *st = w->g->step;
    const int64_t channels = n->shape.dim[0],
                  rows = st->slice * shape_count(&s->root->in[0]->shape) / channels;
    const char *tail = arena_printf(a, "%lld, %.17g, %lld", (long long)st->shards,
                                    node_float(n, "momentum"), (long long)channels);
    const char *averages = arena_printf(a, "r->there, FIXED(real, %s), FIXED(real, %s)",
                                        name_of(w, n->in[0]), name_of(w, n->in[2]));
    const char *blocks = arena_printf(a, "each_blocks(%lld)", (long long)channels);
    const char *launch =
        from_grad
            ? kernel_launch(w, "batch_record_grad",
                            "const Rt *r, real *mean, real *var, int64_t grad",
                            arena_printf(a, "    batch_record_grad(r, mean, var, grad, %s);\n",
                                         tail),
                            arena_printf(a, "%s, %lld", averages, (long long)s->offset), blocks)
            : kernel_launch(
                  w, "batch_record",
                  "const Rt *r, real *mean, real *var, int64_t moments, int64_t grad",
                  arena_printf(a, "    batch_record(r, mean, var, moments, grad, %d, %lld, %s);\n",
                               loss, (long long)rows, tail),
                  arena_printf(a, "%s, %s, %lld", averages, name_of(w, node_root(s->root)),
                               (long long)s->offset),
                  blocks);
    unordered(w, launch);
}

/* The same of the one mean and variance of the whole batch, from what all ranks know. */
static void record_known(Writer *w, const Sum *s, int loss)
{
    Arena *a = w->arena;
    const Node *n = s->update;
    const Step *st = w->g->step;
    const int64_t channels = n->shape.dim[0],
                  rows = st->shard * shape_count(&s->root->in[0]->shape) / channels;
    unordered(w, kernel_launch(
                     w, "batch_record_known",
                     "const Rt *r, real *mean, real *var, const real *known",
                     arena_printf(a,
                                  "    batch_record_known(r, mean, var, known, %d, %lld, %lld, "
                                  "%.17g, %lld);\n",
                                  loss, (long long)rows, (long long)st->shards,
                                  node_float(n, "momentum"), (long long)channels),
                     arena_printf(a, "r->there, FIXED(real, %s), FIXED(real, %s), FIXED(real, %s)",
                                  name_of(w, n->in[0]), name_of(w, n->in[2]), name_of(w, n->in[1])),
                     arena_printf(a, "each_blocks(%lld)", (long long)channels)));
}

int cuda_loss(const Graph *g)
{
    int loss = -1;
    for (int i = 0; i < g->nmetric; i++)
        loss = !strcmp(g->metric[i].name, "loss") ? i : loss;
    return loss;
}

const char *cuda_rule(const Graph *g)
{
    static const char *const rule[] = {"update_sgd", "update_rmsprop", "update_adam",
                                       "update_adamw"};
    return rule[g->recipe.optimizer.kind];
}

static const char *pieces(Writer *w, Part p)
{
    return arena_printf(w->arena, "%lld", (long long)update_blocks(w, p));
}

/* All parameters of it in one launch. */
static const char *update_launch(Writer *w, bool from_grad, Part p)
{
    const Graph *g = w->g;
    return kernel_launch(w, "update", "const Rt *r, bool from_grad",
                         arena_printf(w->arena, "    update(r, %s, from_grad, %d, %s);\n",
                                      rows_of(w, p), cuda_loss(g), cuda_rule(g)),
                         arena_printf(w->arena, "r->there, %s", from_grad ? "true" : "false"),
                         pieces(w, p));
}

/* With --dtype f16 gradients are scaled, and steps left out in which one of them is not finite. */
static bool is_scaled(const Writer *w)
{
    return w->g->step->offset_scaling > 0;
}

/* Does the update want to know all gradients first? */
static bool looks_at_all(const Writer *w)
{
    return w->g->recipe.clip_norm > 0 || is_scaled(w);
}

/* Sums go to `grad`; scaled ones as if they were not. */
static const char *sums_launch(Writer *w, Part p)
{
    const char *fn = is_scaled(w) ? "update_sums_scaled" : "update_sums";
    return kernel_launch(w, fn, "const Rt *r, char *grad",
                         arena_printf(w->arena, "    %s(r, %s, grad);\n", fn, rows_of(w, p)),
                         "r->there, grad", pieces(w, p));
}

/* The norm of all gradients, which is finite where they are; the update: scratch holds the sums where nobody else wants them, and
 * the parts of the norm behind them (pass plan leaves the room). */
static void clipped(Writer *w)
{
    Arena *a = w->arena;
    const Graph *g = w->g;
    const Part p = whole(g->step);
    const char *fn = is_scaled(w) ? "update_scaled" : "update_clipped";
    const char *limit =
        g->recipe.clip_norm > 0 ? arena_printf(a, "%.17g", g->recipe.clip_norm) : "INFINITY";

    text_printf(&w->body, "    double *const parts = (double *)(t + %lld);\n",
                (long long)g->step->grad_bytes);
    follows(w, kernel_launch(w, "update_squares", "double *parts, const char *grad",
                             arena_printf(a, "    update_squares(parts, grad, %s);\n",
                                          rows_of(w, p)),
                             "parts, grad", "CLIP_PARTS"));
    follows(w, kernel_launch(w, fn, "const Rt *r, const char *grad, const double *parts",
                             arena_printf(a, "    %s(r, %s, grad, parts, %s, %d, %s);\n", fn,
                                          rows_of(w, p), limit, cuda_loss(g), cuda_rule(g)),
                             "r->there, grad, parts", pieces(w, p)));
}

static const char *part_launch(Writer *w, bool from_grad, Part p)
{
    const bool sums = looks_at_all(w) && !from_grad;
    return sums ? sums_launch(w, p) : update_launch(w, from_grad, p);
}

/* A unit is a bucket where r->grad is set, which ranks add and update by themselves; else all is done at once. */
static void by_buckets(Writer *w, bool from_grad)
{
    Text *t = &w->body;
    const Step *s = w->g->step;

    if (stage_together(w) && update_count(w, whole(s)) == 0)
        return;
    if (s->nbucket == 1 || stage_together(w)) {
        unordered(w, part_launch(w, from_grad, whole(s)));
        return;
    }
    text_add(t, from_grad ? "    switch (unit) {\n" : "    switch (r->grad ? unit : -1) {\n");
    for (int b = 0; b < s->nbucket; b++) {
        const Part p = bucket_part(s, b);
        if (update_count(w, p) > 0)
            text_printf(t, "    case %d: %s break;\n", b, part_launch(w, from_grad, p));
    }
    if (!from_grad)
        text_printf(t, "    case -1: %s break;\n", part_launch(w, from_grad, whole(s)));
    text_add(t, "    }\n");
}

/* Those of statistics of shards, or (known) of the whole batch, under that condition, "": none. */
static void averages(Writer *w, bool from_grad, bool known, const char *condition)
{
    const Step *s = w->g->step;
    const bool guarded = *condition && !stage_together(w);
    bool any = false;

    for (int i = 0; i < s->nsum; i++) {
        const Sum *sum = &s->sum[i];
        if (sum->param || !sum->update || sum->known != known)
            continue;
        if (guarded && !any) {
            statement_settle(w);
            text_printf(&w->body, "    if (%s) {\n", condition);
        }
        any = true;
        if (known)
            record_known(w, sum, cuda_loss(w->g));
        else
            record(w, sum, cuda_loss(w->g), from_grad);
    }
    if (guarded && any) {
        statement_settle(w);
        text_add(&w->body, "    }\n");
    }
}

/* Sums of shards' statistics stand in the last bucket; of what is known nothing is left to add, so the phase that updates is enough. */
static void all_averages(Writer *w, bool from_grad)
{
    const int buckets = w->g->step->nbucket;
    const char *last = buckets > 1 ? arena_printf(w->arena, "unit == %d", buckets - 1) : "";

    averages(w, from_grad, false,
             *last && !from_grad ? arena_printf(w->arena, "!r->grad || %s", last) : last);
    averages(w, from_grad, true, from_grad ? last : "!r->grad");
}

void cuda_update(Writer *w, bool from_grad)
{
    const Step *s = w->g->step;
    const bool clips = looks_at_all(w);
    const char *last = arena_printf(w->arena, "%d", s->nbucket - 1);

    all_averages(w, from_grad);
    if (stage_groups(w) && (clips || s->nbucket > 1)) { /* the rest is launches under conditions, or one after the other */
        group_close(w);
        w->launches += from_grad ? 0 : clips ? 3 : 1;
    }
    if (clips)
        text_add(&w->body, "    char *const grad = r->grad ? r->grad : t;\n");
    if (!clips || !from_grad)
        by_buckets(w, from_grad);
    else if (s->nbucket > 1)
        text_printf(&w->body,
                    "    if (unit < %s) /* the norm is that of all buckets */\n        return;\n",
                    last);
    if (clips && !from_grad && !stage_together(w))
        text_add(&w->body, "    if (r->grad)\n        return;\n");
    if (clips)
        clipped(w);
}

static void update(Writer *w, const char *fn, bool from_grad)
{
    open_phase(w, "void", fn,
               from_grad ? "The update from gradients that ranks have added, bucket by bucket."
                         : "Sums over shards in the fixed tree, and the update of all parameters; "
                           "no update if the loss is not finite.",
               false);
    group_open(w, !from_grad);
    cuda_update(w, from_grad);
    group_close(w);
    text_add(&w->body, "}\n\n");
}

/* ------------------------------------------------------------------------------- the whole */

/* more: the fields behind the others. */
static void row(Text *t, const char *fn, PhaseKind kind, const char *what, const char *more)
{
    text_printf(t,
                "    {.run = %s, .per_slice = %s, .count = %d, .from_grad = %s, .what = "
                "\"%s\"%s%s},\n",
                fn, kind == PHASE_SLICE ? "true" : "false", kind != PHASE_SLICE,
                kind == PHASE_UPDATE ? "true" : "false", what,
                kind == PHASE_GRADIENT ? ", .to_grad = true" : "", more);
}

/* The sums of a bucket are a launch, and so is its update. */
static void bucket_units(Writer *w, const Step *s)
{
    for (int i = 0; i < 2; i++)
        for (int b = 0; b < s->nbucket; b++)
            text_add(&w->units[i][b], "1");
}

static void graph_phases(Writer *w, const Graph *g, Text *table)
{
    static const char *const kind[] = {"prepare", "slice", "gradient", "update", "wide"};
    const char *const word = g->training ? "train" : "test";
    int seen[5] = {0};

    w->g = g, w->prefix = g->training ? "" : "TEST_";
    for (int i = 0; i < g->step->nphase; i++) {
        const Phase *p = &g->step->phase[i];
        const int number = ++seen[p->kind];
        const char *fn =
            arena_printf(w->arena, number > 1 ? "%s_%s_%d" : "%s_%s", word, kind[p->kind], number);
        switch (p->kind) {
        case PHASE_PREPARE:
            prepare(w, p, fn);
            row(table, fn, p->kind, "what depends on parameters only", "");
            break;
        case PHASE_SLICE: {
            slice(w, i, fn);
            if (g->training)
                nonfinite(w, i);
            const char *known = phase_known_fields(w, i, word, number);
            row(table, fn, p->kind,
                g->training ? "forward and backward of a shard" : "forward of a shard", known);
            break;
        }
        case PHASE_WIDE: /* pass wide is the processor's */
            break;
        case PHASE_GRADIENT:
        case PHASE_UPDATE:
            update(w, fn, p->kind == PHASE_UPDATE);
            row(table, fn, p->kind, p->kind == PHASE_UPDATE ? "update" : "sum gradients, update", "");
            break;
        }
    }
}

void cuda_phases(Writer *w)
{
    graph_phases(w, w->in->train, &w->train);
}

/* The first "Conv{ ... }" of a kernel's text that says sizes, its length in *len; NULL: they are plain numbers. */
static const char *struct_in(const char *text, size_t *len)
{
    const char *open = strchr(text, '{'), *name = open;
    int depth = 0;

    while (name && name > text && isalpha((unsigned char)name[-1]))
        name--;
    if (!open || name == open || !isupper((unsigned char)*name))
        return NULL;
    const char *end = open;
    do
        depth += (*end == '{') - (*end == '}');
    while (*end++ && depth > 0);
    *len = (size_t)(end - name);
    return strncmp(name, "Constant{", 9) ? name : struct_in(end, len);
}

/* `text` with `literal` written as a call of the function that returns it. */
static const char *with_size(Arena *a, const char *text, const char *literal, const char *name)
{
    const char *at = literal ? strstr(text, literal) : NULL;
    return at ? arena_printf(a, "%.*s%s_size()%s", (int)(at - text), text, name,
                             at + strlen(literal))
              : text;
}

/* "y, a, b" of "real *y, const real *a, const real *b". */
static const char *parameter_names(Arena *a, const char *params)
{
    Text t = text_new(a);

    for (const char *end = params + strcspn(params, ",");; end += 1 + strcspn(end + 1, ",")) {
        const char *name = end;
        while (name > params && name[-1] != ' ' && name[-1] != '*')
            name--;
        text_printf(&t, "%s%.*s", t.len ? ", " : "", (int)(end - name), name);
        if (!*end)
            return t.s;
    }
}

/* Its sizes, how many blocks they take, the kernel: sizes once, however often they are used; the body, too. */
static void kernel(const Writer *w, Text *t, const Kernel *k)
{
    Arena *a = w->arena;
    size_t len = 0;
    const char *at = struct_in(k->body, &len);
    const char *literal = at ? arena_strndup(a, at, len) : NULL;

    if (literal) {
        const int type = (int)strcspn(literal, "{");
        text_printf(t, "SIZE %.*s %s_size()\n{\n", type, literal, k->name);
        statement_wrapped(t, arena_printf(a, "return %s;", literal), "    ");
        text_add(t, "}\n");
    }
    if (k->launched || k->joined)
        text_printf(t, "constexpr int %s_blocks = %s;\n", k->name,
                    with_size(a, k->blocks, literal, k->name));
    const char *body = with_size(a, k->body, literal, k->name);
    if (k->joined || (k->staged && k->launched)) {
        text_printf(t, "DEVICE void %s_body(%s)\n{\n%s}\n", k->name, k->params, body);
        body = arena_printf(a, "    %s_body(%s);\n", k->name, parameter_names(a, k->params));
    }
    if (k->staged)
        text_printf(t, "STAGE %s_stage(%s)\n{\n%s}\n", k->name, k->params, body);
    if (k->launched)
        text_printf(t, "KERNEL %s(%s)\n{\n%s}\n", k->name, k->params, body);
    text_add(t, "\n");
}

void emit_cuda(const EmitInput *in, Text *out)
{
    EmitInput windows = *in; /* generate looks at whole ones */
    Writer w;

    windows.token = NULL;
    program_begin(&w, &windows, out->arena);
    bucket_units(&w, in->train->step);
    cuda_phases(&w);
    Text rows = text_new(out->arena);
    w.g = in->train, w.prefix = "";
    update_rows(&w, &rows, false);
    w.steps = text_new(out->arena);
    if (in->options->persistent)
        steps_write(&w);
    else
        steps_of_graph(&w);
    if (w.nowned > 0 && w.nowned < update_count(&w, whole(in->train->step)))
        update_rows(&w, &rows, true);
    program_offsets(&w, true);
    graph_phases(&w, in->test, &w.test);
    program_offsets(&w, false);

    head(&w, out);
    text_add(out, w.offsets.s);
    text_add(out, rows.s);
    text_add(out, "/* ---- kernels: sizes are literals, so nvcc specialises each ---- */\n\n");
    for (int i = 0; i < w.nkernel; i++)
        if (w.kernel[i].launched || w.kernel[i].staged || w.kernel[i].joined)
            kernel(&w, out, &w.kernel[i]);
    library_tables(&w, out);
    text_printf(out,
                "/* ---- the step: launches in order; a phase begins when the previous one is "
                "complete ---- */\n\n%s",
                w.body.s);
    text_add(out, w.steps.s);
    program_end(&w, out);
}
