/* held.h -- the value that each byte of a region of a program's arena holds during the replay of a
 * plan (replay.c). */
#ifndef HELD_H
#define HELD_H
#include "ir/graph.h"

/* A range of bytes: from .. to - 1. */
typedef struct Held {
    int64_t from, to;
    const Node *by;     /* the last value that was written there, or the last one that touched it */
    const Graph *graph; /* the graph of this value */
    int phase;          /* the phase of this graph that wrote or touched it */
    int64_t when;       /* time of the replay */
    int64_t row;        /* bytes of a sample or a slice if a unit touches only its own; else 0 */
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
/* Replaces all that is known of the bytes of h by h. */
void held_put(Region *r, Held h);
/* Index of the range that contains byte `at`, or of the next range; r->n: none. */
int held_find(const Region *r, int64_t at);

#endif
