/* show_gpu.c -- what `tenon show --target cuda` prints: the calls of a step, and its memory.
 *
 * Rows and counts come from emit_step: the same array of calls from which the emitter writes the
 * program.
 */
#include "tool/show_gpu.h"
#include "base/text.h"
#include "ir/gpu.h"
#include "ops/op.h"
#include <stdio.h>
#include <string.h>

static const char *count_text(Arena *a, double v)
{
    return v > 0 ? text_commas(a, (int64_t)(v + .5)) : "-";
}

/* ---- rows */

static const char *engine_text(Arena *a, const EmitLaunch *r)
{
    const EmitPlan *p = r->plan;
    if (!p)
        return r->from_library ? r->from_library : r->barrier ? "Tenon, after a barrier" : "Tenon";
    return !p->text ? arena_printf(a, "%s, not planned", r->from_library)
                    : arena_printf(a, "%s %lld%s%s", r->from_library, p->engine,
                                   *p->notes == '-' ? "" : " ", *p->notes == '-' ? "" : p->notes);
}

/* ", 3 channels as 8" if pass lanes pads the samples of a convolution by cuDNN. */
static const char *lanes_text(Arena *a, const EmitLaunch *r)
{
    const Node *x = r->plan ? r->node->in[0] : NULL;
    return x && node_lanes(x) ? arena_printf(a, ", %lld channels as %lld",
                                             (long long)x->shape.dim[0], (long long)node_lanes(x))
                              : "";
}

static void print_launch(Arena *a, const EmitLaunch *r)
{
    const Node *n = r->node;
    const int64_t workspace = r->plan ? r->plan->workspace : 0;
    printf("%4s  %-24s %-44s %-26s %6s %8s %12s %14s %18s %10.2f us\n",
           n && n->span.source ? arena_printf(a, "%d", n->span.line) : "",
           n && n->name ? n->name : "", arena_printf(a, "%s%s", r->what, lanes_text(a, r)),
           engine_text(a, r), r->times > 1 ? count_text(a, (double)r->times) : "",
           r->from_library ? "" : count_text(a, (double)r->blocks),
           workspace ? text_bytes(a, workspace) : "-", count_text(a, r->bytes),
           count_text(a, r->flops), 1e6 * r->seconds);
}

static void show_rows(Arena *a, const EmitInput *in, const EmitStep *e)
{
    printf("%4s  %-24s %-44s %-26s %6s %8s %12s %14s %18s %13s\n", "line", "name",
           in->options->persistent ? "stage" : "launch", "engine", "times", "blocks", "workspace",
           "bytes", "FLOPs", "predicted");
    for (int i = 0; i < e->n; i++)
        print_launch(a, &e->row[i]);
}

/* ---- totals */

static const char *type_text(const Options *o)
{
    return o->tf32 ? "tf32" : gpu_type_name(gpu_half(o->half));
}

static void show_total(Arena *a, const EmitInput *in, const EmitStep *e)
{
    const Options *o = in->options;
    const Gpu *g = gpu_of(o->arch);
    double flops = 0, bytes = 0;
    for (int i = 0; i < e->n; i++)
        flops += e->row[i].flops, bytes += e->row[i].bytes;
    const char *counts = arena_printf(a, "%s launches a step", text_commas(a, e->launches));
    if (o->persistent)
        counts =
            arena_printf(a, "%s stages and %s barriers a step, %d steps a launch",
                         text_commas(a, e->stages), text_commas(a, e->barriers), e->steps_most);
    if (e->external_calls)
        counts = arena_printf(a, "%s, %s of them calls of libraries", counts,
                              text_commas(a, e->external_calls));
    printf("      %s, %s FLOPs, %s bytes: %.1f us, %s samples/s predicted\n", counts,
           count_text(a, flops), count_text(a, bytes), 1e6 * e->seconds,
           count_text(a, (double)in->train->recipe.batch / e->seconds));
    printf("      predicted: a roofline of the %s (%s): gap %.1f us + the larger of FLOPs / %.0f "
           "T/s, in libraries %.0f T/s, and bytes / %.1f TB/s, longer where blocks leave "
           "multiprocessors idle; a lower bound, not a measurement\n",
           g->name, g->source, 1e6 * g->gap, 1e-12 * g->f32, 1e-12 * gpu_peak(g, gpu_products(o)),
           1e-12 * g->bandwidth);
    if (e->said)
        printf("  %s\n", e->said);
}

