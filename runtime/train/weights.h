/* weights.h -- parameters from and to a safetensors file (--weights, --save). */
#ifndef WEIGHTS_H
#define WEIGHTS_H
#include "files/safetensors.h"
#include "step/net.h"

/* Dies with a list of everything that is missing, too much, or of another shape or type. */
void      weights_load(Net *n, const char *path);

/* For st_write to `path`: parameters only. */
StWriter *weights_writer(const Net *n, const char *path);

/* The same for parameters and optimizer states, NAME.state0 and NAME.state1 (checkpoints);
 * items of metadata, and st_writer_ready, are the caller's. Loading is false when something is
 * missing or does not fit. */
StWriter *weights_state_writer(const Net *n);
bool      weights_load_state(Net *n, const StFile *f);

#endif
