/* trial.h -- the C file that times alternatives of kernels for --tune. */
#ifndef TRIAL_H
#define TRIAL_H
#include "emit/emit.h"
#include "ir/graph.h"
#include "ir/options.h"

typedef struct Trials {
    const Options *options;
    int64_t chunk;         /* samples of a call */
    int64_t read, written; /* bytes that the largest trial reads and writes */
    int real, n;           /* bytes of a number; trials so far */
    Text functions, table;
} Trials;

Trials trials_new(Arena *a, const Options *o, const char *dtype, int64_t chunk);

/* Adds the call that computes n with its attributes, and returns its index.  n: conv2d, conv2d_dx
 * or conv2d_pack before pass layout. */
int trials_add(Trials *t, const Node *n);

EmitUnit trials_unit(const Trials *t);
EmitHeaders trials_headers(void); /* the headers that the unit includes */

#endif
