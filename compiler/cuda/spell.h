/* spell.h -- writes calls of a GPU program as C++ (call.h).  It makes no decisions. */
#ifndef CUDA_SPELL_H
#define CUDA_SPELL_H
#include "cuda/call.h"

/* Defines the kernels for the device functions of these calls, if they are not defined yet. */
void spell_define(Writer *w, CudaCall *const *call, int n);
const char *spell_stage(Writer *w, const CudaCall *c);   /* "conv2d_1_stage(y, a, b);" */
const char *spell_library(Writer *w, const CudaCall *c); /* "rt_product(0, y, a, b)" */
const char *spell_sizes(Writer *w, const CudaCall *c);   /* "own_1_size()" */
/* Writes the function of a phase to Writer.body: all calls of the list, after launch.c. */
void spell_function(Writer *w, CudaCalls *list);
void spell_kernels(const Writer *w, Text *t); /* writes all kernels */

/* Writes the calls that compute n to Writer.body, each with a launch of its own, below a comment
 * about n; false: there are none. */
bool spell_alone(Writer *w, const Node *n, int *line, const char *indent);

/* dump.c: prints the calls of a function as text, one per line. */
void calls_dump(const Graph *g, const CudaCalls *l, Text *t);

#endif
