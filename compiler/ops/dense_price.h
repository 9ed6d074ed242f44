/* dense_price.h -- prices of a dense layer's products. */
#ifndef DENSE_PRICE_H
#define DENSE_PRICE_H
#include "ops/price.h"

/* Rows that a sample adds to the products: 1, of a sequence its steps. */
int64_t dense_rows(const Node *n);

/* A first dense, whose kernel leaves the samples' zeros out where they are many.  (Of what relu and dropout make, not enough are:
 * mlp_wide's hidden layers take as long with either kernel.) */
bool dense_seeks_zeros(const Node *n);

void dense_price(const Node *n, const Market *m, Price *p);
void dense_price_dx(const Node *n, const Market *m, Price *p);
void dense_price_turn(const Node *n, const Market *m, Price *p);
void dense_price_dw(const Node *n, const Market *m, Price *p);

/* dense_dw_update: the gradient of W (O, K) over all shards of so many samples, and the update inside. */
Price dense_price_update(const Market *m, int64_t k, int64_t o, int64_t shards, int64_t samples, int states);

#endif
