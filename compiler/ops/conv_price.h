/* conv_price.h -- prices of the convolution algorithms, which pass choose compares. */
#ifndef CONV_PRICE_H
#define CONV_PRICE_H
#include "ops/price.h"

/* The price rules of conv2d.c.  Attribute winograd = m means F(m x m); without it, the algorithm
 * is direct. */
void conv_price(const Node *n, const Market *m, Price *p);
void conv_price_dx(const Node *n, const Market *m, Price *p);
void conv_price_dw(const Node *n, const Market *m, Price *p);
void conv_price_pool_dx(const Node *n, const Market *m, Price *p);
void conv_price_pool_dw(const Node *n, const Market *m, Price *p);
/* conv2d_dw_update: the gradient of filters over all shards, and the update. */
Price conv_price_update(const Node *n, const Market *m, int64_t shards, int64_t samples,
                        int states);
/* Whether conv2d_dw_update, which processes blocks of filters, computes the gradient and the
 * update.  It is faster than sums of slices if the filters have at least 1 MB and a shard has at
 * most 256 positions.  With more positions, sums of slices are faster, because the data of a slice
 * stay in a nearer cache. */
bool conv_in_blocks(const Node *n, int64_t shards, int64_t samples, int64_t real);
/* The same for bf16_conv2d_dw_update: `slices` slices of a shard, chunks of `chunk` samples. */
bool conv_half_in_blocks(const Node *n, int64_t shards, int64_t samples, int64_t slices,
                         int64_t chunk);
void conv_price_pack(const Node *n, const Market *m, Price *p);

/* Reals of the packed filters that n reads, by the formulas of runtime/cpu/conv.h and winograd.h:
 * CONV_PACK_COUNT, CONV_PACK_DX_COUNT, WINO_COUNT, WINO_DX_COUNT.  m = 0: direct. */
int64_t conv_half_count(const Node *n, bool dx); /* the same for bf16_conv2d and bf16_conv2d_dx */
int64_t conv_packed_count(const Node *n, bool dx, int64_t m, int64_t vector);

#endif
