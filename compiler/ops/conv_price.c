/* conv_price.c -- prices of the convolution algorithms, counted from the loops of runtime/cpu.
 *
 * A register tile covers a few positions and a panel of channels; inner products have R S C terms.
 * The constants were fitted to `bench --layers` and --tune on Zen 4. wino_price.c has the prices of
 * Winograd's algorithm, conv_pool_price.c has those of gradients with a fused pooling.
 */
#include "ops/conv_price.h"
#include "ops/dense_price.h"
#include "ops/wino_price.h"
#include "runtime/constants.h"
#include <math.h>

static const double DEPTH_CYCLES = 3.7;    /* a tap of a vector of channels, forward */
static const double DEPTH_DX_CYCLES = 5.5; /* the same, gradient of the image */
static const double DEPTH_DW_CYCLES = 1.6; /* the same, gradient of the weights */
static const double RESTART_CYCLES = 6;    /* end and restart of the inner loop of a tile */
/* addresses of the rows of a tile, and stores of its sums */
static const double TILE_CYCLES = 100;
static const double TRANSPOSE_CYCLES = 1; /* a number of an image transposed into lanes, or back */
static const double WINO_PACK_CYCLES = 0.7; /* a real of transformed filters */
static const double PACK_CYCLES = 1.2;      /* a real gathered into a panel */

int64_t conv_packed_count(const Node *n, bool dx, int64_t m, int64_t vector)
{
    const ConvSizes c = conv_sizes(n);
    const int64_t side = m + c.r - 1;

    if (m)
        return round_up(dx ? c.inputs : c.outputs, 2 * vector) * side * side *
               (dx ? c.outputs : c.inputs);
    if (c.groups == c.c && c.o == c.c && c.c > 1 && !c.pool)
        return c.r * c.s * c.c;
    if (dx && c.pool)
        return c.o * c.r * round_up(c.s * c.inputs, vector);
    return c.groups * round_up(dx ? c.inputs : c.outputs, 2 * vector) * c.r * c.s *
           (dx ? c.outputs : c.inputs);
}

/* ---- dense sums */

static void direct(Price *p, const Market *m, const ConvSizes *c)
{
    const int64_t panel = 2 * m->lanes, unit = c->pool ? 2 : 1;
    const double count = (double)(c->r * c->s * c->inputs),
                 rows = (double)(m->n * c->groups * (c->oh / unit));
    const int64_t full = c->outputs / panel, left = c->outputs % panel;

    for (int narrow = 0; narrow < 2; narrow++) {
        const double vectors = narrow && left <= m->lanes ? 1 : 2,
                     times = narrow ? left > 0 : (double)full;
        const int64_t most = vectors == 2 ? m->core->rows : m->core->rows_1;
        const int64_t windows = vectors == 2 ? m->core->windows : m->core->rows_1 / 4;
        const int64_t some = c->pool ? windows : most, tiles = ceil_div(c->ow / unit, some);
        const double each =
            (c->pool ? 4 : 1) * (double)(c->ow / unit) / (double)(tiles ? tiles : 1);
        price_tiles(p, m, rows * times * (double)tiles, each, vectors, count);
        p->cycles += rows * times * (double)tiles * (double)(c->r - 1) * RESTART_CYCLES;
    }
    p->weights =
        (double)(m->n * m->real) * (double)round_up(c->outputs, panel) * (double)c->groups * count;
    price_stream(p, m, p->weights, p->weights / (double)m->n);
    if (conv_padded(c))
        conv_copy(p, m, conv_image(c, m));
}

/* Share of the taps of one direction that lie in the image. */
static double inside(int64_t out, int64_t in, int64_t taps, const Window *v, int axis)
{
    int64_t met = 0;
    for (int64_t o = 0; o < out; o++)
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = o * v->stride[axis] - v->before[axis] + t * v->dilation[axis];
            met += at >= 0 && at < in;
        }
    return (double)met / (double)(out * taps);
}

/* Adds the price of runtime/cpu/conv_gather.h.  The positions of a tile can come from all samples
 * of a chunk, and a tile omits taps in the padding.  `share` is the share of taps that a position
 * uses. */
static void position_tiles(Price *p, const Market *m, const ConvSizes *c, int64_t positions,
                           int64_t made, int64_t summed, double share)
{
    const double met = inside(c->oh, c->h, c->r, &c->v, 0) * inside(c->ow, c->w, c->s, &c->v, 1);
    const double count = share * met * (double)(c->r * c->s * summed);
    const int64_t panels = ceil_div(made, 2 * m->lanes);

    price_panels(p, m, (double)c->groups, m->n * positions, made, count);
    p->cycles +=
        (double)(c->groups * panels * ceil_div(m->n * positions, m->core->rows)) * TILE_CYCLES;
    p->weights = m->real * (double)(c->groups * panels * 2 * m->lanes * c->r * c->s * summed);
    price_stream(p, m, p->weights, p->weights);
}

