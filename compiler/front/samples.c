/* samples.c -- checks what the recipe does to samples before the network sees them. */
#include "front/lower.h"
#include <string.h>

static bool is_image_input(const Node *x)
{
    return x->shape.rank == 3;
}

/* Copies one number for all channels, so that there is one for each channel. */
static bool spread_channels(Lower *l, const Normalize *z, const char *what, double *v, int n)
{
    const Node *x = l->g->input;
    const int64_t channels = is_image_input(x) ? x->shape.dim[0] : 1;
    if (n != 1 && n != channels) {
        diag_error(l->diag, z->span,
                   "normalize gives %d numbers as %s, but '%s' has %lld channel%s", n, what,
                   x->name, (long long)channels, channels == 1 ? "" : "s");
        return false;
    }
    if (channels > NORMALIZE_MAX && n == 1) {
        diag_error(l->diag, z->span, "normalize takes at most %d channels, '%s' has %lld",
                   NORMALIZE_MAX, x->name, (long long)channels);
        return false;
    }
    for (int k = n; k < channels; k++)
        v[k] = v[0];
    return true;
}

static bool check_pixels(Lower *l, const char *what, int64_t pixels)
{
    const Shape *s = &l->g->input->shape;
    const int64_t least = s->dim[1] < s->dim[2] ? s->dim[1] : s->dim[2];
    if (pixels <= least)
        return true;
    diag_error(l->diag, l->g->recipe.augment.span,
               "%s = %lld is larger than the image of %lldx%lld", what, (long long)pixels,
               (long long)s->dim[1], (long long)s->dim[2]);
    return false;
}

/* Reports a change of colours of an image that has no colours. */
static bool check_colours(Lower *l)
{
    const Augment *a = &l->g->recipe.augment;
    const int64_t channels = l->g->input->shape.dim[0];
    const char *what = a->saturation > 0 ? "saturation" : a->hue > 0 ? "hue" : "contrast";
    const bool colours = a->saturation > 0 || a->hue > 0;
    if ((!colours && a->contrast == 0) || channels == 3 || (!colours && channels == 1))
        return true;
    diag_error(l->diag, a->span, "%s is for images of %s, '%s' has %lld", what,
               colours ? "3 channels: red, green and blue" : "1 or 3 channels", l->g->input->name,
               (long long)channels);
    diag_help(l->diag, "leave out %s", what);
    return false;
}

/* Reports mixtures of samples in batches of one sample. */
static bool check_mixture(Lower *l)
{
    const Recipe *r = &l->g->recipe;
    const Augment *a = &r->augment;
    if (!augment_mixes(a) || r->batch > 1)
        return true;
    diag_error(l->diag, a->span, "%s mixes two samples of a batch, and batch = 1",
               augment_mixture(a));
    diag_help(l->diag, "set batch to 2 or more, or leave out %s", augment_mixture(a));
    return false;
}

static bool check_augment(Lower *l)
{
    const Augment *a = &l->g->recipe.augment;
    if (!a->given)
        return true;
    if (is_image_input(l->g->input))
        return check_pixels(l, a->edge ? "shift" : "random_crop pad", a->shift) &&
               check_pixels(l, "cutout size", a->cutout) && check_colours(l) && check_mixture(l);
    diag_error(l->diag, a->span, "augment is for images (N, C, H, W), '%s' is %s",
               l->g->input->name, shape_text(l->arena, &l->g->input->shape));
    diag_help(l->diag, "leave out augment, or declare the input as an image: f32[1, 28, 28]");
    return false;
}

static bool check_resize(Lower *l)
{
    const Recipe *r = &l->g->recipe;
    if (!r->resize)
        return true;
    if (!is_image_input(l->g->input)) {
        diag_error(l->diag, r->resize_span, "resize is for images (N, C, H, W), '%s' is %s",
                   l->g->input->name, shape_text(l->arena, &l->g->input->shape));
        return false;
    }
    if (r->normalize.kind != NORM_PIXEL)
        return true;
    diag_error(l->diag, r->resize_span,
               "resize cannot be combined with normalize = per_pixel_mean");
    diag_help(l->diag, "use normalize = per_channel(mean = ..., std = ...)");
    return false;
}

/* Checks the input for PNG and JPEG files, which have one or three channels. */
static bool check_images(Lower *l)
{
    const DataSpec *data = &l->g->recipe.data;
    const Shape *s = &l->g->input->shape;
    if (!data->images || (is_image_input(l->g->input) && (s->dim[0] == 1 || s->dim[0] == 3)))
        return true;
    diag_error(l->diag, data->span,
               "imagefolder gives images (N, 3, H, W), or (N, 1, H, W) in grey; '%s' is %s",
               l->g->input->name, shape_text(l->arena, s));
    return false;
}

/* The first input that is tokens, or the first input. */
static Node *tokens_of(const Graph *g)
{
    for (int i = 0; i < g->ninput; i++)
        if (g->inputs[i]->dtype == DT_I32)
            return g->inputs[i];
    return g->input;
}

