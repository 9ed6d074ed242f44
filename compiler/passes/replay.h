/* replay.h -- a replay of a planned step: which call reads and writes which bytes, in the order
 * of the program. See replay.c. */
#ifndef REPLAY_H
#define REPLAY_H
#include "ir/options.h"
#include "ir/step.h"
#include "passes/held.h"

enum { REGION_FIXED, REGION_SHARD, REGION_THREAD, REGION_GRADIENT, REGIONS };

/* What the replay knows of a graph; times are those of Replay.now, 0 means never. */
typedef struct Track {
    const Graph  *graph;
    int64_t      *wrote;                              /* by id: when the value was made last */
    int64_t      *claimed;                   /* by id: when the first of several parts was made */
    int64_t      *iteration;          /* by id of a loop: when its step began; 0: it does not run */
    int64_t      *count, *row;   /* by id of a sum: numbers; bytes from one slice's to the next's */
    const Node  **side;                             /* by id: what a node makes besides its value */
    bool         *parts;                    /* by id: other calls make a part of it (Node.within) */
    int64_t      *stale;    /* by id of a parameter: the step whose update it waits for; 0: none */
} Track;

typedef struct Replay {
    Arena         *arena;
    const Options *options;
    const Graph   *graph;                             /* whose phase runs */
    int            at;                                /* this phase */
    Track         *track;                             /* of this graph */
    int64_t        real;                              /* bytes of a number */
    int64_t        now, step, phase, chunk;          /* when the step, its phase, its chunk began */
    int64_t        begun;                 /* when the step began, or its forward pass began again */
    bool           in_slice;    /* the call is part of a chunk: no other unit touches its samples */
    Region         memory[REGIONS];                   /* the values */
    Region         touched[REGIONS];                  /* who touched bytes in this phase */
    const char    *wrong;                             /* the first fault */
} Replay;

/* Bytes of one region; row: as in held.h. */
typedef struct Extent {
    int     region;
    int64_t from, to, row;
} Extent;

void replay_barrier(Replay *v);                   /* what was touched before is seen by all units */
Extent replay_extent(const Replay *v, const Node *n);

/* The call of `by` reads x, with everything that by's loop computes for it. */
void replay_read(Replay *v, const Node *by, const Node *x);
/* n's own call: it reads its inputs and writes, or adds to, its value. */
void replay_call(Replay *v, const Node *n);
void replay_write(Replay *v, const Node *n);          /* the second half alone */
/* Both lie in one frame (Node.within), without a common channel. */
bool replay_beside(const Node *n, const Node *x);
/* All bytes of e are x's own; `by` is about to read them, or to change them. */
bool replay_holds(Replay *v, const Node *by, const Node *x, Extent e);
/* Puts x there; false, with a fault, where another unit of the phase touches these bytes. */
bool replay_touch(Replay *v, const Node *by, Extent e, bool writes);
void replay_put(Replay *v, const Node *x, Extent e);
void replay_inside(Replay *v, const Node *x, Extent e); /* a fault where e ends behind its region */

/* replay_text.c */
const char *replay_value(const Replay *v, const Node *n);       /* "%12 conv2d (conv1)" */
const char *replay_bytes(const Replay *v, Extent e);       /* "bytes 0 to 63 of a shard's region" */
const char *replay_phase(const Replay *v, const Graph *g, int phase);
const char *replay_here(const Replay *v);                       /* the phase that runs */
const char *replay_held(const Replay *v, int region, const Held *h);
void replay_fail(Replay *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A program as it runs: its steps, in one arena. */
typedef struct Steps {
    Replay       v;
    const Graph *base;          /* whose parameters all graphs use: training, or evaluation alone */
    Track        of[2];               /* base, and the graph to be proved where it is another one */
    bool         ranks;                  /* sums go through the gradient buffer, bucket by bucket */
    bool         forward;                             /* calls of the backward pass are left out */
    bool        *pending;                             /* by sum: its update has not happened yet */
    int64_t     *added;                               /* by sum: the step that added it up */
    int64_t     *known;                            /* by sum: when what its update reads was made */
    Node       **state[2], *scale; /* by parameter: stands for a state; for the scale of the loss */
} Steps;

/* replay_sums.c: sum i of the training step is added up; its parameters are updated, if they
 * wait for that */
void replay_add_up(Steps *t, int i);
void replay_update(Steps *t, int i);
/* What the step before has left of updates, and phase `at` needs: the last bucket first. */
void replay_catch_up(Steps *t, int at);

/* replay_phase.c: one phase of the graph at hand; whether any of the calls from .. end - 1 is
 * part of the forward pass */
void replay_phase_at(Steps *t, int at);
bool replay_goes_forward(const Phase *p, int from, int end);

#endif
