/* supported.c -- what a training script cannot do: recipes that it refuses, with a way out. */
#include "ops/op.h"
#include "scripts/recipe.h"
#include <string.h>

static bool text_supported(const DataSpec *data, const char *to, Diag *d)
{
    if (data->unit != TEXT_BPE && (data->unit != TEXT_WORD) != data->table)
        return true;
    diag_error(d, data->span,
               "--to %s reads texts of characters or bytes, and labelled lines of words", to);
    diag_help(d, "the model can be trained with Tenon itself: tenon build");
    return false;
}

/* Scripts read tables of numbers for one input and one target. */
static bool table_supported(const Graph *g, const char *to, Diag *d)
{
    const DataSpec *data = &g->recipe.data;
    const char *what = g->ninput > 1                ? "several inputs"
                       : graph_several(g)           ? "several outputs or targets"
                       : g->input->dtype != DT_REAL ? "tokens"
                       : data->category.n > 0       ? "categories"
                       : g->input->shape.rank != 1  ? "an input that is no vector"
                                                    : NULL;
    if (!what)
        return true;
    diag_error(d, data->span, "--to %s writes scripts that read no tables with %s", to, what);
    diag_help(d, "the model can be trained with Tenon itself: tenon build");
    return false;
}

/* Scripts read several inputs as rows of numbers: a row holds all inputs of a sample. */
static bool several_supported(const Graph *g, const char *to, Diag *d)
{
    const Recipe *r = &g->recipe;
    const Node *second = g->inputs[1];
    if (strcmp(to, "pytorch") != 0) {
        diag_error(d, second->span, "--to %s writes scripts of one input, and '%s' has %d", to,
                   g->name, g->ninput);
        diag_help(d, "--to pytorch writes scripts of several inputs");
        return false;
    }
    if (r->target->kind == LEARN_INPUT) {
        diag_error(d, r->target->span,
                   "--to %s writes no scripts of several inputs, if one is the target", to);
        diag_help(d, "declare the target with its shape, and store it as train_y.npy");
        return false;
    }
    if (g->label && g->label->shape.rank > 0 && strcmp(r->data.name, "synthetic") == 0) {
        diag_error(d, r->data.span,
                   "--to %s makes no synthetic data of several inputs with a class for each "
                   "position",
                   to);
        diag_help(d, "take a directory with arrays: data = \"directory\"");
        return false;
    }
    for (int i = 0; i < g->ninput; i++)
        if (g->inputs[i]->dtype != DT_REAL && strcmp(r->data.name, "synthetic") == 0) {
            diag_error(d, r->data.span,
                       "--to %s makes no synthetic data of tokens beside other inputs", to);
            diag_help(d, "take a directory with arrays: data = \"directory\"");
            return false;
        }
    return true;
}

/* Scripts hold several outputs, and their targets, as rows of numbers. */
static bool compared_supported(const Graph *g, const char *to, Diag *d)
{
    const Recipe *r = &g->recipe;
    const bool outputs = g->noutput > 1;
    if (strcmp(to, "pytorch") != 0) {
        diag_error(d, outputs ? g->outputs[1].span : r->target[1].span,
                   "--to %s writes scripts of one %s, and '%s' has %d", to,
                   outputs ? "output" : "target", g->name, outputs ? g->noutput : r->ntarget);
        diag_help(d, "--to pytorch writes scripts of several outputs and targets");
        return false;
    }
    for (int i = 0; i < r->ntarget; i++) {
        const bool input = r->target[i].kind == LEARN_INPUT && (r->ntarget > 1 || g->ninput > 1);
        if (!input && (r->target[i].kind != LEARN_CLASS || g->targets[i]->shape.rank == 0))
            continue;
        diag_error(d, r->target[i].name ? r->target[i].span : g->outputs[0].span,
                   input ? "--to %s writes no scripts of several inputs or targets with an input "
                           "as a target"
                         : "--to %s writes no scripts of several outputs or targets with a class "
                           "for each position",
                   to);
        diag_help(d, "the model can be trained with Tenon itself: tenon build");
        return false;
    }
    return true;
}

/* Whether the script supports classes of pixels and weights of classes.  Only scripts of PyTorch
 * do. */
static bool pixels_supported(const Graph *g, const char *to, Diag *d)
{
    const TargetSpec *t = g->recipe.target;
    const bool pytorch = strcmp(to, "pytorch") == 0,
               positions = g->label && g->label->shape.rank > 0;
    const char *what = g->pixels    ? "a class for each pixel"
                       : t->ignored ? "a class that is ignored at positions"
                       : t->weights ? "weights of classes"
                                    : NULL;
    if (!what || (pytorch && (g->pixels || !positions)))
        return true;
    diag_error(d, t->name ? t->span : g->loss->span, "--to %s writes no scripts with %s%s", to,
               what, t->weights && !g->pixels && positions ? " of positions" : "");
    diag_help(d, "%s",
              pytorch ? "the model can be trained with Tenon itself: tenon build"
                      : "--to pytorch writes scripts with a class for each pixel or sample");
    return false;
}

static bool is_target(const Graph *g, const Node *n)
{
    bool found = false;
    for (int i = 0; i < g->recipe.ntarget; i++)
        found |= n == g->targets[i];
    return found;
}

/* Whether the loss reads no input, except for targets.  The loss of a script gets outputs and
 * targets. */
