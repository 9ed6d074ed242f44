/* spell.h -- calls of a GPU's program as C++ (call.h).  Nothing is decided here. */
#ifndef CUDA_SPELL_H
#define CUDA_SPELL_H
#include "cuda/call.h"

/* The kernels around the device functions of these calls get their names, if they have none yet. */
void spell_define(Writer *w, CudaCall *const *call, int n);
/* "LAUNCH(conv2d_1, y, a, b);": of several calls one kernel that calls them all. */
const char *spell_launch(Writer *w, CudaCall *const *call, int n);
const char *spell_stage(Writer *w, const CudaCall *c);   /* "conv2d_1_stage(y, a, b);" */
const char *spell_library(Writer *w, const CudaCall *c); /* "rt_product(0, y, a, b)" */
const char *spell_sizes(Writer *w, const CudaCall *c);   /* "own_1_size()" */
/* The function of a phase: all calls of the list, after launch.c, into Writer.body. */
void spell_function(Writer *w, CudaCalls *list);
void spell_kernels(const Writer *w, Text *t); /* the kernels themselves */

/* The calls that compute n: launches, one for each kernel, and calls of libraries.  *test: the call
 * of a library that the first launch replaces if the library has no algorithm; or NULL. */
const char *cuda_statement(Writer *w, const Node *n, const char **test);

/* dump.c: the calls of a function as text, one a line. */
void calls_dump(const Graph *g, const CudaCalls *l, Text *t);

#endif
