/* show.h -- what `tenon show` prints: the layers and their price, and the memory plan. */
#ifndef SHOW_H
#define SHOW_H
#include "emit/emit.h"
#include "front/front.h"
#include "tool/command.h"

/* Prints the layer table of the forward graph, before any pass: a row for each layer of the model,
 * or for each block instance if the table would be longer than a screen; `all`: a row for each
 * node. */
void show_layers(Arena *a, const Graph *g, bool all, bool cost);
/* "13", or "13a" for a line of the first imported file; show_layers explains the letters below its
 * table. */
const char *show_place(Arena *a, const Node *n);
/* show_price.c: prints the price of each call of the training step, after all passes, on the
 * nominal core of --cpu. */
void show_price(Arena *a, const Graph *train, const Options *o);
/* Prints the memory plan of the training step, after all passes, for one of `ranks` processes
 * with `threads` threads.  phase: the predicted times of the n slice phases. */
bool show_plan(Arena *a, const Graph *train, int64_t ranks, int threads, const RtTeamCost *phase,
               int n, Diag *d);
/* show_threads.c: the predicted times of the slice phases among `all` phases; *n: their number. */
const RtTeamCost *show_team_costs(Arena *a, const EmitPhase *all, int nall, int *n);
/* Prints the phases of the step: predicted times of one thread and of `threads` threads. */
void show_threads(Arena *a, const Graph *train, const EmitInput *in, const EmitPhase *phase,
                  int nphase, int threads);

#endif
