/* held.h -- the value that each byte of a region of a program's arena holds during the replay of a
 * plan (replay.c). */
#ifndef HELD_H
#define HELD_H
#include "ir/graph.h"

/* A range of bytes: from .. to - 1. */
typedef struct Held {
    int64_t from, to;
    const Node *by;     /* the node that last wrote or touched these bytes */
    const Graph *graph; /* the graph of this node */
    int phase;          /* the phase of this graph that wrote or touched them */
    int64_t when;       /* time of the replay */
    /* bytes of a row, if each unit touches only the rows of its own samples or slice; else 0 */
    int64_t row;
    bool written;
} Held;

typedef struct Region {
    Arena *arena;
    const char *name; /* "a thread's region" */
    int64_t bytes;
    int n, room;
    Held *held; /* in order of addresses, without overlaps */
} Region;

void held_clear(Region *r);
/* Records h as the value of all bytes from h.from to h.to - 1. */
void held_put(Region *r, Held h);
/* Index of the range that contains byte `at`, or of the next range; r->n: none. */
int held_find(const Region *r, int64_t at);

#endif
