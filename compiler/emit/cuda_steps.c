/* cuda_steps.c -- many training steps in one launch: the stages of a step, and where its blocks meet.
 *
 * Two stages need no place to meet between them when neither writes what the other touches (cuda_touch.h), or when both share out the same
 * numbers in the same order: then it is the same thread that wrote a number and reads it.  An elementwise stage has no order of its own:
 * behind a product it follows that (runtime/cuda/results.cuh).  In loops over time, between shards and between phases blocks always meet.
 */
#include "emit/cuda_steps.h"
#include "emit/cuda_touch.h"
#include "ir/gpu.h"
#include "ops/step_price.h"
#include <stdlib.h>
#include <string.h>

enum {
    CLUSTER = 16,       /* blocks of the largest cluster */
    STEPS = 64,         /* of a launch of our own at most: RT_STEPS_MOST of runtime/rt.h, */
    GRAPH_STEPS = 16,   /* of a CUDA graph, as a power of two, */
    GRAPH_NODES = 4096, /* of so many launches, */
    LAUNCH_MS = 50      /* and as many as take about so long: a signal is answered between two */
};

typedef struct Stages {
    Touch *touch;                                     /* since blocks met */
    int ntouch;
    bool must;                                        /* they meet before the next stage */
    int cluster;                                      /* blocks; 0: all that fit */
    int stages, meetings;                             /* of a step, as they are executed */
    double all, few;                                  /* seconds of work, by all of the GPU and by one cluster */
    Order order;                                      /* of the statement at hand */
    const Node *node, *decided;                       /* its node; the one whose order has been decided */
    unsigned told, pending;                           /* metrics whose stage is written, whose value is there: a bit each */
    Text functions;                                   /* of the phases of a step */
} Stages;

/* ------------------------------------------------------------------------------- what a stage takes */

/* Blocks that have something to do. */
static double parts_of(const Node *n, double results)
{
    enum { FEW = 64 }; /* FEW_BLOCKS of runtime/cuda/product.cuh */
    const bool sum = node_is(n, "sum_to") || node_is(n, "batch_moments") || node_is(n, "batch_norm_dw");
    double each = sum ? 1 : !emit_counts_flops(n) ? 256 : node_is(n, "conv2d_dw") ? 9 : 64 * 64;
    for (; each > 256 && results / each < FEW; each /= 4)
        ;
    return results > each ? results / each : 1;
}

/* A roofline's time, by as many multiprocessors as its parts, or the launch's blocks, occupy. */
static void add_cost(const Writer *w, Stages *s, const Touch *touch, int n)
{
    const Gpu *g = gpu_of(w->in->options->arch);
    const double flops = s->node ? statement_flops(s->node) * (double)w->g->step->chunk : 0;
    double bytes = 0, results = 1;

    for (int i = 0; i < n; i++) {
        const double one = touch[i].to == INT64_MAX ? 0 : (double)(touch[i].to - touch[i].from);
        bytes += one;
        results = touch[i].writes && one / 4 > results ? one / 4 : results;
    }
    const double parts = s->node ? parts_of(s->node, results) : 1, most = g->processors;
    const double work = flops / g->f32, move = bytes / g->bandwidth, whole = work > move ? work : move;
    const double times = s->node ? (double)node_steps(s->node) : 1;
    s->all += times * whole * most / (parts < most ? parts : most);
    s->few += times * whole * most / (parts < CLUSTER ? parts : CLUSTER);
    s->stages += (int)times;
}

/* ------------------------------------------------------------------------------- stages as they are written */

const char *stage_meeting(const Writer *w)
{
    return w->stages->cluster ? "cluster_meet(arrived);" : "grid_meet(arrived);";
}

void stage_meet(Writer *w)
{
    w->stages->must = true;
}

static bool clashes(const Stages *s, const Touch *touch, int n)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s->ntouch; k++)
            if (touch_conflict(&touch[i], &s->touch[k]))
                return true;
    return false;
}

static void remember(Writer *w, const Touch *touch, int n)
{
    Stages *s = w->stages;
    for (int i = 0; i < n; i++)
        ARENA_PUSH(w->arena, s->touch, s->ntouch, touch[i]);
}

static void before(Writer *w, const char *statement, const char *indent);

/* A metric is told as soon as blocks have met behind its value, so that the update need not wait for it. */
static void tell_metric(Writer *w, int i, const char *indent)
{
    const char *statement = cuda_metric(w, i);
    const Touch told = {.memory = MEMORY_METRIC, .from = i, .to = i + 1, .writes = true};

    w->stages->told |= 1u << i;
    w->stages->order = (Order){0};
    before(w, statement, indent);
    remember(w, &told, 1);
    statement_wrapped(&w->body, statement, indent);
}

