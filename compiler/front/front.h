/* front.h -- a model file becomes a graph: parse, check names, expand everything. */
#ifndef FRONT_H
#define FRONT_H
#include "ir/graph.h"

typedef struct KeyValue {
    const char *key, *value;
} KeyValue; /* --set optimizer.lr=0.1 */

typedef struct FrontOptions {
    /* which model of the file; NULL = the one trained, or the only one, or the last */
    const char *model;
    const KeyValue *set;
    int nset;
    int64_t batch, shards; /* 0 = the recipe's */
    const char *dtype;     /* NULL = the recipe's */
} FrontOptions;

typedef struct Front {
    const Source *source;
    Graph *train; /* forward graph with loss and metrics; dropout on; NULL without a train block */
    Graph *test;  /* forward graph, dropout off; loss and metrics when there is a train block */
    Graph
        *layers; /* the training form, with or without a train block: what tables of layers show */
    Graph *
        token; /* of text that goes on: the same for a token at a time, made by pass_token; may be NULL */
    Recipe recipe;
} Front;

/* All errors of the file are reported in one run.  false after errors (out is then not usable). */
bool front_load(Arena *a, const char *file, const FrontOptions *o, Diag *d, Front *out);

#endif
