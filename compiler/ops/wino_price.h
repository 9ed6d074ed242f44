/* wino_price.h -- prices of Winograd's F(m x m, r x r): wino_price.c. */
#ifndef WINO_PRICE_H
#define WINO_PRICE_H
#include "ops/conv_sizes.h"

void wino_price(Price *p, const Market *k, const ConvSizes *c, int64_t m);
void wino_price_dx(Price *p, const Market *k, const ConvSizes *c, int64_t m);
void wino_price_dw(Price *p, const Market *k, const ConvSizes *c, int64_t m);

#endif