static void meet_here(Writer *w, const char *indent)
{
    Stages *s = w->stages;
    const Node *node = s->node;
    const Order order = s->order;

    text_printf(&w->body, "%s%s\n", indent, stage_meeting(w));
    s->meetings += node ? (int)node_steps(node) : 1;
    s->ntouch = 0, s->must = false, s->node = NULL;
    for (int i = 0; i < w->g->nmetric; i++)
        if ((s->pending & ~s->told) >> i & 1 && !(node && node->loop))
            tell_metric(w, i, indent);
    s->node = node, s->order = order;
}

/* Where blocks have to meet before these calls they do. */
static void before(Writer *w, const char *statement, const char *indent)
{
    Stages *s = w->stages;
    Touch touch[4 * STAGE_ARGUMENTS] = {0};
    int n = 0;

    for (const char *at = statement; at && n <= 3 * STAGE_ARGUMENTS; at = strstr(at, "; ")) {
        at += at > statement ? 2 : 0;
        if (strncmp(at, stage_meeting(w), 8) == 0)
            s->meetings++, s->stages++;
        else if (strncmp(at, "/*", 2) != 0)
            n += touches_of(w, at, s->order, touch + n);
    }
    add_cost(w, s, touch, n);
    if (s->must || clashes(s, touch, n))
        meet_here(w, indent);
    remember(w, touch, n);
}

void stage_write(Writer *w, const char *statement)
{
    w->stages->order = (Order){0};
    before(w, statement, "    ");
    statement_wrapped(&w->body, statement, "    ");
}

void stage_unordered(Writer *w, const char *statement)
{
    if (w->stages->must)
        meet_here(w, "    ");
    add_cost(w, w->stages, NULL, 0);
    statement_wrapped(&w->body, statement, "    ");
}

/* ------------------------------------------------------------------------------- orders */

static const char any_thread[] = "FOR_EACH";

/* The loops walk an operand as numbers 0, 1, 2 ... in their order. */
static bool in_order(const Nest *t, const int64_t *stride)
{
    int64_t each = 1;
    for (int i = t->n - 1; i >= 0; i--) {
        if (stride[i] != each)
            return false;
        each *= t->count[i];
    }
    return true;
}

/* May it follow that order from where blocks last met? */
static bool can_follow(Writer *w, const Nest *t, const Node *n, Order o)
{
    Touch touch[LOOP_LEAVES + 1] = {0};
    int found = 0;

    for (int k = -1; k < t->nleaf; k++) {
        const char *at = pointer_to(w, k < 0 ? n : t->leaf[k].node);
        touch[found].writes = false;
        if (touch_in_order(w, at, strlen(at), o.which >> (k + 1) & 1 ? o : (Order){0}, &touch[found]))
            touch[found++].writes = k < 0;
    }
    return !clashes(w->stages, touch, found);
}

const char *stage_elementwise(Writer *w, const Nest *t, const Node *n, int64_t count)
{
    Stages *s = w->stages;

    if (!s)
        return NULL;
    if (s->decided != n) {
        s->order = (Order){any_thread, count, in_order(t, t->out)};
        for (int k = 0; k < t->nleaf; k++)
            s->order.which |= (unsigned)in_order(t, t->leaf[k].stride) << (k + 1);
        bool follows = s->must || can_follow(w, t, n, s->order);
        for (int k = 0; k < s->ntouch && !follows; k++) {
            Order o = s->order;
            o.text = s->touch[k].order;
            follows = o.text && strchr(o.text, '(') && s->touch[k].count == count && can_follow(w, t, n, o);
            if (follows)
                s->order = o;
        }
        s->decided = n;
    }
    return s->order.text == any_thread ? NULL : s->order.text;
}

/* All numbers of a value, of all samples that a stage takes. */
static int64_t numbers_of(const Writer *w, const Node *n)
{
    return shape_count(&n->shape) * (n->shape.batched ? w->g->step->chunk : 1);
}

void stage_sums(Writer *w, const Nest *t, const Node *n, int64_t kept)
{
    if (w->stages && in_order(t, t->out) && numbers_of(w, n) == kept)
        w->stages->order = (Order){arena_printf(w->arena, "sum_results(%lld", (long long)kept), kept, 1};
}

