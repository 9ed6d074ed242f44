/* dense_price.h -- prices of the products of a dense layer. */
#ifndef DENSE_PRICE_H
#define DENSE_PRICE_H
#include "ops/price.h"

/* Rows of a sample in the products: 1, or the steps of a sequence. */
int64_t dense_rows(const Node *n);

/* Whether n is a dense layer that reads samples: its kernel skips zeros of samples if there are
 * many.  Other layers do not: the outputs of relu and dropout have too few zeros, and hidden layers
 * of mlp_wide took the same time with both kernels. */
bool dense_seeks_zeros(const Node *n);

/* Numbers of packed weights in two bytes, for `outputs` sums of `factors` products: BF16_PACKED in
 * runtime/cpu/bf16_pack.h. */
int64_t dense_half_count(int64_t factors, int64_t outputs);

void dense_price(const Node *n, const Market *m, Price *p);
void dense_price_dx(const Node *n, const Market *m, Price *p);
void dense_price_transpose(const Node *n, const Market *m, Price *p);
void dense_price_dw(const Node *n, const Market *m, Price *p);

/* dense_dw_update: the gradient of W (O, K) over all shards, and the update. */
Price dense_price_update(const Market *m, int64_t k, int64_t o, int64_t shards, int64_t samples,
                         int states);

/* Number of units of a layer of o outputs and k inputs in four kernels of runtime/cpu:
 * dense_dw_update; dense_dw_update_input, with `samples` samples in a shard; dense_wide;
 * dense_wide_dx. */
int64_t dense_units_update(const Market *m, int64_t k, int64_t o, bool half);
int64_t dense_units_input(const Market *m, int64_t samples, int64_t k, int64_t o);
int64_t dense_units_wide(const Market *m, int64_t o);
int64_t dense_units_wide_dx(const Market *m, int64_t k);

#endif
