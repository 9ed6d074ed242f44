/* conv_price.c -- what each convolution algorithm costs: the loops of runtime/cpu, counted.
 *
 *   direct     one register tile for a few positions by a panel of channels; inner products of R S C
 *   Winograd   a^2 products over the channels for m^2 outputs, a = m + R - 1, between two transforms
 *   sparse     behind a fused 2x2 max-pool: a run of S C numbers for each pooled output and kernel row
 */
#include "ops/conv_price.h"
#include "ops/window.h"

static const double RESTART_CYCLES = 6;     /* a tile's inner loop ended and begun again */
static const double TILE_CYCLES = 100;      /* its rows found, its sums put away */
static const double RUN_CYCLES = 2;         /* an entry of a sparse list: index, pointer */
static const double LIST_CYCLES = 25;       /* a list found empty or begun: a branch not foreseen */
static const double WINO_CYCLES = 40;       /* a vector of one tile gathered or scattered, */
static const double CONFLICT_CYCLES = 120;  /* more when its points share sets of the first cache */
static const double SORT_CYCLES = 4;        /* an output put into its list */
static const double WINO_PACK_CYCLES = 0.7; /* a real of transformed filters */
static const double PACK_CYCLES = 4;        /* a real gathered into a panel */

typedef struct Conv {
    int64_t c, h, w, o, groups, inputs, outputs, pool, r, s, oh, ow;
    Window v;
} Conv;

static int64_t whole(const Node *n, const char *key)
{
    const Attr *a = node_attr(n, key);
    return a ? a->i : 0;
}

static Conv conv_of(const Node *n)
{
    const int64_t *x = node_attr(n, "x_shape")->list;
    Conv c = {.c = x[0],
              .h = x[1],
              .w = x[2],
              .o = node_int(n, "filters"),
              .groups = node_int(n, "groups")};
    c.pool = whole(n, "pool");
    c.v = window_of(n, c.h, c.w);
    c.inputs = c.c / c.groups, c.outputs = c.o / c.groups;
    c.r = c.v.kernel[0], c.s = c.v.kernel[1], c.oh = c.v.out[0], c.ow = c.v.out[1];
    return c;
}

static const char *text_of(const Node *n, const char *key)
{
    const Attr *a = node_attr(n, key);
    return a ? a->s : NULL;
}

static double image(const Conv *c, const Market *m)
{
    return (double)(m->n * c->c * c->h * c->w);
}

static double result(const Conv *c, const Market *m)
{
    return (double)(m->n * c->o * c->oh * c->ow);
}

static bool padded(const Conv *c)
{
    return c->v.before[0] || c->v.before[1] || c->v.after[0] || c->v.after[1];
}

/* Rows copied between zeros: a load and a store a vector. */
static void copy(Price *p, const Market *m, double numbers)
{
    p->cycles += numbers / m->lanes * (1 / m->core->loads + 1 / m->core->stores);
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return price_ceil(n, unit) * unit;
}

