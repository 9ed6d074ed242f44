/* steps.c -- --kernels=persistent: many training steps in one launch
 * (runtime/cuda/persistent.cuh).
 *
 * The calls of a step are the stages of one kernel, and stage.c puts barriers between them.  This
 * file makes the list of calls of a step, and writes the functions of the kernel. */
#include "cuda/steps.h"
#include "cuda/lower.h"
#include "cuda/spell.h"
#include "runtime/constants.h"
#include <string.h>

enum {
    GRAPH_STEPS = 16,   /* most steps of a CUDA graph: a power of two */
    GRAPH_NODES = 4096, /* most launches of a CUDA graph */
    /* longest time of a CUDA graph, or of a launch of many steps: the program handles signals only
     * between two of these */
    LAUNCH_MS = 50
};

/* ---------------------------------------- the calls of a step */

/* Adds the calls of n.  In loops over time, there is a barrier before and after each stage. */
static void lower_node(Writer *w, const Node *n, int *line, const char *indent)
{
    CudaCalls *l = w->cuda->list;
    const int before = l->n;

    (void)line;
    if (n == w->samples)
        return;
    l->indent = indent;
    l->needs_barrier |= n->loop != NULL;
    cuda_lower_node(w, n);
    if (l->n > before)
        l->needs_barrier |= n->loop != NULL;
    if (l->n == before + 1)
        own_lower_product(w, n, l->call[before]);
}

static void lower_slice(Writer *w, int phase)
{
    const Phase *p = &w->g->step->phase[phase];
    CudaCalls *l = w->cuda->list;

    l->needs_barrier |= w->g->step->shards > 1;
    l->times = w->g->step->shards;
    cuda_clear_sums(w, phase, true);
    phase_calls(w, p, lower_node, NULL, false, "    ");
    cuda_metrics_here(w);
    for (int i = 0; i < p->nknown; i++)
        lower_node(w, p->known[i], NULL, "    ");
    l->indent = "    ", l->times = 1;
    l->needs_barrier |= w->g->step->shards > 1;
}

/* Decides where samples are gathered.  If the batch is one shard, the samples of a step are
 * gathered at the end of the previous step, at the same time as the update, into the buffer that
 * the previous step does not read. */
static void choose_samples(Writer *w)
{
    const Node *x = w->g->input;
    const bool able = w->g->step->shards == 1 && w->g->ninput == 1 && node_root(x) == x &&
                      !x->loop && kernel_needed(x);

    w->samples = able ? x : NULL;
    w->samples_bytes = able ? round_up(cuda_bytes(w, x), RT_ALIGN) : 0;
}

static void lower_gather(Writer *w)
{
    const int i = w->cuda->list->n;

    if (!w->samples)
        return;
    cuda_lower(w, w->samples);
    w->cuda->list->call[i]->operand[0].memory = MEMORY_NEXT;
}

static void lower_gradient(Writer *w)
{
    w->cuda->list->needs_barrier |= w->g->step->shards > 1;
    cuda_line(w,
              "\n    /* sums over shards in the fixed tree, and the update of all parameters */\n");
    own_choose(w, w->cuda->list);
    own_lower(w);
    update_lower(w, false);
    lower_gather(w);
}

static void lower_step(Writer *w)
{
    const Step *s = w->g->step;

    cuda_list(w, 0, 1);
    w->cuda->list->persistent = true;
    for (int i = 0; i < s->nphase; i++) {
        const Phase *p = &s->phase[i];
        w->cuda->list->phase = i;
        for (int k = 0; p->kind == PHASE_PREPARE && k < p->nnode; k++)
            lower_node(w, p->node[k], NULL, "    ");
        if (p->kind == PHASE_SLICE)
            lower_slice(w, i);
        if (p->kind == PHASE_GRADIENT)
            lower_gradient(w);
    }
}

/* ------------------------------------------------------------------------------- barriers */

static bool same_pending(const Pending *a, const Pending *b)
{
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++) {
        const Operand *x = &a->operand[i], *y = &b->operand[i];
        same = x->memory == y->memory && x->from == y->from && x->to == y->to &&
               x->writes == y->writes && cuda_same_order(x->order, y->order);
    }
    return same;
}

/* Operands that the last stages of a step leave pending also precede the first stages of the next
 * step.  So the step is scheduled again until the pending operands stay the same; if they do not, a
 * barrier is added between two steps. */
