/* embedding.h -- the sum and update of a large table in one: runtime/cpu/embedding.h. */
#ifndef EMBEDDING_H
#define EMBEDDING_H
#include "ops/price.h"

/* Units of the table whose gradient n is: EMBEDDING_ROWS rows each. */
int64_t embedding_units(const Node *n);

/* All of them, over a batch of so many samples. */
Price embedding_price_update(const Node *n, const Market *m, int64_t samples, int states);

#endif
