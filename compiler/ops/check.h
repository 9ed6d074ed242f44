/* check.h -- checks that many shape rules share: rank, type, range and size of inputs, arguments
 * and results. */
#ifndef CHECK_H
#define CHECK_H
#include "ops/op.h"

/* Adds a note with the name and shape of input i, the op that made it, and the line. */
void check_note(const Node *n, int i, Diag *d);

/* Each check reports an error and returns false when input i of n does not fit. */
bool check_image(const Node *n, int i, Diag *d);    /* (C, H, W) */
bool check_vector(const Node *n, int i, Diag *d);   /* (F) */
bool check_vectors(const Node *n, int i, Diag *d);  /* (F), or a sequence (T, F) */
bool check_sequence(const Node *n, int i, Diag *d); /* (T, F) */
bool check_real(const Node *n, int i, Diag *d);     /* real numbers, not classes */
bool check_label(const Node *n, int i, Diag *d);    /* a class number for each sample */
/* `groups` of a convolution divides its filters and the `inputs` channels of in[0], which the error
 * calls `called`: "input channels". */
bool check_groups(const Node *n, int64_t inputs, const char *called, Diag *d);
/* Checks that in[0] is (K) with a class in in[1], or (T, K) with a class for each position. */
bool check_labelled(const Node *n, Diag *d);
/* Class numbers or tokens: one for each sample, or one for each position. */
bool check_numbers(const Node *n, int i, Diag *d);
/* Checks that attribute `key` is at least the number of tokens of input i. */
bool check_vocab(const Node *n, int i, const char *key, Diag *d);

/* Checks that the int argument `key`, or each of a pair, lies in [low, CHECK_DIM_MAX]. */
bool check_int(const Node *n, const char *key, int64_t low, Diag *d);

/* Reads attribute `key` as a dimension of a shape of `rank`: 0 is the first after the batch, -1
 * the last. */
bool check_axis(const Node *n, const char *key, int rank, int *axis, Diag *d);

/* The same for a list of different dimensions; axis[] has room for SHAPE_MAX. */
bool check_axes(const Node *n, const char *key, int rank, int *axis, Diag *d);

/* Sets n->shape to s and n->dtype to DT_REAL.  Reports a dimension or a size of a sample above
 * the limits. */
bool check_result(Node *n, Shape s, Diag *d);
/* The shape rule of an op whose result has the shape of in[0], such as a gradient NAME_dx. */
bool check_like_first(Node *n, Diag *d);

#endif
