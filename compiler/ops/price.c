/* price.c -- cycles that the parts of kernels take on a nominal core.
 *
 * TILE_CYCLES, STORE_SLOTS, HIDDEN and the slots of functions were fitted to `bench --layers` of
 * lenet, lenet_relu, mlp, mlp_wide and small convolution nets on Zen 4, for x86-64-v4 and
 * x86-64-v3.  All other numbers are counted in the code of the kernels.
 */
#include "ops/price.h"
#include "ir/target.h"
#include <string.h>

/* set-up of the loop of a tile, and latency of its last sum */
static const double TILE_CYCLES = 14;
static const double STORE_SLOTS = 2; /* start and store of an accumulator */
/* share of a stream that prefetch and out-of-order execution hide */
static const double HIDDEN = .5;
static const double GATHER_CYCLES = 3; /* a number of a sample whose channels are transposed */
static const double ROW_CYCLES = 12;   /* a sum stored and loaded again */
/* the same for part of a vector, where the store is not forwarded to the load */
static const double ROW_CYCLES_PART = 28;
/* a multiply-add of the reference kernels: each one waits for the sum before it */
static const double PLAIN_CYCLES = 4;

Market market_of(const Graph *g, const Options *o, int64_t chunk)
{
    const int real = dtype_bytes(g->recipe.dtype);
    const Core *c = core_of(target_core(o));
    return (Market){.core = c,
                    .n = chunk,
                    .real = real,
                    .lanes = c->vector_bytes ? c->vector_bytes / real : 1,
                    .textbook = target_of(o).textbook};
}

double market_seconds(const Market *m, double cycles)
{
    return cycles / (1e9 * m->core->ghz);
}

/* The slowest part determines a step: FMA, loads, or the latency between two FMA of an
 * accumulator. */
void price_tiles(Price *p, const Market *m, double tiles, double rows, double vectors, double count)
{
    const Core *c = m->core;
    const double fma = rows * vectors / c->fma, loads = (rows + vectors) / c->loads;
    double step = fma > loads ? fma : loads;
    step = step > c->latency ? step : c->latency;
    p->cycles += tiles * (count * step + TILE_CYCLES + rows * vectors * STORE_SLOTS / c->fma);
    p->executed += tiles * count * rows * vectors * m->lanes * 2;
}

void price_half(Price *p)
{
    p->algorithm = "bf16";
    p->values /= 2;
}

/* price_tiles for n rows, divided into tiles of at most `most` rows as tile_split divides them. */
static void price_split(Price *p, const Market *m, double times, int64_t n, int64_t most,
                        double vectors, double count)
{
    const int64_t tiles = ceil_div(n, most), small = tiles ? n / tiles : 0,
                  bigs = n - tiles * small;
    price_tiles(p, m, times * (double)bigs, (double)small + 1, vectors, count);
    price_tiles(p, m, times * (double)(tiles - bigs), (double)small, vectors, count);
}

void price_panels(Price *p, const Market *m, double times, int64_t n, int64_t outputs, double count)
{
    const int64_t panel = 2 * m->lanes, left = outputs % panel;
    price_split(p, m, times * (double)(outputs / panel), n, m->core->rows, 2, count);
    if (left)
        price_split(p, m, times, n, left > m->lanes ? m->core->rows : m->core->rows_1,
                    left > m->lanes ? 2 : 1, count);
}

/* Instructions per vector, from measured times: see the functions of vec in runtime/cpu/math.h. */
static double slots(const char *function)
{
    static const struct {
        const char *name;
        double slots;
    } table[] = {{"exp", 17},  {"tanh", 24},   {"sigmoid", 22}, {"log", 24},      {"softplus", 45},
                 {"gelu", 50}, {"silu", 24},   {"erf", 45},     {"pow", 60},      {"div", 8},
                 {"sqrt", 10}, {"gelu_d", 60}, {"silu_d", 26},  {"reciprocal", 8}};
    for (size_t i = 0; function && i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, function))
            return table[i].slots;
    return function ? 2 : 0;
}

void price_map(Price *p, const Market *m, double numbers, const char *function)
{
    p->cycles += numbers / m->lanes * slots(function) / m->core->fma;
}