void stage_kernel(Writer *w, const Node *n, const char *fn, const char *sizes)
{
    static const char *const products[] = {"dense", "dense_dx", "dense_dw", "conv2d", "conv2d_dx", "conv2d_dw"};
    /* y[i] = something of a[i] and b[i], if those bits are set, and of others */
    static const struct {
        const char *fn;
        unsigned which;
    } eachs[] = {{"max_pool", 1}, {"max_pool_dx", 1}, {"avg_pool", 1}, {"avg_pool_dx", 1}, {"global_avg_pool_dx", 1}, {"batch_total", 3},
                 {"batch_norm", 3}, {"batch_norm_then", 3}, {"batch_norm_dx", 7}},
      channels[] = {{"batch_moments", 1}, {"batch_statistics", 3}, {"batch_norm_dw", 8}}; /* of which they hold two each */
    Stages *s = w->stages;

    for (size_t i = 0; s && i < sizeof products / sizeof *products; i++)
        if (!strcmp(products[i], fn))
            s->order = (Order){arena_printf(w->arena, "%s_results(%s", fn, sizes), numbers_of(w, n), 1};
    for (size_t i = 0; s && i < sizeof eachs / sizeof *eachs; i++)
        if (!strcmp(eachs[i].fn, fn))
            s->order = (Order){any_thread, numbers_of(w, n), eachs[i].which};
    for (size_t i = 0; s && i < sizeof channels / sizeof *channels; i++)
        if (!strcmp(channels[i].fn, fn))
            s->order = (Order){"FOR_CHANNELS", 2 * n->shape.dim[n->shape.rank - 1], channels[i].which};
}

/* ------------------------------------------------------------------------------- a node */

static void node_stage(Writer *w, const Node *n, int *line, const char *indent)
{
    Stages *s = w->stages;

    s->must |= n->loop != NULL;
    s->order = (Order){0}, s->decided = NULL;
    const char *statement = kernel_needed(n) ? kernel_statement(w, n) : "";
    if (!*statement)
        return;
    s->node = n;
    before(w, statement, indent);
    s->must |= n->loop != NULL;
    statement_write(w, &w->body, n, line, indent);
    s->node = NULL;
    for (int i = 0; i < w->g->nmetric; i++)
        s->pending |= (unsigned)(w->g->metric[i].node == n) << i;
}

/* ------------------------------------------------------------------------------- a step */

/* Those that no place to meet came behind. */
static void metrics_left(Writer *w, int phase)
{
    for (int i = 0; i < w->g->nmetric; i++)
        if (w->g->metric[i].node->phase == phase && !(w->stages->told >> i & 1))
            tell_metric(w, i, "    ");
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
                "DEVICE void %s(const Rt *r, int unit, unsigned *arrived)\n{\n"
                "    const Scratch t = {r};\n    const Region shard = {r, unit};\n"
                "    const int first = (r->first_shard + unit) * SHARD;\n%s\n"
                "    (void)t, (void)shard, (void)first;\n%s}\n\n",
                fn, s->phase[phase].nknown ? "    const int number = r->first_shard + unit;\n" : "",
                w->body.s);
    w->body = calls;
    if (s->shards == 1) {
        text_printf(&w->body, "    %s(r, 0, arrived);\n", fn);
        return;
    }
    text_printf(&w->body, "    for (int unit = 0; unit < %lld; unit++)\n        %s(r, unit, arrived);\n",
                (long long)s->shards, fn);
    stage_meet(w);
}

/* The update of the step before: it has changed parameters, and read sums; clipped gradients went through the scratch. */
static void begin_behind_update(Writer *w)
{
    const bool clips = w->g->recipe.clip_norm > 0;
    const Touch before[] = {{.memory = MEMORY_FIXED, .to = INT64_MAX, .writes = true},
                            {.memory = MEMORY_SCRATCH, .to = clips ? INT64_MAX : 0, .writes = true},
                            {.memory = MEMORY_SHARD, .to = INT64_MAX}};
    remember(w, before, (int)(sizeof before / sizeof *before));
}

static void step_stages(Writer *w)
{
    const Step *s = w->g->step;
    int line = 0, number = 0, of = 0;

    for (int i = 0; i < s->nphase; i++)
        of += s->phase[i].kind == PHASE_SLICE;
    begin_behind_update(w);
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
            text_add(&w->body, "\n    /* sums over shards in the fixed tree, and the update of all parameters */\n");
            stage_meet(w);
            cuda_update(w, false);
            break;
        case PHASE_WIDE:   /* the processor's */
        case PHASE_UPDATE: /* of gradients that ranks have added: there are none */
            break;
        }
    }
}

/* The stages of a step, by so many blocks; the functions of its phases stand in s->functions. */
static Text stages_of(Writer *w, int cluster, Stages *s)
{
    const Text body = w->body;

    *s = (Stages){.cluster = cluster, .functions = text_new(w->arena)};
    w->body = text_new(w->arena);
    w->stages = s;
    step_stages(w);
    w->stages = NULL;
    const Text stages = w->body;
    w->body = body;
    return stages;
}

