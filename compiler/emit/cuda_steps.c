/* cuda_steps.c -- many training steps in one launch: the stages of a step, and where its blocks meet.
 *
 * Two stages need no place to meet between them when neither writes what the other touches (cuda_touch.h), or when both share out the same
 * numbers in the same order: then it is the same thread that wrote a number and reads it.  An elementwise stage has no order of its own:
 * behind a product it follows that (runtime/cuda/results.cuh).  In loops over time, between shards and between phases blocks always meet.
 */
#include "emit/cuda_stage.h"
#include "ops/step_price.h"
#include "runtime/constants.h"
#include <stdlib.h>
#include <string.h>

enum {
    GRAPH_STEPS = 16,   /* steps of a CUDA graph at most: a power of two, */
    GRAPH_NODES = 4096, /* of so many launches, */
    LAUNCH_MS = 50      /* and as many as take about so long: a signal is answered between two */
};

/* ------------------------------------------------------------------------------- a node */

static void node_stage(Writer *w, const Node *n, int *line, const char *indent)
{
    Stages *s = w->stages;

    if (n == w->samples)
        return;
    s->must |= n->loop != NULL;
    stage_begin(w);
    const char *statement = kernel_needed(n) ? kernel_statement(w, n) : "";
    if (!*statement)
        return;
    s->node = n;
    own_note(w, n);
    stage_before(w, statement, indent);
    s->must |= n->loop != NULL;
    statement_write(w, &w->body, n, line, indent);
    s->node = NULL, s->nextra = 0;
    s->done[n->id] = true;
    for (int i = 0; i < w->g->nmetric; i++)
        s->pending |= (unsigned)(w->g->metric[i].node == n) << i;
}

/* ------------------------------------------------------------------------------- phases of a step */

/* Those that no place to meet came behind. */
static void metrics_left(Writer *w, int phase)
{
    for (int i = 0; i < w->g->nmetric; i++)
        if (w->g->metric[i].node->phase == phase && !(w->stages->told >> i & 1))
            stage_metric(w, i, "    ");
}

/* A phase of the shards: a function, and the calls of it. */
static void slice_stages(Writer *w, int phase, int number, int of)
{
    const Step *s = w->g->step;
    const Text calls = w->body;
    Text *t = &w->stages->functions;
    const char *fn = of > 1 ? arena_printf(w->arena, "slice_%d", number) : "slice";
    int line = 0;

    if (s->shards > 1)
        stage_meet(w);
    w->body = text_new(w->arena);
    cuda_clear_sums(w, phase, true);
    w->stages->told = w->stages->pending = 0;
    phase_calls(w, &s->phase[phase], node_stage, &line, false, "    ");
    metrics_left(w, phase);
    for (int i = 0; i < s->phase[phase].nknown; i++)
        node_stage(w, s->phase[phase].known[i], &line, "    ");
    text_printf(t, "/* Forward, loss and backward of one shard%s. */\n",
                of > 1 ? arena_printf(w->arena, ": part %d of %d", number, of) : "");
    text_printf(t,
                "DEVICE void %s(const Rt *r, int unit, bool odd, unsigned *arrived, const Chip &chip)\n{\n"
                "    const Scratch t = {r};\n    const Region shard = {r, unit};\n"
                "    const int first = (r->first_shard + unit) * SHARD;\n%s\n"
                "    (void)t, (void)shard, (void)first, (void)odd, (void)chip;\n%s}\n\n",
                fn, s->phase[phase].nknown ? "    const int number = r->first_shard + unit;\n" : "",
                w->body.s);
    w->body = calls;
    if (s->shards == 1) {
        text_printf(&w->body, "    %s(r, 0, odd, arrived, chip);\n", fn);
        return;
    }
    text_printf(&w->body, "    for (int unit = 0; unit < %lld; unit++)\n        %s(r, unit, odd, arrived, chip);\n",
                (long long)s->shards, fn);
    stage_meet(w);
}

