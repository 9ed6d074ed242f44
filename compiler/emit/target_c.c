/* target_c.c -- the generated C program: constants, kernels, phases, tables.
 *
 * The file is written in parts that grow side by side: kernels are found while phases are written.  It is meant to be
 * read: every call stands under the model's line that it comes from, with shapes and price.
 */
#include "emit/writer.h"
#include <string.h>

/* ------------------------------------------------------------------------------- comments */

/* What flows in: the first input with a value a sample. */
static const Node *source_of(const Node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]->shape.batched && n->in[i]->dtype == DT_REAL && !node_is(n->in[i], "const"))
            return n->in[i];
    return NULL;
}

/* "(N, 1, 28, 28) -> (N, 20, 12, 12), 576.0 kFLOP a sample"; the name of the sum where samples are added up. */
static void price(Writer *w, Text *t, const Node *n)
{
    const double f = n->op->cost ? n->op->cost(n).flops : 0;
    const Node *from = source_of(n);

    if (n->place == PLACE_PARTIAL && n->name)
        text_printf(t, "%s: ", n->name);
    if (from)
        text_printf(t, "%s -> ", shape_text(w->arena, &from->shape));
    text_add(t, shape_text(w->arena, &n->shape));
    if (f >= 1e6)
        text_printf(t, ", %.2f MFLOP a sample", f * 1e-6);
    else if (f >= 1e3)
        text_printf(t, ", %.1f kFLOP a sample", f * 1e-3);
}

/* The model's line, once before the calls that come from it. */
static void origin(Writer *w, Text *t, const Node *n, int *line, const char *indent)
{
    if (!n->span.source || n->span.line == *line)
        return;
    const char *text = source_line(w->arena, n->span.source, n->span.line);
    while (*text == ' ' || *text == '\t')
        text++;
    Text safe = text_new(w->arena);
    for (; *text; text++)
        if (!strncmp(text, "*/", 2))
            text_add(&safe, "* /"), text++;
        else
            text_addn(&safe, text, 1);
    *line = n->span.line;
    const char *base = strrchr(n->span.source->name, '/');
    text_printf(t, "\n%s/* %s%s:%d  %s */\n", indent, n->backward ? "backward of " : "", base ? base + 1 : n->span.source->name,
                n->span.line, safe.s);
}

/* One call, broken after its own commas where a line would pass 100 columns. */
static void wrapped(Text *t, const char *s, const char *indent)
{
    const size_t lead = strlen(indent);
    size_t column = lead;
    int depth = 0;

    text_add(t, indent);
    for (const char *p = s; *s; p++) {
        depth += (*p == '(') - (*p == ')');
        if (*p && !(*p == ',' && depth == 1))
            continue;
        const size_t piece = (size_t)(p - s) + (*p != 0);
        const bool fresh = column + piece > 100 && column > lead;
        if (fresh)
            text_printf(t, "\n%s    ", indent);
        text_addn(t, s + fresh, piece - fresh);
        column = (fresh ? lead + 3 : column) + piece;
        s += piece;
        if (!*p)
            break;
    }
    text_add(t, "\n");
}

static void statement(Writer *w, Text *t, const Node *n, int *line, const char *indent)
{
    const char *s = kernel_needed(n) ? kernel_statement(w, n) : "";
    Text p = text_new(w->arena);

    if (!*s)
        return;
    origin(w, t, n, line, indent);
    price(w, &p, n);
    text_printf(t, "%s/* %s */\n", indent, p.s);
    wrapped(t, s, indent);
}

/* ------------------------------------------------------------------------------- phases */

static void prepare(Writer *w, const Phase *p, const char *fn)
{
    Text *t = &w->body;
    int line = 0;

    text_printf(t, "/* Once a step: what depends on the parameters only. */\nstatic void %s(const Rt *r, char *t, int unit)\n{\n    (void)t;\n", fn);
    for (int split = 1; split >= 0; split--)
        for (int i = 0; i < p->nnode; i++) {
            if (node_is(p->node[i], "conv2d_pack") != (split == 1))
                continue;
            if (!split && kernel_needed(p->node[i]))
                text_add(t, "    if (unit == 0)\n");
            statement(w, t, p->node[i], &line, split ? "    " : "        ");
        }
    text_add(t, "}\n\n");
}

