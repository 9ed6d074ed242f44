/* program.c -- writes the parts of a generated file that all targets share: offsets, head, tables.
 *
 * The parts of the file grow at the same time, because writing a phase defines its kernels.
 */
#include "emit/writer.h"
#include "ir/target.h"

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

/* Headings for the three graphs of a program, in the order of writer_graph(). */
static const char *const heads[] = {"", "evaluation: ", "one token at a time: "};

static void region_constants(Writer *w, Text *t, Place a, Place b, const char *about)
{
    const Graph *g = w->g;
    bool any = false;

    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        if (!(n->place == a || n->place == b) || node_root(n) != n || n->op->leaf == LEAF_PARAM ||
            !w->of_node[writer_graph(w)][n->id])
            continue;
        if (!any)
            text_printf(t, "enum { /* %s%s */\n", heads[writer_graph(w)], about);
        any = true;
        constant(w, t, n,
                 n->place == PLACE_PARTIAL ? ", one per slice"
                 : n->place == PLACE_BATCH ? ", of all samples of a shard"
                 : n->op->flags & OP_KNOWN ? ", one per shard of the batch"
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
                     has_known(w->g)
                         ? "offsets into `fixed`: computed in each step, from parameters "
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

void emit_include(Text *t, EmitHeaders *h, const char *name)
{
    text_printf(t, "#include \"%s\"\n", name);
    ARENA_PUSH(t->arena, h->name, h->n, name);
}

/* Writes the first comment, without its end: contents and memory of the program. */
void program_head(Writer *w, Text *t)
{
    const bool whole_shards = target_of(w->in->options).whole_shards;
    const Graph *g = w->in->train;
    const Step *s = g->step;
    Arena *a = w->arena;

    text_printf(t, "/* %s.%s -- made by tenon from %s; change the model, not this file.\n *\n",
                g->name, w->target->suffix, quote_c_comment(a, w->in->source_name));
    int64_t n = 0;
    for (int i = 0; i < g->nparam; i++)
        n += g->param[i]->average ? 0 : shape_count(&g->param[i]->file);
    text_printf(t, " *   %s parameter%s, %s a sample forward%s (textbook count)\n",
                text_commas(a, n), n == 1 ? "" : "s", emit_flop_text(a, emit_flops(g)),
                g->training ? " and backward" : "");
    if (!g->training)
        text_printf(t, " *   predicts with the weights of %s\n", g->recipe.trained);
    text_printf(t, " *   batch %lld = %s of %s", (long long)s->batch,
                counted(a, s->shards, "shard"), counted(a, s->shard, "sample"));
    if (!whole_shards)
        text_printf(t, "; a shard = %s of %lld, a slice = %s of %lld",
                    counted(a, s->slices, "slice"), (long long)s->slice,
                    counted(a, s->slice / s->chunk, "chunk"), (long long)s->chunk);
    text_printf(t, "\n *   memory: parameters %s, optimizer states %s, packed weights %s,\n",
                text_bytes(a, s->parameter_bytes), text_bytes(a, s->state_bytes),
                text_bytes(a, s->fixed_bytes - s->parameter_bytes - s->state_bytes));
    if (s->average_bytes > 0)
        text_printf(t, " *           averages of the weights %s,\n",
                    text_bytes(a, s->average_bytes));
    if (s->kept_bytes > 0)
        text_printf(t, " *           the best weights %s,\n", text_bytes(a, s->kept_bytes));
    text_printf(t, " *           %s a shard (lower bound %s), %s %s (lower bound %s)%s%s\n",
                text_bytes(a, s->shard_bytes), text_bytes(a, s->bound_shard),
                text_bytes(a, s->thread_bytes), whole_shards ? "scratch" : "a thread",
                text_bytes(a, s->bound_thread),
                w->workspace ? arena_printf(a, ", workspace %s", text_bytes(a, w->workspace)) : "",
                w->samples_bytes ? arena_printf(a, ",\n *           samples of two steps %s",
                                                text_bytes(a, 2 * w->samples_bytes))
                                 : "");
}

void program_begin(Writer *w, const EmitTarget *target, const EmitInput *in, Arena *a)
{
    *w = (Writer){.arena = a, .target = target, .in = in, .g = in->train, .prefix = ""};
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

/* Writes what the training step reports: its layers and calls, and the search for values that are
 * not finite. */
static void training_tables(const Writer *w, Text *out)
{
    text_printf(out, "static const char *const layers[] = {\n%s};\n\n", w->layers.s);
    text_add(out, "static int (*const nonfinite[])(const Rt *r, char *t, int unit) = {");
    for (int i = 0; i < w->nforward; i++)
        text_printf(out, "%snonfinite_%d", i ? ", " : "", i);
    text_add(out, "};\n\n");
    if (w->calls.len)
        text_printf(out, "static const RtCall calls[] = {\n%s};\n\n", w->calls.s);
}

void program_end(Writer *w, Text *out)
{
    const bool training = w->in->train->training;

    if (training)
        text_printf(out, "static const RtPhase train[] = {\n%s};\n\n", w->train.s);
    text_printf(out, "static const RtPhase test[] = {\n%s};\n\n", w->test.s);
    if (w->in->token)
        text_printf(out, "static const RtPhase token[] = {\n%s};\n\n", w->token.s);
    if (training)
        training_tables(w, out);
    tables_write(w, out);
}
