/* dense_price.c -- prices of the products of a dense layer, counted from runtime/cpu/dense.h. */
#include "ops/dense_price.h"
#include "runtime/constants.h"

static const double LANES_CYCLES = 7;       /* sum of the lanes of an accumulator */
static const double TRANSPOSE_CYCLES = 0.6; /* transpose of a weight, once per step */
static const double TREE_CYCLES = 2;        /* an accumulator added to the tree of shards */
static const double UPDATE_CYCLES = 6;      /* update of a vector of weights and states */

static double weights(const Market *m, int64_t k, int64_t o)
{
    const int64_t panel = 2 * m->lanes;
    return (double)m->real * (double)k * (double)round_up(o, panel);
}

int64_t dense_rows(const Node *n)
{
    return node_attr(n, "rows") ? node_int(n, "rows") : 1;
}

int64_t dense_half_count(int64_t factors, int64_t outputs)
{
    enum { BLOCK = 32, LANES = 16 };
    return round_up(factors, BLOCK) * round_up(outputs, LANES);
}

/* runtime/cpu/dense_sparse.h is not faster with fewer outputs */
enum { SPARSE_OUTPUTS = 64 };

bool dense_seeks_zeros(const Node *n)
{
    const Node *x = n->in[0];
    while (x->op->flags & OP_VIEW)
        x = x->in[0];
    return x->op->leaf == LEAF_INPUT && x->nin == 0 && x->dtype == DT_REAL && dense_rows(n) == 1 &&
           node_int(n, "units") >= SPARSE_OUTPUTS;
}

static void finish(const Node *n, Price *p, const Market *m, int64_t rows, int64_t k, int64_t o)
{
    p->weights = weights(m, k, o);
    p->values = (double)(rows * (k + o) * m->real);
    if (op_reads_half(n))
        price_half(p);
    price_stream(p, m, p->weights, p->weights);
    price_stream(p, m, p->values, p->values);
}

void dense_price(const Node *n, const Market *m, Price *p)
{
    const int64_t k = node_attr(n, "x_shape")->list[0], o = node_int(n, "units");
    const int64_t rows = m->n * dense_rows(n);
    const Attr *act = node_attr(n, "act");

    price_panels(p, m, 1, rows, o, (double)k);
    price_map(p, m, (double)(rows * o), act ? act->s : NULL);
    finish(n, p, m, rows, k, o);
    if (node_attr(n, "wide"))
        p->algorithm = "all samples at once";
    else if (!m->textbook && !op_reads_half(n) && dense_seeks_zeros(n))
        p->algorithm = "zeros left out";
}

/* With transposed weights, the kernel computes panels of inputs; else dot products, with outputs as
 * lanes. */
void dense_price_dx(const Node *n, const Market *m, Price *p)
{
    const int64_t k = node_attr(n, "x_shape")->list[0], o = node_int(n, "units");
    const int64_t all = m->n * dense_rows(n);
    const Attr *mask = node_attr(n, "mask");

    if (node_attr(n, "wide"))
        p->algorithm = "all samples at once";
    if (node_is(n->in[0], "dense_transpose") || node_attr(n, "wide") || op_reads_half(n)) {
        price_panels(p, m, 1, all, k, (double)o);
    } else {
        const int64_t full = k / RT_DENSE_DX_COLUMNS, rows = m->core->dx_rows,
                      tiles = ceil_div(all, rows);
        const double each = (double)all / (double)tiles;
        price_tiles(p, m, (double)(full * tiles), each, RT_DENSE_DX_COLUMNS,
                    (double)ceil_div(o, m->lanes));
        p->cycles += (double)(all * k) * LANES_CYCLES / m->core->fma;
    }
    price_map(p, m, (double)(all * k), mask ? mask->s : NULL);
    finish(n, p, m, all, k, o);
}

void dense_price_transpose(const Node *n, const Market *m, Price *p)
{
    p->weights = 2 * m->real * (double)shape_count(&n->in[0]->shape);
    p->cycles = p->weights / (2 * m->real) * TRANSPOSE_CYCLES;
    price_stream(p, m, p->weights, p->weights);
}

void dense_price_dw(const Node *n, const Market *m, Price *p)
{
    const int64_t k = node_attr(n, "x_shape")->list[0], o = node_int(n, "units");

    const int64_t rows = m->n * dense_rows(n);

    price_panels(p, m, 1, k, o, (double)rows);
    finish(n, p, m, rows, k, o);
    p->weights *= 2;
}

Price dense_price_update(const Market *m, int64_t k, int64_t o, int64_t shards, int64_t samples,
                         int states)
{
    const int64_t rows = m->core->rows, panel = 2 * m->lanes, panels = ceil_div(o, panel);
    const double w = weights(m, k, o), vectors = w / (m->lanes * m->real),
                 streams = 2.0 * (1 + states);
    Price p = {.textbook = 2 * (double)(k * o) * (double)(shards * samples)};

    price_panels(&p, m, (double)shards, k, o, (double)samples);
    p.cycles += vectors * ((double)shards * TREE_CYCLES + UPDATE_CYCLES) / m->core->fma;
    p.weights = streams * w;
    p.values = (double)(panels * shards * samples * k * m->real);
    p.values += (double)(ceil_div(k, rows) * shards * samples * panels * panel * m->real);
    price_stream(&p, m, p.weights, (1 + states) * w);
    price_stream(&p, m, p.values, (double)(shards * samples * (k + o) * m->real));
    if (m->textbook)
        p.executed = p.textbook, p.cycles = p.textbook * 2;
    return p;
}

static int64_t panels_of(const Market *m, int64_t o)
{
    return ceil_div(o, 2 * m->lanes);
}

int64_t dense_units_update(const Market *m, int64_t k, int64_t o, bool half)
{
    if (half) {
        const int64_t tiles = ceil_div(k, m->core->rows), panels = panels_of(m, o);
        return ceil_div(tiles, RT_BF16_UNIT_INPUTS / m->core->rows) *
               ceil_div(panels, RT_BF16_UNIT_PANELS);
    }
    const int64_t blocks = ceil_div(ceil_div(k, m->core->rows), RT_DENSE_UNIT_TILES),
                  all = panels_of(m, o) * blocks;
    return ceil_div(panels_of(m, o), all >= 128 ? 4 : all >= 64 ? 2 : 1) * blocks;
}

int64_t dense_units_input(const Market *m, int64_t samples, int64_t k, int64_t o)
{
    const int64_t parts = samples >= RT_DENSE_INPUT_MANY && panels_of(m, o) >= 4 ? 2 : 1;
    return parts * ceil_div(ceil_div(k, m->core->rows), RT_DENSE_INPUT_TILES);
}

int64_t dense_units_wide(const Market *m, int64_t o)
{
    return ceil_div(panels_of(m, o), RT_DENSE_WIDE_PANELS);
}

int64_t dense_units_wide_dx(const Market *m, int64_t k)
{
    return panels_of(m, k);
}