static void zero_partials(Writer *w, Text *t)
{
    const Step *s = w->g->step;

    for (int i = 0; i < s->nbuffer; i++) {
        const Buffer *b = &s->buffer[i];
        if (b->place == PLACE_PARTIAL)
            text_printf(t, "    memset(%s, 0, %lld);\n", pointer_to(w, b->node), (long long)(b->bytes / s->slices));
    }
}

static void open_slice(Writer *w, const char *type, const char *fn, const char *about)
{
    Text *t = &w->body;

    text_printf(t, "/* %s */\nstatic %s %s(const Rt *r, char *t, int unit)\n{\n", about, type, fn);
    text_add(t, "    const int slice = unit % SLICES;\n    char *const shard = r->shard + unit / SLICES * r->shard_bytes;\n\n    (void)shard;\n");
}

static void open_chunks(Text *t)
{
    text_add(t, "    for (int row = slice * SLICE; row < (slice + 1) * SLICE; row += CHUNK) {\n"
                "        const int first = (r->first_shard + unit / SLICES) * SHARD + row;\n");
}

static void slice(Writer *w, const Phase *p, const char *fn)
{
    Text *t = &w->body;
    const Graph *g = w->g;
    int line = 0;

    open_slice(w, "void", fn, g->training ? "Forward, loss and backward of one slice, a chunk at a time." : "Forward of one slice of an evaluation batch.");
    zero_partials(w, t);
    open_chunks(t);
    for (int i = 0; i < p->nnode; i++)
        statement(w, t, p->node[i], &line, "        ");
    text_add(t, "\n");
    for (int i = 0; i < g->nmetric; i++)
        text_printf(t, "        rt_metric(r, unit, %d, first, CHUNK, %s); /* %s */\n", i, pointer_to(w, g->metric[i].node), g->metric[i].name);
    if (!g->training)
        text_printf(t, "        rt_output(r, first, CHUNK, %lld, %s);\n", (long long)shape_count(&g->output->shape), pointer_to(w, g->output));
    text_add(t, "    }\n}\n\n");
}

static const char *state(Writer *w, const Param *p, int k)
{
    return p->offset_state[k] < 0 ? "NULL" : arena_printf(w->arena, "FIXED(real, %s_STATE%d)", name_upper(w->arena, p->name), k);
}

static const char *update_name(const Graph *g)
{
    static const char *const name[] = {"update_sgd", "update_rmsprop", "update_adam", "update_adamw"};
    return name[g->recipe.optimizer.kind];
}

/* Units of a range kernel: 4096 reals each, at most 64. */
static int64_t range_units(int64_t count)
{
    const int64_t u = (count + 4095) / 4096;
    return u < 1 ? 1 : u > 64 ? 64 : u;
}

static const char *dense_size(Writer *w, const Param *p)
{
    return arena_printf(w->arena, "%lld, %lld", (long long)p->file.dim[1], (long long)p->file.dim[0]);
}

static const char *shard_pointer(Writer *w, const Node *n)
{
    return arena_printf(w->arena, "r->shard + %s", name_of(w, pointer_root(n)));
}

static const char *weights(Writer *w, const Param *p)
{
    return p ? arena_printf(w->arena, "FIXED(real, %s), %s, %s", name_upper(w->arena, p->name), state(w, p, 0), state(w, p, 1))
             : "NULL, NULL, NULL";
}

/* One sum: its units, as a C constant expression, and its statement. */
static const char *sum_units(Writer *w, const Sum *s)
{
    return s->panels ? arena_printf(w->arena, "DENSE_UNITS(%s)", dense_size(w, s->param))
                     : arena_printf(w->arena, "%lld", (long long)range_units(s->count));
}

#define RANGE_PARAMS "const Rt *r, int unit, int units, int64_t grad, real *w, real *s0, real *s1, int64_t count"

static const char *decay(const Sum *s)
{
    return s->param && s->param->decay ? "true" : "false";
}

