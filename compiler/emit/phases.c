/* phases.c -- the functions of a step: each a straight list of calls.
 *
 * They are meant to be read: every call stands under the model's line that it comes from, with
 * shapes and price.
 */
#include "emit/writer.h"
#include "ops/dense_price.h"
#include "ops/embedding.h"
#include "ops/scan.h"
#include "ops/step_price.h"
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

/* Share of a nominal core's peak that the textbook's operations of a step are expected to run at. */
static double expected(Writer *w, const Price *p)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    return p->textbook / (1e9 * core_peak_gflops(m.core, m.real) * market_seconds(&m, p->cycles));
}

/* "(N, 1, 28, 28) -> (N, 20, 12, 12)   direct, pooled before tanh   576.0 kFLOP a sample, 58 % of
 * peak expected", on two lines where one is too long; the name of the sum where samples are added
 * up. */
static void price(Writer *w, Text *t, const Node *n, const Price *p, const char *indent)
{
    const double f = n->op->cost ? n->op->cost(n).flops * (double)node_steps(n) : 0;
    const Node *from = source_of(n);
    const char *words = step_price_words(w->arena, n, p);
    Text how = text_new(w->arena);

    if (n->place == PLACE_PARTIAL && n->name)
        text_printf(t, "%s: ", n->name);
    if (from)
        text_printf(t, "%s -> ", shape_text(w->arena, &from->shape));
    text_add(t, shape_text(w->arena, &n->shape));
    if (f >= 1e3 && w->in->options->cuda)
        text_printf(&how, "%s a sample", emit_flop_text(w->arena, f));
    else if (f >= 1e3)
        text_printf(&how, "%s%s%s a sample, %.0f %% of peak expected", words, *words ? "   " : "",
                    emit_flop_text(w->arena, f), 100 * expected(w, p));
    else if (!w->in->options->cuda)
        text_add(&how, words);
    if (how.len && strlen(indent) + t->len + how.len > 91) /* slashes, stars and blanks: 9 */
        text_printf(t, "\n%s *", indent);
    if (how.len)
        text_printf(t, "   %s", how.s);
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
    text_printf(t, "\n%s/* %s%s:%d  %s */\n", indent, n->backward ? "backward of " : "",
                base ? base + 1 : n->span.source->name, n->span.line, safe.s);
}

