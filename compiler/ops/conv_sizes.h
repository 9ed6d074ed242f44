/* conv_sizes.h -- shared by the prices of convolutions: sizes from the attributes of a node, and
 * copies of images. */
#ifndef CONV_SIZES_H
#define CONV_SIZES_H
#include "ops/price.h"
#include "ops/window.h"

typedef struct ConvSizes {
    int64_t c, h, w, o, groups, inputs, outputs, pool, r, s, oh, ow;
    Window v;
} ConvSizes;

static inline int64_t conv_attr(const Node *n, const char *key)
{
    const Attr *a = node_attr(n, key);
    return a ? a->i : 0;
}

static inline ConvSizes conv_sizes(const Node *n)
{
    const int64_t *x = node_attr(n, "x_shape")->list;
    ConvSizes c = {.c = x[0],
                   .h = x[1],
                   .w = x[2],
                   .o = node_int(n, "filters"),
                   .groups = node_int(n, "groups")};
    c.pool = conv_attr(n, "pool");
    c.v = window_of(n, c.h, c.w);
    c.inputs = c.c / c.groups, c.outputs = c.o / c.groups;
    c.r = c.v.kernel[0], c.s = c.v.kernel[1], c.oh = c.v.out[0], c.ow = c.v.out[1];
    return c;
}

static inline const char *conv_text(const Node *n, const char *key)
{
    const Attr *a = node_attr(n, key);
    return a ? a->s : NULL;
}

static inline double conv_image(const ConvSizes *c, const Market *m)
{
    return (double)(m->n * c->c * c->h * c->w);
}

static inline double conv_result(const ConvSizes *c, const Market *m)
{
    return (double)(m->n * c->o * c->oh * c->ow);
}

static inline bool conv_padded(const ConvSizes *c)
{
    return c->v.before[0] || c->v.before[1] || c->v.after[0] || c->v.after[1];
}

/* Whether this is a 1x1 convolution without padding and with many channels, which conv_dw_wide of
 * runtime/cpu/conv_dw_taps.h computes. */
static inline bool conv_dw_is_wide(const ConvSizes *c)
{
    return c->r == 1 && c->s == 1 && !conv_padded(c) && (c->c > 128 || c->o > 256);
}

/* Adds a copy of these numbers to the price: a load and a store for each vector. */
static inline void conv_copy(Price *p, const Market *m, double numbers)
{
    p->cycles += numbers / m->lanes * (1 / m->core->loads + 1 / m->core->stores);
}

#endif