static void sum_call(Writer *w, const Sum *s, const char *units)
{
    Text *t = &w->body;
    const Step *st = w->g->step;

    if (s->panels) {
        const Node *x = s->root->in[0], *dy = s->root->in[1];
        const char *fn = kernel_define(w, "dense_dw_update", "const Rt *r, int unit, int64_t grad, real *w, real *s0, real *s1, const char *x, const char *dy",
            arena_printf(w->arena, "    dense_dw_update(r, unit, grad, w, s0, s1, x, dy, SHARD, %s, (Dense){ .n = SHARD, .k = %lld, .o = %lld });\n", update_name(w->g),
                         (long long)s->param->file.dim[1], (long long)s->param->file.dim[0]));
        wrapped(t, arena_printf(w->arena, "%s(r, unit, %lld, %s, %s, %s);", fn, (long long)s->offset, weights(w, s->param),
                                shard_pointer(w, x), shard_pointer(w, dy)), "        ");
        return;
    }
    int64_t bytes = 0;
    for (int i = 0; i < st->nbuffer; i++)
        if (st->buffer[i].node == s->root)
            bytes = st->buffer[i].bytes / st->slices;
    const char *fn = kernel_define(w, "reduce_update", RANGE_PARAMS ", const char *sums, int64_t slice_bytes",
        arena_printf(w->arena, "    reduce_update(r, unit, units, grad, w, s0, s1, sums, slice_bytes, SLICES, count, %s, %s);\n", decay(s), update_name(w->g)));
    wrapped(t, arena_printf(w->arena, "%s(r, unit, %s, %lld, %s, %lld, %s, %lld);", fn, units, (long long)s->offset, weights(w, s->param),
                            (long long)s->count, shard_pointer(w, s->root), (long long)bytes), "        ");
}

static void update_call(Writer *w, const Sum *s, const char *units)
{
    const char *fn = kernel_define(w, "grad_update", RANGE_PARAMS,
        arena_printf(w->arena, "    grad_update(r, unit, units, grad, w, s0, s1, count, %s, %s);\n", decay(s), update_name(w->g)));
    wrapped(&w->body, arena_printf(w->arena, "%s(r, unit, %s, %lld, %s, %lld);", fn, units, (long long)s->offset, weights(w, s->param),
                                   (long long)s->count), "        ");
}

static const char *sum_name(const Sum *s)
{
    return s->param ? s->param->name : s->root->op->name;
}

/* Runs `each` of the sums as consecutive ranges of units; *total gets the sum of units as a C expression. */
static void ranges(Writer *w, const char *fn, const char *about, bool from_grad, Text *total)
{
    Text *t = &w->body;
    const Step *s = w->g->step;

    text_printf(t, "/* %s */\nstatic void %s(const Rt *r, char *t, int unit)\n{\n    (void)t;\n", about, fn);
    for (int i = 0; i < s->nsum; i++) {
        const Sum *m = &s->sum[i];
        const char *units = from_grad ? arena_printf(w->arena, "%lld", (long long)range_units(m->count)) : sum_units(w, m);
        if (from_grad && !m->update)
            continue;
        text_printf(total, "%s%s", total->len ? " + " : "", units);
        text_printf(t, "    if (unit < %s) { /* %s */\n", units, sum_name(m));
        if (from_grad)
            update_call(w, m, units);
        else
            sum_call(w, m, units);
        text_printf(t, "        return;\n    }\n    unit -= %s;\n", units);
    }
    text_add(t, "}\n\n");
}

/* ------------------------------------------------------------------------------- the check for non-finite values */

static void nonfinite(Writer *w, const Phase *p)
{
    Text *t = &w->body, names = text_new(w->arena);
    int k = 0;

    open_slice(w, "int", "first_nonfinite", "After a loss that is not finite: the forward pass again, up to the first value that is not.");
    open_chunks(t);
    for (int i = 0; i < p->nnode; i++) {
        const Node *n = p->node[i];
        if (n->backward || !kernel_needed(n) || !n->shape.batched)
            continue;
        const char *s = kernel_statement(w, n);
        if (!*s || node_is(n, "label"))
            continue;
        text_printf(t, "        %s\n", s);
        if (n->dtype != DT_REAL)
            continue;
        const char *base = n->span.source ? strrchr(n->span.source->name, '/') : NULL;
        text_printf(t, "        if (!rt_finite(%s, CHUNK * %lld))\n            return %d;\n", pointer_to(w, n), (long long)shape_count(&n->shape), k++);
        text_printf(&names, "    \"%s (%s:%d)\",\n", n->name ? n->name : n->op->name,
                    n->span.source ? (base ? base + 1 : n->span.source->name) : "made by the compiler", n->span.line);
    }
    text_add(t, "    }\n    return -1;\n}\n\n");
    text_printf(t, "static const char *const layers[] = {\n%s};\n\n", names.s);
}

