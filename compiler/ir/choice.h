/* choice.h -- an algorithm to be chosen: what pass choose asks, and what --tune may answer by measuring. */
#ifndef CHOICE_H
#define CHOICE_H
#include "ir/graph.h"

enum { CHOICE_MOST = 3 };

/* One convolution, or one of its gradients, and the ways to compute it. */
typedef struct Choice {
    Node   *node;
    int     n, pick;                                  /* ways; the one that is taken, at first the cheapest by price */
    int64_t tile[CHOICE_MOST];                        /* 0: direct; m: Winograd F(m x m), attribute winograd */
    double  predicted[CHOICE_MOST];                   /* seconds of a step on one nominal core, packing included */
} Choice;

/* Asked once a graph with all choices that have more than one way worth a look. */
typedef struct Tuner {
    void (*settle)(struct Tuner *t, const Graph *g, Choice *c, int n, Diag *d);     /* sets `pick`; errors go to d */
} Tuner;

#endif
