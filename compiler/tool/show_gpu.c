/* show_gpu.c -- what `tenon show --target cuda` prints: the launches of a step, and its memory.
 *
 * Times come from a roofline (ir/gpu.h): predicted, never measured.
 */
#include "tool/show_gpu.h"
#include "emit/launch.h"
#include "ops/op.h"
#include "tool/plans.h"
#include "tool/process.h"
#include <stdio.h>
#include <string.h>

typedef struct Sheet {
    Arena *arena;
    const Gpu *gpu;
    GpuType type;
    GraphPlan *plan;       /* plans of the cuDNN launches, in order; NULL: not planned */
    const char *unplanned; /* why there is none */
    double seconds, operations, bytes; /* of a step */
    int64_t launches, workspace;       /* the largest; launches run one after another */
} Sheet;

typedef struct Line {
    const char *place, *name, *pattern, *engine;
    int64_t times, workspace;
    double operations, bytes, seconds; /* of all its launches */
} Line;

static const char *launch_count(Arena *a, double v)
{
    return v > 0 ? text_commas(a, (int64_t)(v + .5)) : "-";
}

static void print_sheet_line(Sheet *s, const Line *l)
{
    Arena *a = s->arena;
    printf("%4s  %-24s %-44s %-26s %6s %12s %14s %18s %10.2f us\n", l->place, l->name, l->pattern,
           l->engine, l->times > 1 ? launch_count(a, (double)l->times) : "",
           l->workspace ? text_bytes(a, l->workspace) : "-", launch_count(a, l->bytes),
           launch_count(a, l->operations), 1e6 * l->seconds);
    s->seconds += l->seconds, s->operations += l->operations, s->bytes += l->bytes,
        s->launches += l->times;
    s->workspace = l->workspace > s->workspace ? l->workspace : s->workspace;
}

static const char *engine_name(Arena *a, long long engine, const char *notes)
{
    return arena_printf(a, "cuDNN %lld%s%s", engine, *notes == '-' ? "" : " ",
                        *notes == '-' ? "" : notes);
}

static const char *engine_text(const Sheet *s, const GraphPlan *p)
{
    return p ? engine_name(s->arena, p->engine, p->notes) : "cuDNN, not planned";
}

/* The nodes of a launch: the first `fused` ones, or those that are left to a kernel of Tenon. */
static const char *pattern(Arena *a, const Launch *l, int from, int to)
{
    Text t = text_new(a);
    for (int i = from; i < to; i++)
        text_printf(&t, "%s%s", i > from ? " + " : "",
                    i ? l->fused[i - 1]->op->name : l->node->op->name);
    return t.s;
}

/* ", 3 channels as 8" if pass lanes pads samples. */
static const char *lanes_text(Arena *a, const Node *n)
{
    const Node *x = n->in[0];
    return node_lanes(x) ? arena_printf(a, ", %lld channels as %lld", (long long)x->shape.dim[0],
                                        (long long)node_lanes(x))
                         : "";
}

/* The first variant fuses everything; after another variant, a kernel of Tenon does the rest. */
static void show_launch(Sheet *s, const Launch *l, const GraphPlan *p)
{
    const bool product = l->by == BY_CUDNN || l->by == BY_CUBLAS, apart = p && p->way > 0;
    const double t = (double)l->times;
    const int with = apart ? l->nfused - p->way + 1 : 0;
    Line x = {.place = l->node->span.source ? arena_printf(s->arena, "%d", l->node->span.line) : "",
              .name = l->node->name ? l->node->name : "",
              .pattern = apart ? pattern(s->arena, l, 0, with) : l->pattern,
              .times = l->times,
              .operations = l->operations * t,
              .bytes = l->bytes * t};
    if (l->by == BY_CUDNN)
        x.pattern = arena_printf(s->arena, "%s%s", x.pattern, lanes_text(s->arena, l->node));
    x.engine = l->by == BY_CUDNN    ? engine_text(s, p)
               : l->by == BY_CUBLAS ? "cuBLASLt"
                                    : "own kernel";
    x.workspace = p ? p->workspace : 0;
    x.seconds = t * gpu_seconds(s->gpu, s->type, product, l->operations, l->bytes);
    print_sheet_line(s, &x);
    if (!apart)
        return;
    x.pattern = pattern(s->arena, l, with, l->nfused + 1), x.engine = "own kernel",
    x.operations = 0, x.workspace = 0, x.bytes = l->rest_bytes;
    x.seconds = gpu_seconds(s->gpu, s->type, false, 0, l->rest_bytes);
    print_sheet_line(s, &x);
}