void price_stream(Price *p, const Market *m, double bytes, double resident)
{
    p->cycles += (1 - HIDDEN) * core_stream(m->core, bytes, resident);
}

/* ---- a node */

static double bytes_of(const Node *n, const Market *m)
{
    const double each = (double)node_number_bytes(n, m->real);
    return n->op->leaf == LEAF_CONST
               ? 0
               : each * (double)shape_count(&n->shape) * (n->shape.batched ? (double)m->n : 1);
}

/* Adds the operands of n, and its function for each number.  An operand that the loop computes
 * itself (attribute inline) adds its own function and operands. */
static void price_move(Price *p, const Market *m, const Node *n, double numbers)
{
    price_map(p, m, numbers, n->op->flags & OP_ELEMENTWISE ? n->op->name : NULL);
    for (int i = 0; i < n->nin; i++) {
        const Node *x = n->in[i];
        if (node_attr(x, "inline"))
            price_move(p, m, x, numbers);
        else if (x->shape.batched)
            p->values += bytes_of(x, m);
        else
            p->weights += bytes_of(x, m);
    }
}

/* Adds the store of the result, and the cycles of all loads and stores. */
static void finish_move(Price *p, const Market *m, const Node *n)
{
    const double out = bytes_of(n, m), all = p->values + p->weights + out;
    p->values += out;
    p->cycles += 20 + all / (m->lanes * m->real) * (n->op->flags & OP_ELEMENTWISE ? 1 : 2);
    price_stream(p, m, all, all);
}

void price_each(Price *p, const Market *m, const Node *n, double cycles)
{
    const Node *x = n->in[0];
    p->values = bytes_of(n, m) + bytes_of(x, m);
    p->cycles += cycles * (double)shape_count(&x->shape) * (x->shape.batched ? (double)m->n : 1);
    price_stream(p, m, p->values, p->values);
}

/* The conversion of stored samples processes one number at a time; with several channels, it needs
 * a branch for each number.  A mixed sample is made of two. */
static void gather(Price *p, const Market *m, const Node *n)
{
    const bool channels = n->shape.rank == 3 && n->shape.dim[0] > 1,
               two = n->op->leaf == LEAF_INPUT && node_attr(n, "mixed");
    p->values = (two ? 3 : 2) * bytes_of(n, m);
    p->cycles =
        (double)(shape_count(&n->shape) * m->n) * (channels ? GATHER_CYCLES : 1) * (two ? 2 : 1);
}

/* Adds a kernel that adds rows into one row.  Each addition waits for the store of the one before
 * it. */
static void add_rows(Price *p, const Market *m, const Node *n)
{
    const int64_t width = shape_count(&n->shape), all = shape_count(&n->in[0]->shape) * m->n;
    const double vectors = 4 * (double)ceil_div(width, m->lanes);
    const double least = width % m->lanes ? ROW_CYCLES_PART : ROW_CYCLES;
    p->values = bytes_of(n->in[0], m), p->weights = bytes_of(n, m);
    p->cycles = 20 + (double)all / (double)width * (vectors > least ? vectors : least);
    p->executed = (double)all;
}

/* Reference kernels execute the textbook count of FLOPs, one number at a time. */
static void flat_rate(Price *p)
{
    p->executed = p->textbook;
    p->cycles = p->textbook / 2 * PLAIN_CYCLES;
    p->algorithm = NULL;
}

Price price_of(const Node *n, const Market *m)
{
    Price p = {.textbook = n->op->cost ? n->op->cost(n).flops * (double)m->n : 0};

    if (n->op->price) {
        n->op->price(n, m, &p);
    } else if (n->op->leaf == LEAF_INPUT || n->op->leaf == LEAF_LABEL) {
        gather(&p, m, n);
    } else if (node_is(n, "sum_to") && !n->shape.batched) {
        add_rows(&p, m, n);
    } else {
        price_move(&p, m, n, (double)shape_count(&n->shape) * (double)m->n);
        finish_move(&p, m, n);
    }
    if (m->textbook && p.textbook > 0)
        flat_rate(&p);
    return p;
}
