/* price.h -- what a call costs on a nominal core: operations executed, bytes moved, cycles.
 *
 * The textbook's count says how much a layer has to do; the price says what its kernel does for it: rows of a tile and
 * lanes of a vector that compute nothing are paid for, taps behind a pooling that are known to be zero are not.
 * Prices add up what a kernel's loops do, with the tiles of runtime/cpu; a handful of constants was fitted to
 * `bench --layers` (price.c names them).  They depend on sizes, --cpu and --dtype alone.
 */
#ifndef PRICE_H
#define PRICE_H
#include "ir/core.h"
#include "ir/options.h"
#include "ir/step.h"
#include "ops/op.h"

struct Price {
    const char *algorithm;                            /* "direct", "Winograd F(2x2)"; NULL: there is but one way */
    double textbook, executed;                        /* FLOPs of one call */
    double weights, values;                           /* bytes read and written: of parameters, of activations */
    double cycles;                                    /* of one core */
};

/* What a price is asked for. */
struct Market {
    const Core *core;
    int64_t n;                                        /* samples in the chunk of one call */
    int     real, lanes;                              /* bytes a number; numbers a vector */
    bool    plain;                                    /* reference kernels or a library: textbook FLOPs at a flat rate */
};

Market market_of(const Graph *g, const Options *o, int64_t chunk);
double market_seconds(const Market *m, double cycles);

/* The price of the call that computes n, by its op's rule; without one, of moving its operands once. */
Price price_of(const Node *n, const Market *m);

/* ---- the parts that kernels are made of; each adds to *p */

/* `tiles` register tiles of rows x vectors accumulators, `count` steps each: runtime/cpu/tile.h. */
void price_tiles(Price *p, const Market *m, double tiles, double rows, double vectors, double count);
/* n rows in tiles of at most `most` rows, as tile_split cuts them; the rest as above. */
void price_split(Price *p, const Market *m, double times, int64_t n, int64_t most, double vectors, double count);
/* All panels of `outputs` columns by n rows: two vectors wide, the last one perhaps narrower. */
void price_panels(Price *p, const Market *m, double times, int64_t n, int64_t outputs, double count);
/* A value of so many numbers through a function, "tanh", or its derivative. */
void price_map(Price *p, const Market *m, double numbers, const char *function);
/* A kernel that spends so many cycles on each number of n's first input, and moves its operands. */
void price_each(Price *p, const Market *m, const Node *n, double cycles);
/* Bytes that come from where `resident` bytes lie; half of the way is hidden behind what computes. */
void price_stream(Price *p, const Market *m, double bytes, double resident);

int64_t price_ceil(int64_t n, int64_t unit);          /* how many units hold n */

#endif
