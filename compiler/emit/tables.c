/* tables.c -- writes the end of a generated file: tables of parameters, sums and buckets,
 * RtProgram, main. */
#include "emit/writer.h"
#include "ops/price.h"

static void parameter(Writer *w, Text *t, const Param *p)
{
    static const char *const kind[] = {"RT_XAVIER", "RT_GLOROT",     "RT_HE",
                                       "RT_LECUN",  "RT_ORTHOGONAL", "RT_UNIFORM",
                                       "RT_NORMAL", "RT_CONSTANT",   "RT_SECOND"};
    static const char *const fan[] = {"RT_FAN_IN", "RT_FAN_OUT", "RT_FAN_AVG"};

    text_printf(t, "    {.name = %s, .rank = %d, .dim = {", quote_c(w->arena, p->name),
                p->file.rank);
    for (int i = 0; i < p->file.rank; i++)
        text_printf(t, "%s%lld", i ? ", " : "", (long long)p->file.dim[i]);
    text_printf(t, "},\n     .naxis = %d, .axis = {", p->naxis);
    for (int i = 0; i < p->naxis; i++)
        text_printf(t, "%s{%lld, %lld, %lld, %lld}", i ? ", " : "", (long long)p->axis[i].n,
                    (long long)p->axis[i].block, (long long)p->axis[i].outer,
                    (long long)p->axis[i].inner);
    text_printf(t, "}, .count_memory = %lld,\n     .offset = %s, .state = {",
                (long long)p->count_memory, name_of_param(w, p));
    for (int k = 0; k < 2; k++)
        if (p->offset_state[k] < 0)
            text_printf(t, "%s-1", k ? ", " : "");
        else
            text_printf(t, "%s%s", k ? ", " : "", name_of_state(w, p, k));
    text_printf(t,
                "}, .fan_in = %lld, .fan_out = %lld,\n     .init = {%s, %s, %s, %.17g, "
                "%.17g}%s",
                (long long)p->fan_in, (long long)p->fan_out, kind[p->init.kind],
                p->init.gaussian ? "true" : "false", fan[p->init.fan], p->init.a, p->init.b,
                p->frozen ? ", .frozen = true" : "");
    if (p->blank > 0)
        text_printf(t, ", .blank = %lld", (long long)p->blank);
    text_add(t, "},\n");
}

static void sum_table(const Graph *g, Text *t)
{
    text_add(t, "static const RtSum sums[] = {\n");
    for (int i = 0; i < g->step->nsum; i++) {
        const Sum *s = &g->step->sum[i];
        int index = -1;
        const int64_t count = s->known ? 0 : s->count; /* the runtime does not reduce known sums */
        for (int k = 0; k < g->nparam; k++)
            if (s->param == g->param[k])
                index = k;
        text_printf(t, "    {.offset = %lld, .count = %lld, .param = %d", (long long)s->offset,
                    (long long)count, index);
        if (sum_trusts(g, s))
            text_printf(t, ", .trusts = true, .decay = %.17g", s->param->decay);
        text_add(t, "},\n");
    }
    text_add(t, "};\n\n");
}

/* Writes RtScaling as a tensor, which checkpoints store. */
static void scaling(const Step *s, Text *t)
{
    if (s->offset_scaling)
        text_printf(t,
                    "/* ---- the scale of the loss, which the update changes ---- */\n\n"
                    "static const RtParam scaling = {\n"
                    "    .name = RT_SCALING, .rank = 1, .dim = {4}, .naxis = 1, .axis = {{4, 1, 1, "
                    "0}}, .count_memory = 4,\n    .offset = %lld, .state = {-1, -1}};\n\n",
                    (long long)s->offset_scaling);
}

static const char *or_none(const char *units)
{
    return *units ? units : "0";
}

