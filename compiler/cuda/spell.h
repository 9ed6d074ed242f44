/* spell.h -- writes calls of a GPU program as C++ (call.h).  It makes no decisions. */
#ifndef CUDA_SPELL_H
#define CUDA_SPELL_H
#include "cuda/call.h"

/* Defines the kernels for the device functions of these calls, if they are not defined yet. */
void spell_define(Writer *w, CudaCall *const *call, int n);
/* "LAUNCH(conv2d_1, y, a, b);": several calls have one kernel, which calls them all. */
const char *spell_launch(Writer *w, CudaCall *const *call, int n);
const char *spell_stage(Writer *w, const CudaCall *c);   /* "conv2d_1_stage(y, a, b);" */
const char *spell_library(Writer *w, const CudaCall *c); /* "rt_product(0, y, a, b)" */
const char *spell_sizes(Writer *w, const CudaCall *c);   /* "own_1_size()" */
/* Writes the function of a phase to Writer.body: all calls of the list, after launch.c. */
void spell_function(Writer *w, CudaCalls *list);
void spell_kernels(const Writer *w, Text *t); /* writes all kernels */

/* The statements that compute n: a launch for each kernel, and calls of libraries.  If the library
 * may have no algorithm for the first call, *test is this call, and the statements begin with the
 * launch that runs if the call fails; else *test is NULL. */
const char *cuda_statement(Writer *w, const Node *n, const char **test);

/* dump.c: the calls of a function as text, one per line. */
void calls_dump(const Graph *g, const CudaCalls *l, Text *t);

#endif