static bool loss_supported(const Graph *g, const char *to, Diag *d)
{
    bool *forward = arena_alloc(g->arena, (size_t)g->next_id * sizeof *forward);
    for (int k = 0; k < (g->noutput ? g->noutput : 1); k++) {
        const bool *needed = graph_needed(g, g->noutput ? g->outputs[k].node : g->output);
        for (int i = 0; i < g->next_id; i++)
            forward[i] |= needed[i];
    }
    const bool *needed = graph_needed(g, g->loss);
    for (int i = 0; i < g->nnode; i++) {
        const Node *n = g->node[i];
        for (int k = 0; k < n->nin && needed[n->id] && !forward[n->id]; k++) {
            if (n->in[k]->op->leaf != LEAF_INPUT || is_target(g, n->in[k]))
                continue;
            diag_error(d, n->span,
                       "--to %s writes losses of outputs and targets, and this one reads the input "
                       "'%s'",
                       to, n->in[k]->name);
            diag_help(d, "return the input, or what the loss needs of it, as one more output of "
                         "the model");
            return false;
        }
    }
    return true;
}

/* Whether the script can augment as the recipe says.  Scripts move whole pixels of images only. */
static bool augment_supported(const Graph *g, const char *to, Diag *d)
{
    const Augment *a = &g->recipe.augment;
    const char *what = a->degrees > 0      ? "rotate"
                       : a->zoom > 0       ? "scale"
                       : a->crop           ? "random_resized_crop"
                       : a->erase > 0      ? "erase"
                       : a->contrast > 0   ? "contrast"
                       : a->saturation > 0 ? "saturation"
                       : a->hue > 0        ? "hue"
                                           : NULL;
    const Node *moved = NULL;
    for (int i = 0; i < g->recipe.ntarget; i++)
        if (node_attr(g->targets[i], "moved"))
            moved = g->targets[i];
    if (!what && augment_mixes(a) && strcmp(to, "pytorch") != 0)
        what = augment_mixture(a);
    if (!what && !moved)
        return true;
    if (what)
        diag_error(d, a->span, "--to %s writes no scripts with %s", to, what);
    else
        diag_error(d, a->span, "--to %s writes scripts that move images, but not the target '%s'",
                   to, moved->name);
    diag_help(d, what ? "scripts have random_crop, shift, flips, cutout and brightness; those of "
                        "PyTorch also mixup and cutmix"
                      : "leave out the augmentations that move pixels");
    return false;
}

bool recipe_supported(const Graph *g, const char *to, Diag *d)
{
    const Recipe *r = &g->recipe;
    if (r->data.images || r->resize) {
        diag_error(d, r->data.images ? r->data.span : r->resize_span,
                   "--to %s reads .npy, IDX and CIFAR-10 files as they are: no image files, "
                   "no resize",
                   to);
        diag_help(d, "store the images as .npy arrays of the model's size");
        return false;
    }
    if (r->nmeasure > 0) {
        diag_error(d, r->measure->span, "--to %s writes no scripts with metrics of the recipe", to);
        diag_help(d, "leave out metrics, and keep, stop, plateau and expect where they name one");
        return false;
    }
    if (r->data.columns && !table_supported(g, to, d))
        return false;
    if ((r->data.test > 0 && !r->data.columns) || r->data.validation > 0) {
        diag_error(d, r->data.span,
                   "--to %s writes scripts that read the splits of the data, and "
                   "take no share of the samples",
                   to);
        diag_help(d, "remove %s from the recipe", r->data.validation > 0 ? "validation" : "test");
        return false;
    }
    if (r->keep.result || r->stop.result) {
        diag_error(d, r->keep.result ? r->keep.span : r->stop.span,
                   "--to %s writes scripts that train for all epochs and keep the last weights, "
                   "without a validation split",
                   to);
        diag_help(d, "remove 'keep' and 'stop' from the recipe");
        return false;
    }
    if (r->schedule.kind == SCHED_PLATEAU) {
        diag_error(d, r->schedule.watch.span,
                   "--to %s writes scripts whose learning rate does not depend on a result", to);
        diag_help(d, "choose another schedule: --set 'schedule=cosine'");
        return false;
    }
    if (r->start.file) {
        diag_error(d, r->start.span, "--to %s writes scripts that read no 'start' of the recipe",
                   to);
        diag_help(d, "write the script with --set start=initial; its --weights takes the file that "
                     "the program writes with --epochs 0 --save FILE");
        return false;
    }
    if (r->average.kind && strcmp(to, "pytorch") != 0) {
        diag_error(d, r->average.span, "--to %s writes scripts without averages of the weights",
                   to);
        diag_help(d, "--to pytorch writes scripts with them");
        return false;
    }
    if (strcmp(r->data.name, "synthetic") == 0 && r->data.samples <= 0) {
        diag_error(d, r->data.span, "--to %s needs the number of synthetic samples", to);
        diag_help(d, "write it in the recipe: data = synthetic(samples = 1000)");
        return false;
    }
    if (!pixels_supported(g, to, d) || !loss_supported(g, to, d) || !augment_supported(g, to, d))
        return false;
    if (graph_several(g) && !compared_supported(g, to, d))
        return false;
    if (r->target->kind != LEARN_CLASS && strcmp(to, "pytorch") != 0) {
        diag_error(d, r->target->span,
                   "--to %s writes scripts that learn classes, and the target '%s' is numbers", to,
                   r->target->name);
        diag_help(d, "--to pytorch writes scripts that learn numbers");
        return false;
    }
    if (g->ninput > 1)
        return several_supported(g, to, d);
    return !r->data.unit || text_supported(&r->data, to, d);
}
