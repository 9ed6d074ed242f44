/* pipeline.c -- the pass table: each transformation between the front end and the emitter, in
 * order, with the reasons for this order. */
#include "ir/target.h"
#include "passes/pass.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { OPTIONAL = 1, TRAINING = 2 };

/* The targets of a pass. */
enum {
    CPU = TARGET_CPU,                    /* Tenon's own kernels on a processor */
    HALF = TARGET_HALF,                  /* the same, with products in bf16 */
    OWN = CPU | HALF,                    /* both */
    ANY_CPU = OWN | TARGET_BLAS,         /* also with a BLAS library */
    TENSOR = TARGET_TENSOR,              /* cuDNN and cuBLASLt in tf32, bf16 or f16 */
    LIBRARY = TENSOR | TARGET_CUDNN,     /* also in f32 */
    ALL = ANY_CPU | LIBRARY | TARGET_GPU /* also Tenon's own kernels on a GPU */
};

/* clang-format off */
#define ROW(title, columns, set, ...)                                                              \
    {.name = #title, .run = pass_##title, .targets = columns, .optional = (set) & OPTIONAL,        \
     .training = (set) & TRAINING, .why = __VA_ARGS__}
#define CLEAN(columns, set)                                                                        \
    {.name = "dce", .run = pass_dce, .targets = columns, .optional = (set) & OPTIONAL,             \
     .cleans = true, .why = "drops the nodes that the pass before has left without readers"}

const Pass pass_table[] = {
    ROW(infer, ALL, 0,
        "checks shapes by the rule of each op; marks the values that depend on a parameter"),
    ROW(hoist, ALL, OPTIONAL,
        "moves operations that read only elements of sequences out of the loop of a scan"),
    ROW(gradient, ALL, TRAINING, "adds the backward pass and the updates"),
    ROW(simplify, ALL, OPTIONAL, "applies algebra that needs fewer nodes"),
    ROW(store, ALL, 0, "stores constants that kernels read from memory"),
    ROW(cse, ALL, OPTIONAL, "computes equal values once"),
    ROW(dce, ALL, 0, "drops nodes that reach no output, loss, metric or update"),
    ROW(stretch, ANY_CPU, OPTIONAL,
        "backward loops recompute the forward loop in stretches (`recompute`)"),
    CLEAN(ANY_CPU, OPTIONAL),
    ROW(fuse, OWN, OPTIONAL,
        "merges bias, activation and pooling into their producer, masks into backward kernels"),
    CLEAN(OWN, OPTIONAL),
    ROW(epilogue, LIBRARY, OPTIONAL, "with --kernels=cudnn, merges bias and relu into products"),
    CLEAN(LIBRARY, OPTIONAL),
    ROW(narrow, TENSOR | HALF, OPTIONAL,
        "with --dtype bf16 or f16, stores products and the values between them in two bytes"),
    CLEAN(TENSOR | HALF, OPTIONAL),
    ROW(chains, OWN | LIBRARY | TARGET_GPU, OPTIONAL,
        "computes chains of elementwise operations in one loop"),
    ROW(choose, CPU, OPTIONAL, "chooses the algorithm of each convolution"),
    ROW(wide, CPU, OPTIONAL | TRAINING,
        "computes large dense layers of small batches for all samples at once"),
    ROW(layout, OWN | TENSOR, OPTIONAL, "stores channels innermost, and weights in panels"),
    ROW(lanes, TENSOR, OPTIONAL,
        "stores samples of few channels with 8 channels where cuDNN's engines need that"),
    ROW(steps, OWN, OPTIONAL, "stores sequences of scans step by step"),
    ROW(slices, OWN, OPTIONAL,
        "producers write directly into a concat, and readers of a slice read its input"),
    ROW(schedule, ALL, 0,
        "cuts the step into phases with barriers, and gives each value a region"),
    ROW(plan, ALL, 0, "turns lifetimes into offsets in one arena"),
    ROW(recompute, ALL, 0,
        "recomputes values instead of keeping them: cheap ones, more under --memory-limit; "
        "repeats schedule and plan",
        .repeats = "schedule"),
    {0}};

/* `first` runs before `second`; `why` is the reason.  "dce" is the first row of this name, so no
 * CLEAN row stands before it. */