/* Writes the buckets: bytes, the phase that completes each one, the phase that needs its update. */
static void buckets(const Writer *w, Text *t)
{
    const Step *s = w->in->train->step;
    text_add(t, "/* ---- buckets of gradients, which ranks add beside the backward pass: complete "
                "after train[ready]; updated before train[due] of the next step ---- */\n\n"
                "static const RtBucket buckets[] = {\n");
    for (int b = 0; b < s->nbucket; b++) {
        const Bucket *k = &s->bucket[b];
        text_printf(t, "    /* %d: %s .. %s */\n", b, sum_name(&s->sum[k->first]),
                    sum_name(&s->sum[k->first + k->sums - 1]));
        text_printf(t,
                    "    {.offset = %lld, .bytes = %lld, .ready = %d, .due = %d,\n"
                    "     .units = %s,\n     .updates = %s},\n",
                    (long long)k->offset, (long long)k->bytes, k->ready, k->due,
                    or_none(w->units[0][b].s), or_none(w->units[1][b].s));
    }
    text_add(t, "};\n\n");
}

/* Writes the predicted times of the units of sums.  The program uses these times when it first
 * divides the units among threads. */
static void ranges(const Writer *w, Text *t)
{
    if (w->ranges.len)
        text_printf(t,
                    "/* ---- ranges of sums: number of units, predicted time of all of them in us "
                    "---- */\n\n"
                    "static const RtRange ranges[] = {\n%s};\n\n",
                    w->ranges.s);
}

static int64_t parameters_of(const Graph *g)
{
    int64_t n = 0;

    for (int i = 0; i < g->nparam; i++)
        n += g->param[i]->average ? 0 : shape_count(&g->param[i]->file);
    return n;
}

const char *emit_flop_text(Arena *a, double flops)
{
    return flops >= 1e6   ? arena_printf(a, "%.2f MFLOP", flops * 1e-6)
           : flops >= 1e3 ? arena_printf(a, "%.1f kFLOP", flops * 1e-3)
                          : arena_printf(a, "%.0f FLOP", flops);
}

bool emit_counts_flops(const Node *n)
{
    return n->op->flags & OP_FLOPS;
}

static double counted_flops(const Graph *g, bool half)
{
    double f = 0;

    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (emit_counts_flops(n) && !(n->loop && n->loop->inside) && (!half || op_reads_half(n)))
            f += n->op->cost(n).flops * (double)node_steps(n);
    }
    return f;
}

double emit_flops(const Graph *g)
{
    return counted_flops(g, false);
}

double emit_flops_half(const Graph *g)
{
    return counted_flops(g, true);
}

static int param_index(const Graph *g, const Param *p)
{
    int i = 0;

    while (g->param[i] != p)
        i++;
    return i;
}

/* Whether the loss of g gives the outputs this meaning. */
static bool outputs_are(const Graph *g, Outputs outputs)
{
    for (int i = 0; i < g->nnode; i++)
        if (g->node[i]->op->outputs == outputs)
            return true;
    return false;
}

/* Writes the fields of RtProgram with the table of calls and the nominal core of the predicted
 * times, for bench --layers. */
static void calls(const Writer *w, Text *t)
{
    const Market m = market_of(w->in->train, w->in->options, w->in->train->step->chunk);

    text_printf(t,
                "    .core = \"%s\", .core_gflops = %.4g, .call = calls, .ncall = sizeof calls / "
                "sizeof *calls,\n",
                m.core->like, core_peak_gflops(m.core, m.real));
}

/* Fields of RtProgram: where the program comes from. */
static void origin_fields(Writer *w, Text *t)
{
    const EmitInput *in = w->in;

    text_printf(t, "    .model = \"%s\", .source = %s, .source_hash = \"%s\",\n", in->train->name,
                quote_c(w->arena, in->source_name), in->hash);
    if (!in->train->training)
        text_printf(t, "    .trained = \"%s\",\n", in->train->recipe.trained);
    text_printf(t, "    .compiler = \"%s\", .flags = %s, ", in->compiler_version,
                quote_c(w->arena, in->flags));
    w->target->machine_fields(in, t);
    text_add(t, ".real_bytes = sizeof(real),\n");
}

