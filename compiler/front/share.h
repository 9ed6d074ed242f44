/* share.h -- a model that predicts with the weights of another model of its file. */
#ifndef SHARE_H
#define SHARE_H
#include "front/sem.h"
#include "ir/graph.h"

/* Prepares the recipe of a model that has no train block: `from` is the recipe of `trained`.  If
 * the inputs of both have the same names, then tokens have the same vocabulary; and in a program
 * that predicts with the weights of `trained`, samples are read and normalized in the same way. */
void share_recipe(Recipe *own, const Decl *model, const Recipe *from, const Decl *trained,
                  bool predicts);
/* Makes the input the target, so that outputs are numbers; nothing is compared with it. */
void share_targets(Graph *g);
/* The first weight of `own` that `trained` does not have with the same name and shape; NULL: it has
 * all of them. */
const Param *share_missing(const Graph *own, const Graph *trained);
/* Reports tokens of an unknown vocabulary, and the first weight of `own` that `trained` does not
 * have with the same name and shape. */
bool share_check(const Graph *own, const Graph *trained, Diag *d);

#endif
