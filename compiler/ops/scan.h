/* scan.h -- makes the nodes of loops over time.  scan.c defines them. */
#ifndef SCAN_H
#define SCAN_H
#include "ops/op.h"

/* The element of the sequence x at the current step. */
Node *scan_item(Graph *g, Loop *l, Node *x, Span at);
/* The value that the step before has passed on; `first` in the first step. */
Node *scan_state(Graph *g, Loop *l, Node *first, Span at);
/* Passes value on, and completes the pair that scan_state began. */
Node *scan_next(Graph *g, Node *state, Node *value);
/* the value that the last step has passed on */
Node *scan_last(Graph *g, const Node *state, Span at);
/* The sequence of the values of v; a second call returns the same node.  If v is not in a loop, v
 * itself. */
Node *scan_stack(Graph *g, Node *v);
Node *scan_keep(Graph *g, Loop *l, Node *v); /* a copy of v in the loop */
/* The sequence of a state at the first step of each stretch. */
Node *scan_save(Graph *g, Node *state);
/* The state of l that begins each stretch with a saved state. */
Node *scan_resume(Graph *g, Loop *l, Node *saved, Span at);

bool scan_in_place(const Node *n); /* a scan_item that lies in its sequence (pass steps) */
bool scan_carries(const Node *n);  /* scan_state, scan_resume or scan_next */
bool scan_begins(const Node *n);   /* scan_state or scan_resume: lives as long as its loop runs */
/* Number of stretches of `every` steps; the last one can be shorter. */
int64_t scan_stretches(const Loop *l);
/* An expression for generated code: the index of the current step in the sequence x. */
const char *scan_place(Arena *a, const Node *x);
Sizes *scan_sizes(Arena *a, int64_t n, int64_t steps, int64_t size); /* of a sequence */

#endif