/* ---- planning */

static bool all_have_engines(const Launch *l, int n, const GraphPlan *p, const Command *c, Diag *d)
{
    const int before = diag_errors(d);
    for (int i = 0, k = 0; i < n; i++) {
        if (l[i].by != BY_CUDNN || p[k++].planned)
            continue;
        diag_error(d, l[i].node->span, "cuDNN has no engine on %s for this %s in %s",
                   c->options.arch, l[i].pattern, c->gpu_dtype);
        diag_note(d, "%s", p[k - 1].why);
        diag_note(d, "the graph: %s", p[k - 1].ways);
        diag_help(d, "try another --dtype or --arch, or sizes that are multiples of 8");
    }
    return diag_errors(d) == before;
}

static bool plan(Sheet *s, const Command *c, const Launch *l, int n, Diag *d)
{
    Arena *a = s->arena;
    const PlanWish wish = {.arch = c->options.arch,
                           .driver = c->driver ? c->driver : "13.0",
                           .exact = s->type == GPU_F32,
                           .jobs = process_cores(),
                           .no_cache = c->no_cache};
    GraphPlan *p = arena_alloc(a, (size_t)(n + 1) * sizeof *p);
    int k = 0;
    for (int i = 0; i < n; i++)
        if (l[i].by == BY_CUDNN)
            p[k++].ways = l[i].ways;
    const char *version = k ? plans_version(a, &s->unplanned) : NULL;
    if (!version)
        return true;
    s->plan = p;
    return plans_make(a, version, &wish, p, k, d) && all_have_engines(l, n, p, c, d);
}

/* ---- memory */

static void print_gpu_bytes(Arena *a, const char *what, int64_t bytes, const char *how)
{
    printf("  %-28s %12s   %s\n", what, text_bytes(a, bytes), how);
}

static void show_memory(const Sheet *s, const Graph *g, const Launch *l, int n)
{
    /* cuBLASLt needs 32 MB on Hopper; CUDA's context and the code of its libraries and NVRTC take
     * about 0.5 GB. */
    enum { PRODUCTS = 32 << 20, CONTEXT = 500000000 };
    static const struct {
        const char *name;
        double bytes;
    } cards[] = {{"A100 40 GB", 40e9},
                 {"A100 and H100 80 GB", 80e9},
                 {"H200", 141e9},
                 {"B200", 180e9}};
    Arena *a = s->arena;
    int64_t bound;
    const int64_t fixed = launch_fixed(g, s->type),
                  values = launch_memory(a, g, s->type, l, n, &bound);
    const int64_t workspace = s->workspace > PRODUCTS ? s->workspace : PRODUCTS,
                  all = fixed + values + workspace + CONTEXT;
    printf("memory\n");
    print_gpu_bytes(a, "parameters and states", fixed,
                    arena_printf(a, "f32 values, gradients, %d optimizer state%s", g->nstate,
                                 gpu_bytes(s->type) < 4 ? ", a copy in the type of the computation"
                                                        : ""));
    print_gpu_bytes(a, "activations and gradients", values,
                    arena_printf(a, "planned; lower bound %s", text_bytes(a, bound)));
    print_gpu_bytes(a, "workspace", workspace, "the largest of one launch; 32 MB for products");
    print_gpu_bytes(a, "CUDA", CONTEXT, "context and libraries, an estimate");
    print_gpu_bytes(a, "all", all, "plus the data set as it is stored, if it fits");
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        printf("  %s %s\n", (double)all < .95 * cards[i].bytes ? "fits" : "does not fit",
               cards[i].name);
}

