/* checkpoint.h -- an interrupted run resumes to the same bits. */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H
#include "options/options.h"
#include "step/net.h"
#include "train/best.h"
#include "train/plateau.h"

/* The position of a run.  Random numbers have no state: they are functions of these counters. */
typedef struct Position {
    int64_t epoch;          /* finished epochs */
    int64_t step;           /* finished steps of the current epoch */
    int64_t total;          /* finished steps of all epochs */
    int64_t samples;        /* distinct samples visited in the current epoch */
    double sum[RT_METRICS]; /* sums of the metrics of these samples */
    double seconds;         /* time spent on these samples */
} Position;

typedef struct Checkpoint Checkpoint;

/* Makes the directory if it is missing; dies if it has the state of a run, and this run does not
 * --resume it.  The marks of `b` and the schedule's `s` are part of the state. */
Checkpoint *checkpoint_open(const RtProgram *p, const Options *o, Net *n, Best *b, Plateau *s);

/* Sets the hashes of the data, which a resumed run must have, too; call it before resume and
 * save. */
void checkpoint_bind(Checkpoint *c, uint64_t data_hash, uint64_t samples_hash);

/* Loads the newest complete checkpoint; false, with a notice, if there is none. Dies, with the
 * difference in the message, if it belongs to another program, seed, order or data. */
bool checkpoint_resume(Checkpoint *c, Position *at);

/* Writes DIR/step-00001234.safetensors.  The last two checkpoints are kept.  The best weights are
 * those of the checkpoint at the end of the best epoch, so this file is kept, too, and nothing is
 * written twice. */
void checkpoint_save(Checkpoint *c, const Position *at);

/* Frees the directory for another run; c may be NULL. */
void checkpoint_close(Checkpoint *c);

#endif
