/* wino_price.c -- prices of Winograd's algorithm, counted from the loops of
 * runtime/cpu/winograd.h and winograd_dw.h.
 *
 * Between two transforms, m^2 outputs take a^2 products over the channels, with a = m + R - 1.  The
 * constants were fitted to bench/convs on Zen 4.
 */
#include "ops/wino_price.h"
#include "runtime/constants.h"

static const double WINO_CYCLES = 20; /* to gather or scatter one vector of one tile */
/* in addition to WINO_CYCLES, if points come from the L2 and taps are not adjacent */
static const double BACK_CYCLES = 30;

/* ---- Winograd */

static const char *name(const ConvSizes *c, int64_t m)
{
    return m == 4      ? "Winograd F(4x4, 3x3)"
           : c->r == 5 ? "Winograd F(2x2, 5x5)"
                       : "Winograd F(2x2, 3x3)";
}

/* Instructions to transform one row of `a` points: runtime/cpu/winograd.h. */
static double transform(int64_t a, bool output)
{
    return a == 4 ? 4 : output ? 8 : 12;
}

/* Gathers, transforms and scatters vectors of channels of a tile. */
static void transforms(Price *p, const Market *m, double vectors, double loads, double sums,
                       double stores)
{
    const Core *c = m->core;
    p->cycles += vectors * (WINO_CYCLES + loads / c->loads + sums / c->fma + stores / c->stores);
    p->executed += vectors * sums * m->lanes;
}

/* Number of tiles in one block of products: runtime/cpu/winograd.h, wino_block. */
static int64_t wino_block(const Market *k, double points, int64_t in, int64_t out)
{
    const bool far = points * (double)(in * out) * k->real > 2048 * 1024;
    const double budget = far ? RT_WINO_FAR : RT_WINO_NEAR,
                 fit = budget / (points * (double)(in + 2 * k->lanes) * k->real);
    return fit > RT_WINO_BLOCK ? RT_WINO_BLOCK : fit < k->core->rows ? k->core->rows : (int64_t)fit;
}

/* Number of vectors in the product of the last panel.  With AVX-512, a vector of which at most half
 * is used counts as 0.5, unless it is the only one (wino_product_tile). */
static double last_vectors(const Market *k, int64_t left)
{
    const bool half = k->core->vector_bytes == 64 && 2 * left <= 3 * k->lanes;
    return left <= k->lanes ? 1 : half ? 1.5 : 2;
}

/* Adds the price of `tiles` tiles of m x m outputs, with `in` input and `out` output channels.  The
 * products of each block of tiles read all filters, at half the nominal rate.  With 256 channels at
 * 14 x 14, the products do not wait for filters. */
static void winograd(Price *p, const Market *k, int64_t tiles, int64_t in, int64_t out, int64_t m,
                     int64_t r)
{
    const int64_t a = m + r - 1, panel = 2 * k->lanes, rows = k->core->rows;
    const double points = (double)(a * a), n = (double)tiles;
    const double u = (double)round_up(out, panel) * points * (double)in * k->real;
    const double blocks = (double)ceil_div(tiles, wino_block(k, points, in, out) / rows * rows);

    transforms(p, k, n * (double)ceil_div(in, k->lanes), points,
               2 * (double)a * transform(a, false), points);
    const double products = (double)ceil_div(tiles, rows) * points, before = p->cycles;
    price_tiles(p, k, products * (double)(out / panel), (double)rows, 2, (double)in);
    if (out % panel)
        price_tiles(p, k, products, (double)rows, last_vectors(k, out % panel), (double)in);
    const double hidden = p->cycles - before, stream = 2 * core_stream(k->core, u * blocks, u);
    p->cycles += stream > hidden ? stream - hidden : 0;
    p->weights += u * blocks;
    transforms(p, k, n * (double)ceil_div(out, k->lanes), points,
               (double)(a + m) * transform(a, true), (double)(m * m));
}

static int64_t tiles_of(const Market *k, int64_t h, int64_t w, int64_t m)
{
    return k->n * ceil_div(h, m) * ceil_div(w, m);
}

void wino_price(Price *p, const Market *k, const ConvSizes *c, int64_t m)
{
    p->algorithm = name(c, m);
    winograd(p, k, tiles_of(k, c->oh, c->ow, m), c->inputs, c->outputs, m, c->r);
}

void wino_price_dx(Price *p, const Market *k, const ConvSizes *c, int64_t m)
{
    p->algorithm = name(c, m);
    winograd(p, k, tiles_of(k, c->h, c->w, m), c->outputs, c->inputs, m, c->r);
}

/* The kernel (winograd_dw.h) divides input and output channels into blocks.  The kernel transforms
 * a tile of dy again for each block of inputs, and a tile of x again for each block of outputs.  If
 * all tiles fit into one product, the kernel transforms a tile of x only once. */
void wino_price_dw(Price *p, const Market *k, const ConvSizes *c, int64_t m)
{
    const int64_t a = m + c->r - 1, points = a * a, rows = k->core->rows;
    const int64_t sums = 264 * 1024 / k->real / points, scratch = 704 * 1024 / k->real / points;
    const int64_t most = (a == 4 ? 256 : 128) / k->real, vectors = ceil_div(c->inputs, k->lanes),
                  in = vectors * k->lanes < most ? vectors * k->lanes : most,
                  tall = ceil_div(c->outputs, rows), fit_tall = sums / (in * rows),
                  out = (tall < fit_tall ? tall : fit_tall) * rows;
    /* rows of whole vectors, and a line of 64 bytes between points */
    const int64_t row = round_up(out, k->lanes), gap = 64 / k->real;
    const int64_t tiles = tiles_of(k, c->oh, c->ow, m),
                  fit = (scratch - out * in - 3 * gap) / (in + row), times = ceil_div(tiles, fit);
    const double ins = (double)ceil_div(c->inputs, in), outs = (double)ceil_div(c->outputs, out);
    const double rests = (double)ceil_div(c->outputs, k->lanes), all = (double)vectors;
    const double moved = (double)(points * tall * rows * vectors * k->lanes * k->real);
    const double products = (double)(times * points * tall), deep = (double)tiles / (double)times;

    p->algorithm = name(c, m);
    transforms(p, k, (double)tiles * all * (times > 1 ? outs : 1), (double)points,
               2 * (double)a * transform(a, false), (double)points);
    transforms(p, k, (double)tiles * rests * ins, (double)(m * m),
               (double)(a + m) * transform(a, true), (double)points);
    price_tiles(p, k, products * (double)(vectors / 2), (double)rows, 2, deep);
    price_tiles(p, k, products * (double)(vectors % 2), (double)rows, 1, deep);
    price_stream(p, k, 2 * (double)times * moved, 264 * 1024);
    p->cycles += (double)c->outputs * all * BACK_CYCLES;
    transforms(p, k, (double)c->outputs * all, (double)(points + c->r * c->r),
               (double)(a + c->r) * transform(a, true), (double)(c->r * c->r));
}