/* The update, of which each thread makes what it has the gradient of; and the rest. */
static void update_stages(Writer *w)
{
    Touch *touch;
    const int n = own_rest(w, &touch);

    text_add(&w->body, "\n    /* sums over shards in the fixed tree, and the update of all parameters */\n");
    if (w->g->step->shards > 1)
        stage_meet(w);
    own_stages(w);
    if (n == 0)
        return;
    stage_before_touches(w, touch, n, "    ");
    cuda_update(w, false);
}

/* ------------------------------------------------------------------------------- samples */

/* Where a step is one shard its samples are gathered at the end of the step before, beside the update, into the place that this one does not read. */
static void choose_samples(Writer *w)
{
    const Node *x = w->g->input;
    const bool able = w->g->step->shards == 1 && node_root(x) == x && !x->loop && kernel_needed(x);

    w->samples = able ? x : NULL;
    w->samples_bytes = able ? (pointer_bytes(w, x) * w->g->step->chunk + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN : 0;
}

static void gather_next(Writer *w)
{
    Stages *s = w->stages;
    Touch touch[STAGE_ARGUMENTS];

    if (!w->samples)
        return;
    stage_begin(w);
    s->node = w->samples;
    const int n = touches_of(w, kernel_statement(w, w->samples), s->order, s->other, touch);
    for (int i = 0; i < n; i++)
        touch[i].memory = touch[i].memory == MEMORY_SAMPLES ? MEMORY_NEXT : touch[i].memory;
    stage_cost(w, touch, n);
    stage_before_touches(w, touch, n, "    ");
    text_add(&w->body, "    if (next)\n        gather(next, !odd);\n");
    s->node = NULL;
}

/* The function that does it. */
static void gather_write(Writer *w, Stages *s, Text *t)
{
    w->stages = s;
    const char *statement = w->samples ? kernel_statement(w, w->samples) : "";
    w->stages = NULL;
    if (w->samples)
        text_printf(t,
                    "/* Samples have two buffers behind the scratch, used in turn: those of a step are gathered at the end of the previous step. */\n"
                    "#define SAMPLES(type, at) ((type *)(t + (%lld + (odd ? %lld : 0))))\n",
                    (long long)w->g->step->thread_bytes, (long long)w->samples_bytes);
    text_add(t, "DEVICE void gather(const Rt *r, bool odd)\n{\n    const Scratch t = {r};\n    const int first = r->first_shard * SHARD;\n\n"
                "    (void)t, (void)first, (void)odd;\n");
    statement_wrapped(t, statement, "    ");
    text_add(t, "}\n\n");
}

/* ------------------------------------------------------------------------------- a step */

static void step_stages(Writer *w)
{
    const Step *s = w->g->step;
    int line = 0, number = 0, of = 0;

    for (int i = 0; i < s->nphase; i++)
        of += s->phase[i].kind == PHASE_SLICE;
    for (int i = 0; i < s->nphase; i++) {
        const Phase *p = &s->phase[i];
        switch (p->kind) {
        case PHASE_PREPARE:
            for (int k = 0; k < p->nnode; k++)
                node_stage(w, p->node[k], &line, "    ");
            break;
        case PHASE_SLICE:
            slice_stages(w, i, ++number, of);
            break;
        case PHASE_GRADIENT:
            update_stages(w);
            gather_next(w);
            break;
        case PHASE_WIDE:   /* the processor's */
        case PHASE_UPDATE: /* of gradients that ranks have added: there are none */
            break;
        }
    }
}

static bool same_touches(const Stages *a, const Stages *b)
{
    bool same = a->ntouch == b->ntouch;
    for (int i = 0; same && i < a->ntouch; i++) {
        const Touch *x = &a->touch[i], *y = &b->touch[i];
        same = x->memory == y->memory && x->from == y->from && x->to == y->to && x->count == y->count && x->writes == y->writes &&
               (x->order && y->order ? !strcmp(x->order, y->order) : x->order == y->order);
    }
    return same;
}

/* The stages of a step behind one that ended so; the functions of its phases stand in s->functions. */
static Text stages_behind(Writer *w, int cluster, const Stages *last, Stages *s)
{
    const Text body = w->body;

    for (int i = 0; i < w->nkernel; i++)
        w->kernel[i].staged = false;
    *s = (Stages){.cluster = cluster,
                  .functions = text_new(w->arena),
                  .must = !last,
                  .done = arena_alloc(w->arena, sizeof *s->done * (size_t)(w->g->next_id + 1)),
                  .joined = arena_alloc(w->arena, sizeof *s->joined * (size_t)(w->g->step->nsum + 1)),
                  .order_of = arena_alloc(w->arena, sizeof *s->order_of * (size_t)(w->g->step->nsum + 1))};
    w->body = text_new(w->arena);
    w->stages = s;
    for (int i = 0; last && i < last->ntouch; i++) {
        Touch t = last->touch[i];
        t.memory = t.memory == MEMORY_NEXT ? MEMORY_SAMPLES : t.memory == MEMORY_SAMPLES ? MEMORY_NEXT : t.memory;
        stage_remember(w, &t, 1);
    }
    step_stages(w);
    w->stages = NULL;
    const Text stages = w->body;
    w->body = body;
    return stages;
}

/* Steps follow one another: what the last stages of one touch stands before the first of the next.  Where that does not settle, blocks
 * meet between two steps. */
static Text stages_of(Writer *w, int cluster, Stages *s)
{
    enum { TRIES = 6 };
    Stages last;

    stages_behind(w, cluster, NULL, s);
    for (int i = 0; i < TRIES; i++) {
        last = *s;
        const Text stages = stages_behind(w, cluster, &last, s);
        if (same_touches(&last, s))
            return stages;
    }
    return stages_behind(w, cluster, NULL, s);
}

static double seconds_together(const Gpu *g, const Stages *s, int cluster)
{
    return cluster ? s->few + s->meetings * g->meet_cluster : s->all + s->meetings * g->meet_all;
}

static int steps_of_launch(double seconds)
{
    const double n = LAUNCH_MS / (1e3 * seconds);
    return n < 1 ? 1 : n > RT_STEPS_MOST ? RT_STEPS_MOST : (int)n;
}

void steps_write(Writer *w)
{
    const Gpu *g = gpu_of(w->in->options->arch);
    Stages s;
    Text t = text_new(w->arena);

    choose_samples(w);
    stages_of(w, 0, &s);
    const double all = seconds_together(g, &s, 0), few = seconds_together(g, &s, CLUSTER),
                 launches = s.apart + (double)w->launches * g->gap;
    const int cluster = g->clusters && few < all ? CLUSTER : 0;
    const double seconds = cluster ? few : all;
    const Text stages = stages_of(w, cluster, &s);

    w->apart_seconds = launches, w->together_seconds = seconds;
    w->steps_most = steps_of_launch(seconds);
    w->steps_how = cluster ? arena_printf(w->arena, "one cluster of %d blocks", cluster) : "all blocks that fit on the GPU";
    const char *said = g->clusters ? arena_printf(w->arena, "%.0f us by one cluster of %d; the program uses %s.", 1e6 * few, CLUSTER, w->steps_how)
                                   : "and this GPU has no clusters.";
    w->steps_said[0] = arena_printf(w->arena, "%d stages and %d barriers a step, up to %d steps a launch", s.stages, s.meetings, w->steps_most);
    w->steps_said[1] = arena_printf(w->arena, "Predicted for an %s, not measured: %.0f us as %lld launches; as one launch %.0f us by all blocks that fit,",
                                    g->name, 1e6 * launches, (long long)w->launches, 1e6 * all);
    w->steps_said[2] = said;
    w->steps_said[3] = own_said(w, &s, cluster);
    text_printf(&t, "/* ---- many steps in one launch: %s ----\n *\n * %s\n * %s\n * %s\n */\n\n", w->steps_said[0], w->steps_said[1], said,
                w->steps_said[3]);
    own_finish(w, &s, &t);
    gather_write(w, &s, &t);
    text_printf(&t,
                "%s/* One step, by all blocks.  Its first stages touch no data of the last stages of the previous step, or wait at a barrier. */\n"
                "DEVICE void train_step(const Rt *r, const Rt *next, bool odd, unsigned *arrived, const Chip &chip)\n{\n    const Scratch t = {r};\n\n    (void)t, (void)next, (void)odd, (void)chip;\n%s}\n\n",
                s.functions.s, stages.s);
    text_printf(&t,
                "/* n steps.  A step whose loss is not finite updates nothing and is the last. */\n"
                "KERNEL_OF_STEPS train_steps(const Rt *first, int64_t stride, int n, unsigned *arrived, const Chip chip)\n{\n"
                "    owned(OWN_FETCH, first, chip);\n    gather(first, false);\n"
                "    for (int i = 0; i < n; i++) {\n        const Rt *r = step_of(first, stride, i);\n"
                "        train_step(r, i + 1 < n ? step_of(first, stride, i + 1) : nullptr, i %% 2, arrived, chip);\n"
                "        if (!update_allowed(r, %d))\n            break;\n    }\n    owned(OWN_PUT, first, chip);\n}\n\n",
                cuda_loss(w->g));
    text_printf(&t,
                "static void train_launch(const Rt *first, int64_t stride, int n, unsigned *arrived)\n{\n"
                "    LAUNCH_STEPS(train_steps, %d, own_rooms, first, stride, n, arrived);\n}\n\n",
                cluster);
    w->steps = t;
}

EmitSteps emit_steps_expected(Arena *a, const EmitInput *in)
{
    Writer w;
    program_begin(&w, in, a);
    cuda_phases(&w);
    steps_write(&w);
    return (EmitSteps){w.apart_seconds, w.together_seconds, w.launches};
}

const char *emit_steps_said(Arena *a, const EmitInput *in)
{
    Writer w;
    program_begin(&w, in, a);
    cuda_phases(&w);
    steps_write(&w);
    return arena_printf(a, "%s\n  %s %s\n  %s", w.steps_said[0], w.steps_said[1], w.steps_said[2], w.steps_said[3]);
}

/* ------------------------------------------------------------------------------- steps of a graph */

/* 16 steps leave each 2 us of what the host does between two launches, assumed to be 30.  Fewer where the products alone take long, which
 * are a floor of the time of a step, or where a graph would be large: a step of many launches takes long, too. */
void steps_of_graph(Writer *w)
{
    const Graph *g = w->g;
    const Options *o = w->in->options;
    const double peak = gpu_peak(gpu_of(o->arch), o->tf32 ? GPU_TF32 : gpu_half(o->half)),
                 seconds = emit_flops(g) * (double)g->recipe.batch / peak;

    w->steps_most = GRAPH_STEPS;
    while (w->steps_most > 1 &&
           (w->steps_most * seconds > 1e-3 * LAUNCH_MS || w->steps_most * w->launches > GRAPH_NODES))
        w->steps_most /= 2;
    w->steps_how = "a CUDA graph";
}

void steps_row(const Writer *w, Text *t)
{
    if (w->steps_most > 0)
        text_printf(t, "    %s.steps_most = %d, .steps_how = \"%s\",\n", w->steps.len ? ".steps = train_launch, " : "",
                    w->steps_most, w->steps_how);
}

/* ------------------------------------------------------------------------------- what cannot be one launch */

static bool stands(Diag *d, Span at, const char *why)
{
    diag_error(d, at, "--kernels=persistent takes a training step that is one launch on one GPU, and %s", why);
    diag_help(d, "leave --kernels=persistent out: a step is then a launch a kernel, recorded as a graph");
    return false;
}

bool emit_steps_able(const EmitInput *in, Diag *d)
{
    if (in->nccl)
        return stands(d, (Span){0}, "with --comm nccl GPUs add their gradients in the middle of it");
    if (!in->train->step->fused_update)
        return stands(d, in->train->recipe.span, "this one's update waits for gradients that the host has asked for");
    return true;
}
