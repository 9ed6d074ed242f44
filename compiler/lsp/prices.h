/* prices.h -- predicted time and planned memory of each call, from a plan of the training step.
 *
 * A plan of a large network takes a second, so a process of its own computes it, after the messages
 * are published.  The process is a copy of the server: it reads the analysis, and sends rows back.
 */
#ifndef LSP_PRICES_H
#define LSP_PRICES_H
#include "lsp/server.h"

/* Sums over all evaluations of a call, and over one step of training. */
typedef struct PriceRow {
    const Expr *e;
    double seconds;        /* of one core: forward, backward and update */
    int64_t fixed, values; /* bytes of parameters with their states; of other values */
} PriceRow;

typedef struct PriceTotal {
    double seconds;
    int64_t planned, batch;
    int threads, rows;
    char cpu[32];
} PriceTotal;

struct Prices {
    Arena *arena;
    PriceTotal total;
    const PriceRow *row;
};

const PriceRow *price_row(const Document *d, const Expr *e); /* NULL: not known */

#endif
