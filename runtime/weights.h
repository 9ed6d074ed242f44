/* weights.h -- parameters from and to a safetensors file (--weights, --save). */
#ifndef WEIGHTS_H
#define WEIGHTS_H
#include "net.h"
#include "safetensors.h"

/* Dies with a list of everything that is missing, too much, or of another shape or type. */
void      weights_load(Net *n, const char *path);

StWriter *weights_writer(const Net *n);               /* for st_write: parameters only */

/* The same for parameters and optimizer states, NAME.state0 and NAME.state1 (checkpoints).
 * Loading is false when something is missing or does not fit. */
StWriter *weights_state_writer(const Net *n, int64_t metadata_room);
bool      weights_load_state(Net *n, const StFile *f);

#endif