/* Sizes of the batch, of the network and of the regions of memory. */
static void size_fields(Writer *w, Text *t)
{
    const Graph *g = w->in->train;
    const Step *s = g->step;

    text_printf(t,
                "    .batch = %lld, .shards = %lld, .slices = SLICES, .chunk = CHUNK,\n    "
                ".parameters = %lld, .flops_per_sample = %.0f,\n",
                (long long)s->batch, (long long)s->shards, (long long)parameters_of(g),
                emit_flops(g));
    text_printf(t,
                "    .fixed_bytes = %lld, .shard_bytes = %lld, .thread_bytes = %lld, .grad_bytes = "
                "%lld, .fused_update = %s,\n",
                (long long)s->fixed_bytes, (long long)s->shard_bytes,
                (long long)(s->thread_bytes + w->workspace + 2 * w->samples_bytes),
                (long long)s->grad_bytes, s->fused_update ? "true" : "false");
    if (s->average_bytes > 0)
        text_printf(t, "    .average_bytes = %lld,\n", (long long)s->average_bytes);
    if (s->average_offset > 0)
        text_printf(t, "    .average_offset = %lld,\n", (long long)s->average_offset);
    if (s->kept_bytes > 0)
        text_printf(t, "    .kept_bytes = %lld,\n", (long long)s->kept_bytes);
    if (w->target->memory_fields)
        w->target->memory_fields(g, t);
}

/* Writes "{1, 28, 28}". */
static void dimensions(int rank, const int64_t *dim, Text *t)
{
    text_add(t, "{");
    for (int i = 0; i < rank; i++)
        text_printf(t, "%s%lld", i ? ", " : "", (long long)dim[i]);
    text_add(t, "}");
}

static const char *const target_kinds[] = {[LEARN_CLASS] = "RT_TARGET_CLASS",
                                           [LEARN_NUMBERS] = "RT_TARGET_NUMBERS",
                                           [LEARN_INPUT] = "RT_TARGET_INPUT"};

/* Writes the fields of a target that is no class. */
static void number_fields(Writer *w, Text *t)
{
    const TargetSpec *target = w->in->train->recipe.target;

    text_printf(t, "    .target_kind = %s, .target_name = %s,", target_kinds[target->kind],
                quote_c(w->arena, target->name));
    if (target->rank) {
        text_printf(t, " .target_rank = %d, .target_dim = ", target->rank);
        dimensions(target->rank, target->dim, t);
        text_add(t, ",");
    }
    if (target->truths)
        text_add(t, " .target_truths = true,");
    text_add(t, "\n");
}

/* The labels, if augment can change how often each one occurs; else NULL. */
static const Node *moved_labels(const Writer *w)
{
    const Graph *g = w->in->train;
    const Node *n = g->label;
    const bool moved = n && n->dtype == DT_I32 && node_attr(n, "moved");
    return moved && augment_replaces(&g->recipe.augment) ? n : NULL;
}

/* Writes how augment moves the labels, so that the program can count those that are scored. */
static void moved_table(Writer *w, Text *t)
{
    const Node *n = moved_labels(w);
    if (!n)
        return;
    const char *augment =
        sizes_text(w->arena, kernel_augment(w, &w->in->train->recipe.augment), true);
    text_printf(t,
                "static const RtMoved moved = {.augment = %s, .h = %lld, .w = %lld, .fill = "
                "%lld};\n\n",
                augment + strlen("Augment"), (long long)n->shape.dim[0], (long long)n->shape.dim[1],
                (long long)node_int(n, "fill"));
}

/* Writes the fields for a class for each pixel, weights of classes, and the class that is not
 * scored. */
