/* hoist.h -- which operations pass hoist moves out of a loop over time. */
#ifndef HOIST_H
#define HOIST_H
#include "ir/graph.h"

/* Whether n reads only elements of sequences and values that are the same in all steps, so that it
 * can be computed for whole sequences before its loop.  leaves, by id: values of the loop that
 * leave it and so become such elements; NULL: none. */
bool hoist_can_leave(const Node *n, const bool *leaves);

#endif