static double seconds_together(const Gpu *g, const Stages *s, int cluster)
{
    return cluster ? s->few + s->meetings * g->meet_cluster : s->all + s->meetings * g->meet_all;
}

static int steps_of_launch(double seconds)
{
    const double n = LAUNCH_MS / (1e3 * seconds);
    return n < 1 ? 1 : n > STEPS ? STEPS : (int)n;
}

void steps_write(Writer *w)
{
    const Gpu *g = gpu_of(w->in->options->arch);
    Stages s;
    Text t = text_new(w->arena);

    stages_of(w, 0, &s);
    const double all = seconds_together(g, &s, 0), few = seconds_together(g, &s, CLUSTER),
                 launches = s.all + s.stages * g->gap;
    const int cluster = g->clusters && few < all ? CLUSTER : 0;
    const double seconds = cluster ? few : all;
    const Text stages = stages_of(w, cluster, &s);

    w->steps_most = steps_of_launch(seconds);
    w->steps_how = cluster ? arena_printf(w->arena, "one cluster of %d blocks", cluster) : "all blocks that fit on the GPU";
    const char *said = g->clusters ? arena_printf(w->arena, "%.0f us by one cluster of %d: so it is %s.", 1e6 * few, CLUSTER, w->steps_how)
                                   : "which has no clusters.";
    w->steps_said[0] = arena_printf(w->arena, "%d stages and %d meetings a step, up to %d steps a launch", s.stages, s.meetings, w->steps_most);
    w->steps_said[1] = arena_printf(w->arena, "Predicted for an %s, not measured: %.0f us as a launch a stage; as one launch %.0f us by all blocks that fit,",
                                    g->name, 1e6 * launches, 1e6 * all);
    w->steps_said[2] = said;
    text_printf(&t, "/* ---- many steps in one launch: %s ----\n *\n * %s\n * %s\n */\n\n", w->steps_said[0], w->steps_said[1], said);
    text_printf(&t,
                "%s/* A step, by all blocks together: its first stages touch nothing that the update before them does, or meet. */\n"
                "DEVICE void train_step(const Rt *r, unsigned *arrived)\n{\n    const Scratch t = {r};\n\n    (void)t;\n%s}\n\n",
                s.functions.s, stages.s);
    text_printf(&t,
                "/* n steps; one whose loss is not finite has updated nothing, and is the last. */\n"
                "KERNEL_OF_STEPS train_steps(const Rt *r, int64_t stride, int n, unsigned *arrived)\n{\n"
                "    for (int i = 0; i < n; i++, r = next_step(r, stride)) {\n"
                "        train_step(r, arrived);\n"
                "        if (!update_allowed(r, %d))\n            return;\n    }\n}\n\n",
                cuda_loss(w->g));
    text_printf(&t,
                "static void train_launch(const Rt *first, int64_t stride, int n, unsigned *arrived)\n{\n"
                "    LAUNCH_STEPS(train_steps, %d, first, stride, n, arrived);\n}\n\n",
                cluster);
    w->steps = t;
}

const char *emit_steps_said(Arena *a, const EmitInput *in)
{
    Writer w;
    program_begin(&w, in, a);
    steps_write(&w);
    return arena_printf(a, "%s\n  %s %s", w.steps_said[0], w.steps_said[1], w.steps_said[2]);
}

/* ------------------------------------------------------------------------------- steps of a graph */

/* Launches of a step; those that a kernel's form or a library's call has more of are not counted. */
static double launches_of(const Step *s)
{
    double n = 0;
    for (int i = 0; i < s->nphase; i++) {
        const double times = s->phase[i].kind == PHASE_SLICE ? (double)s->shards : 1;
        for (int k = 0; k < s->phase[i].nnode; k++)
            if (kernel_needed(s->phase[i].node[k]))
                n += (double)node_steps(s->phase[i].node[k]) * times;
        n += s->phase[i].nknown * times;
    }
    return n;
}

/* 16 steps leave each 2 us of what the host does between two launches, assumed to be 30.  Fewer where the products alone take long, which
 * are a floor of the time of a step, or where a graph would be large: a step of many launches takes long, too. */
void steps_of_graph(Writer *w)
{
    const Graph *g = w->g;
    const Options *o = w->in->options;
    const double peak = gpu_peak(gpu_of(o->arch), o->tf32 ? GPU_TF32 : gpu_half(o->half)),
                 seconds = emit_flops(g) * (double)g->recipe.batch / peak, launches = launches_of(g->step);

    w->steps_most = GRAPH_STEPS;
    while (w->steps_most > 1 &&
           (w->steps_most * seconds > 1e-3 * LAUNCH_MS || w->steps_most * launches > GRAPH_NODES))
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
