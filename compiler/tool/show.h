/* show.h -- what `tenon show` prints: the layers and their price, and the memory plan. */
#ifndef SHOW_H
#define SHOW_H
#include "front/front.h"
#include "tool/command.h"

/* The layer table of the forward graph, before any pass: a row a layer of the model, or a block instance where that would be
 * more than a screen; `all`: a row a node. */
void show_layers(Arena *a, const Graph *g, bool all, bool cost);
/* The price of the training step, after all passes, call by call on the nominal core of --cpu. */
void show_price(Arena *a, const Graph *train, const Options *o);
/* The plan of the training step, after all passes, for one of `ranks` processes. */
bool show_plan(Arena *a, const Graph *train, int64_t ranks, Diag *d);

#endif
