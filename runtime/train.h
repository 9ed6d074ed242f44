/* train.h -- the commands of a program, a function each. */
#ifndef TRAIN_H
#define TRAIN_H
#include "files/log.h"
#include "options/options.h"
#include "step/net.h"

int train_run(const RtProgram *p, const Options *o);  /* each returns the exit code */
int test_run(const RtProgram *p, const Options *o);
int predict_run(const RtProgram *p, const Options *o);
int generate_run(const RtProgram *p, const Options *o);
int bench_run(const RtProgram *p, const Options *o);
int info_run(const RtProgram *p, const Options *o);
int gradcheck_run(const RtProgram *p, const Options *o);
int grads_run(const RtProgram *p, const Options *o);

/* Batches, the last one perhaps not full. */
int64_t     steps_for(const RtProgram *p, int64_t samples);

/* Metrics over a whole split, each sample once.  order: as stored, of d->n samples. */
void        evaluate(Net *n, const Data *d, const Order *order, double mean[RT_METRICS]);
/* Batch `step` of it; the one behind it is fetched while a device evaluates this one. */
Batch       evaluate_batch(Net *n, const Data *d, const Order *order, int64_t step);

/* "test loss 0.0900, test accuracy 0.9720" */
const char *metrics_text(const RtProgram *p, const double mean[RT_METRICS], const char *prefix,
                         char text[256]);
/* exp of the mean loss, of programs that report it. */
double perplexity(const RtProgram *p, const double mean[RT_METRICS]);

#endif