int64_t conv_packed_count(const Node *n, bool dx, int64_t m, int64_t vector)
{
    const Conv c = conv_of(n);
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

/* ---- Winograd */

static const char *winograd_name(const Conv *c, int64_t m)
{
    return m == 4      ? "Winograd F(4x4, 3x3)"
           : c->r == 5 ? "Winograd F(2x2, 5x5)"
                       : "Winograd F(2x2, 3x3)";
}

/* Instructions of a transform of one row of a points: runtime/cpu/winograd.h. */
static double transform(int64_t a, bool output)
{
    return a == 4 ? 4 : output ? 8 : 12;
}

/* So many vectors of channels of a tile: gathered, transformed, scattered. */
static void transforms(Price *p, const Market *m, double vectors, double loads, double sums,
                       double stores, double moved)
{
    const Core *c = m->core;
    p->cycles += vectors * (moved + loads / c->loads + sums / c->fma + stores / c->stores);
    p->executed += vectors * sums * m->lanes;
}

/* Tiles that go through the products together: runtime/cpu/winograd.h, wino_block. */
static int64_t wino_block(const Market *k, double points, int64_t in)
{
    const double budget = 192 * 1024,
                 fit = budget / (points * (double)(in + 2 * k->lanes) * k->real);
    return fit > 48 ? 48 : fit < k->core->rows ? k->core->rows : (int64_t)fit;
}

/* Points lie `stride` bytes apart; eight ways of 4 KB each hold a line of every set. */
static double moved(double points, int64_t stride)
{
    int64_t sets = 64;
    for (int64_t s = stride; sets > 1 && s % 128 == 0; s /= 2)
        sets /= 2;
    return WINO_CYCLES + (points > 8.0 * (double)sets ? CONFLICT_CYCLES : 0);
}

/* `tiles` tiles of m x m outputs, `in` channels to `out`; the filters stream through for each
 * block of tiles. */
static void winograd(Price *p, const Market *k, int64_t tiles, int64_t in, int64_t out, int64_t m,
                     int64_t r)
{
    const int64_t a = m + r - 1, panel = 2 * k->lanes, rows = k->core->rows;
    const double points = (double)(a * a), n = (double)tiles;
    const double u = (double)round_up(out, panel) * points * (double)in * k->real;
    const int64_t block = wino_block(k, points, in) / rows * rows;
    const double blocks = (double)price_ceil(tiles, block);

    transforms(p, k, n * (double)price_ceil(in, k->lanes), points,
               2 * (double)a * transform(a, false), points, moved(points, block * in * k->real));
    price_tiles(p, k, (double)(price_ceil(tiles, rows) * price_ceil(out, panel)) * points,
                (double)rows, 2, (double)in);
    transforms(p, k, n * (double)price_ceil(out, k->lanes), points,
               (double)(a + m) * transform(a, true), (double)(m * m),
               moved(points, block * panel * k->real));
    p->weights += u * blocks;
    price_stream(p, k, u * blocks, u);
}

static int64_t tiles_of(const Market *k, int64_t h, int64_t w, int64_t m)
{
    return k->n * price_ceil(h, m) * price_ceil(w, m);
}

/* ---- dense sums */

static void direct(Price *p, const Market *m, const Conv *c)
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
        const int64_t some = c->pool ? windows : most, tiles = price_ceil(c->ow / unit, some);
        const double each =
            (c->pool ? 4 : 1) * (double)(c->ow / unit) / (double)(tiles ? tiles : 1);
        price_tiles(p, m, rows * times * (double)tiles, each, vectors, count);
        p->cycles += rows * times * (double)tiles * (double)(c->r - 1) * RESTART_CYCLES;
    }
    p->weights =
        (double)(m->n * m->real) * (double)round_up(c->outputs, panel) * (double)c->groups * count;
    price_stream(p, m, p->weights, p->weights / (double)m->n);
    if (padded(c))
        copy(p, m, image(c, m));
}

/* Of the taps of one direction, the share that lies in the image. */
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

/* runtime/cpu/conv_gather.h: tiles of any positions of a chunk, taps in the padding left out; `share`
 * of the taps meets a position. */
static void boxes(Price *p, const Market *m, const Conv *c, int64_t positions, int64_t made,
                  int64_t summed, double share)
{
    const double met = inside(c->oh, c->h, c->r, &c->v, 0) * inside(c->ow, c->w, c->s, &c->v, 1);
    const double count = share * met * (double)(c->r * c->s * summed);
    const int64_t panels = price_ceil(made, 2 * m->lanes);

    price_panels(p, m, (double)c->groups, m->n * positions, made, count);
    p->cycles +=
        (double)(c->groups * panels * price_ceil(m->n * positions, m->core->rows)) * TILE_CYCLES;
    p->weights = m->real * (double)(c->groups * panels * 2 * m->lanes * c->r * c->s * summed);
    price_stream(p, m, p->weights, p->weights);
}

void conv_price(const Node *n, const Market *m, Price *p)
{
    const Conv c = conv_of(n);
    const int64_t tile = whole(n, "winograd");
    const double out = result(&c, m) / (c.pool ? 4 : 1);
    const char *act = text_of(n, "act");

    p->algorithm = tile ? winograd_name(&c, tile) : "direct";
    if (tile)
        winograd(p, m, tiles_of(m, c.oh, c.ow, tile), c.inputs, c.outputs, tile, c.r);
    else if (c.pool)
        direct(p, m, &c);
    else
        boxes(p, m, &c, c.oh * c.ow, c.outputs, c.inputs, 1);
    price_map(p, m, out, act);
    if (c.pool)
        price_map(p, m, out, "pool");
    p->values = m->real * (image(&c, m) + out) + (c.pool ? out : 0);
    price_stream(p, m, p->values, p->values);
}

void conv_price_dx(const Node *n, const Market *m, Price *p)
{
    const Conv c = conv_of(n);
    const int64_t tile = whole(n, "winograd"), *stride = c.v.stride;

    p->algorithm = tile ? winograd_name(&c, tile) : "direct";
    if (tile)
        winograd(p, m, tiles_of(m, c.h, c.w, tile), c.outputs, c.inputs, tile, c.r);
    else
        boxes(p, m, &c,
              price_ceil(c.h, stride[0]) * price_ceil(c.w, stride[1]) * stride[0] * stride[1],
              c.inputs, c.outputs, 1 / (double)(stride[0] * stride[1]));
    price_map(p, m, image(&c, m), text_of(n, "mask"));
    p->values = m->real * (image(&c, m) * (text_of(n, "mask") ? 2 : 1) + result(&c, m));
    price_stream(p, m, p->values, p->values);
}

