/* trial.h -- the C file that times alternatives of kernels for --tune. */
#ifndef TRIAL_H
#define TRIAL_H
#include "base/text.h"
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

const char *trials_text(const Trials *t);
const char *trials_head(void); /* the first lines of the text, which include all headers */

#endif
