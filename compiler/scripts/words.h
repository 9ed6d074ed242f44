/* words.h -- the state while a node is written in a dialect. */
#ifndef WORDS_H
#define WORDS_H
#include "scripts/python.h"

typedef struct Use {
    Arena *arena;
    const Dialect *dialect;
    const char *python; /* the template that is filled */
    const Node *node;
    const PyValue *in; /* expressions of the operands; NULL for the constructor of a layer */
    const char *layer; /* "self.conv1", or NULL */
    bool biased;       /* a layer with the bias of the next node */
} Use;

/* The value of a computed place or attribute; NULL: the node has none. */
const char *place_of_node(const Use *u, const char *name);

/* Whether the padding of a convolution or pooling has a form only as an op of its own. */
bool places_by_hand(const Use *u);
/* Whether an average divides by all numbers of its window, also those of the padding. */
bool places_counts_padding(const Node *n);

#endif
