/* held.h -- which value holds each byte of a region of a program's arena, while pass plan's
 * result is replayed (replay.c). */
#ifndef HELD_H
#define HELD_H
#include "ir/graph.h"

/* A range of bytes: from .. to - 1. */
typedef struct Held {
    int64_t      from, to;
    const Node  *by;                      /* the value that was written there last, or touched it */
    const Graph *graph;                               /* of this value */
    int          phase;                               /* of this graph, in which that happened */
    int64_t      when;                                /* time of the replay */
    int64_t      row;  /* bytes of a sample or a slice, where a unit touches only its own; else 0 */
    bool         written;
} Held;

typedef struct Region {
    Arena      *arena;
    const char *name;                                 /* "a thread's region" */
    int64_t     bytes;
    int         n, room;
    Held       *held;                                 /* in order of addresses, without overlaps */
} Region;

void held_clear(Region *r);
void held_put(Region *r, Held h);                     /* h replaces what was known of its bytes */
/* Index of the range with the byte `at`, or of the next; r->n: none */
int  held_find(const Region *r, int64_t at);

#endif
