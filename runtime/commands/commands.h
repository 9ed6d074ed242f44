/* commands.h -- a function for each command of a program, except `train` (train/train.h). */
#ifndef COMMANDS_H
#define COMMANDS_H
#include "options/options.h"

/* Each returns the exit code. */
int test_run(const RtProgram *p, const Options *o);
int predict_run(const RtProgram *p, const Options *o);
int generate_run(const RtProgram *p, const Options *o);
int bench_run(const RtProgram *p, const Options *o);
int info_run(const RtProgram *p, const Options *o);
int gradcheck_run(const RtProgram *p, const Options *o);
int grads_run(const RtProgram *p, const Options *o);

#endif