/* ------------------------------------------------------------------------------- constants */

static void constant(Writer *w, Text *t, const Node *n, const char *unit)
{
    text_printf(t, "    %-28s = %10lld,   /* %s%s */\n", name_of(w, n), (long long)n->offset, shape_text(w->arena, &n->shape), unit);
}

static void fixed_constants(Writer *w, Text *t)
{
    const Graph *g = w->g;

    text_add(t, "enum { /* offsets into `fixed`: parameters and optimizer states */\n");
    for (int i = 0; i < g->nparam; i++) {
        const Param *p = g->param[i];
        const char *name = name_upper(w->arena, p->name);
        text_printf(t, "    %-28s = %10lld,   /* %s */\n", name, (long long)p->offset, shape_text(w->arena, &p->file));
        for (int k = 0; k < 2; k++)
            if (p->offset_state[k] >= 0)
                text_printf(t, "    %-28s = %10lld,\n", arena_printf(w->arena, "%s_STATE%d", name, k), (long long)p->offset_state[k]);
    }
    text_add(t, "};\n\n");
}

static void region_constants(Writer *w, Text *t, Place a, Place b, const char *about)
{
    const Graph *g = w->g;
    bool any = false;

    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!(n->place == a || n->place == b) || pointer_root(n) != n || node_is(n, "param") || !w->of_node[g->training ? 0 : 1][n->id])
            continue;
        if (!any)
            text_printf(t, "enum { /* %s%s */\n", g->training ? "" : "evaluation: ", about);
        any = true;
        constant(w, t, n, n->place == PLACE_PARTIAL ? ", a slice" : n->place == PLACE_BATCH ? ", each of a shard's samples" : "");
    }
    if (any)
        text_add(t, "};\n\n");
}

static void constants(Writer *w, Text *t)
{
    region_constants(w, t, PLACE_FIXED, PLACE_FIXED, "offsets into `fixed`: made from parameters every step");
    region_constants(w, t, PLACE_BATCH, PLACE_PARTIAL, "offsets into a shard: what a later phase reads");
    region_constants(w, t, PLACE_LOCAL, PLACE_LOCAL, "offsets into a thread's scratch: one chunk's values");
}

/* ------------------------------------------------------------------------------- the file */

static void head(Writer *w, Text *t)
{
    const Graph *g = w->in->train;
    const Step *s = g->step;
    Arena *a = w->arena;

    text_printf(t, "/* %s.c -- made by tenon from %s; change the model, not this file.\n *\n", g->name, w->in->source_name);
    int64_t n = 0;
    for (int i = 0; i < g->nparam; i++)
        n += shape_count(&g->param[i]->file);
    text_printf(t, " *   %s parameters, %.2f MFLOP a sample forward and backward (textbook count)\n", text_commas(a, n), emit_flops(g) * 1e-6);
    text_printf(t, " *   batch %lld = %lld shards of %lld samples; a shard = %lld slices of %lld, a slice = %lld chunks of %lld\n", (long long)s->batch,
                (long long)s->shards, (long long)s->shard, (long long)s->slices, (long long)s->slice, (long long)(s->slice / s->chunk), (long long)s->chunk);
    text_printf(t, " *   memory: parameters %s, optimizer states %s, packed weights %s,\n", text_bytes(a, s->parameter_bytes), text_bytes(a, s->state_bytes),
                text_bytes(a, s->fixed_bytes - s->parameter_bytes - s->state_bytes));
    text_printf(t, " *           %s a shard (no plan below %s), %s a thread (no plan below %s)\n */\n", text_bytes(a, s->shard_bytes), text_bytes(a, s->bound_shard),
                text_bytes(a, s->thread_bytes), text_bytes(a, s->bound_thread));
    text_add(t, "#include \"rt.h\"\n\n");
    text_printf(t, "enum { CHUNK = %lld, SLICE = %lld, SLICES = %lld, SHARD = %lld };\n\n", (long long)s->chunk, (long long)s->slice, (long long)s->slices, (long long)s->shard);
    text_add(t, "#define KERNEL __attribute__((noinline))               /* a specialised kernel is compiled once */\n"
                "#define FIXED(type, at) ((type *)(r->fixed + (at)))\n"
                "#define LOCAL(type, at) ((type *)(t + (at)))\n"
                "#define BATCH(type, at, bytes) ((type *)(shard + (at) + (int64_t)row * (bytes)))\n"
                "#define PARTIAL(type, at, bytes) ((type *)(shard + (at) + (int64_t)slice * (bytes)))\n\n");
}

