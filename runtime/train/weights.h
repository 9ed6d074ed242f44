/* weights.h -- parameters from and to a safetensors file (--weights, --save). */
#ifndef WEIGHTS_H
#define WEIGHTS_H
#include "files/safetensors.h"
#include "step/net.h"

/* Loads the parameters from a file; from a checkpoint with averages, loads the averages instead.
 * Dies with a list of all tensors that are missing, unknown, or of another shape or type. */
void weights_load(Net *n, const char *path);

/* A writer of the parameters alone, to be passed to st_write with `path`. */
StWriter *weights_writer(const Net *n, const char *path);

/* The same for a checkpoint: parameters, optimizer states (NAME.state0, NAME.state1) and averages
 * (NAME.average).  The caller adds items of metadata and calls st_writer_ready. Loading returns
 * false if a tensor is missing or does not fit. */
StWriter *weights_state_writer(const Net *n);
bool weights_load_state(Net *n, const StFile *f);
/* Loads only the parameters of a checkpoint, as evaluations used them: with averages in place of
 * the weights.  `to` has the layout of `fixed`. */
bool weights_load_evaluated(Net *n, const StFile *f, char *to);

#endif
