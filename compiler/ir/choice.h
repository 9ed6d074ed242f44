/* choice.h -- the choice of an algorithm: pass choose asks for it, and --tune can answer by
 * measurement. */
#ifndef CHOICE_H
#define CHOICE_H
#include "ir/graph.h"

enum { CHOICE_MOST = 3 };

/* A convolution, or one of its gradients, and the algorithms that can compute it. */
typedef struct Choice {
    Node *node;
    /* number of algorithms; index of the chosen one, at first the one with the lowest price */
    int n, pick;
    int64_t tile[CHOICE_MOST];     /* 0: direct; m: Winograd F(m x m), attribute winograd */
    double predicted[CHOICE_MOST]; /* seconds of a step on one nominal core, packing included */
} Choice;

/* Called once for each graph, with all choices between at least two algorithms whose predicted
 * times are close enough for a measurement to decide. */
typedef struct Tuner {
    /* sets `pick`; errors go to d */
    void (*settle)(struct Tuner *t, const Graph *g, Choice *c, int n, Diag *d);
} Tuner;

#endif