static void schedule_step(Writer *w, Stages *s)
{
    enum { TRIES = 6 };
    const CudaCalls *list = w->cuda->list;

    w->cuda->list = NULL;
    stage_schedule(w, list, NULL, s);
    for (int i = 0; i < TRIES; i++) {
        const Pending last = s->pending;
        stage_schedule(w, list, &last, s);
        if (same_pending(&last, &s->pending))
            return;
    }
    stage_schedule(w, list, NULL, s);
}

/* ------------------------------------------------------------------------------- functions */

typedef struct Functions {
    Text slices, step;
} Functions;

static const char *barrier_text(int cluster)
{
    return cluster ? "cluster_barrier(arrived);" : "grid_barrier(arrived);";
}

static const char *stage_text(Writer *w, const CudaCall *c)
{
    return c->kind == KIND_LIBRARY ? arena_printf(w->arena, "%s;", spell_library(w, c))
                                   : spell_stage(w, c);
}

/* Writes call i with its comment and its barrier, and the other calls of its node; returns the
 * index of the next call. */
static int spell_call(Writer *w, Text *t, const CudaCalls *l, int i, int cluster, int *line)
{
    const CudaCall *c = l->call[i++];

    if (c->barrier)
        text_printf(t, "%s%s\n", c->indent, barrier_text(cluster));
    if (c->kind == KIND_LINE) {
        text_add(t, c->form);
        return i;
    }
    if (c->node && c->node == w->samples) {
        text_add(t, "    if (next)\n        gather(next, !odd);\n");
        spell_define(w, (CudaCall *const *)&c, 1);
        return i;
    }
    if (c->first)
        text_add(t, statement_about(w, c->node, line, c->indent));
    const char *s = stage_text(w, c);
    for (; c->node && i < l->n && l->call[i]->continues; i++)
        s = arena_printf(w->arena, "%s %s %s", s, barrier_text(cluster), stage_text(w, l->call[i]));
    if (c->comment)
        s = arena_printf(w->arena, "%s /* %s */", s, c->comment);
    statement_wrapped(t, s, c->indent);
    return i;
}

static Text spell_phase(Writer *w, const CudaCalls *l, int phase, int cluster, int *line)
{
    Text t = text_new(w->arena);
    for (int i = 0; i < l->n;)
        if (l->call[i]->phase == phase)
            i = spell_call(w, &t, l, i, cluster, line);
        else
            i++;
    return t;
}

/* Writes a slice phase: its function, and the calls of this function for the shards. */
static void spell_slice(Writer *w, Functions *f, const CudaCalls *l, int phase, int number, int of,
                        int cluster)
{
    const Step *s = w->g->step;
    const char *fn = of > 1 ? arena_printf(w->arena, "slice_%d", number) : "slice";
    int line = 0;

    text_printf(&f->slices, "/* Forward, loss and backward of one shard%s. */\n",
                of > 1 ? arena_printf(w->arena, ": part %d of %d", number, of) : "");
    text_printf(&f->slices,
                "DEVICE void %s(const Rt *r, int unit, bool odd, unsigned *arrived, const Chip "
                "&chip)\n{\n"
                "    const Scratch t = {r};\n    const Region shard = {r, unit};\n"
                "    const int first = (r->first_shard + unit) * SHARD;\n%s\n"
                "    (void)t, (void)shard, (void)first, (void)odd, (void)chip;\n%s}\n\n",
                fn, s->phase[phase].nknown ? "    const int number = r->first_shard + unit;\n" : "",
                spell_phase(w, l, phase, cluster, &line).s);
    if (s->shards == 1)
        text_printf(&f->step, "    %s(r, 0, odd, arrived, chip);\n", fn);
    else
        text_printf(&f->step,
                    "    for (int unit = 0; unit < %lld; unit++)\n        %s(r, unit, odd, "
                    "arrived, chip);\n",
                    (long long)s->shards, fn);
}

static Functions spell_step(Writer *w, CudaCalls *l, int cluster)
{
    const Step *s = w->g->step;
    Functions f = {text_new(w->arena), text_new(w->arena)};
    int line = 0, number = 0, of = 0;

    ARENA_PUSH(w->arena, w->cuda->function, w->cuda->nfunction, l);
    l->persistent = true, l->graph = w->g;
    for (int i = 0; i < s->nphase; i++)
        of += s->phase[i].kind == PHASE_SLICE;
    for (int i = 0; i < s->nphase; i++)
        if (s->phase[i].kind == PHASE_SLICE)
            spell_slice(w, &f, l, i, ++number, of, cluster);
        else
            text_add(&f.step, spell_phase(w, l, i, cluster, &line).s);
    return f;
}

