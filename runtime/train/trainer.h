/* trainer.h -- the state of a run of `train`, which the files of this room share.
 *
 * train.c has the loop over epochs. start.c opens everything, steps.c makes the steps, progress.c
 * reports them, stop.c ends a run early. Only `train` uses this header.
 */
#ifndef TRAINER_H
#define TRAINER_H
#include "base/loader.h"
#include "base/output.h"
#include "files/log.h"
#include "files/safetensors.h"
#include "measure/ticks.h"
#include "options/options.h"
#include "step/net.h"
#include "train/best.h"
#include "train/checkpoint.h"
#include "train/expect.h"
#include "train/pick.h"
#include "train/plateau.h"
#include "train/scores.h"
#include "train/tally.h"

typedef struct Trainer Trainer;

/* A job of the loader: lists the samples of an epoch. */
typedef struct OrderJob {
    const Trainer *t;
    int64_t epoch;
    Order order;
} OrderJob;

struct Trainer {
    const RtProgram *p;
    const Options *o;
    Pool *pool;
    Net *net;
    Data *data, *test;
    Data *validation; /* NULL: the data have no such split */
    Loader *loader;
    Checkpoint *checkpoint; /* NULL: none, or another rank writes it */
    StWriter *save;         /* NULL: no --save */
    Log log;
    Bar bar;
    int64_t steps;     /* of an epoch */
    OrderJob order[2]; /* of even epochs; of odd epochs */
    Batch *batch;      /* the batches of a launch */
    Batch *ahead;      /* the batches of the launch after it */
    Hyper *hyper;
    Order test_order, validation_order;
    Scores *scores; /* NULL: no area under the ROC curve is reported */
    Tally *tally;   /* further metrics of the last test; NULL: there are none */
    bool tallied;   /* they are those of the weights that the run leaves */
    Pick pick;      /* the weights with which the run began */
    Position at;
    int64_t saved_total;     /* Position.total of the last checkpoint */
    double saved_time;       /* time of the last checkpoint */
    double began, rate_from; /* start of the epoch's part in this process: time, finished samples */
    double waited, busy;     /* seconds of Comm.waited and Comm.busy in this part */
    Result result;
    Best best;
    Plateau plateau;
    const char *stopped; /* "patience", "stop-at"; NULL: all epochs were trained */
    Ticks *ticks;        /* --trace: of the first steps */
};

/* start.c: opens data, network, checkpoint and log, and loads or makes the weights. After
 * start_order, the loader thread lists the samples of an epoch. */
void start_training(Trainer *t);
void start_order(Trainer *t, int64_t epoch);

/* steps.c: runs one launch, of one step or several.  steps_end_trace writes the file of --trace. */
void steps_run(Trainer *t);
void steps_end_trace(Trainer *t);

/* progress.c: writes records of the log, the bar, the line of an epoch. */
void progress_start(Trainer *t);
void progress_start_weights(Trainer *t);     /* the record `weights`, if they are those of a file */
void progress_step(Trainer *t, int samples); /* the record `step`, after a step */
void progress_bar(Trainer *t);
void progress_epoch(Trainer *t);
void progress_rate(Trainer *t);    /* after an epoch whose result lets the rate fall */
void progress_metrics(Trainer *t); /* the record `metrics`, if the program has further ones */
void progress_best(Trainer *t);    /* after the last epoch: the epoch whose weights are kept */

/* trainer.c: checkpoints of the run, and its time. */
double trainer_seconds(const Trainer *t); /* of the epoch, in all runs */
void trainer_save(Trainer *t);
bool trainer_save_due(const Trainer *t); /* --checkpoint-every */

/* stop.c */
void stop_watch(void);              /* from now on, SIGINT and SIGTERM ask to stop */
bool stop_asked(void);              /* a signal came to this rank */
bool stop_wanted(const Trainer *t); /* all ranks stop after the same step */
int stop_run(Trainer *t);           /* saves; returns the exit code */
/* Ends the run if a data file has become unreadable or wrong. whole: no step has used the missing
 * data. */
void stop_if_files_broke(Trainer *t, bool whole);
/* Ends the run because the loss of batch b is not finite; the message has the known facts about the
 * cause. */
void stop_nonfinite(Trainer *t, const Batch *b) __attribute__((noreturn));
/* After a step in f16 that began with the scale `before`: ends the run if the scale is 1 and a
 * gradient is still not finite. */
void stop_if_unscalable(const Trainer *t, RtScaling before);

#endif
