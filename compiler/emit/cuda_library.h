/* cuda_library.h -- what a GPU's program leaves to NVIDIA's libraries. */
#ifndef CUDA_LIBRARY_H
#define CUDA_LIBRARY_H
#include "emit/writer.h"

/* The call that computes n, or NULL: a kernel of ours does. */
const char *library_statement(Writer *w, const Node *n);

/* A sum that another call brings along (the gradient of a dense layer's bias): it needs none of its own. */
bool library_brings(const Writer *w, const Node *n);

/* Does the call of `gradient` bring `sum` along, which reads the same? */
typedef bool Brings(const Writer *w, const Node *sum, const Node *gradient);

/* The other of such a pair, of n, which is either; NULL: there is none.  A layer may share its gradient with others, so that there are several of either:
 * each goes with the first at most. */
const Node *library_companion(const Writer *w, const Node *n, Brings *brings);

/* When all calls are written: bytes at the end of the scratch; headers; tables, and the function that opens the libraries. */
int64_t library_workspace(const Writer *w);
void library_includes(const Writer *w, Text *t);
void library_tables(const Writer *w, Text *t);

/* cuda_graph.c: the same of convolutions alone */
const char *graph_statement(Writer *w, const Node *n);
bool graph_brings(const Writer *w, const Node *n); /* sums for batch_norm, of a bias's gradient: as library_brings */
const char *graph_rest(Writer *w, const Node *n); /* behind a convolution or a product of ours: what has been joined to it, or NULL */
const char *graph_rest_dx(Writer *w, const Node *n); /* of a gradient that is there: the relu of y undone, in place */
int64_t graph_workspace(const Writer *w);
void graph_tables(const Writer *w, Text *t);

/* cuda_columns.c: sums over channels that lie innermost.  columns_statement: NULL, another call does; columns_bring: as library_brings;
 * columns_sum: of a value's rows to n, written or added to what is there. */
const char *columns_statement(Writer *w, const Node *n);
bool columns_bring(const Writer *w, const Node *n);
const char *columns_sum(Writer *w, const Node *n, int64_t columns, int64_t rows, bool adds);

/* The number of a row among its equals, of which each is kept once; a node's name and place as a string of C. */
int library_row(Writer *w, Rows *rows, const char *row);
const char *library_layer(Writer *w, const Node *n);

#endif