static void row(Text *t, const char *fn, bool per_slice, const char *count, bool from_grad, const char *what)
{
    text_printf(t, "    {.run = %s, .per_slice = %s, .count = %s, .from_grad = %s, .what = \"%s\"},\n", fn, per_slice ? "true" : "false", count,
                from_grad ? "true" : "false", what);
}

static void graph_phases(Writer *w, const Graph *g, Text *table)
{
    const char *const word = g->training ? "train" : "test";
    Text units = text_new(w->arena), update = text_new(w->arena);

    w->g = g, w->prefix = g->training ? "" : "TEST_";
    for (int i = 0; i < g->step->nphase; i++) {
        const Phase *p = &g->step->phase[i];
        const char *fn = arena_printf(w->arena, "%s_%s", word, p->kind == PHASE_PREPARE ? "prepare" : p->kind == PHASE_SLICE ? "slice" : p->kind == PHASE_GRADIENT ? "gradient" : "update");
        switch (p->kind) {
        case PHASE_PREPARE:
            prepare(w, p, fn);
            row(table, fn, false, PREPARE_UNITS_TEXT, false, "pack weights");
            break;
        case PHASE_SLICE:
            slice(w, p, fn);
            if (g->training)
                nonfinite(w, p);
            row(table, fn, true, "0", false, g->training ? "forward and backward of a slice" : "forward of a slice");
            break;
        case PHASE_GRADIENT:
            ranges(w, fn, "Sums over slices and shards in the fixed tree; the update follows inside, unless a reduction stands between.", false, &units);
            row(table, fn, false, units.s, false, "sum gradients, update");
            break;
        case PHASE_UPDATE:
            ranges(w, fn, "The update from reduced gradients: ranks, groups, clipping by norm.", true, &update);
            row(table, fn, false, update.s, true, "update");
            break;
        }
    }
}

void emit_c(const EmitInput *in, Text *out)
{
    Arena *a = out->arena;
    Writer w = {.arena = a, .in = in, .g = in->train, .prefix = ""};
    Text train = text_new(a), test = text_new(a), offsets = text_new(a);

    w.kernels = text_new(a), w.body = text_new(a);
    w.of_node[0] = arena_alloc(a, sizeof(char *) * (size_t)(in->train->next_id + 1));
    w.of_node[1] = arena_alloc(a, sizeof(char *) * (size_t)(in->test->next_id + 1));
    for (int i = 0; i < in->train->nparam; i++)
        ARENA_PUSH(a, w.name, w.nname, name_upper(a, in->train->param[i]->name));
    graph_phases(&w, in->train, &train);
    fixed_constants(&w, &offsets);
    constants(&w, &offsets);
    graph_phases(&w, in->test, &test);
    constants(&w, &offsets);

    head(&w, out);
    text_add(out, offsets.s);
    text_printf(out, "/* ---- kernels: sizes are literals, so the C compiler specialises each ---- */\n\n%s", w.kernels.s);
    text_printf(out, "/* ---- the step: phases with a barrier between two ---- */\n\n%s", w.body.s);
    text_printf(out, "static const RtPhase train[] = {\n%s};\n\nstatic const RtPhase test[] = {\n%s};\n\n", train.s, test.s);
    tables_write(&w, out);
}
