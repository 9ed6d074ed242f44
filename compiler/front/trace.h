/* trace.h -- the values of expressions while a model is expanded, for an editor.
 *
 * An expression has a value for each time that it is evaluated: an expression of a block has one
 * for each instance of the block.  Only the training graphs are traced.
 */
#ifndef TRACE_H
#define TRACE_H
#include "front/value.h"

typedef struct Traced {
    Value v;
    int before; /* like Expr.traced: the value that the expression had before */
    const Graph *graph;
    int first, end; /* ids of the nodes that a call made, without those of its arguments */
} Traced;

typedef struct Trace {
    Traced *v;
    int n;
} Trace;

enum { TRACE_MOST = 200000 }; /* further values are not recorded */

#endif
