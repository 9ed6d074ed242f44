/* scan.h -- loops over time: how their nodes are made.  scan.c says what they mean. */
#ifndef SCAN_H
#define SCAN_H
#include "ops/op.h"

Node *scan_item(Graph *g, Loop *l, Node *x, Span at); /* the element of the sequence x at the loop's step */
Node *scan_state(Graph *g, Loop *l, Node *first, Span at);   /* what the step before has handed on; `first` in the first */
Node *scan_next(Graph *g, Node *state, Node *value);  /* hands value on; completes the pair that scan_state began */
Node *scan_last(Graph *g, const Node *state, Span at);       /* what the last step has handed on */
Node *scan_stack(Graph *g, Node *v);                  /* the sequence of v, one made for all who ask; v itself outside of loops */
Node *scan_keep(Graph *g, Loop *l, Node *v);          /* a copy of v in the loop */
Node *scan_save(Graph *g, Node *state);               /* the sequence of a state's values at the first step of each stretch */
Node *scan_resume(Graph *g, Loop *l, Node *saved, Span at);  /* the state that begins a stretch of l with one of them */

bool scan_in_place(const Node *n);                    /* a scan_item that lies in its sequence (pass steps) */
bool scan_carries(const Node *n);                     /* an end of such a pair */
bool scan_begins(const Node *n);                      /* the first of them: it lives as long as its loop runs */
int64_t scan_stretches(const Loop *l);                /* of `every` steps: so many, the last one may be shorter */
/* In generated code: the place of this step's element in the sequence x; in which stretch a step of l is. */
const char *scan_place(Arena *a, const Node *x);
const char *scan_stretch(Arena *a, const Loop *l);
Sizes *scan_sizes(Arena *a, int64_t n, int64_t steps, int64_t size);     /* of a sequence */

#endif
