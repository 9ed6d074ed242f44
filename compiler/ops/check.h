/* check.h -- what shape rules say over and over: rank, type, range and size of inputs, arguments
 * and results. */
#ifndef CHECK_H
#define CHECK_H
#include "ops/op.h"

/* A note that names input i, its shape, who made it and on which line. */
void check_note(const Node *n, int i, Diag *d);

/* Each reports and returns false when input i of n does not fit. */
bool check_image(const Node *n, int i, Diag *d);      /* (C, H, W) */
bool check_vector(const Node *n, int i, Diag *d);     /* (F) */
bool check_vectors(const Node *n, int i, Diag *d);     /* (F), or a sequence of them, (T, F) */
bool check_real(const Node *n, int i, Diag *d);       /* numbers, not classes */
bool check_label(const Node *n, int i, Diag *d);      /* a class number a sample */
bool check_labelled(const Node *n, Diag *d);          /* in[0] (K) and a class in[1], or (T, K) and a class a position */
bool check_numbers(const Node *n, int i, Diag *d);    /* class numbers or tokens: one a sample, or one a position */
bool check_vocab(const Node *n, int i, const char *key, Diag *d);  /* attribute `key` has room for the tokens of input i */

/* The int argument `key`, or each of a pair, lies in [low, CHECK_DIM_MAX]. */
bool check_int(const Node *n, const char *key, int64_t low, Diag *d);

/* The attribute `key` as a dimension of a shape of `rank`: 0 is the first behind the batch, -1 the last. */
bool check_axis(const Node *n, const char *key, int rank, int *axis, Diag *d);

/* The same of a list of dimensions, none twice; axis[] takes SHAPE_MAX. */
bool check_axes(const Node *n, const char *key, int rank, int *axis, Diag *d);

/* Sets n->shape to s and n->dtype to DT_REAL, unless a dimension or the size of a sample is beyond
 * all limits. */
bool check_result(Node *n, Shape s, Diag *d);

#endif
