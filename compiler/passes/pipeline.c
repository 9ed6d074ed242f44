/* pipeline.c -- the pass table: every transformation between the front end and the emitter, in
 * order, and why it stands there. */
#include "passes/pass.h"
#include <stdio.h>
#include <string.h>

const Pass pass_table[] = {
    /* name, function, optional, training, own */
    {"infer", pass_infer, false, false, false,
     "shapes proved by each op's own rule; which values a parameter reaches"},
    {"hoist", pass_hoist, true, false, false,
     "what a scan does with its elements alone leaves the loop; before gradient, which follows it"},
    {"gradient", pass_gradient, false, true, false,
     "the backward pass and the updates join the graph; later passes see one program"},
    {"simplify", pass_simplify, true, false, false,
     "algebra that makes nodes vanish; first, so that equals look equal to cse"},
    {"store", pass_store, false, false, false,
     "a number that is read as a tensor in memory gets a place there; after simplify, which makes numbers"},
    {"cse", pass_cse, true, false, false,
     "values computed twice are computed once; before dce, which sweeps up"},
    {"dce", pass_dce, false, false, false,
     "what reaches no output, loss, metric or update goes; fuse must not count its uses"},
    {"stretch", pass_stretch, true, false, false,
     "loops back make stretches of steps again (`recompute`); before fuse, which may then not "
     "store"},
    {"fuse", pass_fuse, true, false, true,
     "bias, activation and pooling join their producer, masks the backward kernels"},
    {"epilogue", pass_epilogue, true, false, false,
     "with --kernels=cudnn bias and relu join products; in fuse's place, which is the processor's"},
    {"narrow", pass_narrow, true, false, false,
     "with --dtype bf16 or f16 products read and write it, and so does what lies between them; after "
     "epilogue, which decides what a product is"},
    {"chains", pass_chains, true, false, false,
     "elementwise operations behind each other are one loop; after narrow, which stores what it converts"},
    {"choose", pass_choose, true, false, true,
     "which algorithm computes a convolution; before layout, which packs weights for it"},
    {"wide", pass_wide, true, true, true,
     "large dense layers of small batches take all samples at once; before layout, which turns "
     "the weights of others"},
    {"layout", pass_layout, true, false, false,
     "channels innermost, weights in panels; after fuse, which decides who reads what"},
    {"lanes", pass_lanes, true, false, false,
     "samples of few channels lie as 8 where cuDNN's engines want that; after layout, which puts "
     "channels innermost"},
    {"steps", pass_steps, true, false, true,
     "sequences of scans lie step by step; after layout, before what it lays out is cut up"},
    {"slices", pass_slices, true, false, true,
     "parts of a concat are written, and slices read, where they lie; needs the layout"},
    {"schedule", pass_schedule, false, false, false,
     "phases and places: what runs per slice, what once, where a barrier stands"},
    {"plan", pass_plan, false, false, false,
     "lifetimes become offsets in one arena; after all that changes the order of calls"},
    {"recompute", pass_recompute, false, false, false,
     "values made again instead of kept: cheap ones, more under --memory-limit; last, for it asks "
     "what plans need"},
    {0}};

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

/* The first pass that reports an error is the last that runs. */
bool pass_run_all(Graph *g, const Options *o, Diag *d)
{
    const int before = diag_errors(d);
    for (const Pass *p = pass_table; p->name; p++) {
        if ((p->optional && o->plain) || (p->own && (o->blas || o->cuda)) ||
            (p->training && !g->training))
            continue;
        p->run(g, o, d);
        if (diag_errors(d) > before || !verify(g, p, o, d))
            return false;
        dump(g, p, o);
    }
    return true;
}
