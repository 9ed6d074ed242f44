/* front.h -- turns a model file into graphs: parses it, checks names, and expands loops and
 * blocks. */
#ifndef FRONT_H
#define FRONT_H
#include "ir/graph.h"

typedef struct KeyValue {
    const char *key, *value;
} KeyValue; /* --set optimizer.lr=0.1 */

typedef struct FrontOptions {
    /* name of the model; NULL: the model of the train block, else the last model of the file */
    const char *model;
    const KeyValue *set;
    int nset;
    int64_t batch, shards;  /* 0 = the recipe's */
    const char *dtype;      /* NULL = the recipe's */
    const Unsaved *unsaved; /* texts that are read in place of their files */
    int nunsaved;
    const char *shipped; /* directory of files that every model can import; NULL: none */
    struct Trace *trace; /* gets the values of expressions (trace.h); NULL: none */
} FrontOptions;

typedef struct Front {
    const Source *source;
    /* forward graph with loss and metrics; dropout on.  A model without a train block beside one
     * that has it: the graph `test`, because its program only predicts.  Else NULL. */
    Graph *train;
    Graph *test; /* forward graph, dropout off; loss and metrics when there is a train block */
    const Graph *trained; /* the model whose weights such a program reads; else NULL */
    Graph *layers;        /* the training form, also without a train block: for tables of layers */
    /* the network for one token of a text at a time, made by pass_token; may be NULL */
    Graph *token;
    Recipe recipe;
    const struct Unit *unit; /* the tree (sem.h), also after errors; NULL: the file has no text */
} Front;

/* Reports all errors of the file in one run.  Returns false after errors; then only
 * out->source and out->unit are usable. */
bool front_load(Arena *a, const char *file, const FrontOptions *o, Diag *d, Front *out);
/* Whether the program only predicts, with the weights of f->trained. */
static inline bool front_predicts(const Front *f)
{
    return f->trained != NULL;
}

/* Several outputs: makes a row of all of them the output of the graph, as in evaluation and in
 * scripts. */
void front_pack_outputs(Graph *g);

#endif
