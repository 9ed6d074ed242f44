/* conv_variants.c -- variants of the kernels in runtime/cpu/conv.h that a convolution can use, by
 * its sizes.
 *
 * A kernel is an always-inlined tree of functions that chooses a variant by literal sizes.  GCC
 * inlines the whole tree before it evaluates a size, and spent most of its time on unused variants:
 * 0.40 s for 1x1 256->64, but 0.11 s when only the used variant is named.  So the file of a kernel
 * names the variants that it can need.  A variant that depends on the width of vectors is always
 * named: an unnecessary variant costs compile time, and a missing variant is a compile error
 * (rt_no_variant).
 */
#include "ops/conv_variants.h"
#include "base/text.h"
#include "ops/conv_sizes.h"
#include "runtime/constants.h"

enum { LANES = 16, PANEL = 32 }; /* for the widest vectors; all other widths divide these */

typedef struct Variants {
    Text text;
} Variants;

static void may(Variants *w, bool open, const char *name)
{
    if (open)
        text_printf(&w->text, "%sRT_VARIANT_%s", w->text.len ? " | " : "", name);
}

static bool direct(const Node *n)
{
    return !node_attr(n, "winograd") && !node_attr(n, "pool");
}

static bool channels(const ConvSizes *c)
{
    return c->groups == c->c && c->o == c->c && c->c > 1;
}

static bool flat(const ConvSizes *c)
{
    return c->r == 1 && c->s == 1 && c->v.stride[0] == 1 && c->v.stride[1] == 1 && !conv_padded(c);
}

/* Forward, and gradient of the image: `made` channels per group. */
static const char *gather(Arena *a, const ConvSizes *c, int64_t made, bool wide)
{
    Variants w = {text_new(a)};
    const bool depth = channels(c), one = flat(c) && c->groups == 1;

    may(&w, depth, "CHANNELS");
    may(&w, !depth && one, "FLAT");
    may(&w, !depth && !one, "BOXES");
    may(&w, !depth && !one && wide, "WIDE");
    may(&w, !depth && made % PANEL != 0, "LEFT");
    return w.text.s;
}

const char *conv_variants(Arena *a, const Node *n)
{
    if (!direct(n))
        return NULL;
    const ConvSizes c = conv_sizes(n);
    return gather(a, &c, c.outputs, c.r * c.s * c.inputs <= RT_CONV_NARROW);
}

const char *conv_variants_dx(Arena *a, const Node *n)
{
    if (!direct(n))
        return NULL;
    const ConvSizes c = conv_sizes(n);
    return gather(a, &c, c.inputs, false);
}

/* Whether the kernel can use conv_dw_by_taps: if channels do not fill vectors, if padding excludes
 * at least a tenth of the products, if a sample is small, or if it is a wide 1x1. */
static bool taps(const ConvSizes *c)
{
    int64_t inside[2] = {0, 0};
    const int64_t taps[2] = {c->r, c->s};

    for (int i = 0; i < 2; i++)
        for (int64_t o = 0; o < c->v.out[i]; o++)
            for (int64_t t = 0; t < taps[i]; t++) {
                const int64_t at = o * c->v.stride[i] - c->v.before[i] + t * c->v.dilation[i];
                inside[i] += at >= 0 && at < c->v.in[i];
            }
    const bool saves = inside[0] * inside[1] * 10 <= c->oh * c->ow * c->r * c->s * 9;
    const bool small = !flat(c) && c->oh * c->ow <= 64;
    return c->inputs % LANES != 0 || saves || small || conv_dw_is_wide(c);
}

/* Whether a row of outputs can need more numbers than the scratch of conv_forward.h holds: numbers
 * of the padded image, or of one vector of its channels. */
static bool far(const ConvSizes *c)
{
    const int64_t width = (c->ow - 1) * c->v.stride[1] + (c->s - 1) * c->v.dilation[1] + 1;
    const int64_t height = (c->r - 1) * c->v.dilation[0] + 1;
    return c->s > 12 || width * height * (channels(c) ? LANES : c->c) + 2 * LANES > 256 * 1024 / 8;
}

const char *conv_variants_dw(Arena *a, const Node *n)
{
    if (!direct(n))
        return NULL;
    const ConvSizes c = conv_sizes(n);
    Variants w = {text_new(a)};
    const bool rows = c.groups == 1 && c.v.dilation[1] == 1, other = !channels(&c) || far(&c);
    const int64_t run = rows ? c.s * c.inputs : c.inputs;

    may(&w, channels(&c), "CHANNELS");
    may(&w, rows && run % LANES != 0 && run < 9 * LANES, "FEW");
    may(&w, other && taps(&c), "TAPS");
    may(&w, other && flat(&c), "FLAT");
    may(&w, other && !flat(&c), "BOXES");
    may(&w, other && !flat(&c) && far(&c), "FAR");
    /* by taps, a panel has channels of one tap */
    may(&w, other && (run % PANEL != 0 || (taps(&c) && c.inputs % PANEL != 0)), "LEFT");
    return w.text.s;
}
