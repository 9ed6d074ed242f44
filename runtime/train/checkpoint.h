/* checkpoint.h -- an interrupted run resumes to the same bits. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H
#include "options/options.h"
#include "step/net.h"

/* The position of a run.  Random numbers have no state: they are functions of these counters. */
typedef struct Position {
    int64_t epoch;          /* finished ones */
    int64_t step;           /* finished steps of the current one */
    int64_t total;          /* finished steps of all */
    int64_t samples;        /* distinct samples visited in the current epoch */
    double sum[RT_METRICS]; /* metrics over them */
    double seconds;         /* spent on them */
} Position;

typedef struct Checkpoint Checkpoint;

/* Makes the directory if it is missing; dies if it has the state of a run, and this run does not
 * --resume it. */
Checkpoint *checkpoint_open(const RtProgram *p, const Options *o, Net *n);

/* Data that a resumed run must have, too; before resume and save. */
void checkpoint_bind(Checkpoint *c, uint64_t data_hash, uint64_t samples_hash);

/* Loads the newest complete checkpoint; false, with a notice, if there is none. Dies, with the
 * difference in the message, if it belongs to another program, seed, order or data. */
bool checkpoint_resume(Checkpoint *c, Position *at);

/* DIR/step-00001234.safetensors; the last two stay. */
void checkpoint_save(Checkpoint *c, const Position *at);

/* The directory is free for another run; c may be NULL. */
void checkpoint_close(Checkpoint *c);

#endif