/* Whether runtime/cpu/conv_depthwise.h computes the convolution.  Each tap of a vector of channels
 * takes at least one load. */
static bool depthwise(const ConvSizes *c)
{
    return c->groups == c->c && c->o == c->c && c->c > 1 && !c->pool;
}

static void channels(Price *p, const Market *m, const ConvSizes *c, double positions, double cycles)
{
    const double met = inside(c->oh, c->h, c->r, &c->v, 0) * inside(c->ow, c->w, c->s, &c->v, 1);
    const double products =
        met * (double)(c->r * c->s) * positions * (double)ceil_div(c->c, m->lanes);

    p->algorithm = "channels in lanes";
    p->executed += 2 * products * m->lanes;
    p->cycles += products * cycles;
    p->weights = m->real * (double)(c->r * c->s * c->c);
}

/* Whether runtime/cpu/conv_pool_lanes.h computes the convolution: if there are few channels, and if
 * the outputs do not fill their vectors.  A tile has the corners of a pooling window, for a few
 * outputs. */
static bool samples_in_lanes(const ConvSizes *c, const Market *m)
{
    return m->lanes > 1 && 8 * c->o < 7 * round_up(c->o, m->lanes) && c->c <= 4 && c->groups == 1 &&
           c->v.dilation[1] == 1 && m->n >= m->lanes;
}

static void lanes(Price *p, const Market *m, const ConvSizes *c)
{
    const int64_t most = m->core->windows == 1 ? 3 : 6, tiles = ceil_div(c->o, most);
    const double windows = (double)(m->n / m->lanes * (c->oh / 2) * (c->ow / 2));

    p->algorithm = "samples in lanes";
    price_tiles(p, m, windows * (double)tiles, 4, (double)c->o / (double)tiles,
                (double)(c->r * c->s * c->c));
    p->cycles += (conv_image(c, m) + conv_result(c, m) / 4) * TRANSPOSE_CYCLES;
    p->weights = m->real * (double)(c->r * c->s * c->c) * (double)round_up(c->o, 2 * m->lanes);
}

void conv_price(const Node *n, const Market *m, Price *p)
{
    const ConvSizes c = conv_sizes(n);
    const int64_t tile = conv_attr(n, "winograd");
    const double out = conv_result(&c, m) / (c.pool ? 4 : 1);
    const char *act = conv_text(n, "act");

    p->algorithm = "direct";
    if (tile)
        wino_price(p, m, &c, tile);
    else if (c.pool && samples_in_lanes(&c, m))
        lanes(p, m, &c);
    else if (c.pool)
        direct(p, m, &c);
    else if (depthwise(&c))
        channels(p, m, &c, (double)(m->n * c.oh * c.ow), DEPTH_CYCLES);
    else
        position_tiles(p, m, &c, c.oh * c.ow, c.outputs, c.inputs, 1);
    price_map(p, m, out, act);
    if (c.pool)
        price_map(p, m, out, "pool");
    p->values = m->real * (conv_image(&c, m) + out) + (c.pool ? out : 0);
    if (op_reads_half(n))
        price_half(p);
    price_stream(p, m, p->values, p->values);
}

void conv_price_dx(const Node *n, const Market *m, Price *p)
{
    const ConvSizes c = conv_sizes(n);
    const int64_t tile = conv_attr(n, "winograd"), *stride = c.v.stride;

    p->algorithm = "direct";
    if (tile)
        wino_price_dx(p, m, &c, tile);
    else if (depthwise(&c))
        channels(p, m, &c, (double)(m->n * c.oh * c.ow), DEPTH_DX_CYCLES);
    else
        position_tiles(p, m, &c,
                       ceil_div(c.h, stride[0]) * ceil_div(c.w, stride[1]) * stride[0] * stride[1],
                       c.inputs, c.outputs, 1 / (double)(stride[0] * stride[1]));
    price_map(p, m, conv_image(&c, m), conv_text(n, "mask"));
    p->values = m->real * (conv_image(&c, m) * (conv_text(n, "mask") ? 2 : 1) + conv_result(&c, m));
    if (op_reads_half(n))
        price_half(p);
    price_stream(p, m, p->values, p->values);
}

/* The price of runtime/cpu/conv_dw.h.  The lanes are the channels of all taps of a kernel row, or
 * of one tap at a time.  This function and the other variants (dw_flat, dw_few, dw_taps) return the
 * number of passes over the gradient. */