/* One call, broken after its own commas where a line would pass 100 columns. */
void phase_wrapped(Text *t, const char *s, const char *indent)
{
    const size_t lead = strlen(indent);
    size_t column = lead;
    int depth = 0;

    text_add(t, indent);
    for (const char *p = s; *s; p++) {
        depth += (*p == '(' || *p == '{') - (*p == ')' || *p == '}');
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

/* The clock behind a call of the training step, and its row in the table of calls. */
static const char *tick(Writer *w, const char *what, const char *call, Span at, double flops,
                        const char *algorithm, Price p)
{
    const Market m = market_of(w->g, w->in->options, w->g->step->chunk);
    const char *base = at.source ? strrchr(at.source->name, '/') : NULL;
    const char *place =
        at.source ? arena_printf(w->arena, "%s:%d", base ? base + 1 : at.source->name, at.line)
                  : "";

    if (!w->g->training ||
        w->in->options->cuda) /* clocks of a GPU's calls would see their launches alone */
        return "";
    text_printf(&w->calls, "    {%s, \"%.*s\", %s, %.17g, \"%s\", %.4g, %.4g, %.4g},\n",
                name_c_string(w->arena, what), (int)strcspn(call, "("), call,
                name_c_string(w->arena, place), flops, algorithm,
                p.executed / (double)w->g->step->batch, 1e6 * market_seconds(&m, p.cycles),
                p.weights + p.values);
    return arena_printf(w->arena, " TICK(%d);", w->ncall++);
}

/* Textbook operations a sample: of convolutions and products, as in flops_per_sample. */
static double counted(const Node *n)
{
    return emit_counts_flops(n) ? n->op->cost(n).flops * (double)node_steps(n) : 0;
}

void phase_statement(Writer *w, Text *t, const Node *n, int *line, const char *indent)
{
    const char *s = kernel_needed(n) ? kernel_statement(w, n) : "";
    Text p = text_new(w->arena);

    if (!*s)
        return;
    const Price cost = step_price(w->g, n, w->in->options);
    origin(w, t, n, line, indent);
    price(w, &p, n, &cost, indent);
    text_printf(t, "%s/* %s */\n", indent, p.s);
    phase_wrapped(t,
                  arena_printf(w->arena, "%s%s", s,
                               tick(w, n->name ? n->name : n->op->name, s, n->span, counted(n),
                                    step_price_words(w->arena, n, &cost), cost)),
                  indent);
}

/* ------------------------------------------------------------------------------- phases */

void phase_prepare(Writer *w, const Phase *p, const char *fn)
{
    Text *t = &w->body;
    int line = 0;

    text_printf(t,
                "/* Once a step: what depends on the parameters only. */\nstatic void %s(const Rt "
                "*r, char *t, int unit)\n{\n    (void)t;\n",
                fn);
    for (int i = 0; i < p->nnode; i++)
        if (p->node[i]->op->flags & OP_PACK)
            phase_statement(w, t, p->node[i], &line, "    ");
    bool rest = false;
    for (int i = 0; i < p->nnode; i++) {
        if (p->node[i]->op->flags & OP_PACK || !kernel_needed(p->node[i]))
            continue;
        text_add(t, rest ? "" : "    if (unit == 0) {\n");
        phase_statement(w, t, p->node[i], &line, "        ");
        rest = true;
    }
    text_add(t, rest ? "    }\n" : "");
    text_add(t, "}\n\n");
}

/* The sums that begin in this phase; those of the forward pass only, where it is run alone. */
static void zero_partials(Writer *w, Text *t, int phase, bool backward)
{
    const Step *s = w->g->step;

    for (int i = 0; i < s->nbuffer; i++) {
        const Buffer *b = &s->buffer[i];
        if (b->place == PLACE_PARTIAL && b->first == phase && (backward || !b->node->backward) &&
            !step_writes_sum(w->g, b->node, w->in->options))
            text_printf(t, "    memset(%s, 0, %lld);\n", pointer_to(w, b->node),
                        (long long)(b->bytes / s->slices));
    }
    const Price p = step_price_zero(w->g, phase, w->in->options);
    if (p.cycles > 0 && w->g->training && backward)
        text_printf(t, "   %s\n", tick(w, "sums over samples", "memset", (Span){0}, 0, "", p));
}

/* A part of what a slice does may need no scratch, or not know its samples. */
static bool in_parts(const Writer *w)
{
    const Step *s = w->g->step;
    int slices = 0;
    for (int i = 0; i < s->nphase; i++)
        slices += s->phase[i].kind == PHASE_SLICE;
    return slices > 1;
}

static void open_slice(Writer *w, const char *type, const char *fn, const char *about)
{
    Text *t = &w->body;

    text_printf(t, "/* %s */\nstatic %s %s(const Rt *r, char *t, int unit)\n{\n", about, type, fn);
    if (w->g->token)
        text_add(t, "    enum { CHUNK = 1, SLICE = 1, SLICES = 1, SHARD = 1 };\n");
    text_add(t, "    const int slice = unit % SLICES;\n    char *const shard = r->shard + unit / "
                "SLICES * r->shard_bytes;\n\n    (void)shard;\n");
    if (in_parts(w))
        text_add(t, "    (void)t;\n");
}

static void open_chunks(Writer *w)
{
    Text *t = &w->body;
    text_add(t, "    for (int row = slice * SLICE; row < (slice + 1) * SLICE; row += CHUNK) {\n"
                "        const int first = (r->first_shard + unit / SLICES) * SHARD + row;\n");
    if (in_parts(w))
        text_add(t, "        (void)first;\n");
}

static void open_loop(Text *t, const Loop *l)
{
    text_printf(t,
                l->reversed ? "\n        for (int step = %lld; step >= 0; step--) {\n"
                            : "\n        for (int step = 0; step < %lld; step++) {\n",
                (long long)(l->reversed ? l->steps - 1 : l->steps));
}

static bool before_chunks(const Node *n)
{
    return n->op->flags & OP_TOTAL;
}

typedef void Each(Writer *w, const Node *n, int *line, const char *indent);

/* A stretch of the steps of a loop that runs inside of another, which goes the other way. */
static void open_stretch(Text *t, const Loop *l)
{
    const long long last = l->steps - 1, k = l->every;
    text_printf(t,
                l->reversed ? "            if (step == 0 || (%lld - step) %% %lld == %lld) {\n"
                            : "            if (step == %lld || step %% %lld == %lld) {\n",
                last, k, k - 1);
}

static void open_stretch_steps(Text *t, const Loop *l)
{
    const long long last = l->steps - 1, k = l->every;
    text_add(t, "                const int last = step;\n");
    if (l->reversed)
        text_printf(t,
                    "                for (int step = %lld - (%lld - last) / %lld * %lld; step >= "
                    "last; step--) {\n",
                    last, last, k, k);
    else
        text_printf(t,
                    "                for (int step = last / %lld * %lld; step <= last; step++) {\n",
                    k, k);
}

/* The calls of a loop inside of another, from `first` on; returns where the other's begin. */
static int stretch_calls(Writer *w, const Phase *p, Each *each, int *line, int first)
{
    const Loop *l = p->node[first]->loop;
    int end = first;
    open_stretch(&w->body, l);
    for (; end < p->nnode && p->node[end]->loop == l; end++)
        if (scan_begins(p->node[end]))
            each(w, p->node[end], line, "                ");
    open_stretch_steps(&w->body, l);
    for (int i = first; i < end; i++)
        if (!scan_begins(p->node[i]))
            each(w, p->node[i], line, "                    ");
    text_add(&w->body, "                }\n            }\n");
    return end;
}

/* Writes the calls of a loop over time from `first` to `end`. */
static void loop_calls(Writer *w, const Phase *p, Each *each, int *line, int first, int end)
{
    for (int i = first; i < end; i++)
        if (node_is(p->node[i], "scan_state"))
            each(w, p->node[i], line, "        ");
    open_loop(&w->body, loop_outer(p->node[first]->loop));
    if (p->node[first]->loop->inside)
        first = stretch_calls(w, p, each, line, first);
    for (int i = first; i < end; i++)
        if (!node_is(p->node[i], "scan_state"))
            each(w, p->node[i], line, "            ");
    text_add(&w->body, "        }\n");
}

/* Writes the calls of a chunk, those of a loop over time inside of it. */
static void chunk_calls(Writer *w, const Phase *p, Each *each, int *line, bool forward)
{
    for (int i = 0; i < p->nnode;) {
        const int end = loop_end(p->node, p->nnode, i);
        bool any = false;
        for (int k = i; k < end; k++)
            any |= !forward || !p->node[k]->backward;
        if (any)
            loop_calls(w, p, each, line, i, end);
        else if (end == i && !before_chunks(p->node[i]))
            each(w, p->node[i], line, "        ");
        i = end > i ? end : i + 1;
    }
}

static void call_in_chunk(Writer *w, const Node *n, int *line, const char *indent)
{
    phase_statement(w, &w->body, n, line, indent);
}

/* What the slices do in phase number `phase`: all of forward, loss and backward, or the part of it between two sums that
 * everybody waits for. */
void phase_slice(Writer *w, int phase, const char *fn, const char *about)
{
    Text *t = &w->body;
    const Graph *g = w->g;
    const Phase *p = &g->step->phase[phase];
    int line = 0;

    open_slice(w, "void", fn, about);
    zero_partials(w, t, phase, true);
    for (int i = 0; i < p->nnode; i++)
        if (before_chunks(p->node[i]))
            phase_statement(w, t, p->node[i], &line, "    ");
    open_chunks(w);
    chunk_calls(w, p, call_in_chunk, &line, false);
    for (int i = 0; i < g->nmetric; i++)
        if (g->metric[i].node->phase == phase)
            text_printf(t, "%s        rt_metric(r, unit, %d, first, CHUNK, %s); /* %s */\n",
                        i ? "" : "\n", i, pointer_to(w, g->metric[i].node), g->metric[i].name);
    if (!g->training && g->output->phase == phase)
        text_printf(t, "        rt_output(r, first, CHUNK, %lld, %s);\n",
                    (long long)shape_count(&g->output->shape), pointer_to(w, g->output));
    text_add(t, "    }\n}\n\n");
}

static const char *state(Writer *w, const Param *p, int k)
{
    return p->offset_state[k] < 0
               ? "NULL"
               : arena_printf(w->arena, "FIXED(real, %s)", name_of_state(w, p, k));
}

static const char *update_name(const Graph *g)
{
    static const char *const name[] = {"update_sgd", "update_rmsprop", "update_adam",
                                       "update_adamw"};
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
    return arena_printf(w->arena, "%lld, %lld", (long long)p->file.dim[1],
                        (long long)p->file.dim[0]);
}

static const char *shard_pointer(Writer *w, const Node *n)
{
    return arena_printf(w->arena, "r->shard + %s", name_of(w, node_root(n)));
}

static const char *weights(Writer *w, const Param *p)
{
    return p ? arena_printf(w->arena, "FIXED(real, %s), %s, %s", name_of_param(w, p),
                            state(w, p, 0), state(w, p, 1))
             : "NULL, NULL, NULL";
}

/* One sum: its units, as a C constant expression, and its statement. */
static const char *sum_units(Writer *w, const Sum *s)
{
    if (s->panels && node_is(s->root, "embedding_dw"))
        return arena_printf(w->arena, "%lld", (long long)embedding_units(s->root));
    return s->panels ? arena_printf(w->arena, "DENSE_UNITS(%s)", dense_size(w, s->param))
                     : arena_printf(w->arena, "%lld", (long long)range_units(s->count));
}

#define RANGE_PARAMS                                                                               \
    "const Rt *r, int unit, int units, int64_t grad, real *w, real *s0, real *s1, int64_t count"

/* Of the recipe's learning rate and decay; a sum without a parameter has no update that would ask. */
static const char *factors(Writer *w, const Param *p)
{
    return arena_printf(w->arena, "(Factors){ .lr = %.17g, .decay = %.17g }", p ? p->lr : 1,
                        p ? p->decay : 0);
}

const char *phase_sum_name(const Sum *s)
{
    return s->param ? s->param->name : s->update ? s->update->in[0]->name : s->root->op->name;
}

/* Running averages follow the shards' statistics, straight from the slices' moments or (from_grad) from what a reduction
 * has made of them. */
static void record_call(Writer *w, const Sum *s, const char *units, bool from_grad)
{
    Arena *a = w->arena;
    const Node *n = s->update;
    const Step *st = w->g->step;
    const char *tail = arena_printf(a, "%lld, %.17g, %lld", (long long)st->shards,
                                    node_float(n, "momentum"), (long long)n->shape.dim[0]);
    const int64_t rows = st->slice * shape_count(&s->root->in[0]->shape) / n->shape.dim[0];
    const char *fn =
        from_grad
            ? kernel_define(
                  w, "batch_record_grad",
                  "const Rt *r, int unit, int units, int64_t grad, real *mean, real *var",
                  arena_printf(a, "    batch_record_grad(r, unit, units, grad, mean, var, %s);\n",
                               tail))
            : kernel_define(
                  w, "batch_record",
                  "const Rt *r, int unit, int units, int64_t grad, real *mean, real *var, "
                  "const char *moments",
                  arena_printf(a,
                               "    batch_record(r, unit, units, grad, mean, var, moments, "
                               "%lld, SLICES, %lld, %s, %s);\n",
                               (long long)pointer_slice_bytes(w, s->root), (long long)rows,
                               node_bool(n, "sync") ? "true" : "false", tail));
    const char *moments = from_grad ? "" : arena_printf(a, ", %s", shard_pointer(w, s->root));
    phase_wrapped(&w->body,
                  arena_printf(a, "%s(r, unit, %s, %lld, FIXED(real, %s), FIXED(real, %s)%s);%s",
                               fn, units, (long long)s->offset, name_of(w, n->in[0]),
                               name_of(w, n->in[2]), moments,
                               tick(w, n->in[0]->name, fn, n->span, 0, "",
                                    step_price_sum(w->g, s, from_grad, w->in->options))),
                  "        ");
}

/* Of a large table: sum and update of a few rows. */
static void table_call(Writer *w, const Sum *s)
{
    const Node *token = s->root->in[0], *dy = s->root->in[1];
    const Attr *padding = node_attr(s->root, "padding");
    const char *fn = kernel_define(
        w, "embedding_dw_update",
        "const Rt *r, int unit, int64_t grad, real *w, real *s0, real *s1, const char *token, "
        "const "
        "char *dy",
        arena_printf(w->arena,
                     "    embedding_dw_update(r, unit, grad, w, s0, s1, token, dy, %s, %s, "
                     "(EmbeddingUpdate){ .vocab = %lld, .width = %lld, .padding = %lld, .rows = "
                     "%lld, .slices = SLICES });\n",
                     factors(w, s->param), update_name(w->g), (long long)s->param->file.dim[0],
                     (long long)s->param->file.dim[1], padding ? (long long)padding->i : -1LL,
                     (long long)(w->g->step->slice * shape_count(&token->shape))));
    phase_wrapped(&w->body,
                  arena_printf(w->arena, "%s(r, unit, %lld, %s, %s, %s);%s", fn,
                               (long long)s->offset, weights(w, s->param), shard_pointer(w, token),
                               shard_pointer(w, dy),
                               tick(w, phase_sum_name(s), fn, s->root->span, 0, "",
                                    step_price_sum(w->g, s, false, w->in->options))),
                  "        ");
}

static void sum_call(Writer *w, const Sum *s, const char *units)
{
    Text *t = &w->body;
    const Step *st = w->g->step;

    if (s->update && !s->param) {
        record_call(w, s, units, false);
        return;
    }
    if (s->panels && node_is(s->root, "embedding_dw")) {
        table_call(w, s);
        return;
    }
    if (s->panels) {
        const Node *x = s->root->in[0], *dy = s->root->in[1];
        const char *rows = dense_rows(s->root) == 1 ? "SHARD"
                                                    : arena_printf(w->arena, "SHARD * %lld",
                                                                   (long long)dense_rows(s->root));
        const char *fn =
            kernel_define(w, "dense_dw_update",
                          "const Rt *r, int unit, int64_t grad, real *w, real *s0, real *s1, const "
                          "char *x, const char *dy",
                          arena_printf(w->arena,
                                       "    dense_dw_update(r, unit, grad, w, s0, s1, x, dy, "
                                       "%s, %s, %s, (Dense){ .n = %s, .k = %lld, .o = %lld });\n",
                                       rows, factors(w, s->param), update_name(w->g), rows,
                                       (long long)s->param->file.dim[1],
                                       (long long)s->param->file.dim[0]));
        phase_wrapped(t,
                      arena_printf(w->arena, "%s(r, unit, %lld, %s, %s, %s);%s", fn,
                                   (long long)s->offset, weights(w, s->param), shard_pointer(w, x),
                                   shard_pointer(w, dy),
                                   tick(w, phase_sum_name(s), fn, s->root->span, counted(s->root),
                                        "", step_price_sum(w->g, s, false, w->in->options))),
                      "        ");
        return;
    }
    int64_t bytes = 0;
    for (int i = 0; i < st->nbuffer; i++)
        if (st->buffer[i].node == s->root)
            bytes = st->buffer[i].bytes / st->slices;
    const char *fn =
        kernel_define(w, "reduce_update", RANGE_PARAMS ", const char *sums, int64_t slice_bytes",
                      arena_printf(w->arena,
                                   "    reduce_update(r, unit, units, grad, w, s0, s1, sums, "
                                   "slice_bytes, SLICES, count, %s, %s);\n",
                                   factors(w, s->param), update_name(w->g)));
    phase_wrapped(t,
                  arena_printf(w->arena, "%s(r, unit, %s, %lld, %s, %lld, %s, %lld);%s", fn, units,
                               (long long)s->offset, weights(w, s->param), (long long)s->count,
                               shard_pointer(w, s->root), (long long)bytes,
                               tick(w, phase_sum_name(s), fn, s->root->span, 0, "",
                                    step_price_sum(w->g, s, false, w->in->options))),
                  "        ");
}

static void update_call(Writer *w, const Sum *s, const char *units)
{
    if (!s->param) {
        record_call(w, s, units, true);
        return;
    }
    const char *fn = kernel_define(
        w, "grad_update", RANGE_PARAMS,
        arena_printf(w->arena, "    grad_update(r, unit, units, grad, w, s0, s1, count, %s, %s);\n",
                     factors(w, s->param), update_name(w->g)));
    phase_wrapped(&w->body,
                  arena_printf(w->arena, "%s(r, unit, %s, %lld, %s, %lld);%s", fn, units,
                               (long long)s->offset, weights(w, s->param), (long long)s->count,
                               tick(w, phase_sum_name(s), fn, s->root->span, 0, "",
                                    step_price_sum(w->g, s, true, w->in->options))),
                  "        ");
}

static int bucket_of(const Step *s, int sum)
{
    int b = 0;
    while (sum >= s->bucket[b].first + s->bucket[b].sums)
        b++;
    return b;
}

/* Runs `each` of the sums as consecutive ranges of units; *total gets the sum of units as a C
 * expression. */
void phase_ranges(Writer *w, const char *fn, const char *about, bool from_grad, Text *total)
{
    Text *t = &w->body;
    const Step *s = w->g->step;

    text_printf(t, "/* %s */\nstatic void %s(const Rt *r, char *t, int unit)\n{\n    (void)t;\n",
                about, fn);
    for (int i = 0; i < s->nsum; i++) {
        const Sum *m = &s->sum[i];
        const char *units = from_grad
                                ? arena_printf(w->arena, "%lld", (long long)range_units(m->count))
                                : sum_units(w, m);
        if (!m->update && (from_grad || m->total))
            continue;
        text_printf(total, "%s%s", total->len ? " + " : "", units);
        Text *in_bucket = &w->units[from_grad][bucket_of(s, i)];
        text_printf(in_bucket, "%s%s", in_bucket->len ? " + " : "", units);
        text_printf(t, "    if (unit < %s) { /* %s */\n", units, phase_sum_name(m));
        if (from_grad)
            update_call(w, m, units);
        else
            sum_call(w, m, units);
        text_printf(t, "        return;\n    }\n    unit -= %s;\n", units);
    }
    text_add(t, "}\n\n");
}

/* ------------------------------------------------------------------------------- the check for
 * non-finite values */

/* The name and place of a value whose check answers with its number. */
void phase_layer_name(Writer *w, const Node *n)
{
    const char *base = n->span.source ? strrchr(n->span.source->name, '/') : NULL;
    text_printf(&w->layers, "    \"%s (%s:%d)\",\n", n->name ? n->name : n->op->name,
                n->span.source ? (base ? base + 1 : n->span.source->name) : "made by the compiler",
                n->span.line);
    w->nlayer++;
}

/* Is any of its calls part of the forward pass? */
bool phase_goes_forward(const Phase *p)
{
    for (int i = 0; i < p->nnode; i++)
        if (!p->node[i]->backward && kernel_needed(p->node[i]))
            return true;
    return false;
}

/* One call of the forward pass again, and the look at what it made. */
static void check_call(Writer *w, const Node *n, int *line, const char *indent)
{
    Text *t = &w->body;
    const char *s = n->backward || !kernel_needed(n) ? "" : kernel_statement(w, n);

    if (*s)
        text_printf(t, "%s%s\n", indent, s);
    (void)line;
    if (n->within || (!*s && (!node_is(n, "concat") || n->backward)))
        return; /* parts of a concat are looked at together */
    if (n->dtype != DT_REAL || !n->shape.batched)
        return;
    text_printf(t, "%sif (!rt_finite(%s, CHUNK * %lld))\n%s    return %d;\n", indent,
                pointer_to(w, n), (long long)shape_count(&n->shape), indent, w->nlayer);
    phase_layer_name(w, n);
}

void phase_nonfinite(Writer *w, int phase)
{
    Text *t = &w->body;
    const Phase *p = &w->g->step->phase[phase];

    if (!phase_goes_forward(p))
        return;
    open_slice(w, "int", arena_printf(w->arena, "nonfinite_%d", w->nforward++),
               "After a loss that is not finite: the forward pass again, up to the first value "
               "that is not.");
    zero_partials(w, t, phase, false);
    for (int i = 0; i < p->nnode; i++)
        if (before_chunks(p->node[i]))
            check_call(w, p->node[i], NULL, "    ");
    open_chunks(w);
    chunk_calls(w, p, check_call, NULL, true);
    text_add(t, "    }\n    return -1;\n}\n\n");
}