const PassOrder pass_order[] = {
    {"infer", "hoist", "hoist copies shapes, which infer checks"},
    {"hoist", "gradient", "the backward pass is derived from the loop that hoist has left"},
    {"gradient", "simplify", "later passes process forward, backward and updates as one graph"},
    {"simplify", "store", "simplify makes constants, and store gives them memory"},
    {"simplify", "cse", "algebra brings equal values into one form, which cse can compare"},
    {"cse", "dce", "dce removes what cse has replaced"},
    {"dce", "stretch", "stretch recomputes each stack that has readers, and dce drops the others"},
    {"dce", "fuse", "fuse merges values with one reader, and must not count dead readers"},
    {"stretch", "fuse", "fuse need not store the values that stretch recomputes"},
    {"fuse", "narrow", "fuse forms the products that narrow stores in two bytes"},
    {"epilogue", "narrow", "epilogue forms the products that narrow stores in two bytes"},
    {"narrow", "chains",
     "narrow stores the values that it converts, and chains must not inline them"},
    {"fuse", "chains", "fuse first takes the elementwise operations that a kernel can compute"},
    {"fuse", "choose", "the algorithm of a convolution depends on what is merged into it"},
    {"choose", "layout", "layout packs weights for the chosen algorithm"},
    {"wide", "layout", "layout transposes the weights of all layers but the wide ones"},
    {"fuse", "layout", "fuse decides which ops read a value"},
    {"layout", "lanes", "lanes pads channels, which layout makes innermost"},
    {"layout", "steps", "steps changes the layout of sequences that layout has left in rows"},
    {"layout", "slices", "the channels of a slice are contiguous only in the layout of images"},
    {"steps", "slices", "slices does not move values that lie in a sequence"},
    {"slices", "schedule", "phases contain the calls that slices has left"},
    {"schedule", "plan", "lifetimes are counted in calls of the phases"},
    {"plan", "recompute", "recompute needs the size of a plan"},
    {0}};
/* clang-format on */

static const Pass *find(const Pass *table, const char *name)
{
    while (table->name && strcmp(table->name, name))
        table++;
    return table->name ? table : NULL;
}

const char *pass_misplaced(Arena *a, const Pass *table)
{
    for (const PassOrder *o = pass_order; o->first; o++) {
        const Pass *first = find(table, o->first), *second = find(table, o->second);
        if (!first || !second || first > second)
            return arena_printf(a, "pass %s must run before pass %s: %s", o->first, o->second,
                                o->why);
    }
    return NULL;
}

static void dump(const Graph *g, const Pass *p, const Options *o)
{
    if (!o->dump || (strcmp(o->dump, "all") && strcmp(o->dump, p->name)))
        return;
    fprintf(stderr, "# after %s: %s\n", p->name, p->why);
    graph_dump(g, stderr);
}

static bool verify(const Graph *g, const Pass *p, const Options *o, Diag *d)
{
    const bool last = !p[1].name, planned = last || p->run == pass_plan;
    const char *wrong = o->verify ? graph_verify(g, diag_new(g->arena, DIAG_NEVER)) : NULL;
    /* the last plan is always proved, which takes 1 to 3 % of the time of `tenon emit` */
    if (!wrong && planned && (last || o->verify))
        wrong = replay_verify(g, o);
    if (wrong)
        diag_error(d, (Span){0}, "internal error after pass %s: %s", p->name, wrong);
    return !wrong;
}

static bool runs(const Pass *p, const Graph *g, const Options *o)
{
    return p->targets & target_of(o).kind && !(p->optional && o->plain) &&
           (!p->training || g->training);
}

void pass_repeat(const char *name, Graph *g, const Options *o, Diag *d)
{
    const Pass *until = find(pass_table, name);
    for (const Pass *p = find(pass_table, until->repeats); p < until; p++)
        if (runs(p, g, o))
            p->run(g, o, d);
}

/* Stops after the first pass that reports an error.  A pass and the row that cleans up after it are
 * verified and printed as one pass, because the graph between them is not valid: nodes without
 * readers can lack inputs. */
bool pass_run_all(Graph *g, const Options *o, Diag *d)
{
    const int before = diag_errors(d);
    assert(!pass_misplaced(g->arena, pass_table));
    for (const Pass *p = pass_table; p->name; p++) {
        if (!runs(p, g, o))
            continue;
        p->run(g, o, d);
        if (diag_errors(d) > before)
            return false;
        if (p[1].cleans && runs(p + 1, g, o))
            continue;
        if (!verify(g, p, o, d))
            return false;
        dump(g, p->cleans ? p - 1 : p, o);
    }
    return true;
}
