/* choice.h -- the choice of an algorithm: pass choose asks for it, and --tune can answer by
 * measurement. */
#ifndef CHOICE_H
#define CHOICE_H
#include "ir/graph.h"

enum { CHOICE_MOST = 3 };

/* A convolution, or one of its gradients, and the algorithms that can compute it. */
typedef struct Choice {
    Node *node;
    /* number of algorithms; index of the chosen algorithm, at first that of the lowest price */
    int n, pick;
    int64_t tile[CHOICE_MOST];     /* 0: direct; m: Winograd F(m x m) (attribute winograd) */
    double predicted[CHOICE_MOST]; /* seconds of a step on one nominal core, packing included */
} Choice;

/* Makes the choices that pass choose leaves open. */
typedef struct Tuner {
    /* Sets `pick` of n choices; reports errors to d.  Pass choose calls this function once for each
     * graph that has open choices.  An open choice has at least two algorithms, and their predicted
     * times are so close that a measurement must decide. */
    void (*settle)(struct Tuner *t, const Graph *g, Choice *c, int n, Diag *d);
} Tuner;

#endif