/* Writes the function that gathers the samples of a step into its buffer. */
static void spell_gather(Writer *w, Text *t)
{
    cuda_list(w, 0, 1);
    if (w->samples)
        cuda_lower(w, w->samples);
    const CudaCalls *l = w->cuda->list;
    w->cuda->list = NULL;
    if (l->n)
        text_printf(t,
                    "/* Samples have two buffers after the scratch, used in turn: those of a step "
                    "are gathered at the end of the previous step. */\n"
                    "#define SAMPLES(type, at) ((type *)(t + (%lld + (odd ? %lld : 0))))\n",
                    (long long)w->g->step->thread_bytes, (long long)w->samples_bytes);
    text_add(t, "DEVICE void gather(const Rt *r, bool odd)\n{\n    const Scratch t = {r};\n    "
                "const int first = r->first_shard * SHARD;\n\n"
                "    (void)t, (void)first, (void)odd;\n");
    statement_wrapped(t, l->n ? spell_stage(w, l->call[0]) : "", "    ");
    text_add(t, "}\n\n");
}

/* ------------------------------------------------------------------------------- the whole step */

static int steps_of_launch(double seconds)
{
    const double n = LAUNCH_MS / (1e3 * seconds);
    return n < 1 ? 1 : n > RT_STEPS_MOST ? RT_STEPS_MOST : (int)n;
}

/* Writes the predictions for the step, as the comment above its kernel. */
static void say_step(Writer *w, const Stages *s, const Gpu *g, int cluster)
{
    Arena *a = w->arena;
    EmitStep launches = {0};

    price_launches(w, &launches);
    w->cuda->steps_said[0] =
        arena_printf(a, "%lld stages and %lld barriers a step, up to %d steps a launch",
                     (long long)s->stages, (long long)s->barriers, w->cuda->steps_most);
    w->cuda->steps_said[1] =
        arena_printf(a,
                     "Predicted for an %s, not measured: %.0f us as %lld launches; "
                     "as one launch %.0f us by all blocks that fit,",
                     g->name, 1e6 * launches.seconds, (long long)w->cuda->launches, 1e6 * s->all);
    w->cuda->steps_said[2] =
        g->clusters ? arena_printf(a, "%.0f us by one cluster of %d; the program uses %s.",
                                   1e6 * s->few, CLUSTER, w->cuda->steps_how)
                    : "and this GPU has no clusters.";
    w->cuda->steps_said[3] = own_said(w, cluster);
}

/* Plans the step; returns the number of blocks of a cluster, or 0 for all blocks of the GPU. */
static int plan_steps(Writer *w, Stages *s)
{
    const Gpu *g = gpu_of(w->in->options->arch);

    choose_samples(w);
    lower_step(w);
    schedule_step(w, s);
    s->all += s->barriers * g->barrier_all, s->few += s->barriers * g->barrier_cluster;
    const int cluster = g->clusters && s->few < s->all ? CLUSTER : 0;
    w->cuda->step_seconds = cluster ? s->few : s->all;
    w->cuda->steps_most = steps_of_launch(w->cuda->step_seconds);
    w->cuda->steps_how = cluster ? arena_printf(w->arena, "one cluster of %d blocks", cluster)
                                 : "all blocks that fit on the GPU";
    say_step(w, s, g, cluster);
    return cluster;
}

