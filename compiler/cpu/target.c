/* target.c -- the generated C program: constants, kernels, phases, tables.
 *
 * The parts of the file grow at the same time, because writing a phase defines its kernels.
 */
#include "cpu/cpu.h"
#include "cpu/parts.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <string.h>

/* ------------------------------------------------------------------------------- the file */

/* The three graphs of a program, in the order of writer_graph(). */
static const struct {
    const char *word, *prefix, *work;
} kinds[] = {{"train", "", "Forward, loss and backward of one slice"},
             {"test", "TEST_", "Forward of one slice of an evaluation batch"},
             {"token", "TOKEN_", "Forward of one token, with the states that earlier tokens left"}};

static void write_head(Writer *w, const char *const *header, int n, EmitHeaders *h, Text *t)
{
    const Step *s = w->in->train->step;

    program_head(w, t);
    text_add(t, " */\n");
    emit_include(t, h, "rt.h");
    for (int i = 0; i < n; i++)
        emit_include(t, h, header[i]);
    text_printf(t, "\nenum { CHUNK = %lld, SLICE = %lld, SLICES = %lld, SHARD = %lld };\n\n",
                (long long)s->chunk, (long long)s->slice, (long long)s->slices,
                (long long)s->shard);
    text_add(t, "#define KERNEL RT_FLATTEN __attribute__((noinline))    /* compiled once "
                "for all calls */\n"
                "#define FIXED(type, at) ((type *)(r->fixed + (at)))\n"
                "#define LOCAL(type, at) ((type *)(t + (at)))\n"
                "#define OWN(type, at)   ((type *)(rt_team.own ? rt_team.own : t + (at)))\n"
                "#define BATCH(type, at, bytes) ((type *)(shard + (at) + (int64_t)row * (bytes)))\n"
                "#define PARTIAL(type, at, bytes) ((type *)(shard + (at) + (int64_t)slice * "
                "(bytes)))\n\n");
}

/* Records a phase of the training step.  The update phase is recorded only with clipping by norm:
 * then it runs in each step, also with one rank. */
static void record_phase(Writer *w, int phase, const char *what, double kept, double local)
{
    const Step *s = w->g->step;
    const PhaseKind kind = s->phase[phase].kind;
    const Market m = market_of(w->g, w->in->options, s->chunk);
    const bool slices = kind == PHASE_SLICE;
    const double units = slices ? (double)(s->shards * s->slices) : 1;
    EmitPhase p =
        {.what = what,
         .slices = slices,
         .units = slices                  ? (int)units
                  : kind == PHASE_PREPARE ? kernel_prepare_units(w)
                                          : 0,
         .us = slices
                   ? w->cpu->slice_us
                   : 1e6 * market_seconds(&m, step_price_phase(w->g, phase, w->in->options).cycles),
         .alone_us = slices ? w->cpu->alone_us / units : 0,
         .barriers = slices ? w->cpu->barriers / units : 0,
         .bytes = kept,
         .local_bytes = local};
    if (kind == PHASE_WIDE)
        p.range = phase_wide_ranges(w, &s->phase[phase], &p.nrange);
    else if (kind == PHASE_GRADIENT || kind == PHASE_UPDATE)
        p.range = ranges_list(w, kind == PHASE_UPDATE, &p.nrange);
    if (kind != PHASE_UPDATE || !s->fused_update)
        ARENA_PUSH(w->arena, w->cpu->phase, w->cpu->nphase, p);
}

/* Writes a row of RtPhase; `more` has further fields. */
static void phase_row(Writer *w, Text *t, const char *fn, int phase, const char *count,
                      const char *what, const char *more)
{
    const PhaseKind kind = w->g->step->phase[phase].kind;
    double kept, local;

    step_price_moved(w->g, phase, &kept, &local);
    text_printf(t,
                "    {.run = %s, .per_slice = %s, .count = %s, .from_grad = %s, .what = "
                "\"%s\"%s",
                fn, kind == PHASE_SLICE ? "true" : "false", count,
                kind == PHASE_UPDATE ? "true" : "false", what, more);
    if (w->g->training) {
        text_printf(t, ",\n     .bytes = %.4g, .local_bytes = %.4g", kept, local);
        record_phase(w, phase, what, kept, local);
    }
    text_add(t, "},\n");
}

/* The lines "After this phase ranks can add bucket 1, 2."; "" if there is one bucket only. */
static const char *completes(Arena *a, const Step *s, int phase)
{
    Text t = text_new(a);
    for (int b = 0; b < s->nbucket && s->nbucket > 1; b++)
        if (s->bucket[b].ready == phase)
            text_printf(&t, "%s%d", t.len ? ", " : "\n * After this phase ranks can add bucket ",
                        b);
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

/* Writes a slice phase; several slice phases are numbered. */
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
    const double units = (double)(g->step->shards * g->step->slices);
    const char *known =
        arena_printf(a, "%s, .unit_us = %.4g, .alone_us = %.4g, .barriers = %.4g",
                     phase_known_fields(w, phase, word, number, phase_call),
                     w->cpu->slice_us / units, w->cpu->alone_us / units, w->cpu->barriers / units);
    if (g->training)
        phase_nonfinite(w, phase);
    phase_row(w, table, fn, phase, "0",
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
            phase_row(w, table, fn, i, arena_printf(w->arena, "%d", kernel_prepare_units(w)),
                      "pack weights", "");
            break;
        case PHASE_SLICE:
            slice_phase(w, g, i, ++slices, table);
            break;
        case PHASE_WIDE:
            fn = arena_printf(w->arena, "%s_wide_%d", word, ++wides);
            phase_row(w, table, fn, i, phase_wide(w, p, fn), "a dense layer for all samples", "");
            break;
        case PHASE_GRADIENT:
            ranges_write(w, fn,
                         "Sums over slices and shards in the fixed tree, and the update unless "
                         "a reduction comes between.",
                         false, &units);
            phase_row(w, table, fn, i, units.s, "sum gradients, update", ", .to_grad = true");
            break;
        case PHASE_UPDATE:
            ranges_write(w, fn,
                         "The update from reduced gradients: for ranks, groups and clipping by "
                         "norm.",
                         true, &update);
            phase_row(w, table, fn, i, update.s, "update", "");
            break;
        }
    }
}