static void label_fields(Writer *w, Text *t)
{
    const TargetSpec *target = w->in->train->recipe.target;

    if (target->rank > 1) {
        text_printf(t, "    .label_rank = %d, .label_dim = ", target->rank);
        dimensions(target->rank, target->dim, t);
        text_add(t, ",\n");
    }
    if (target->weights)
        text_add(t, "    .class_weight = class_weights,\n");
    if (target->ignored)
        text_printf(t, "    .ignored = %lld,\n", (long long)target->ignored);
    if (moved_labels(w))
        text_add(t, "    .moved = &moved,\n");
}

/* Writes the fields of the only target of a program. */
static void target_fields(Writer *w, Text *t)
{
    if (w->in->train->recipe.target->kind == LEARN_CLASS)
        label_fields(w, t);
    else
        number_fields(w, t);
}

static bool has_tokens(const Graph *g)
{
    bool found = false;
    for (int i = 0; i < g->ninput; i++)
        found |= g->inputs[i]->dtype == DT_I32 && g->inputs[i]->shape.rank > 0;
    return found;
}

static void input_fields(const Graph *g, Text *t)
{
    const Shape *x = &g->input->shape;
    const int64_t numbers = graph_numbers(g);

    text_printf(t, "    .input_rank = %d, .input_dim = ", g->ninput > 1 ? 1 : x->rank);
    if (g->ninput > 1)
        dimensions(1, &numbers, t);
    else
        dimensions(x->rank, x->dim, t);
    text_add(t, ", ");
    if (g->ninput > 1)
        text_printf(t, ".input = inputs, .ninput = %d, ", g->ninput);
    if (has_tokens(g))
        text_printf(t, ".vocab = %lld, ", (long long)g->recipe.data.vocab);
}

/* Writes the table of several inputs. */
static void input_table(Writer *w, Text *t)
{
    const Graph *g = w->in->train;

    if (g->ninput < 2)
        return;
    text_add(t, "static const RtInput inputs[] = {\n");
    for (int i = 0; i < g->ninput; i++) {
        const Node *x = g->inputs[i];
        text_printf(t, "    {%s, %d, ", quote_c(w->arena, x->name), x->shape.rank);
        dimensions(x->shape.rank, x->shape.dim, t);
        text_printf(t, ", %s},\n", x->dtype == DT_I32 ? "true" : "false");
    }
    text_add(t, "};\n\n");
}

static void target_table(Writer *w, Text *t)
{
    const Recipe *r = &w->in->train->recipe;

    text_add(t, "static const RtTarget targets[] = {\n");
    for (int i = 0; i < r->ntarget; i++) {
        const TargetSpec *s = &r->target[i];
        text_printf(t, "    {%s, %s, %lld, %lld, %d, ", quote_c(w->arena, s->name),
                    target_kinds[s->kind], (long long)s->at, (long long)s->classes, s->rank);
        dimensions(s->rank, s->dim, t);
        text_add(t, s->truths ? ", true},\n" : ", false},\n");
    }
    text_add(t, "};\n\n");
}

static void output_table(Writer *w, Text *t)
{
    const Graph *g = w->in->train;

    text_add(t, "static const RtOutput outputs[] = {\n");
    for (int i = 0; i < g->noutput; i++) {
        const Output *o = &g->outputs[i];
        text_printf(t, "    {%s, %lld, %s, %d, ", quote_c(w->arena, o->name), (long long)o->classes,
                    o->binary ? "true" : "false", o->shape.rank);
        dimensions(o->shape.rank, o->shape.dim, t);
        text_printf(t, ", %lld},\n", (long long)o->pixels);
    }
    text_add(t, "};\n\n");
}

/* Writes the fields that name these tables; `classes`: the largest number of classes of a
 * target. */
