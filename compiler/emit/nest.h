/* nest.h -- a loop nest over the numbers of a chunk, with the strides of operands. */
#ifndef NEST_H
#define NEST_H
#include "emit/writer.h"
#include "ops/move.h"

enum { LOOPS = SHAPE_MAX + 1 };

typedef struct Leaf {
    const Node *node;
    char letter;
    int64_t stride[LOOPS];
} Leaf;

typedef struct Nest {
    int n;                            /* loops, outermost first */
    int64_t count[LOOPS], out[LOOPS]; /* trip counts; strides of the output */
    int nleaf;
    Leaf leaf[LOOP_LEAVES];
} Nest;

/* Stores the dimensions of a sample of v, in the order of memory. */
void nest_order(const Node *v, int *order);
int64_t nest_sample(const Node *v); /* reals between two samples of v; 0: all samples share v */

/* Makes the loops over `over`: its samples, then its dimensions in memory order. */
void nest_open(const Writer *w, const Node *over, Nest *nest);
/* Fills stride[] (sample first) with the strides of operand v in the loops of `over`.  first_axis:
 * v is a vector along dimension 0. */
void nest_walk(const Node *over, const Node *v, bool first_axis, int64_t *stride);

/* Merges neighbouring loops where the strides of all operands allow it; drops loops of one trip. */
void nest_collapse(Nest *t);
/* Whether the loops visit the numbers of an operand in the order of memory.  Loops with stride 0 in
 * `kept` do not count; kept may be NULL. */
bool nest_in_order(const Nest *t, const int64_t *stride, const int64_t *kept);
bool nest_vectorizable(const Nest *t); /* whether all strides of the innermost loop are 1 or 0 */

char nest_letter(int loop); /* the letter of its index: i, j, k ... */

/* " + i * 800 + k" for the first `loops` loops; "" when all strides are 0. */
const char *nest_offset(Writer *w, const Nest *t, const int64_t *stride, int loops);
/* "64 + i * 800 + k": the index of a number in all loops; `start` is " + 64" or "".  "0" if there
 * is no term. */
const char *nest_index(Writer *w, const char *start, const Nest *t, const int64_t *stride);
/* Writes the heads of the loops.  parts: the threads of a team divide the outermost loop. */
void nest_open_loops(Text *b, const Nest *t, int loops, bool parts);

/* Writes "const int i = at / 576, k = at % 576;" for a GPU: the indices of the loops, from the
 * index `flat` of a number.  summed: for the loops with output stride 0, else for the other
 * loops. */
void nest_indices(Text *b, const Nest *t, bool summed, const char *flat);
int64_t nest_trips(const Nest *t, bool summed); /* product of the trip counts of these loops */

/* " + 64": offset of the number of v with the indices start[]; "" if it is the first number. */
const char *nest_start(Writer *w, const Node *v, const int64_t *start);
/* Fills stride[] with the strides of v in the loops over `over`: dimension d of `over` is dimension
 * axis[d] of v.  axis NULL: dimension d of v. */
void nest_follow(const Node *over, const Node *v, const int *axis, int64_t *stride);
const char *nest_input(Writer *w, const Node *n, int i); /* the name of input i: "x", "x2" */
/* Sets *m to the move of input i of n into the result, and *t to the loops over the numbers that
 * move.  t->leaf[0] is the input. */
void nest_open_move(const Writer *w, const Node *n, int i, Move *m, Nest *t);

/* ---- loop.c */

/* The nest of an elementwise tree, and of a sum (sum_to, amax_to) over the numbers of its input. */
void loop_open(Writer *w, const Node *n, Nest *t);
void loop_open_sum(Writer *w, const Node *n, Nest *t);
/* The value of the tree as a C expression, for a vector or for one number. */
const char *loop_expression(Writer *w, const Nest *t, const Node *n, bool vector);

#endif
