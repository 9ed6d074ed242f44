/* target_c.c -- the generated C program as a whole: constants, kernels, phases, tables.
 *
 * The file is written in parts that grow side by side: kernels are found while phases are written.
 */
#include "emit/cuda_library.h"

/* ------------------------------------------------------------------------------- constants */

static void constant(Writer *w, Text *t, const Node *n, const char *unit)
{
    text_printf(t, "    %-28s = %10lld,   /* %s%s */\n", name_of(w, n), (long long)n->offset,
                shape_text(w->arena, &n->shape), unit);
}

static void fixed_constants(Writer *w, Text *t)
{
    const Graph *g = w->g;

    text_add(t, "enum { /* offsets into `fixed`: parameters and optimizer states */\n");
    for (int i = 0; i < g->nparam; i++) {
        const Param *p = g->param[i];
        text_printf(t, "    %-28s = %10lld,   /* %s */\n", name_of_param(w, p),
                    (long long)p->offset, shape_text(w->arena, &p->file));
        for (int k = 0; k < 2; k++)
            if (p->offset_state[k] >= 0)
                text_printf(t, "    %-28s = %10lld,\n", name_of_state(w, p, k),
                            (long long)p->offset_state[k]);
    }
    text_add(t, "};\n\n");
}

/* The three graphs of a program, in the order of writer_graph(). */
static const struct {
    const char *word, *prefix, *head, *work;
} kinds[] = {{"train", "", "", "Forward, loss and backward of one slice"},
             {"test", "TEST_", "evaluation: ", "Forward of one slice of an evaluation batch"},
             {"token", "TOKEN_",
              "a token at a time: ", "Forward of one token, with the states that earlier tokens left"}};

static void region_constants(Writer *w, Text *t, Place a, Place b, const char *about)
{
    const Graph *g = w->g;
    bool any = false;

    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!(n->place == a || n->place == b) || node_root(n) != n || node_is(n, "param") ||
            !w->of_node[writer_graph(w)][n->id])
            continue;
        if (!any)
            text_printf(t, "enum { /* %s%s */\n", kinds[writer_graph(w)].head, about);
        any = true;
        constant(w, t, n,
                 n->place == PLACE_PARTIAL ? ", one a slice"
                 : n->place == PLACE_BATCH ? ", of all samples of a shard"
                 : n->op->flags & OP_KNOWN ? ", one a shard of the batch"
                                           : "");
    }
    if (any)
        text_add(t, "};\n\n");
}

static bool has_known(const Graph *g)
{
    int n = 0;
    for (int i = 0; i < g->step->nphase; i++)
        n += g->step->phase[i].nknown;
    return n > 0;
}

static void constants(Writer *w, Text *t)
{
    region_constants(w, t, PLACE_FIXED, PLACE_FIXED,
                     has_known(w->g) ? "offsets into `fixed`: computed in each step, from parameters "
                                       "or from all shards"
                                     : "offsets into `fixed`: computed from parameters in each step");
    region_constants(w, t, PLACE_BATCH, PLACE_PARTIAL,
                     "offsets into the region of a shard: values that a later phase reads");
    region_constants(w, t, PLACE_LOCAL, PLACE_LOCAL,
                     "offsets into the region of a thread: values of one chunk");
    if (w->g->step->scratch_at)
        text_printf(t, "enum { %sSCRATCH = %lld };   /* temporary memory of kernels */\n\n",
                    w->prefix, (long long)w->g->step->scratch_at);
}

/* ------------------------------------------------------------------------------- the file */

static const char *counted(Arena *a, int64_t n, const char *thing)
{
    return arena_printf(a, "%lld %s%s", (long long)n, thing, n == 1 ? "" : "s");
}

/* The first comment but for its end: what the program is, and what it needs. */
void program_head(Writer *w, const char *suffix, Text *t)
{
    const Graph *g = w->in->train;
    const Step *s = g->step;
    Arena *a = w->arena;

    text_printf(t, "/* %s%s -- made by tenon from %s; change the model, not this file.\n *\n",
                g->name, suffix, quote_c_comment(a, w->in->source_name));
    int64_t n = 0;
    for (int i = 0; i < g->nparam; i++)
        n += g->param[i]->average ? 0 : shape_count(&g->param[i]->file);
    text_printf(t, " *   %s parameter%s, %s a sample forward and backward (textbook count)\n",
                text_commas(a, n), n == 1 ? "" : "s", emit_flop_text(a, emit_flops(g)));
    text_printf(t, " *   batch %lld = %s of %s", (long long)s->batch,
                counted(a, s->shards, "shard"), counted(a, s->shard, "sample"));
    if (!w->in->options->cuda)
        text_printf(t, "; a shard = %s of %lld, a slice = %s of %lld",
                    counted(a, s->slices, "slice"), (long long)s->slice,
                    counted(a, s->slice / s->chunk, "chunk"), (long long)s->chunk);
    text_printf(t, "\n *   memory: parameters %s, optimizer states %s, packed weights %s,\n",
                text_bytes(a, s->parameter_bytes), text_bytes(a, s->state_bytes),
                text_bytes(a, s->fixed_bytes - s->parameter_bytes - s->state_bytes));
    text_printf(t, " *           %s a shard (no plan below %s), %s %s (no plan below %s)%s%s\n",
                text_bytes(a, s->shard_bytes), text_bytes(a, s->bound_shard),
                text_bytes(a, s->thread_bytes), w->in->options->cuda ? "scratch" : "a thread",
                text_bytes(a, s->bound_thread),
                library_workspace(w)
                    ? arena_printf(a, ", workspace %s", text_bytes(a, library_workspace(w)))
                    : "",
                w->samples_bytes ? arena_printf(a, ",\n *           samples of two steps %s",
                                                text_bytes(a, 2 * w->samples_bytes))
                                 : "");
}