static void several_fields(Writer *w, Text *t)
{
    const Graph *g = w->in->train;
    const Recipe *r = &g->recipe;
    const bool one_class = r->ntarget == 1 && g->label && r->target->kind == LEARN_CLASS;
    int64_t classes = 0;
    for (int i = 0; i < r->ntarget; i++)
        classes = r->target[i].classes > classes ? r->target[i].classes : classes;
    text_printf(t, ".classes = %lld, .labels = %lld, .outputs = %lld,\n", (long long)classes,
                (long long)(one_class ? shape_count(&g->label->shape) : 1),
                (long long)graph_outputs(g));
    if (r->ntarget > 1)
        text_printf(t,
                    "    .target_kind = RT_TARGET_SEVERAL, .targets = targets, .ntarget = %d, "
                    ".target_bytes = %lld,\n",
                    r->ntarget, (long long)r->target_bytes);
    else
        target_fields(w, t);
    text_printf(t, "    .output = outputs, .noutput = %d, .compared = {", g->noutput);
    for (int i = 0; i < r->ntarget; i++)
        text_printf(t, "%s%d", i ? ", " : "", r->target[i].compared);
    text_add(t, "},\n");
}

/* Shapes of samples and outputs: one output and one target. */
static void one_fields(Writer *w, Text *t)
{
    const Graph *g = w->in->train;
    const TargetSpec *target = g->recipe.target;
    const Shape *y = &w->in->test->output->shape;
    const int64_t outputs = shape_count(y),
                  labels = target->kind == LEARN_CLASS ? shape_count(&g->label->shape) : 1;
    const bool truth = outputs_are(g, OUTPUTS_BINARY) && outputs == labels;

    text_printf(t, ".classes = %lld, .labels = %lld, .outputs = %lld, .softmax_output = %s,\n",
                (long long)(target->kind != LEARN_CLASS ? 0
                            : truth                     ? 2
                                                        : outputs / labels),
                (long long)labels, (long long)outputs,
                outputs_are(g, OUTPUTS_CLASSES) ? "true" : "false");
    if (target->kind == LEARN_CLASS && g->pixels)
        text_printf(t, "    .pixels = %lld,\n", (long long)g->pixels);
    if (target->kind != LEARN_CLASS && g->probable)
        text_add(t, "    .sigmoid_output = true,\n");
    if (y->rank > 1 && (target->kind != LEARN_CLASS || g->pixels)) {
        text_printf(t, "    .output_rank = %d, .output_dim = ", y->rank);
        dimensions(y->rank, y->dim, t);
        text_add(t, ",\n");
    }
    target_fields(w, t);
}

/* A table: the layers of the outputs of targets. */
static void head_fields(const Graph *g, Text *t)
{
    text_add(t, "    .head = {");
    for (int i = 0; i < g->recipe.ntarget; i++)
        text_printf(t, "%s%d", i ? ", " : "",
                    g->recipe.target[i].head ? param_index(g, g->recipe.target[i].head) : -1);
    text_add(t, "},\n");
}

/* Shapes of samples and outputs, and the metrics. */
static void sample_fields(Writer *w, Text *t)
{
    const Graph *g = w->in->train, *test = w->in->test;

    input_fields(g, t);
    if (graph_several(g))
        several_fields(w, t);
    else
        one_fields(w, t);
    if (g->recipe.data.columns)
        head_fields(g, t);
    if (g->input->nin > 0)
        text_printf(t, "    .input_mean = &params[%d],\n", param_index(g, g->input->in[0]->param));
    if (augment_mixes(&g->recipe.augment))
        text_add(t, "    .mixes = true,\n");
    if (test->nmetric == 0)
        return;
    text_printf(t, "    .nmetric = %d, .metric = {", test->nmetric);
    for (int i = 0; i < test->nmetric; i++)
        text_printf(t, "%s\"%s\"", i ? ", " : "", test->metric[i].name);
    text_printf(t, "},\n%s", graph_next_token(g) ? "    .perplexity = true,\n" : "");
    if (g->recipe.nmeasure > 0)
        text_printf(t, "    .nmeasure = %d,\n", g->recipe.nmeasure);
}

