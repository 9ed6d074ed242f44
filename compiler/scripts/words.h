/* words.h -- a node while it is written in a dialect's words. */
#ifndef WORDS_H
#define WORDS_H
#include "scripts/python.h"

typedef struct Use {
    Arena *arena;
    const Dialect *dialect;
    const char *python; /* the word that is filled */
    const Node *node;
    const PyValue *in; /* of the node's operands; NULL while a layer is made */
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