void conv_price_dw(const Node *n, const Market *m, Price *p)
{
    const Conv c = conv_of(n);
    const bool runs = c.groups == 1 && c.v.dilation[1] == 1;
    const int64_t length = runs ? c.s * c.inputs : c.inputs;
    const double times = (double)(m->n * c.groups * c.r * (runs ? 1 : c.s));
    const double tiles = times * (double)price_ceil(c.outputs, m->core->rows) *
                         (double)price_ceil(length, 2 * m->lanes);

    p->algorithm = "direct";
    price_panels(p, m, times, c.outputs, length, (double)(c.oh * c.ow));
    p->cycles += tiles * (double)(c.oh - 1) * RESTART_CYCLES;
    if (padded(&c))
        copy(p, m, image(&c, m));
    p->weights = 2.0 * (double)(m->n * m->real) * (double)(c.o * c.r * c.s * c.inputs);
    p->values = m->real * (image(&c, m) + result(&c, m));
    price_stream(p, m, p->values + p->weights, p->values);
}

/* ---- behind a fused max-pool */

/* A pass over `rows` runs of `vectors` vectors from memory: their FMA wait for loads that may touch two lines. */
static double run_cycles(const Market *m, double vectors, bool aligned)
{
    const double width = m->lanes * m->real;
    const double lines = vectors * (aligned ? 1 : 1 + (width - 4) / 64);
    const double loads = vectors / m->core->loads, touched = lines / m->core->lines;
    const double wait = loads > touched ? loads : touched;
    return wait > m->core->latency ? wait : m->core->latency;
}

/* For each pooled output, R runs of S C numbers; `rows` kernel rows at a time stay in registers. */
static void sparse(Price *p, const Market *m, const Conv *c, int64_t rows, bool aligned,
                   double *passes)
{
    const int64_t vectors = price_ceil(c->s * c->inputs, m->lanes);
    const double entries = result(c, m) / 4;
    const int64_t times = price_ceil(c->r, rows);
    const double each = (double)(c->r * vectors) / (double)times;

    *passes = (double)(times * price_ceil(vectors, m->core->runs));
    p->algorithm = "sparse behind the pool";
    p->executed += entries * (double)(c->r * vectors * m->lanes) * 2;
    p->cycles +=
        entries * (double)times * run_cycles(m, each, aligned) + entries * *passes * RUN_CYCLES;
    p->values = m->real * (image(c, m) + entries) + entries;
}

void conv_price_pool_dx(const Node *n, const Market *m, Price *p)
{
    const Conv c = conv_of(n);
    const int64_t vectors = price_ceil(c.s * c.inputs, m->lanes);
    const double entries = result(&c, m) / 4, windows = entries / (double)c.o;
    const double lists = entries < 4 * windows ? entries : 4 * windows;
    double passes;

    sparse(p, m, &c, 1, true, &passes);
    p->cycles += lists * (passes * LIST_CYCLES +
                          (double)(c.r * vectors) * (1 / m->core->loads + 1 / m->core->stores));
    p->cycles += entries * SORT_CYCLES;
    price_map(p, m, image(&c, m), text_of(n, "mask"));
    p->weights =
        (double)(m->n * m->real) * (double)(c.o * c.r) * (double)round_up(c.s * c.inputs, m->lanes);
    p->values += text_of(n, "mask") ? m->real * image(&c, m) : 0;
    price_stream(p, m, p->values + p->weights, p->values);
}

void conv_price_pool_dw(const Node *n, const Market *m, Price *p)
{
    const Conv c = conv_of(n);
    const int64_t vectors = price_ceil(c.s * c.inputs, m->lanes);
    double passes;

    sparse(p, m, &c, vectors < m->core->runs ? m->core->runs / vectors : 1, false, &passes);
    if (padded(&c))
        copy(p, m, image(&c, m));
    p->weights = 2.0 * (double)(m->n * m->real) * (double)(c.o * c.r * c.s * c.inputs);
    price_stream(p, m, p->values + p->weights, p->values);
}

/* ---- filters packed, once a step */

void conv_price_pack(const Node *n, const Market *m, Price *p)
{
    const Conv c = conv_of(n);
    const bool dx = whole(n, "dx") != 0;
    const int64_t tile = whole(n, "winograd");
    const double count = (double)conv_packed_count(n, dx, tile, m->lanes);

    p->weights = m->real * ((double)(c.o * c.r * c.s * c.inputs) + count);
    if (dx && !tile)
        copy(p, m, count);
    else
        p->cycles += count * (tile ? WINO_PACK_CYCLES : PACK_CYCLES);
    price_stream(p, m, p->weights, p->weights);
}