static double dw_runs(Price *p, const Market *m, const ConvSizes *c)
{
    const bool runs = c->groups == 1 && c->v.dilation[1] == 1;
    const int64_t length = runs ? c->s * c->inputs : c->inputs;
    const double times = (double)(m->n * c->groups * c->r * (runs ? 1 : c->s));
    const double tiles = times * (double)ceil_div(c->outputs, m->core->rows) *
                         (double)ceil_div(length, 2 * m->lanes);

    p->algorithm = "direct";
    price_panels(p, m, times, c->outputs, length, (double)(c->oh * c->ow));
    p->cycles += tiles * (double)(c->oh - 1) * RESTART_CYCLES;
    if (conv_padded(c))
        conv_copy(p, m, conv_image(c, m));
    return (double)m->n;
}

/* Whether this is a 1 x 1 convolution with stride 1 and no padding.  The kernel then processes
 * blocks of positions of all samples; a block fits into the L2 cache. */
static bool is_flat(const ConvSizes *c)
{
    return c->r == 1 && c->s == 1 && c->v.stride[0] == 1 && c->v.stride[1] == 1 && !conv_padded(c);
}

static int64_t flat_block(const ConvSizes *c, const Market *m)
{
    return 384 * 1024 / (m->real * (c->c + c->o)) + 1;
}

static double dw_flat(Price *p, const Market *m, const ConvSizes *c)
{
    const int64_t positions = m->n * c->oh * c->ow, blocks = ceil_div(positions, flat_block(c, m));

    p->algorithm = "direct";
    price_panels(p, m, (double)(c->groups * blocks), c->outputs, c->inputs,
                 (double)positions / (double)blocks);
    return (double)blocks;
}

/* Whether runtime/cpu/conv_dw_few.h computes the gradient: lanes are outputs if outputs fill the
 * vectors better than taps. */
static bool is_few(const ConvSizes *c, const Market *m)
{
    const int64_t run = c->s * c->c, lanes_run = round_up(run, m->lanes),
                  lanes_o = round_up(c->o, m->lanes);
    return c->groups == 1 && c->v.dilation[1] == 1 &&
           c->r * run * lanes_o * m->real <= 128 * 1024 &&
           run * lanes_o * 10 <= 9 * c->o * lanes_run;
}

static double dw_few(Price *p, const Market *m, const ConvSizes *c)
{
    p->algorithm = "outputs in lanes";
    price_panels(p, m, (double)(m->n * c->r), c->s * c->c, c->o, (double)(c->oh * c->ow));
    if (conv_padded(c))
        conv_copy(p, m, conv_image(c, m));
    return 1;
}

/* ---- runtime/cpu/conv_dw_taps.h, for small images and wide 1x1: for each tap, the kernel copies
 * the positions that the tap reads to contiguous memory */

static double taps_met(const ConvSizes *c)
{
    return inside(c->oh, c->h, c->r, &c->v, 0) * inside(c->ow, c->w, c->s, &c->v, 1);
}

static bool by_taps(const ConvSizes *c, const Market *m)
{
    const bool runs = c->groups == 1 && c->v.dilation[1] == 1;
    const int64_t tap = ceil_div(c->inputs, m->lanes);
    const int64_t row = runs ? ceil_div(c->s * c->inputs, m->lanes) : c->s * tap;
    return conv_dw_is_wide(c) || taps_met(c) * (double)(c->s * tap) * 10 <= 9.0 * (double)row ||
           (!is_flat(c) && c->oh * c->ow <= RT_TAPS_FEW && tap * c->s == row);
}

static double dw_taps(Price *p, const Market *m, const ConvSizes *c)
{
    const double positions = (double)(m->n * c->oh * c->ow) * taps_met(c),
                 taps = (double)(c->r * c->s);

    p->algorithm = "tap by tap";
    price_panels(p, m, taps * (double)c->groups, c->outputs, c->inputs, positions);
    conv_copy(p, m, taps * positions * (double)(c->c + c->o));
    return ceil(positions / RT_TAPS_POSITIONS);
}

