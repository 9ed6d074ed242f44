/* own.h -- --kernels=persistent: parameters that the threads which sum their gradients
 * update, and keep on the chip. */
#ifndef CUDA_OWN_H
#define CUDA_OWN_H
#include "cuda/stage.h"

/* Writer.owned: which of the step's sums, from the calls so far. */
void own_choose(Writer *w, const CudaCalls *l);
void own_lower(Writer *w); /* their update, at the end of a step */
/* n's call with the update inside, as c->with_update. */
void own_lower_product(Writer *w, const Node *n, CudaCall *c);
bool own_can_update(Writer *w, const Stages *s, CudaCall *c); /* may that one stand here? */
bool own_is_updated(const Stages *s, const CudaCall *c);      /* has a product made this update? */
/* Of the update of a sum, by all blocks (cluster = 0) or by one cluster. */
CallPrice own_price(const Writer *w, int sum, int cluster);
void own_spell(Writer *w, Text *t); /* what the kernel of many steps wants to know of them */
const char *own_said(const Writer *w, int cluster);

#endif
