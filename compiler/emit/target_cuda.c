/* target_cuda.c -- the generated program for a GPU: the same step as the processor's, a kernel launch for each call.
 *
 * A phase is a function of the host that launches kernels one after another; a unit of a slice phase is a shard, and a kernel
 * takes all its samples.  One stream keeps the order, so barriers between phases need no words.  The file is C++ for nvcc and,
 * for the tests, for any C++ compiler (runtime/cuda/cuda.cuh); tables and main are the processor's.
 */
#include "emit/cuda_library.h"
#include "ops/step_price.h"
#include <ctype.h>
#include <string.h>

static void head(Writer *w, Text *t)
{
    const Step *s = w->in->train->step;

    program_head(w, ".cu", t);
    text_printf(t,
                " *   for %s; a launch of more blocks than fit at once is the GPU's to share out\n "
                "*/\n"
                "#include \"rt.h\"\n#include \"cuda/kernels.cuh\"\n",
                w->in->options->arch);
    library_includes(w, t);
    text_printf(t, "\nenum { SHARD = %lld, CHUNK = SHARD, SLICES = 1 };\n\n", (long long)s->shard);
    text_add(t, "/* Addresses in the GPU's memory: parameters; scratch; a shard's values, and its "
                "sums. */\n"
                "#define FIXED(type, at) ((type *)(r->fixed + (at)))\n"
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

/* Sums that several calls add to begin as 0. */
static void clear_sums(Writer *w, int phase, bool backward)
{
    const Step *s = w->g->step;

    for (int i = 0; i < s->nbuffer; i++) {
        const Buffer *b = &s->buffer[i];
        if (b->place == PLACE_PARTIAL && b->first == phase && (backward || !b->node->backward) &&
            !step_writes_sum(w->g, b->node, w->in->options))
            text_printf(&w->body, "    rt_cuda_clear(%s, %lld);\n", pointer_to(w, b->node),
                        (long long)b->bytes);
    }
}

static void metrics(Writer *w, int phase)
{
    const Graph *g = w->g;
    const long long n = g->step->chunk;

    for (int i = 0; i < g->nmetric; i++) {
        if (g->metric[i].node->phase != phase)
            continue;
        const char *launch =
            kernel_launch(w, "rt_metric",
                          "const Rt *r, int unit, int metric, int first, const real *a",
                          arena_printf(w->arena,
                                       "    rt_metric(r, unit, metric, first, %lld, a);\n", n),
                          arena_printf(w->arena, "r->there, unit, %d, first, %s", i,
                                       pointer_to(w, g->metric[i].node)),
                          "1");
        text_add(&w->body, i ? "" : "\n");
        statement_wrapped(&w->body,
                          arena_printf(w->arena, "%s /* %s */", launch, g->metric[i].name), "    ");
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
    statement_wrapped(&w->body, launch, "    ");
}

static void prepare(Writer *w, const Phase *p, const char *fn)
{
    int line = 0;

    open_phase(w, "void", fn, "Once a step: what depends on the parameters only.", false);
    for (int i = 0; i < p->nnode; i++)
        statement_write(w, &w->body, p->node[i], &line, "    ");
    text_add(&w->body, "}\n\n");
}

static void call(Writer *w, const Node *n, int *line, const char *indent)
{
    statement_write(w, &w->body, n, line, indent);
}

static void slice(Writer *w, int phase, const char *fn)
{
    const Phase *p = &w->g->step->phase[phase];
    int line = 0;

    open_phase(w, "void", fn,
               w->g->training ? "Forward, loss and backward of one shard."
                              : "Forward of one shard of an evaluation batch.",
               true);
    clear_sums(w, phase, true);
    phase_calls(w, p, call, &line, false, "    ");
    metrics(w, phase);
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
    text_printf(t, "%sif (!rt_cuda_finite(%s, %lld))\n%s    return %d;\n", indent, pointer_to(w, n),
                (long long)(shape_count(&n->shape) * w->g->step->chunk), indent, w->nlayer);
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
    clear_sums(w, phase, false);
    phase_calls(w, p, check, NULL, true, "    ");
    text_add(t, "    return -1;\n}\n\n");
}

/* ------------------------------------------------------------------------------- the update */

/* A row a parameter: where things lie, how much there is, what it makes of the recipe's rate and decay. */
static void update_rows(Writer *w, Text *t)
{
    const Step *s = w->in->train->step;

    text_add(t, "/* Where each parameter's sum lies in a shard and in the gradients, its weights "
                "and states, how many they are;\n"
                " * and what it makes of the recipe's learning rate and decay. */\n"
                "static RT_TABLE UpdateRow update_rows[] = {\n");
    for (int i = 0; i < s->nsum; i++) {
        const Sum *m = &s->sum[i];
        const Param *p = m->param;
        if (!p)
            continue;
        text_printf(t, "    {%s, %lld, %s, %s, %s, %lld, %.17g, %.17g}, /* %s */\n",
                    name_of(w, node_root(m->root)), (long long)m->offset, name_of_param(w, p),
                    p->offset_state[0] < 0 ? "-1" : name_of_state(w, p, 0),
                    p->offset_state[1] < 0 ? "-1" : name_of_state(w, p, 1), (long long)m->count,
                    p->lr, p->decay, sum_name(m));
    }
    text_add(t, "};\n\n");
}

/* Parameters: the other sums are statistics. */
static int update_count(const Step *s)
{
    int n = 0;
    for (int i = 0; i < s->nsum; i++)
        n += s->sum[i].param != NULL;
    return n;
}

static int64_t update_blocks(const Step *s)
{
    enum { EACH = 1024 }; /* numbers a block of threads: UPDATE_EACH of runtime/cuda/update.cuh */
    int64_t n = 0;

    for (int i = 0; i < s->nsum; i++)
        n += s->sum[i].param ? (s->sum[i].count + EACH - 1) / EACH : 0;
    return n;
}

/* Running averages follow the statistics of the step's shards. */
static void record(Writer *w, const Sum *s, int loss)
{
    Arena *a = w->arena;
    const Node *n = s->update;
    const Step *st = w->g->step;
    const int64_t channels = n->shape.dim[0],
                  rows = st->slice * shape_count(&s->root->in[0]->shape) / channels;
    const char *body =
        arena_printf(a, "    batch_record(r, mean, var, moments, %d, %lld, %lld, %.17g, %lld);\n",
                     loss, (long long)rows, (long long)st->shards, node_float(n, "momentum"),
                     (long long)channels);
    const char *args =
        arena_printf(a, "r->there, FIXED(real, %s), FIXED(real, %s), %s", name_of(w, n->in[0]),
                     name_of(w, n->in[2]), name_of(w, node_root(s->root)));
    statement_wrapped(&w->body,
                      kernel_launch(w, "batch_record",
                                    "const Rt *r, real *mean, real *var, int64_t moments", body,
                                    args,
                                    arena_printf(a, "each_blocks(%lld)", (long long)channels)),
                      "    ");
}

static int loss_metric(const Graph *g)
{
    int loss = -1;
    for (int i = 0; i < g->nmetric; i++)
        loss = !strcmp(g->metric[i].name, "loss") ? i : loss;
    return loss;
}

static const char *update_rule(const Graph *g)
{
    static const char *const rule[] = {"update_sgd", "update_rmsprop", "update_adam",
                                       "update_adamw"};
    return rule[g->recipe.optimizer.kind];
}

static const char *pieces(Writer *w)
{
    return arena_printf(w->arena, "%lld", (long long)update_blocks(w->g->step));
}

/* All parameters in one launch. */
static const char *update_launch(Writer *w, bool from_grad)
{
    const Graph *g = w->g;
    return kernel_launch(w, "update", "const Rt *r, bool from_grad",
                         arena_printf(w->arena,
                                      "    update(r, update_rows, %d, from_grad, %d, %s);\n",
                                      update_count(g->step), loss_metric(g), update_rule(g)),
                         arena_printf(w->arena, "r->there, %s", from_grad ? "true" : "false"),
                         pieces(w));
}

/* Sums, unless they are there, the norm of all, the update: scratch holds the sums where nobody else wants them, and the parts of
 * the norm behind them (pass plan leaves the room). */
static void clipped(Writer *w, bool from_grad)
{
    Arena *a = w->arena;
    const Graph *g = w->g;
    const int rows = update_count(g->step);

    text_printf(&w->body,
                "    char *const grad = r->grad ? r->grad : t;\n"
                "    double *const parts = (double *)(t + %lld);\n\n",
                (long long)g->step->grad_bytes);
    if (!from_grad)
        text_printf(&w->body, "    %s\n    if (r->grad)\n        return;\n",
                    kernel_launch(w, "update_sums", "const Rt *r, char *grad",
                                  arena_printf(a, "    update_sums(r, update_rows, %d, grad);\n",
                                               rows),
                                  "r->there, grad", pieces(w)));
    text_printf(
        &w->body, "    %s\n",
        kernel_launch(w, "update_squares", "double *parts, const char *grad",
                      arena_printf(a, "    update_squares(parts, grad, update_rows, %d, %s);\n",
                                   rows, pieces(w)),
                      "parts, grad", "CLIP_PARTS"));
    text_printf(&w->body, "    %s\n}\n\n",
                kernel_launch(w, "update_clipped",
                              "const Rt *r, const char *grad, const double *parts",
                              arena_printf(a,
                                           "    update_clipped(r, update_rows, %d, grad, parts, "
                                           "%.17g, %d, %s);\n",
                                           rows, g->recipe.clip_norm, loss_metric(g),
                                           update_rule(g)),
                              "r->there, grad, parts", pieces(w)));
}

static void update(Writer *w, const char *fn, bool from_grad)
{
    const Graph *g = w->g;

    open_phase(w, "void", fn,
               from_grad ? "The update from reduced gradients: groups."
                         : "Sums over shards in the fixed tree and the update of all parameters; "
                           "none when the loss is not finite.",
               false);
    for (int i = 0; !from_grad && i < g->step->nsum; i++)
        if (!g->step->sum[i].param && g->step->sum[i].update)
            record(w, &g->step->sum[i], loss_metric(g));
    if (g->recipe.clip_norm > 0)
        clipped(w, from_grad);
    else
        text_printf(&w->body, "    %s\n}\n\n", update_launch(w, from_grad));
}

/* ------------------------------------------------------------------------------- the whole */

static void row(Text *t, const char *fn, PhaseKind kind, const char *what)
{
    text_printf(t,
                "    {.run = %s, .per_slice = %s, .count = %d, .from_grad = %s, .what = "
                "\"%s\"%s},\n",
                fn, kind == PHASE_SLICE ? "true" : "false", kind != PHASE_SLICE,
                kind == PHASE_UPDATE ? "true" : "false", what,
                kind == PHASE_GRADIENT ? ", .to_grad = true" : "");
}

/* All sums and all updates are one launch, so a program has one bucket. */
static void one_bucket(Writer *w)
{
    for (int i = 0; i < 2; i++)
        text_add(&w->units[i][0], "1");
}

static void graph_phases(Writer *w, const Graph *g, Text *table)
{
    static const char *const kind[] = {"prepare", "slice", "gradient", "update"};
    const char *const word = g->training ? "train" : "test";
    int seen[4] = {0};

    w->g = g, w->prefix = g->training ? "" : "TEST_";
    for (int i = 0; i < g->step->nphase; i++) {
        const Phase *p = &g->step->phase[i];
        const int number = ++seen[p->kind];
        const char *fn =
            arena_printf(w->arena, number > 1 ? "%s_%s_%d" : "%s_%s", word, kind[p->kind], number);
        switch (p->kind) {
        case PHASE_PREPARE:
            prepare(w, p, fn);
            row(table, fn, p->kind, "what depends on parameters only");
            break;
        case PHASE_SLICE:
            slice(w, i, fn);
            if (g->training)
                nonfinite(w, i);
            row(table, fn, p->kind,
                g->training ? "forward and backward of a shard" : "forward of a shard");
            break;
        case PHASE_GRADIENT:
        case PHASE_UPDATE:
            update(w, fn, p->kind == PHASE_UPDATE);
            row(table, fn, p->kind, p->kind == PHASE_UPDATE ? "update" : "sum gradients, update");
            break;
        }
    }
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

/* Its sizes, how many blocks they take, the kernel: sizes once, however often they are used. */
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
    text_printf(t, "constexpr int %s_blocks = %s;\nKERNEL %s(%s)\n{\n%s}\n\n", k->name,
                with_size(a, k->blocks, literal, k->name), k->name, k->params,
                with_size(a, k->body, literal, k->name));
}

void emit_cuda(const EmitInput *in, Text *out)
{
    EmitInput whole = *in; /* generate looks at whole windows */
    Writer w;

    whole.token = NULL;
    program_begin(&w, &whole, out->arena);
    one_bucket(&w);
    graph_phases(&w, in->train, &w.train);
    Text rows = text_new(out->arena);
    w.g = in->train, w.prefix = "";
    update_rows(&w, &rows);
    program_offsets(&w, true);
    graph_phases(&w, in->test, &w.test);
    program_offsets(&w, false);

    head(&w, out);
    text_add(out, w.offsets.s);
    text_add(out, rows.s);
    text_add(out, "/* ---- kernels: sizes are literals, so nvcc specialises each ---- */\n\n");
    for (int i = 0; i < w.nkernel; i++)
        kernel(&w, out, &w.kernel[i]);
    library_tables(&w, out);
    text_printf(out,
                "/* ---- the step: launches in order; a phase begins when the one before it is "
                "done ---- */\n\n%s",
                w.body.s);
    program_end(&w, out);
}