/* ------------------------------------------------------------------------ the whole program */

void program_open(Writer *w, const EmitInput *in, Arena *a)
{
    program_begin(w, &cpu_target, in, a);
    w->cpu = arena_alloc(a, sizeof *w->cpu);
    if (in->train->training) {
        write_phases(w, in->train, &w->train);
        program_offsets(w, true);
    }
    write_phases(w, in->test, &w->test);
    program_offsets(w, !in->train->training);
    if (!in->token)
        return;
    write_phases(w, in->token, &w->token);
    program_offsets(w, false);
}

EmitUnit program_unit(Writer *w, const char *const *header, int n, const char *kernels)
{
    EmitUnit u = {.name = w->in->train->name};
    Text out = text_new(w->arena);

    write_head(w, header, n, &u.headers, &out);
    text_add(&out, w->offsets.s);
    text_add(&out, kernels);
    text_printf(&out, "/* ---- the step: phases with a barrier between two ---- */\n\n%s",
                w->body.s);
    program_end(w, &out);
    u.text = out.s;
    return u;
}

static EmitUnit write_whole(const EmitInput *in, Arena *a)
{
    Writer w;
    Text kernels = text_new(a);

    program_open(&w, in, a);
    text_add(&kernels,
             "/* ---- kernels: sizes are literals, so the C compiler specialises each ---- "
             "*/\n\n");
    for (int i = 0; i < w.nkernel; i++)
        text_printf(&kernels, "static KERNEL void %s(%s)\n{\n%s}\n\n", w.kernel[i].name,
                    w.kernel[i].params, w.kernel[i].body);
    return program_unit(&w, NULL, 0, kernels.s);
}

static const EmitPhase *list_phases(const EmitInput *in, Arena *a, int *n)
{
    Writer w;
    program_open(&w, in, a);
    *n = w.cpu->nphase;
    return w.cpu->phase;
}

/* ---------------------------------------------------------------------- fields of RtProgram */

const char *isa_name(const char *cpu)
{
    return !strcmp(cpu, "x86-64-v4")   ? "RT_ISA_X86_V4"
           : !strcmp(cpu, "x86-64-v3") ? "RT_ISA_X86_V3"
           : !strcmp(cpu, "armv8-a")   ? "RT_ISA_ARMV8"
                                       : "RT_ISA_ANY";
}

static void machine_fields(const EmitInput *in, Text *t)
{
    text_printf(t, ".target = \"cpu\", .cpu = \"%s\", .isa = %s, ", in->cpu, isa_name(in->cpu));
    if (in->options->half)
        text_printf(t,
                    ".products = \"bf16\", .flops_half = %.0f, .us_f32 = %.4g, .us_half = %.4g, ",
                    emit_flops_half(in->train), in->us_f32, in->us_half);
    if (options_half_chains(in->options))
        text_add(t, ".fast_half = true, ");
}

enum { SPOT = 40 }; /* sizeof(ImageSpot): runtime/cpu/image.h */

/* Bytes of the rows that a kernel of augmented images has on the stack. */
static int64_t stack_of_images(const Shape *x, const Augment *a)
{
    const int64_t real = sizeof(double), width = x->dim[x->rank - 1], row = width + 2 * a->shift;
    const bool between = augment_interpolates(a),
               colours = a->contrast > 0 || a->saturation > 0 || a->hue > 0;
    const int64_t other = augment_mixes(a) ? real * x->dim[0] * width : 0;
    return other +
           (between || colours ? real * (x->dim[0] * row + width) + SPOT * width : real * row);
}

/* Bytes of the stack of a thread in addition to RT_STACK, for arrays of kernels that grow with the
 * model. */
static int64_t more_stack(const Graph *g)
{
    const Augment *a = &g->recipe.augment;
    int64_t most = a->given ? stack_of_images(&g->input->shape, a) : 0;
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        const int64_t bytes = node_attr(n, "moved") ? SPOT * n->shape.dim[n->shape.rank - 1]
                              : n->op->stack_bytes  ? n->op->stack_bytes(n, g->step->chunk)
                                                    : 0;
        most = bytes > most ? bytes : most;
    }
    return most > RT_STACK_GROWING ? most - RT_STACK_GROWING : 0;
}

static void memory_fields(const Graph *g, Text *t)
{
    if (g->step->scratch_bytes)
        text_printf(t, "    .scratch_bytes = %lld,\n", (long long)g->step->scratch_bytes);
    if (more_stack(g))
        text_printf(t, "    .more_stack = %lld,\n", (long long)more_stack(g));
}

const EmitTarget cpu_target = {.suffix = "c",
                               .widen = "bf16_wide",
                               .whole = write_whole,
                               .phases = list_phases,
                               .title = price_title,
                               .cost = price_cost,
                               .machine_fields = machine_fields,
                               .memory_fields = memory_fields};