static void write_head(Writer *w, const char *includes, Text *t)
{
    const Step *s = w->in->train->step;

    program_head(w, ".c", t);
    text_printf(t, " */\n#include \"rt.h\"\n%s\n", includes);
    text_printf(t, "enum { CHUNK = %lld, SLICE = %lld, SLICES = %lld, SHARD = %lld };\n\n",
                (long long)s->chunk, (long long)s->slice, (long long)s->slices,
                (long long)s->shard);
    text_add(t, "#define KERNEL __attribute__((noinline))               /* compiled once "
                "for all calls */\n"
                "#define FIXED(type, at) ((type *)(r->fixed + (at)))\n"
                "#define LOCAL(type, at) ((type *)(t + (at)))\n"
                "#define BATCH(type, at, bytes) ((type *)(shard + (at) + (int64_t)row * (bytes)))\n"
                "#define PARTIAL(type, at, bytes) ((type *)(shard + (at) + (int64_t)slice * "
                "(bytes)))\n\n");
}

/* more: other fields. */
static void phase_row(Text *t, const char *fn, PhaseKind kind, const char *count, const char *what,
                const char *more)
{
    text_printf(t,
                "    {.run = %s, .per_slice = %s, .count = %s, .from_grad = %s, .what = "
                "\"%s\"%s},\n",
                fn, kind == PHASE_SLICE ? "true" : "false", count,
                kind == PHASE_UPDATE ? "true" : "false", what, more);
}

/* "After this phase ranks can add bucket 1, 2." */
static const char *completes(Arena *a, const Step *s, int phase)
{
    Text t = text_new(a);
    for (int b = 0; b < s->nbucket && s->nbucket > 1; b++)
        if (s->bucket[b].ready == phase)
            text_printf(&t, "%s%d",
                        t.len ? ", " : "\n * After this phase ranks can add bucket ", b);
    text_add(&t, t.len ? "." : "");
    return t.s;
}

static int count_slices(const Step *s)
{
    int n = 0;
    for (int i = 0; i < s->nphase; i++)
        n += s->phase[i].kind == PHASE_SLICE;
    return n;
}

/* A phase of the slices; numbered where there are several. */
static void slice_phase(Writer *w, const Graph *g, int phase, int number, Text *table)
{
    const char *const word = kinds[writer_graph(w)].word, *const work = kinds[writer_graph(w)].work;
    const int of = count_slices(g->step);
    Arena *a = w->arena;
    const char *fn =
        of > 1 ? arena_printf(a, "%s_slice_%d", word, number) : arena_printf(a, "%s_slice", word);
    const char *about =
        of > 1 ? arena_printf(a, "%s, a chunk at a time: part %d of %d.", work, number, of)
               : arena_printf(a, "%s%s.", work, g->training ? ", a chunk at a time" : "");
    const char *buckets = g->training ? completes(a, g->step, phase) : "";

    phase_slice(w, phase, fn, arena_printf(a, "%s%s", about, buckets));
    const char *known = phase_known_fields(w, phase, word, number);
    if (g->training)
        phase_nonfinite(w, phase);
    phase_row(table, fn, PHASE_SLICE, "0",
        g->training ? "forward and backward of a slice"
        : g->token  ? "forward of a token"
                    : "forward of a slice",
        known);
}

