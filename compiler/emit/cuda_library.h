/* cuda_library.h -- what a GPU's program leaves to NVIDIA's libraries. */
#ifndef CUDA_LIBRARY_H
#define CUDA_LIBRARY_H
#include "emit/writer.h"

/* The call that computes n, or NULL: a kernel of ours does. */
const char *library_statement(Writer *w, const Node *n);

/* A sum that another call brings along (the gradient of a dense layer's bias): it needs none of its own. */
bool library_brings(const Writer *w, const Node *n);

/* When all calls are written: bytes at the end of the scratch; headers; tables, and the function that opens the libraries. */
int64_t library_workspace(const Writer *w);
void library_includes(const Writer *w, Text *t);
void library_tables(const Writer *w, Text *t);

/* cuda_graph.c: the same of convolutions alone */
const char *graph_statement(Writer *w, const Node *n);
const char *graph_rest(Writer *w, const Node *n); /* behind a convolution of ours: what has been joined to it, or NULL */
int64_t graph_workspace(const Writer *w);
void graph_tables(const Writer *w, Text *t);

/* The number of a row among its equals, of which each is kept once; a node's name and place as a string of C. */
int library_row(Writer *w, Rows *rows, const char *row);
const char *library_layer(Writer *w, const Node *n);

#endif
