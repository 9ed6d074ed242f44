/* share.h -- a model that predicts with the weights of another model of its file. */
#ifndef SHARE_H
#define SHARE_H
#include "front/sem.h"
#include "ir/graph.h"

/* A model without a train block: the value of its parameter `vocab` is that of `trained`, if this
 * has its inputs. */
void share_vocab(Recipe *own, const Decl *model, const Recipe *from, const Decl *trained);
/* Prepares the recipe of a program that predicts with the weights of `trained`. */
void share_recipe(Recipe *own, const Decl *model, const Recipe *from, const Decl *trained);
/* If `trained` has all inputs of the model, with the same shapes: samples are read and normalized
 * in the same way.  Tables, texts and images need the same inputs in the same order.  Returns
 * whether the recipe has changed; g, whole: both graphs. */
bool share_samples(Recipe *own, const Decl *model, const Graph *g, const Recipe *from,
                   const Decl *trained, const Graph *whole);
/* Makes the input the target, so that outputs are numbers; nothing is compared with it. */
void share_targets(Graph *g);
/* The first weight of `own` that `trained` does not have with the same name and shape; NULL: it has
 * all of them. */
const Param *share_missing(const Graph *own, const Graph *trained);
/* Reports tokens of an unknown vocabulary, and the first weight of `own` that `trained` does not
 * have with the same name and shape. */
bool share_check(const Graph *own, const Graph *trained, Diag *d);
/* Warns of a layer that gets the weights of another one, because numbers in both names agree. */
void share_warn(const Decl *model, const Graph *own, const Graph *trained, Diag *d);

#endif