static void write_phases(Writer *w, const Graph *g, Text *table)
{
    Text units = text_new(w->arena), update = text_new(w->arena);
    int slices = 0, prepares = 0, wides = 0;

    w->g = g, w->prefix = kinds[writer_graph(w)].prefix;
    const char *const word = kinds[writer_graph(w)].word;
    for (int i = 0; i < g->step->nphase; i++) {
        const Phase *p = &g->step->phase[i];
        const char *fn = arena_printf(w->arena, "%s_%s", word,
                                      p->kind == PHASE_PREPARE    ? "prepare"
                                      : p->kind == PHASE_GRADIENT ? "gradient"
                                                                  : "update");
        switch (p->kind) {
        case PHASE_PREPARE:
            fn = ++prepares > 1 ? arena_printf(w->arena, "%s_%d", fn, prepares) : fn;
            phase_prepare(w, p, fn);
            phase_row(table, fn, p->kind, PREPARE_UNITS_TEXT, "pack weights", "");
            break;
        case PHASE_SLICE:
            slice_phase(w, g, i, ++slices, table);
            break;
        case PHASE_WIDE:
            fn = arena_printf(w->arena, "%s_wide_%d", word, ++wides);
            phase_row(table, fn, p->kind, phase_wide(w, p, fn), "a dense layer for all samples", "");
            break;
        case PHASE_GRADIENT:
            ranges_write(w, fn,
                         "Sums over slices and shards in the fixed tree, and the update unless "
                         "a reduction comes between.",
                         false, &units);
            phase_row(table, fn, p->kind, units.s, "sum gradients, update", ", .to_grad = true");
            break;
        case PHASE_UPDATE:
            ranges_write(w, fn,
                         "The update from reduced gradients: for ranks, groups and clipping by norm.",
                         true, &update);
            phase_row(table, fn, p->kind, update.s, "update", "");
            break;
        }
    }
}

/* ------------------------------------------------------------------------------- the whole */

void program_begin(Writer *w, const EmitInput *in, Arena *a)
{
    *w = (Writer){.arena = a, .in = in, .g = in->train, .prefix = ""};
    w->body = text_new(a), w->calls = text_new(a), w->layers = text_new(a),
    w->offsets = text_new(a), w->ranges = text_new(a);
    w->train = text_new(a), w->test = text_new(a), w->token = text_new(a);
    w->of_node[0] = arena_alloc(a, sizeof(char *) * (size_t)(in->train->next_id + 1));
    w->of_node[1] = arena_alloc(a, sizeof(char *) * (size_t)(in->test->next_id + 1));
    for (int i = 0; i < 2; i++) {
        w->units[i] = arena_alloc(a, sizeof(Text) * (size_t)(in->train->step->nbucket + 1));
        for (int b = 0; b < in->train->step->nbucket; b++)
            w->units[i][b] = text_new(a);
    }
    w->of_node[2] =
        in->token ? arena_alloc(a, sizeof(char *) * (size_t)(in->token->next_id + 1)) : NULL;
    name_params(w, in->train);
}

void program_offsets(Writer *w, bool parameters)
{
    if (parameters)
        fixed_constants(w, &w->offsets);
    constants(w, &w->offsets);
}

void program_open(Writer *w, const EmitInput *in, Arena *a)
{
    program_begin(w, in, a);
    write_phases(w, in->train, &w->train);
    program_offsets(w, true);
    write_phases(w, in->test, &w->test);
    program_offsets(w, false);
    if (!in->token)
        return;
    write_phases(w, in->token, &w->token);
    program_offsets(w, false);
}

/* The tables behind the phases. */
void program_end(Writer *w, Text *out)
{
    text_printf(out,
                "static const RtPhase train[] = {\n%s};\n\nstatic const RtPhase test[] = "
                "{\n%s};\n\n",
                w->train.s, w->test.s);
    if (w->in->token)
        text_printf(out, "static const RtPhase token[] = {\n%s};\n\n", w->token.s);
    text_printf(out, "static const char *const layers[] = {\n%s};\n\n", w->layers.s);
    text_add(out, "static int (*const nonfinite[])(const Rt *r, char *t, int unit) = {");
    for (int i = 0; i < w->nforward; i++)
        text_printf(out, "%snonfinite_%d", i ? ", " : "", i);
    text_add(out, "};\n\n");
    if (!w->in->options->cuda)
        text_printf(out, "static const RtCall calls[] = {\n%s};\n\n", w->calls.s);
    tables_write(w, out);
}

void program_text(Writer *w, const char *includes, const char *kernels, Text *out)
{
    write_head(w, includes, out);
    text_add(out, w->offsets.s);
    text_add(out, kernels);
    text_printf(out, "/* ---- the step: phases with a barrier between two ---- */\n\n%s",
                w->body.s);
    program_end(w, out);
}

void emit_c(const EmitInput *in, Text *out)
{
    Writer w;
    Text kernels = text_new(out->arena);

    program_open(&w, in, out->arena);
    text_add(&kernels,
             "/* ---- kernels: sizes are literals, so the C compiler specialises each ---- "
             "*/\n\n");
    for (int i = 0; i < w.nkernel; i++)
        text_printf(&kernels, "static KERNEL void %s(%s)\n{\n%s}\n\n", w.kernel[i].name,
                    w.kernel[i].params, w.kernel[i].body);
    program_text(&w, "", kernels.s, out);
}
