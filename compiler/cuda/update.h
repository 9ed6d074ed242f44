/* update.h -- the update of a GPU's program as calls. */
#ifndef CUDA_UPDATE_H
#define CUDA_UPDATE_H
#include "cuda/call.h"

/* Running averages, and the update of all parameters but those that own.c updates, behind
 * the calls of Writer.list. from_grad: from gradients that ranks have added, instead of the sums
 * of the shards. */
void update_lower(Writer *w, bool from_grad);
/* The table of parameters; rest: without those of own.c. */
void update_rows(Writer *w, Text *t, bool rest);
int update_parameters(const Writer *w, int sums); /* of the first `sums`: rows of the table */
int update_loss(const Graph *g);                  /* which metric; -1: none */
const char *update_rule(const Graph *g);          /* of the optimizer: "update_sgd" */
/* What the update of a parameter accesses: its sum over the shards, the parameter and its
 * states. */
void update_touch(Writer *w, CudaCall *c, int sum, bool from_grad);
void update_touch_scaling(Writer *w, CudaCall *c, bool writes); /* the scale of the loss */

#endif
