/* price.h -- the price of a call on a nominal core: operations executed, bytes moved, cycles.
 *
 * The textbook count of FLOPs is the work of a layer; the price is the work of its kernel.  A price
 * includes unused rows of tiles and unused lanes of vectors, and excludes taps that a pooling makes
 * zero.  Prices add the work of the loops of a kernel, with the tiles of runtime/cpu; a few
 * constants were fitted to `bench --layers` (price.c names them).  Prices depend only on sizes,
 * --cpu and --dtype.
 */
#ifndef PRICE_H
#define PRICE_H
#include "base/round.h"
#include "ir/core.h"
#include "ir/options.h"
#include "ir/step.h"
#include "ops/op.h"

struct Price {
    const char *algorithm;     /* "direct", "Winograd F(2x2)"; NULL: there is only one algorithm */
    double textbook, executed; /* FLOPs of one call */
    double weights, values;    /* bytes of parameters and of activations, read and written */
    double cycles;             /* of one core */
};

/* What a price depends on, besides the node. */
struct Market {
    const Core *core;
    int64_t n;       /* samples in the chunk of one call */
    int real, lanes; /* bytes of a number; numbers in a vector */
    bool textbook;   /* reference kernels or a library: textbook FLOPs at a flat rate */
};

Market market_of(const Graph *g, const Options *o, int64_t chunk);
double market_seconds(const Market *m, double cycles);

/* The price of the call that computes n, by the rule of its op; without a rule, the price of
 * moving the operands once. */
Price price_of(const Node *n, const Market *m);

/* ---- parts of kernels; each function adds to *p */

/* `tiles` register tiles (runtime/cpu/tile.h), each with rows x vectors accumulators and `count`
 * steps. */
void price_tiles(Price *p, const Market *m, double tiles, double rows, double vectors,
                 double count);
/* Adds all panels of `outputs` columns with n rows.  A panel is two vectors wide; the last one can
 * be narrower. */
void price_panels(Price *p, const Market *m, double times, int64_t n, int64_t outputs,
                  double count);
/* Says that the factors of the product have two bytes.  On a processor without tile instructions,
 * its register tiles take the time of those in f32; values take half of the memory. */
void price_half(Price *p);
/* A function such as "tanh", or its derivative, of each number of a value. */
void price_map(Price *p, const Market *m, double numbers, const char *function);
/* Adds a kernel with a fixed number of cycles for each number of the first input of n.  The kernel
 * also moves its operands. */
void price_each(Price *p, const Market *m, const Node *n, double cycles);
/* Bytes read from the cache that holds `resident` bytes; computation hides half of this time. */
void price_stream(Price *p, const Market *m, double bytes, double resident);

#endif