/* Tokens are indices of a vocabulary; embedding and one_hot check that it fits their tables. */
static bool check_tokens(Lower *l)
{
    const Recipe *r = &l->g->recipe;
    const Node *x = tokens_of(l->g);
    if (!r->present && !(r->trained && r->data.vocab))
        return true;
    if (x->dtype == DT_REAL && r->data.columns && r->data.vocab) {
        diag_error(l->diag, r->data.span, "vocab is for inputs of tokens, and '%s' is f32",
                   x->name);
        diag_help(l->diag, "remove vocab: each category of a column gets a number of its own");
        return false;
    }
    if (x->dtype == DT_REAL && (r->data.vocab || r->data.unit)) {
        diag_error(l->diag, r->data.span, "the data are tokens of a vocabulary, but '%s' is f32",
                   x->name);
        diag_help(l->diag, "declare it as tokens: %s: i32[%lld]", x->name,
                  (long long)shape_count(&x->shape));
        if (r->data.table)
            diag_help(l->diag, "a table of numbers and categories is csv(...), with commas, "
                               "semicolons or tabs between its columns");
        return false;
    }
    if (x->dtype == DT_REAL)
        return true;
    if (r->data.unit && x->shape.rank != 1) {
        diag_error(l->diag, r->data.span, "a text is i32[time], '%s' is %s", x->name,
                   shape_text(l->arena, &x->shape));
        return false;
    }
    if (r->normalize.kind != NORM_NONE) {
        diag_error(l->diag, r->normalize.span, "normalize is for numbers, '%s' is tokens", x->name);
        return false;
    }
    if (r->data.vocab == 0 && diag_errors(l->diag))
        return false; /* the error is already reported */
    if (r->data.vocab == 0 && r->data.columns) {
        diag_error(l->diag, r->data.span,
                   "'%s' takes the numbers of categories: say how many there are at most", x->name);
        diag_help(l->diag, "write vocab = 20 in the parentheses of csv(...)");
        return false;
    }
    if (r->data.vocab == 0) {
        diag_error(l->diag, r->data.span,
                   "'%s' holds tokens: the data need the size of their vocabulary", x->name);
        diag_help(l->diag,
                  "write vocab = 65 in the parentheses of the data where tokens are 0 to 64");
        return false;
    }
    for (int i = 0; i < l->g->ninput; i++)
        if (l->g->inputs[i]->dtype == DT_I32)
            node_set_int(l->g, l->g->inputs[i], "vocab", r->data.vocab);
    return true;
}

/* Adds the mean sample.  Files keep it like running averages, so that test and predict have it. */
static bool add_mean(Lower *l)
{
    Graph *g = l->g;
    const Init zero = {.kind = INIT_CONSTANT};
    const char *name = arena_printf(l->arena, "%s.mean", g->input->name);
    Node **in = arena_alloc(l->arena, sizeof *in);
    in[0] = graph_param(g, l->diag, name, g->input->shape, &zero, g->recipe.normalize.span);
    if (!in[0])
        return false;
    in[0]->param->average = true;
    g->input->in = in;
    g->input->nin = 1;
    graph_sort(g);
    return true;
}

/* Reports keys that change samples: they do not say which of several inputs they mean. */
static bool check_changes(Lower *l)
{
    const Recipe *r = &l->g->recipe;
    const struct {
        const char *key;
        Span at;
        bool given;
    } change[] = {{"normalize", r->normalize.span, r->normalize.kind != NORM_NONE},
                  {"augment", r->augment.span, r->augment.given},
                  {"resize", r->resize_span, r->resize}};
    bool ok = true;
    for (size_t i = 0; i < sizeof change / sizeof *change; i++)
        if (change[i].given) {
            diag_error(l->diag, change[i].at, "%s is for models with one input, and '%s' has %d",
                       change[i].key, l->g->name, l->g->ninput);
            diag_help(l->diag,
                      i == 0 ? "write it in the model, as in (%s - 0.5) / 0.25"
                             : "change the arrays of '%s' before the training",
                      l->g->input->name);
            ok = false;
        }
    return ok;
}

/* Checks the data of several inputs, which are arrays, each with its own name. */
static bool check_several(Lower *l)
{
    const Recipe *r = &l->g->recipe;
    bool ok = check_changes(l);
    for (int i = 0; i < l->g->ninput; i++)
        if (strcmp(l->g->inputs[i]->name, "y") == 0) {
            diag_error(l->diag, l->g->inputs[i]->span,
                       "one of several inputs cannot be called 'y': train_y.npy holds the labels");
            ok = false;
        }
    if (r->data.unit || r->data.images) {
        diag_error(l->diag, r->data.span, "these data are samples of one input, and '%s' has %d",
                   l->g->name, l->g->ninput);
        diag_help(l->diag,
                  "take a directory with train_%s.npy, train_%s.npy ...: data = "
                  "\"directory\"",
                  l->g->inputs[0]->name, l->g->inputs[1]->name);
        ok = false;
    }
    return ok;
}

bool lower_samples(Lower *l)
{
    Normalize *z = &l->g->recipe.normalize;
    if (l->g->ninput > 1 && !check_several(l))
        return false;
    bool ok = check_augment(l) && check_resize(l) && check_images(l) && check_tokens(l);
    if (z->kind == NORM_CHANNEL)
        ok = spread_channels(l, z, "mean", z->mean, z->nmean) &&
             spread_channels(l, z, "std", z->std, z->nstd) && ok;
    if (z->kind == NORM_PIXEL)
        ok = add_mean(l) && ok;
    return ok;
}