static void show_total(const Sheet *s, const Graph *g)
{
    Arena *a = s->arena;
    printf("      %s launches a step, %s FLOPs, %s bytes: %.1f us, %s samples/s predicted\n",
           text_commas(a, s->launches), launch_count(a, s->operations), launch_count(a, s->bytes),
           1e6 * s->seconds, launch_count(a, (double)g->recipe.batch / s->seconds));
    printf("      predicted: a roofline of the %s (%s): gap %.1f us + the larger of FLOPs / %.0f "
           "T/s (products), bytes / %.1f TB/s; "
           "a lower bound, not a measurement\n",
           s->gpu->name, s->gpu->source, 1e6 * s->gpu->gap, 1e-12 * gpu_peak(s->gpu, s->type),
           1e-12 * s->gpu->bandwidth);
}

bool show_gpu(Arena *a, const Command *c, Graph *train, Diag *d)
{
    if (strcmp(train->recipe.dtype, "f64") == 0) {
        diag_error(d, train->recipe.span,
                   "a step on a GPU is predicted in f32, tf32, bf16 or f16, not in f64");
        diag_help(d, "add --dtype f32");
        return false;
    }
    Sheet s = {.arena = a, .gpu = gpu_of(c->options.arch), .type = gpu_type(c->gpu_dtype)};
    Launch *l;
    const int n = launch_list(a, train, s.type, &l);
    if (!plan(&s, c, l, n, d))
        return false;
    printf("\na step of %lld samples on %s (%s), %s\n", (long long)train->recipe.batch, s.gpu->name,
           c->options.arch, c->gpu_dtype);
    printf("%4s  %-24s %-44s %-26s %6s %12s %14s %18s %13s\n", "line", "name", "launch", "engine",
           "times", "workspace", "bytes", "FLOPs", "predicted");
    for (int i = 0, k = 0; i < n; i++) {
        const GraphPlan *p = l[i].by == BY_CUDNN && s.plan ? &s.plan[k++] : NULL;
        if (l[i].by != BY_VIEW)
            show_launch(&s, &l[i], p);
    }
    show_total(&s, train);
    printf("      this is a step with cuDNN and cuBLASLt; programs built with --target cuda "
           "--kernels=cudnn use them for products and convolutions,\n      fuse less (tenon show "
           "with these options), and use Tenon's kernels for the rest\n");
    if (c->forms)
        printf("      with Tenon's own kernels alone: %s\n", c->forms);
    if (s.unplanned)
        printf("      cuDNN's graphs are not planned, so engines and workspaces are missing: %s\n",
               s.unplanned);
    show_memory(&s, train, l, n);
    return true;
}

/* ---- the program's convolutions */

void show_graphs(Arena *a, const Command *c, const EmitPlan *plan, int n, bool planned)
{
    static const char format[] = "%4s  %-24s %-41s %-14s %-30s %12s\n";
    int whole = 0, joined = 0;
    if (n == 0) {
        printf("\nthe program computes no convolution with cuDNN\n");
        return;
    }
    printf("\ncuDNN graphs of the program's convolutions, without duplicates, on %s (%s)%s\n",
           gpu_of(c->options.arch)->name, c->options.arch,
           c->options.tf32                ? ", in tf32"
           : c->options.half == HALF_BF16 ? ", in bf16"
           : c->options.half              ? ", in f16"
                                          : "");
    printf(format, "line", "name", "graph", "kernel behind", "engine", "workspace");
    for (int i = 0; i < n; i++) {
        const EmitPlan *p = &plan[i];
        const Span at = p->node->span;
        printf(format, at.source ? arena_printf(a, "%d", at.line) : "",
               p->node->name ? p->node->name : "",
               arena_printf(a, "%s%s%s%s", p->node->op->name, *p->inside ? " + " : "", p->inside,
                            lanes_text(a, p->node)),
               *p->behind ? p->behind : "-",
               planned ? engine_name(a, p->engine, p->notes) : "not planned",
               planned ? text_bytes(a, p->workspace) : "-");
        joined += *p->inside || *p->behind, whole += *p->inside && !*p->behind;
    }
    printf("      %d graphs; %d have operations behind the convolution, %d of them fuse all of "
           "these\n",
           n, joined, whole);
    if (!planned)
        printf("      not planned: the program takes each convolution without fusion, and plans it "
               "at its first start\n");
}
