/* target.c -- writes the program for a GPU: the same step as for processors, with kernel launches
 * in place of calls.
 *
 * A phase is a function of the host that launches kernels one after another; a unit of a slice
 * phase is a shard, and a kernel takes all its samples.  One stream keeps the order of launches, so
 * barriers between phases need no code.  The file is C++ for nvcc and, for the tests, for any C++
 * compiler (runtime/cuda/cuda.cuh).  Tables and main are the same as for processors. */
#include "cuda/cuda.h"
#include "cuda/launch.h"
#include "cuda/lower.h"
#include "cuda/spell.h"
#include "cuda/steps.h"

static void write_head(Writer *w, Text *t, EmitHeaders *h)
{
    const Step *s = w->in->train->step;

    program_head(w, t);
    text_printf(t,
                " *   for %s; a step takes %lld launches; each library call counts as one\n "
                "*/\n",
                w->in->options->arch, (long long)w->cuda->launches);
    if (w->in->options->persistent)
        text_printf(t,
                    "#define RT_PERSISTENT /* many steps are one launch */\n"
                    "#define RT_OWNED %d /* rows of update_rows: parameters that can stay on the "
                    "chip */\n",
                    update_parameters(w, s->nsum));
    emit_include(t, h, "rt.h");
    emit_include(t, h, "cuda/kernels.cuh");
    if (w->in->options->persistent)
        emit_include(t, h, "cuda/persistent.cuh");
    library_includes(w, t, h);
    text_printf(t, "\nenum { SHARD = %lld, CHUNK = SHARD, SLICES = 1 };\n\n", (long long)s->shard);
    text_add(t, "/* Addresses in GPU memory: parameters, scratch, values of a shard, sums of a "
                "shard. */\n");
    text_add(t, w->in->options->persistent
                    ? "#define FIXED(type, at) ((type *)(fixed_of(r) + (at)))\n"
                    : "#define FIXED(type, at) ((type *)(r->fixed + (at)))\n");
    text_add(t, "#define LOCAL(type, at) ((type *)(t + (at)))\n"
                "#define BATCH(type, at, bytes) ((type *)(shard + (at)))\n"
                "#define PARTIAL(type, at, bytes) ((type *)(shard + (at)))\n\n");
}

/* Adds a line between two calls to the list of calls. */
static void add_line(Writer *w, const char *text)
{
    if (w->cuda->list)
        cuda_line(w, text);
    else
        text_add(&w->body, text);
}