/* Addresses and lengths of the tables of parameters, sums and phases. */
static void table_fields(Writer *w, Text *t)
{
    const Graph *g = w->in->train, *token = w->in->token;
    const Step *s = g->step;

    text_printf(t, "    .param = params, .nparam = %d,", g->nparam);
    if (g->training)
        text_printf(t,
                    " .sum = sums, .nsum = %d, .ngradient = %d,\n    .bucket = buckets, .nbucket = "
                    "%d,",
                    s->nsum, s->ngradient, s->nbucket);
    text_add(t, "\n");
    if (w->ranges.len)
        text_add(t, "    .range = ranges, .nrange = sizeof ranges / sizeof *ranges,\n");
    text_printf(t, "    %s.test = test, .ntest = sizeof test / sizeof *test,\n",
                g->training ? ".train = train, .ntrain = sizeof train / sizeof *train, " : "");
    if (token)
        text_printf(t,
                    "    .token = token, .ntoken = sizeof token / sizeof *token, .carried = %lld, "
                    ".cached = %lld, .window = %lld,\n",
                    (long long)token->carried, (long long)token->cached, (long long)token->window);
}

/* Writes the fields for what the program is linked with: readers of data, transport, device. */
static void link_fields(Writer *w, Text *t)
{
    const EmitInput *in = w->in;

    if (in->train->recipe.data.xz)
        text_add(t, "    .unpack_xz = &rt_unpack_xz,\n");
    if (in->mpi)
        text_add(t, "    .transport = &rt_mpi,\n");
    if (in->nccl)
        text_add(t, "    .transport = &rt_tcp, .link = &rt_nccl,\n");
    if (in->train->recipe.data.images)
        text_add(t, "    .decode = &rt_decode_images,\n");
    text_add(t, "    .data_dirs = data_dirs,");
    if (w->target->device_fields)
        w->target->device_fields(w, t);
    text_add(t, "\n");
}

static void program(Writer *w, Text *t)
{
    const Graph *g = w->in->train;

    if (g->recipe.target->weights)
        text_printf(t, "static const double class_weights[] = {%s};\n\n",
                    g->recipe.target->weights);
    moved_table(w, t);
    text_add(t, "const RtProgram rt_program = {\n");
    origin_fields(w, t);
    size_fields(w, t);
    sample_fields(w, t);
    table_fields(w, t);
    recipe_write(w, t);
    if (g->training)
        text_add(t, "    .layer = layers, .nlayer = sizeof layers / sizeof *layers, .nonfinite = "
                    "nonfinite, .nforward = sizeof nonfinite / sizeof *nonfinite,\n");
    if (w->calls.len)
        calls(w, t);
    link_fields(w, t);
    if (g->step->offset_scaling)
        text_add(t, "    .scaling = &scaling,\n");
    text_add(t, "};\n\nint main(int argc, char **argv)\n{\n    return rt_main(&rt_program, argc, "
                "argv);\n}\n");
}

void tables_write(Writer *w, Text *t)
{
    const Graph *g = w->in->train;

    text_add(t, "/* ---- parameters: shape in files (first line), layout in memory (second line) "
                "---- */\n\nstatic const RtParam params[] = {\n");
    for (int i = 0; i < g->nparam; i++)
        parameter(w, t, g->param[i]);
    text_add(t, "};\n\n");
    if (g->training) {
        sum_table(g, t);
        scaling(g->step, t);
        buckets(w, t);
        ranges(w, t);
    }
    input_table(w, t);
    recipe_names(w, t);
    if (g->recipe.ntarget > 1)
        target_table(w, t);
    if (graph_several(g))
        output_table(w, t);
    text_add(t, "static const char *const data_dirs[] = {");
    for (int i = 0; i < w->in->ndata_dirs; i++)
        text_printf(t, "%s, ", quote_c(w->arena, w->in->data_dirs[i]));
    text_add(t, "NULL};\n\n");
    program(w, t);
}
