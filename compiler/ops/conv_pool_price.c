/* conv_pool_price.c -- prices of the gradients of a convolution with a fused 2x2 max-pool.
 *
 * One gradient in four is not zero.  For each gradient that is not zero, the kernel processes R
 * kernel rows, each a run of S C numbers; with few channels, it processes all taps as one row.
 */
#include "ops/conv_price.h"
#include "ops/conv_sizes.h"

static const double RUN_CYCLES = 3;     /* an entry of a sparse list: loads of index and pointer */
static const double DW_RUN_CYCLES = 6;  /* a window of a sparse sum: index, corner, gradient */
static const double PATCH_CYCLES = 1.5; /* an entry of a list of patches */
/* start of a list, or an empty list: a mispredicted branch */
static const double LIST_CYCLES = 25;
static const double SORT_CYCLES = 4; /* an output added to its list */

/* Cycles of a pass over runs of `vectors` aligned vectors: loads or the latency of FMA limit the
 * speed. */
static double run_cycles(const Market *m, double vectors)
{
    const double wait = vectors / m->core->lines;
    return wait > m->core->latency ? wait : m->core->latency;
}

/* For each pooled output, R runs of S C numbers; registers hold `rows` kernel rows at a time. */
static void sparse(Price *p, const Market *m, const ConvSizes *c, int64_t rows, double entry,
                   double *passes)
{
    const int64_t vectors = ceil_div(c->s * c->inputs, m->lanes);
    const double entries = conv_result(c, m) / 4;
    const int64_t times = ceil_div(c->r, rows);
    const double each = (double)(c->r * vectors) / (double)times;

    *passes = (double)(times * ceil_div(vectors, m->core->runs));
    p->algorithm = "sparse after the pool";
    p->executed += entries * (double)(c->r * vectors * m->lanes) * 2;
    p->cycles += entries * (double)times * run_cycles(m, each) + entries * *passes * entry;
    p->values = m->real * (conv_image(c, m) + entries) + entries;
}

void conv_price_pool_dx(const Node *n, const Market *m, Price *p)
{
    const ConvSizes c = conv_sizes(n);
    const int64_t vectors = ceil_div(c.s * c.inputs, m->lanes);
    const double entries = conv_result(&c, m) / 4, windows = entries / (double)c.o;
    const double lists = entries < 4 * windows ? entries : 4 * windows;
    double passes;

    sparse(p, m, &c, 1, RUN_CYCLES, &passes);
    p->cycles += lists * (passes * LIST_CYCLES +
                          (double)(c.r * vectors) * (1 / m->core->loads + 1 / m->core->stores));
    p->cycles += entries * SORT_CYCLES;
    price_map(p, m, conv_image(&c, m), conv_text(n, "mask"));
    p->weights =
        (double)(m->n * m->real) * (double)(c.o * c.r) * (double)round_up(c.s * c.inputs, m->lanes);
    p->values += conv_text(n, "mask") ? m->real * conv_image(&c, m) : 0;
    price_stream(p, m, p->values + p->weights, p->values);
}

/* Whether the kernel copies the taps of a position into one row, which all outputs share: only for
 * few channels (runtime/cpu/conv_pool_dw.h). */
static bool by_patches(const ConvSizes *c, const Market *m)
{
    const int64_t half = m->lanes > 1 ? m->lanes / 2 : 1,
                  vectors = ceil_div(c->r * c->s * c->c, m->lanes);
    const int64_t halves = vectors * (m->lanes / half), runs = c->r * ceil_div(c->s * c->c, half);
    return 2 * c->v.stride[1] * c->c % half && 4 * halves < 5 * runs && c->o >= 8 && vectors <= 8 &&
           c->ow / 2 * 4 * vectors * m->lanes * m->real <= 16 * 1024 && c->groups == 1 &&
           c->v.dilation[1] == 1;
}

static void patches(Price *p, const Market *m, const ConvSizes *c)
{
    const double entries = conv_result(c, m) / 4,
                 vectors = (double)ceil_div(c->r * c->s * c->c, m->lanes);

    p->algorithm = "sparse after the pool, patch by patch";
    p->executed += entries * vectors * m->lanes * 2;
    p->cycles += entries * (vectors / m->core->lines + PATCH_CYCLES);
    p->cycles += (double)(m->n * c->oh * c->ow * c->r) * (double)ceil_div(c->s * c->c, m->lanes) /
                 m->core->stores;
    p->values = m->real * (conv_image(c, m) + entries) + entries;
}

void conv_price_pool_dw(const Node *n, const Market *m, Price *p)
{
    const ConvSizes c = conv_sizes(n);
    const int64_t vectors = ceil_div(c.s * c.inputs, m->lanes);
    double passes;

    if (by_patches(&c, m))
        patches(p, m, &c);
    else
        sparse(p, m, &c, vectors < m->core->runs ? m->core->runs / vectors : 1, DW_RUN_CYCLES,
               &passes);
    conv_copy(p, m, conv_image(&c, m));
    p->weights = 2.0 * (double)(m->n * m->real) * (double)(c.o * c.r * c.s * c.inputs);
    price_stream(p, m, p->values + p->weights, p->values);
}
