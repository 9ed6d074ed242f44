/* replay.h -- a replay of a planned step: which call reads and writes which bytes, in the order of
 * the program.  See replay.c. */
#ifndef REPLAY_H
#define REPLAY_H
#include "ir/options.h"
#include "ir/step.h"
#include "passes/held.h"

enum { REGION_FIXED, REGION_SHARD, REGION_THREAD, REGION_GRADIENT, REGIONS };

/* State of a graph in the replay.  Times are values of Replay.now; 0 means never. */
typedef struct Track {
    const Graph *graph;
    int64_t *wrote;       /* by id: when the value was last computed */
    int64_t *claimed;     /* by id: when the first of several parts was computed */
    int64_t *iteration;   /* by id of a loop: when its step began; 0: it does not run */
    int64_t *count, *row; /* by id of a sum: its numbers; bytes from one slice to the next */
    const Node **side;    /* by id: the side of a node */
    bool *parts;          /* by id: other calls compute parts of it (Node.within) */
    int64_t *stale;       /* by id of a parameter: the step of its pending update; 0: none */
} Track;

typedef struct Replay {
    Arena *arena;
    const Options *options;
    const Graph *graph; /* the graph whose phase runs */
    int at;             /* index of this phase */
    Track *track;       /* the state of this graph */
    int64_t real;       /* bytes of a number */
    /* the current time; when the step, its phase and its chunk began */
    int64_t now, step, phase, chunk;
    int64_t begun;           /* when the step began, or its second forward pass */
    bool in_slice;           /* the call is part of a chunk: no other unit touches its samples */
    Region memory[REGIONS];  /* the values */
    Region touched[REGIONS]; /* the last accesses to bytes in this phase */
    const char *wrong;       /* the first fault */
} Replay;

/* Bytes from .. to - 1 of a region; row: as in held.h. */
typedef struct Extent {
    int region;
    int64_t from, to, row;
} Extent;

void replay_barrier(Replay *v); /* all units see all earlier writes */
Extent replay_extent(const Replay *v, const Node *n);

/* Replays that the call of `by` reads x.  If x is inlined, the call reads the inputs of x. */
void replay_read(Replay *v, const Node *by, const Node *x);
/* The call of n: it reads the inputs of n, and writes its value or adds to it. */
void replay_call(Replay *v, const Node *n);
/* Whether n and x lie in one frame (Node.within) without a common channel. */
bool replay_beside(const Node *n, const Node *x);
/* Checks that all bytes of e hold x before `by` reads or changes them; false, with a fault, if
 * not. */
bool replay_holds(Replay *v, const Node *by, const Node *x, Extent e);
/* Records that `by` reads or writes the bytes of e; false, with a fault, if another unit of the
 * phase may use them. */
bool replay_touch(Replay *v, const Node *by, Extent e, bool writes);
void replay_put(Replay *v, const Node *x, Extent e);
/* a fault if e ends after the end of its region */
void replay_inside(Replay *v, const Node *x, Extent e);

/* replay_text.c */
const char *replay_value(const Replay *v, const Node *n); /* "%12 conv2d (conv1)" */
const char *replay_bytes(const Replay *v, Extent e);      /* "bytes 0 to 63 of a shard's region" */
const char *replay_phase(const Replay *v, const Graph *g, int phase);
const char *replay_here(const Replay *v); /* the phase that runs */
const char *replay_held(const Replay *v, int region, const Held *h);
void replay_fail(Replay *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A running program: its steps, in one arena. */
typedef struct Steps {
    Replay v;
    const Graph *base; /* the owner of the parameters: training, or evaluation alone */
    Track of[2];       /* base, and the graph under test if it is another one */
    bool ranks;        /* sums go through the gradient buffer, bucket by bucket */
    bool forward;      /* the backward pass is skipped */
    bool *pending;     /* by sum: its update is pending */
    int64_t *added;    /* by sum: the step that added the slices */
    int64_t *known;    /* by sum: when the input of its update was computed */
    /* by parameter: nodes for its states; node for the scale of the loss */
    Node **state[2], *scale;
} Steps;

/* replay_sums.c: adds sum i of the training step; updates its parameters if the update is
 * pending. */
void replay_add_up(Steps *t, int i);
void replay_update(Steps *t, int i);
/* Runs the pending updates of the previous step that phase `at` needs, the last bucket first. */
void replay_catch_up(Steps *t, int at);

/* replay_phase.c: runs one phase of the current graph. */
void replay_phase_at(Steps *t, int at);
bool replay_goes_forward(const Phase *p, int from, int end);

#endif
