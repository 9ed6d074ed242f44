/* nest.h -- a loop nest over the numbers of a chunk, and where each operand stands in it. */
#ifndef NEST_H
#define NEST_H
#include "emit/writer.h"

enum { LOOPS = SHAPE_MAX + 1 };

typedef struct Leaf {
    const Node *node;
    char    letter;
    int64_t stride[LOOPS];
} Leaf;

typedef struct Nest {
    int     n;                                        /* loops, outermost first */
    int64_t count[LOOPS], out[LOOPS];                 /* trips; stride of the output */
    int     nleaf;
    Leaf    leaf[LOOP_LEAVES];
} Nest;

/* Strides of v's sample dims in memory, by logical dimension; those dimensions in memory order. */
void nest_strides(const Node *v, int64_t *stride);
void nest_order(const Node *v, int *order);
int64_t nest_sample(const Node *v);                   /* reals from a sample of v to the next; 0: all share it */

/* The loops of `over`: its samples, then its dims in memory order. */
void nest_open(const Writer *w, const Node *over, Nest *nest);
/* Fills stride[] (sample first) of operand v inside the loops of `over`; first_axis: v is a vector along dimension 0. */
void nest_walk(const Node *over, const Node *v, bool first_axis, int64_t *stride);

void nest_collapse(Nest *t);                          /* loops that all walk as one become one, those of one trip go */
/* Do the loops walk an operand as numbers 0, 1, 2 ... ?  Loops whose stride in `kept` (may be NULL) is 0 are left out. */
bool nest_in_order(const Nest *t, const int64_t *stride, const int64_t *kept);
bool nest_vectorizable(const Nest *t);                /* the innermost loop: strides 1 and 0 */

char        nest_letter(int loop);                    /* of its index: i, j, k ... */

/* " + i * 800 + k" for the first `loops` loops; "" when all strides are 0. */
const char *nest_offset(Writer *w, const Nest *t, const int64_t *stride, int loops);
void        nest_open_loops(Text *b, const Nest *t, int loops);

/* Of a GPU: "const int i = at / 576, k = at % 576;", what the number `flat` says of those loops whose output stride is 0, or is not. */
void        nest_indices(Text *b, const Nest *t, bool summed, const char *flat);
int64_t     nest_trips(const Nest *t, bool summed);   /* of those loops: how many numbers that counts */

#endif
