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
    ANY_CPU = CPU | TARGET_BLAS,         /* also with a BLAS library */
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
     .cleans = true, .why = "values that the pass before has left without readers go"}

const Pass pass_table[] = {
    ROW(infer, ALL, 0, "shapes proved by each op's own rule; which values a parameter reaches"),
    ROW(hoist, ALL, OPTIONAL, "what a scan does with its elements alone leaves the loop"),
    ROW(gradient, ALL, TRAINING, "the backward pass and the updates join the graph"),
    ROW(simplify, ALL, OPTIONAL, "algebra that makes nodes vanish"),
    ROW(store, ALL, 0, "a number that is read as a tensor in memory gets a place there"),
    ROW(cse, ALL, OPTIONAL, "values computed twice are computed once"),
    ROW(dce, ALL, 0, "what reaches no output, loss, metric or update goes"),
    ROW(stretch, ANY_CPU, OPTIONAL, "loops back make stretches of steps again (`recompute`)"),
    CLEAN(ANY_CPU, OPTIONAL),
    ROW(fuse, CPU, OPTIONAL,
        "bias, activation and pooling join their producer, masks the backward kernels"),
    CLEAN(CPU, OPTIONAL),
    ROW(epilogue, LIBRARY, OPTIONAL, "with --kernels=cudnn bias and relu join products"),
    CLEAN(LIBRARY, OPTIONAL),
    ROW(narrow, TENSOR, OPTIONAL,
        "with --dtype bf16 or f16 products read and write it, and so does what lies between them"),
    CLEAN(TENSOR, OPTIONAL),
    ROW(chains, CPU | LIBRARY | TARGET_GPU, OPTIONAL,
        "elementwise operations behind each other are one loop"),
    ROW(choose, CPU, OPTIONAL, "which algorithm computes a convolution"),
    ROW(wide, CPU, OPTIONAL | TRAINING,
        "large dense layers of small batches take all samples at once"),
    ROW(layout, CPU | TENSOR, OPTIONAL, "channels innermost, weights in panels"),
    ROW(lanes, TENSOR, OPTIONAL,
        "samples of few channels lie as 8 where cuDNN's engines want that"),
    ROW(steps, CPU, OPTIONAL, "sequences of scans lie step by step"),
    ROW(slices, CPU, OPTIONAL, "parts of a concat are written, and slices read, where they lie"),
    ROW(schedule, ALL, 0,
        "phases and places: what runs per slice, what once, where a barrier stands"),
    ROW(plan, ALL, 0, "lifetimes become offsets in one arena"),
    ROW(recompute, ALL, 0,
        "values made again instead of kept: cheap ones, more under --memory-limit; repeats "
        "schedule and plan",
        .repeats = "schedule"),
    {0}};

/* `first` stands before `second`, because: why. */
const PassOrder pass_order[] = {
    {"infer", "hoist", "hoist copies shapes, which infer proves"},
    {"hoist", "gradient", "the backward pass follows what has left the loop"},
    {"gradient", "simplify", "later passes see forward, backward and updates as one program"},
    {"simplify", "store", "simplify makes numbers, and store gives them memory"},
    {"simplify", "cse",
     "equal values look equal to cse once algebra has brought them into one form"},
    {"cse", "dce", "dce removes what cse has replaced"},
    {"dce", "stretch", "stretch copies for each stack that is read, and dce drops the others"},
    {"dce", "fuse", "fuse joins what has one reader, and must not count dead ones"},
    {"stretch", "fuse", "fuse may store nothing that stretch computes again"},
    {"fuse", "narrow", "fuse decides what a product is, and narrow stores products"},
    {"epilogue", "narrow", "epilogue decides what a product is, and narrow stores products"},
    {"narrow", "chains", "narrow stores what it converts, and chains may not inline it"},
    {"fuse", "chains", "fuse takes the elementwise operations that a kernel can compute"},
    {"fuse", "choose", "the algorithm of a convolution depends on what is joined to it"},
    {"choose", "layout", "layout packs weights for the chosen algorithm"},
    {"wide", "layout", "layout turns the weights of all layers but the wide ones"},
    {"fuse", "layout", "fuse decides who reads what"},
    {"layout", "lanes", "layout puts channels innermost"},
    {"layout", "steps", "steps lays out by time what layout has left in rows"},
    {"layout", "slices", "channels of a slice are neighbours only in the layout of images"},
    {"steps", "slices", "slices leaves alone what lies in a sequence"},
    {"slices", "schedule", "phases contain the calls that are left"},
    {"schedule", "plan", "lifetimes are counted in the calls of the phases"},
    {"plan", "recompute", "recompute asks what plans need"},
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
    if (!wrong && planned && (last || o->verify)) /* always: 1 to 3 % of the time of `tenon emit` */
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

/* The first pass that reports an error is the last one that runs.  A pass and the row that cleans
 * up after it count as one: between them, nodes without readers can have no inputs. */
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
