/* train.h -- the command `train`. */
#ifndef TRAIN_H
#define TRAIN_H
#include "options/options.h"

int train_run(const RtProgram *p, const Options *o); /* returns the exit code */

#endif
