/* kernel.c -- stores each kernel of a program once, and makes the literal sizes of inputs.
 *
 * Two layers of the same sizes, or training and evaluation, call the same function: the C compiler
 * specialises it once.
 */
#include "emit/writer.h"
#include <math.h>
#include <string.h>

bool emit_is_call(const Node *n)
{
    const bool loop = n->op->flags & (OP_MAP | OP_REDUCE) || n->op->move;
    return kernel_needed(n) &&
           (loop || n->op->leaf == LEAF_INPUT || n->op->leaf == LEAF_LABEL || n->op->kernel);
}

Signature kernel_signature(Arena *a, const Argument *arg, int n, bool stage)
{
    Signature s = {text_new(a), text_new(a), text_new(a)};
    for (int i = 0; i < n; i++) {
        const Argument *g = &arg[i];
        const char *comma = s.names.len ? ", " : "";
        if (!g->type)
            continue;
        text_printf(&s.params, "%s%s%s%s", comma, g->constant ? "const " : "", g->type, g->name);
        text_printf(&s.names, "%s%s", comma, g->name);
        text_printf(&s.values, "%s%s", comma, g->rt && stage ? g->name : g->value);
    }
    return s;
}

const char *kernel_define_using(Writer *w, unsigned uses, const char *base, const char *params,
                                const char *body)
{
    const char *key = arena_printf(w->arena, "%s(%s) %s", base, params, body);
    const uint64_t hash = text_hash(key, strlen(key), 0);
    int same = 1;

    for (int i = 0; i < w->nkernel; i++)
        if (w->kernel[i].hash == hash && !strcmp(w->kernel[i].key, key))
            return w->kernel[i].name;
    for (int i = 0; i < w->nkernel; i++)
        same += !strcmp(w->kernel[i].base, base);
    Kernel k = {.name = arena_printf(w->arena, "%s_%d", base, same),
                .key = key,
                .hash = hash,
                .base = arena_strdup(w->arena, base),
                .params = arena_strdup(w->arena, params),
                .uses = uses,
                .body = arena_strdup(w->arena, body)};
    ARENA_PUSH(w->arena, w->kernel, w->nkernel, k);
    return k.name;
}

const char *kernel_define(Writer *w, const char *base, const char *params, const char *body)
{
    return kernel_define_using(w, 0, base, params, body);
}

static const char *print_doubles(Arena *a, const double *v, int64_t n)
{
    Text t = text_new(a);
    for (int64_t k = 0; k < n; k++)
        text_printf(&t, "%s%.17g", k ? ", " : "{", v[k]);
    text_add(&t, "}");
    return t.s;
}

Sizes *kernel_image(Writer *w, const Node *n)
{
    const Shape *s = &n->shape;
    const Normalize *z = &w->g->recipe.normalize;
    const int64_t c = s->rank == 3 ? s->dim[0] : 1, h = s->rank == 3 ? s->dim[1] : 1;
    Sizes *t = sizes_new(w->arena, "Image");

    sizes_int(t, "c", c);
    sizes_int(t, "h", h);
    sizes_int(t, "w", shape_count(s) / (c * h));
    if (w->g->recipe.resize)
        sizes_bool(t, "resize", true);
    if (z->kind == NORM_CHANNEL) {
        sizes_word(t, "mean", print_doubles(w->arena, z->mean, c));
        sizes_word(t, "std", print_doubles(w->arena, z->std, c));
    }
    return t;
}

/* The bounds low and high of a ratio as logarithms: a program computes no logarithm. */
static const char *print_logs(Arena *arena, double low, double high)
{
    const double v[2] = {log(low), log(high)};
    return print_doubles(arena, v, 2);
}

/* The augmentations that a recipe can leave out of its program's text. */
static void add_rare(Writer *w, Sizes *s, const Augment *a)
{
    if (a->upside)
        sizes_bool(s, "upside", true);
    if (a->contrast > 0)
        sizes_real(s, "contrast", a->contrast);
    if (a->saturation > 0)
        sizes_real(s, "saturation", a->saturation);
    if (a->hue > 0)
        sizes_real(s, "hue", a->hue);
    if (a->degrees > 0)
        sizes_real(s, "degrees", a->degrees);
    if (a->zoom > 0)
        sizes_real(s, "zoom", a->zoom);
    if (a->crop) {
        sizes_word(s, "crop_area", print_doubles(w->arena, a->crop_area, 2));
        sizes_word(s, "crop_ratio", print_logs(w->arena, a->crop_ratio[0], a->crop_ratio[1]));
    }
    if (a->erase > 0) {
        sizes_real(s, "erase", a->erase);
        sizes_word(s, "erase_area", print_doubles(w->arena, a->erase_area, 2));
        /* an aspect is height / width */
        sizes_word(s, "erase_ratio",
                   print_logs(w->arena, 1 / a->erase_aspect[1], 1 / a->erase_aspect[0]));
    }
    if (a->mixup > 0) {
        sizes_real(s, "mixup", a->mixup);
        sizes_real(s, "mixup_p", a->mixup_p);
    }
    if (a->cutmix > 0) {
        sizes_real(s, "cutmix", a->cutmix);
        sizes_real(s, "cutmix_p", a->cutmix_p);
    }
    if (augment_mixes(a))
        sizes_int(s, "among", w->g->recipe.batch);
}

/* The runtime's function that loads images. */
const char *kernel_of_image(const Writer *w, bool augmented)
{
    if (!augmented)
        return "rt_input_normalized";
    return augment_mixes(&w->g->recipe.augment) ? "rt_input_mixed" : "rt_input_augmented";
}

/* The runtime's function that loads a target of a mixture, or the weight of one. */
const char *kernel_of_mixed(const Node *n)
{
    if (node_int(n, "mixed") == MIXED_WEIGHT)
        return "rt_mix_weight";
    return n->dtype == DT_I32 ? "rt_labels_mixed" : "rt_target_mixed";
}

const Sizes *kernel_augment(Writer *w, const Augment *a)
{
    Sizes *s = sizes_new(w->arena, "Augment");
    sizes_int(s, "shift", a->shift);
    sizes_bool(s, "edge", a->edge);
    sizes_bool(s, "flip", a->flip);
    sizes_int(s, "cutout", a->cutout);
    sizes_real(s, "brightness", a->brightness);
    add_rare(w, s, a);
    return s;
}