void conv_price_dw(const Node *n, const Market *m, Price *p)
{
    const ConvSizes c = conv_sizes(n);
    const int64_t tile = conv_attr(n, "winograd");
    double times = 1;

    if (tile)
        wino_price_dw(p, m, &c, tile);
    else if (op_reads_half(n))
        price_panels(p, m, (double)c.groups, c.outputs, c.r * c.s * c.inputs,
                     (double)(m->n * c.oh * c.ow));
    else if (depthwise(&c))
        channels(p, m, &c, (double)(m->n * c.oh * c.ow), DEPTH_DW_CYCLES);
    else if (is_few(&c, m))
        times = dw_few(p, m, &c);
    else if (by_taps(&c, m))
        times = dw_taps(p, m, &c);
    else if (is_flat(&c))
        times = dw_flat(p, m, &c);
    else
        times = dw_runs(p, m, &c);
    const double weights = m->real * (double)(c.o * c.r * c.s * c.inputs);
    p->weights = 2 * times * weights;
    p->values = m->real * (conv_image(&c, m) + conv_result(&c, m));
    if (op_reads_half(n))
        price_half(p);
    price_stream(p, m, p->weights, weights);
    price_stream(p, m, p->values, p->values);
}

/* As BF16_CONV_PACKED and BF16_CONV_PACKED_BACK in runtime/cpu/bf16_pack.h. */
int64_t conv_half_count(const Node *n, bool dx)
{
    const ConvSizes c = conv_sizes(n);
    const bool whole = c.groups == 1 && c.v.dilation[1] == 1;
    if (dx)
        return c.groups * c.r * c.s * dense_half_count(c.outputs, c.inputs);
    return c.groups * c.r *
           (whole ? dense_half_count(c.s * c.c, c.outputs)
                  : c.s * dense_half_count(c.inputs, c.outputs));
}

/* ---- gradient of filters with the update: runtime/cpu/conv_dw_update.h */

enum { BLOCK_SHARDS = 8, BLOCK_FILTER_BYTES = 1 << 20 };
static const double UPDATE_CYCLES = 12; /* a vector of weights and states updated */

bool conv_in_blocks(const Node *n, int64_t shards, int64_t samples, int64_t real)
{
    const ConvSizes c = conv_sizes(n);

    return !c.pool && c.groups == 1 && !conv_attr(n, "winograd") && shards <= BLOCK_SHARDS &&
           c.o * c.r * c.s * c.c * real >= BLOCK_FILTER_BYTES &&
           samples * c.oh * c.ow <= RT_TAPS_POSITIONS;
}

bool conv_half_in_blocks(const Node *n, int64_t shards, int64_t samples, int64_t slices,
                         int64_t chunk)
{
    const ConvSizes c = conv_sizes(n);
    const int64_t positions = round_up(chunk * c.oh * c.ow, 32);

    return conv_in_blocks(n, shards, samples, sizeof(float)) && shards <= RT_BF16_FILTER_SHARDS &&
           slices <= RT_BF16_FILTER_SLICES &&
           samples / chunk * positions <= RT_BF16_FILTER_POSITIONS;
}

Price conv_price_update(const Node *n, const Market *m, int64_t shards, int64_t samples, int states)
{
    const ConvSizes c = conv_sizes(n);
    const double taps = (double)(c.r * c.s), met = (double)(samples * c.oh * c.ow) * taps_met(&c),
                 filters = (double)(c.o * c.c) * taps,
                 x = (double)ceil_div(c.o, RT_DW_BLOCK_BYTES / m->real),
                 dy = (double)ceil_div(c.c, RT_DW_BLOCK_CHANNELS);
    Price p = {.textbook = 2 * filters * (double)(shards * samples * c.oh * c.ow)};

    price_panels(&p, m, taps * (double)shards, c.o, c.c, met);
    conv_copy(&p, m, taps * met * (double)shards * (x * (double)c.c + dy * (double)c.o));
    p.cycles += filters / m->lanes * UPDATE_CYCLES / m->core->fma;
    p.weights = 2.0 * (1 + states) * filters * m->real;
    p.values = (double)shards * m->real * taps * met * (x * (double)c.c + dy * (double)c.o);
    if (op_reads_half(n))
        price_half(&p);
    price_stream(&p, m, p.weights, (1 + states) * filters * m->real);
    price_stream(&p, m, p.values,
                 (double)(shards * samples * m->real) *
                     (double)(c.c * c.h * c.w + c.o * c.oh * c.ow));
    return p;
}

/* ---- packing of filters, once per step */

void conv_price_pack(const Node *n, const Market *m, Price *p)
{
    const ConvSizes c = conv_sizes(n);
    const bool dx = conv_attr(n, "dx") != 0;
    const int64_t tile = conv_attr(n, "winograd");
    const double count =
        (double)(n->half ? conv_half_count(n, dx) : conv_packed_count(n, dx, tile, m->lanes));

    p->weights = m->real * ((double)(c.o * c.r * c.s * c.inputs) + count);
    if (dx && !tile)
        conv_copy(p, m, count);
    else
        p->cycles += count * (tile ? WINO_PACK_CYCLES : PACK_CYCLES);
    price_stream(p, m, p->weights, p->weights);
}