/* Prints the number of convolutions that have operations after them, and how many of their cuDNN
 * graphs contain all these operations. */
static void show_fusion(const EmitStep *e)
{
    int more = 0, all = 0, unplanned = 0;
    for (int i = 0; i < e->n; i++) {
        const EmitPlan *p = e->row[i].plan;
        more += p && p->nepilogue > 0, all += p && p->nepilogue > 0 && p->variant == 0;
        unplanned += p && !p->text;
    }
    if (more)
        printf("      %d convolutions have operations after them; in %d the graph contains all "
               "of these\n",
               more, all);
    if (unplanned)
        printf("      %d graphs are not planned: the program takes each convolution without "
               "fusion, and plans it at its first start\n",
               unplanned);
}

/* ---- memory */

static int64_t print_bytes(Arena *a, const char *what, int64_t bytes, const char *how)
{
    if (bytes > 0)
        printf("  %-28s %12s   %s\n", what, text_bytes(a, bytes), how);
    return bytes;
}

static void show_memory(Arena *a, const EmitInput *in, const EmitStep *e)
{
    /* CUDA's context and the code of its libraries and NVRTC take about 0.5 GB. */
    enum { CONTEXT = 500000000 };
    static const struct {
        const char *name;
        double bytes;
    } cards[] = {{"A100 40 GB", 40e9},
                 {"A100 and H100 80 GB", 80e9},
                 {"H200", 141e9},
                 {"B200", 180e9}};
    const Step *s = in->train->step;
    const int64_t derived = s->fixed_bytes - s->parameter_bytes - s->state_bytes;
    int64_t all = 0;

    printf("memory\n");
    all += print_bytes(a, "parameters", s->parameter_bytes, "one copy");
    const int64_t averages = s->average_offset > 0 ? s->parameter_bytes : 0;
    all += print_bytes(a, "optimizer state", s->state_bytes - averages,
                       arena_printf(a, "%d of each parameter", in->train->nstate));
    all += print_bytes(a, "averages", averages, "of the parameters");
    all += print_bytes(a, "copies of parameters", derived, "computed again in every step");
    all += print_bytes(a, "shards", s->shards * s->shard_bytes,
                       arena_printf(a, "%lld x %s; lower bound %s", (long long)s->shards,
                                    text_bytes(a, s->shard_bytes), text_bytes(a, s->bound_shard)));
    all += print_bytes(a, "scratch", s->thread_bytes,
                       arena_printf(a, "lower bound %s", text_bytes(a, s->bound_thread)));
    all += print_bytes(a, "samples", e->samples, "of two steps");
    all += print_bytes(a, "gradients", s->fused_update ? 0 : s->grad_bytes, "added before updates");
    all += print_bytes(a, "workspace", e->workspace, "of libraries; partial sums");
    all += print_bytes(a, "CUDA", CONTEXT, "context and libraries, an estimate");
    print_bytes(a, "all", all, "plus the data set as it is stored, if it fits");
    print_bytes(a, "averages", s->average_bytes, "of the parameters, in the host's memory");
    print_bytes(a, "best weights", s->kept_bytes, "a copy for 'keep', in the host's memory");
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        printf("  %s %s\n", (double)all < .95 * cards[i].bytes ? "fits" : "does not fit",
               cards[i].name);
}

bool show_gpu(Arena *a, const EmitInput *in, Diag *d)
{
    const Options *o = in->options;
    if (strcmp(in->dtype, "f64") == 0) {
        diag_error(d, in->train->recipe.span,
                   "a step on a GPU is predicted in f32, tf32, bf16 or f16, not in f64");
        diag_help(d, "add --dtype f32");
        return false;
    }
    const EmitStep e = emit_step(a, in);
    printf("\na step of %lld samples on %s (%s), %s%s\n", (long long)in->train->recipe.batch,
           gpu_of(o->arch)->name, o->arch, type_text(o),
           o->persistent ? ", in one launch with other steps" : "");
    show_rows(a, in, &e);
    show_total(a, in, &e);
    show_fusion(&e);
    show_memory(a, in, &e);
    return true;
}