/* Begins a writer without the graph for one token: on a GPU, `generate` computes whole windows. */
static void cuda_begin(Writer *w, const EmitInput *in, Arena *a)
{
    EmitInput *windows = arena_alloc(a, sizeof *windows);

    *windows = *in;
    windows->token = NULL;
    program_begin(w, &cuda_target, windows, a);
    w->cuda = arena_alloc(a, sizeof *w->cuda);
    w->put_line = add_line;
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

/* ------------------------------------------------------------------------------- phases */

static void lower_output(Writer *w)
{
    const Graph *g = w->g;
    const int64_t n = g->step->chunk, outputs = shape_count(&g->output->shape);

    cuda_call(w, "rt_output", NULL, RT_WRITES(MEMORY_OUTPUT, 0, INT64_MAX), FIRST, NUMBER(n),
              NUMBER(outputs), IN("a", g->output), EACH(n * outputs));
}

static void close_phase(Writer *w)
{
    CudaCalls *shared = launch_share(w);
    w->cuda->list = NULL;
    w->cuda->launches += launch_count(shared);
    spell_function(w, shared);
    text_add(&w->body, "}\n\n");
}

static void write_prepare(Writer *w, int phase, const char *fn)
{
    const Phase *p = &w->g->step->phase[phase];

    open_phase(w, "void", fn, "Once a step: what depends on the parameters only.", false);
    cuda_list(w, phase, w->g->training);
    for (int i = 0; i < p->nnode; i++)
        launch_node(w, p->node[i], NULL, "    ");
    close_phase(w);
}

static void write_slice(Writer *w, int phase, const char *fn)
{
    const Graph *g = w->g;

    open_phase(w, "void", fn,
               g->training ? "Forward, loss and backward of one shard."
                           : "Forward of one shard of an evaluation batch.",
               true);
    cuda_list(w, phase, g->training ? g->step->shards : 0);
    cuda_clear_sums(w, phase, true);
    phase_calls(w, &g->step->phase[phase], launch_node, NULL, false, "    ");
    cuda_metrics_here(w);
    w->cuda->list->indent = "    ";
    if (!g->training && g->output->phase == phase)
        lower_output(w);
    close_phase(w);
}

/* ------------------------------------------------------------------------------- checks */

static void clear_sums_here(Writer *w, int phase)
{
    cuda_list(w, phase, 0);
    cuda_clear_sums(w, phase, false);
    for (int i = 0; i < w->cuda->list->n; i++)
        statement_wrapped(&w->body,
                          arena_printf(w->arena, "%s;", spell_library(w, w->cuda->list->call[i])),
                          "    ");
    w->cuda->list = NULL;
}

/* Repeats the calls of a node of the forward pass, and checks its value. */
static void check_node(Writer *w, const Node *n, int *line, const char *indent)
{
    Text *t = &w->body;

    if (n->backward || !kernel_needed(n) || !spell_alone(w, n, line, indent))
        return;
    if (n->within || n->dtype != DT_REAL || !n->shape.batched)
        return;
    text_printf(t, "%sif (!%s(%s, %lld))\n%s    return %d;\n", indent,
                n->half == HALF_F16 ? "rt_cuda_finite_f16"
                : n->half           ? "rt_cuda_finite_bf16"
                                    : "rt_cuda_finite",
                pointer_to(w, n), (long long)(node_reals(n) * w->g->step->chunk), indent,
                w->nlayer);
    phase_layer_name(w, n);
}

/* Writes the function for a loss that is not finite: it runs the forward pass again, and checks
 * each value. */
static void write_nonfinite(Writer *w, int phase)
{
    Text *t = &w->body;
    const Phase *p = &w->g->step->phase[phase];
    int line = 0;

    if (!phase_goes_forward(p))
        return;
    open_phase(w, "int", arena_printf(w->arena, "nonfinite_%d", w->nforward++),
               "After a loss that is not finite: the forward pass again, up to the first value "
               "that is not.",
               true);
    clear_sums_here(w, phase);
    phase_calls(w, p, check_node, &line, true, "    ");
    text_add(t, "    return -1;\n}\n\n");
}

static void write_update(Writer *w, int phase, const char *fn, bool from_grad)
{
    open_phase(w, "void", fn,
               from_grad ? "The update from gradients that ranks have added, bucket by bucket."
                         : "Sums over shards in the fixed tree, and the update of all parameters; "
                           "no update if the loss is not finite.",
               false);
    cuda_list(w, phase, !from_grad);
    update_lower(w, from_grad);
    close_phase(w);
}

/* ------------------------------------------------------------------------------- the whole
 * program */

/* Writes a row of RtPhase; `more` has further fields. */
static void phase_row(Text *t, const char *fn, PhaseKind kind, const char *what, const char *more)
{
    text_printf(t,
                "    {.run = %s, .per_slice = %s, .count = %d, .from_grad = %s, .what = "
                "\"%s\"%s%s},\n",
                fn, kind == PHASE_SLICE ? "true" : "false", kind != PHASE_SLICE,
                kind == PHASE_UPDATE ? "true" : "false", what,
                kind == PHASE_GRADIENT ? ", .to_grad = true" : "", more);
}

/* Adds one unit for the sums of a bucket, and one for its update: each is one launch. */
static void bucket_units(Writer *w, const Step *s)
{
    for (int i = 0; i < 2; i++)
        for (int b = 0; b < s->nbucket; b++)
            text_add(&w->units[i][b], "1");
}

static void write_known(Writer *w, const Node *n, int *line, const char *indent)
{
    spell_alone(w, n, line, indent);
}

static void graph_phases(Writer *w, const Graph *g, Text *table)
{
    static const char *const what[] = {"what depends on parameters only",
                                       "forward and backward of a shard", "sum gradients, update",
                                       "update"};
    const char *const word = g->training ? "train" : "test";
    int seen[4] = {0};

    w->g = g, w->prefix = g->training ? "" : "TEST_";
    for (int i = 0; i < g->step->nphase; i++) {
        const PhaseKind k = g->step->phase[i].kind; /* not PHASE_WIDE: only for processors */
        const int number = ++seen[k];
        const char *fn = number > 1
                             ? arena_printf(w->arena, "%s_%s_%d", word, phase_kinds[k], number)
                             : arena_printf(w->arena, "%s_%s", word, phase_kinds[k]);
        const char *known = "";
        if (k == PHASE_PREPARE) {
            write_prepare(w, i, fn);
        } else if (k == PHASE_SLICE) {
            write_slice(w, i, fn);
            if (g->training)
                write_nonfinite(w, i);
            known = phase_known_fields(w, i, word, number, write_known);
        } else {
            write_update(w, i, fn, k == PHASE_UPDATE);
        }
        phase_row(table, fn, k, k == PHASE_SLICE && !g->training ? "forward of a shard" : what[k],
                  known);
    }
}

/* Writes the training step, and the table of parameters for its update. */
static void write_training(Writer *w, const EmitInput *in, Text *rows)
{
    bucket_units(w, in->train->step);
    graph_phases(w, in->train, &w->train);
    w->g = in->train, w->prefix = "";
    update_rows(w, rows, false);
    if (in->options->persistent)
        steps_write(w);
    else
        steps_of_graph(w);
    if (w->cuda->nowned > 0 && w->cuda->nowned < update_parameters(w, in->train->step->nsum))
        update_rows(w, rows, true);
    program_offsets(w, true);
}

/* Writes all parts of the file but its head; returns the table of parameters. */
static Text write_parts(Writer *w, const EmitInput *in, Arena *a)
{
    Text rows = text_new(a);
    cuda_begin(w, in, a);
    w->cuda->steps = text_new(a);
    if (in->train->training)
        write_training(w, in, &rows);
    graph_phases(w, in->test, &w->test);
    program_offsets(w, !in->train->training);
    w->workspace = library_workspace(w);
    return rows;
}

static EmitUnit write_whole(const EmitInput *in, Arena *a)
{
    EmitUnit u = {.name = in->train->name, .cuda = true};
    Text text = text_new(a), *const out = &text;
    Writer w;

    const Text rows = write_parts(&w, in, a);
    write_head(&w, out, &u.headers);
    text_add(out, w.offsets.s);
    text_add(out, rows.s);
    text_add(out, "/* ---- kernels: sizes are literals, so nvcc specialises each ---- */\n\n");
    spell_kernels(&w, out);
    library_tables(&w, out);
    text_printf(out,
                "/* ---- the step: launches in order; a phase begins when the previous one is "
                "complete ---- */\n\n%s",
                w.body.s);
    text_add(out, w.cuda->steps.s);
    program_end(&w, out);
    u.text = text.s, u.products = w.cuda->products.n > 0;
    return u;
}

static void write_calls(const EmitInput *in, Text *out)
{
    Writer w;

    write_parts(&w, in, out->arena);
    for (int i = 0; i < w.cuda->nfunction; i++)
        calls_dump(w.cuda->function[i]->graph, w.cuda->function[i], out);
}

/* ------------------------------------------------------------------------ counts and prices */

EmitStep emit_step(Arena *a, const EmitInput *in)
{
    Writer w;
    EmitStep e = {0};

    cuda_begin(&w, in, a);
    graph_phases(&w, in->train, &w.train);
    if (in->options->persistent)
        steps_count(&w, &e);
    else
        price_launches(&w, &e);
    e.workspace = library_workspace(&w);
    return e;
}

static bool able(const EmitInput *in, Diag *d)
{
    return cuda_able(in->train, in->test, in->options, d) &&
           (!in->options->persistent || steps_able(in, d));
}

/* ------------------------------------------------------------------------------- texts of emit/ */

/* The layer of n, or of its first input: "conv1" for a tanh after conv1. */
static const char *layer_of(Arena *a, const Node *n)
{
    const char *layer = node_serves(a, n);
    while (!*layer && n->nin > 0)
        n = n->in[0], layer = node_serves(a, n);
    return layer;
}

/* "conv2d conv1: "; one launch runs several calls, so each is named. */
static const char *call_title(Arena *a, const Node *n)
{
    const char *layer = layer_of(a, n);
    return arena_printf(a, "%s%s%s: ", n->op->name, *layer ? " " : "", layer);
}

static const char *call_cost(const Writer *w, const Node *n, double flops)
{
    (void)n;
    return flops < 1e3 ? ""
                       : arena_printf(w->arena, "%s a sample", emit_flop_text(w->arena, flops));
}

static void machine_fields(const EmitInput *in, Text *t)
{
    text_printf(t, ".target = \"cuda\", .cpu = \"%s\", .isa = RT_ISA_ANY, ", in->options->arch);
}

static void device_fields(const Writer *w, Text *t)
{
    text_add(t, " .device = &rt_cuda,");
    steps_fields(w, t);
    library_fields(w, t);
}

const EmitTarget cuda_target = {.suffix = "cu",
                                .able = able,
                                .whole = write_whole,
                                .calls = write_calls,
                                .title = call_title,
                                .cost = call_cost,
                                .machine_fields = machine_fields,
                                .device_fields = device_fields};