void steps_write(Writer *w)
{
    Stages s;
    Text t = text_new(w->arena);
    const int cluster = plan_steps(w, &s);

    text_printf(&t, "/* ---- many steps in one launch: %s ----\n *\n * %s\n * %s\n * %s\n */\n\n",
                w->cuda->steps_said[0], w->cuda->steps_said[1], w->cuda->steps_said[2],
                w->cuda->steps_said[3]);
    const Functions f = spell_step(w, s.out, cluster);
    own_spell(w, &t);
    spell_gather(w, &t);
    text_printf(&t,
                "%s/* One step, by all blocks.  Its first stages touch no data of the last stages "
                "of the previous step, or wait at a barrier. */\n"
                "DEVICE void train_step(const Rt *r, const Rt *next, bool odd, unsigned *arrived, "
                "const Chip &chip)\n{\n    const Scratch t = {r};\n\n    (void)t, (void)next, "
                "(void)odd, (void)chip;\n%s}\n\n",
                f.slices.s, f.step.s);
    text_printf(&t,
                "/* n steps.  A step whose loss is not finite updates nothing and is the last. */\n"
                "KERNEL_OF_STEPS train_steps(const Rt *first, int64_t stride, int n, unsigned "
                "*arrived, const Chip chip)\n{\n"
                "    owned(OWN_FETCH, first, chip);\n    gather(first, false);\n"
                "    for (int i = 0; i < n; i++) {\n        const Rt *r = step_of(first, stride, "
                "i);\n"
                "        train_step(r, i + 1 < n ? step_of(first, stride, i + 1) : nullptr, i %% "
                "2, arrived, chip);\n"
                "        if (!update_allowed(r, %d))\n            break;\n    }\n    "
                "owned(OWN_PUT, first, chip);\n}\n\n",
                graph_metric(w->g, "loss"));
    text_printf(&t,
                "static void train_launch(const Rt *first, int64_t stride, int n, unsigned "
                "*arrived)\n{\n"
                "    LAUNCH_STEPS(train_steps, %d, own_layouts, first, stride, n, arrived);\n}\n\n",
                cluster);
    w->cuda->steps = t;
    w->samples = NULL;
}

/* ---------------------------------------- counts and predicted times of a step */

void steps_count(Writer *w, EmitStep *e)
{
    Stages s;
    const int cluster = plan_steps(w, &s);

    for (int i = 0; i < s.out->n; i++) {
        const CudaCall *c = s.out->call[i];
        CallPrice p;
        if (c->kind == KIND_LINE)
            continue;
        EmitLaunch row = {.barrier = c->barrier || c->inner_barrier};
        const double seconds = stage_seconds(w, c, cluster, &p);
        price_add(w->arena, &row, c, &p, seconds);
        ARENA_PUSH(w->arena, e->row, e->n, row);
    }
    e->stages = s.stages, e->barriers = s.barriers, e->seconds = w->cuda->step_seconds;
    e->steps_most = w->cuda->steps_most;
    e->said = arena_printf(w->arena, "%s %s\n  %s", w->cuda->steps_said[1], w->cuda->steps_said[2],
                           w->cuda->steps_said[3]);
    e->samples = 2 * w->samples_bytes;
}

/* ---------------------------------------- steps of a CUDA graph */

/* To launch a CUDA graph and to wait for its end takes 6.1 us (H100, bench/GPU.md); with 16 steps
 * per graph, that is 0.4 us per step.  A graph has fewer steps if the products alone take long
 * (they are a lower bound for the time of a step), or if the graph would have too many launches. */
void steps_of_graph(Writer *w)
{
    const Graph *g = w->g;
    const Options *o = w->in->options;
    const double peak = gpu_peak(gpu_of(o->arch), gpu_products(o)),
                 seconds = emit_flops(g) * (double)g->recipe.batch / peak;

    w->cuda->steps_most = GRAPH_STEPS;
    while (w->cuda->steps_most > 1 && (w->cuda->steps_most * seconds > 1e-3 * LAUNCH_MS ||
                                       w->cuda->steps_most * w->cuda->launches > GRAPH_NODES))
        w->cuda->steps_most /= 2;
    w->cuda->steps_how = "a CUDA graph";
}

void steps_fields(const Writer *w, Text *t)
{
    if (w->cuda->steps_most > 0)
        text_printf(t, "\n    %s.steps_most = %d, .steps_how = \"%s\",",
                    w->cuda->steps.len ? ".steps = train_launch, " : "", w->cuda->steps_most,
                    w->cuda->steps_how);
}

/* ---------------------------------------- steps that cannot be one launch */

static bool report_obstacle(Diag *d, Span at, const char *why)
{
    diag_error(d, at,
               "--kernels=persistent needs a training step that is one launch on one GPU; %s", why);
    diag_help(d,
              "omit --kernels=persistent: a step then has one launch per kernel, in a CUDA graph");
    return false;
}

bool steps_able(const EmitInput *in, Diag *d)
{
    if (!in->train->training)
        return report_obstacle(d, (Span){0}, "this model has no train block");
    if (in->nccl)
        return report_obstacle(
            d, (Span){0}, "with --comm nccl, GPUs add their gradients in the middle of a step");
    if (!in->train->step->fused_update)
        return report_obstacle(d, in->train->recipe.span,
                               "the update of this model waits for gradients that the host reads");
    return true;
}
