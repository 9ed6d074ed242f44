/* embedding.h -- sum and update of a large table in one call: runtime/cpu/embedding.h. */
#ifndef EMBEDDING_H
#define EMBEDDING_H
#include "ops/price.h"

/* Number of units of the table whose gradient is n; a unit has EMBEDDING_ROWS rows. */
int64_t embedding_units(const Node *n);

/* Price of all units together. */
Price embedding_price_update(const Node *n, const Market *m, int64_t samples, int states);

#endif
