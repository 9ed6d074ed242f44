/* weights.h -- parameters from and to a safetensors file (--weights, --save). */
#ifndef WEIGHTS_H
#define WEIGHTS_H
#include "files/safetensors.h"
#include "step/net.h"

/* Loads the parameters from a file; from a checkpoint with averages, loads the averages instead.
 * Dies with a list of all tensors that are missing, unknown, or of another shape or type. */
void weights_load(Net *n, const char *path);

/* The steps of weights_load, for a run that takes a part of a file (pick.h).  take: for each
 * parameter, whether it is loaded; NULL: all.  part: the file may have tensors that the program
 * lacks. */
StFile *weights_open(const char *path);
/* Whether the file has these parameters.  fits: becomes true or false for each parameter, true if
 * it is not loaded; or NULL. */
bool weights_fit(const StFile *f, const RtProgram *p, const bool *take, bool part, bool *fits);
/* Dies with the list of differences; way_out: further lines, or "". */
void weights_refuse(const StFile *f, const RtProgram *p, const bool *take, bool part,
                    const char *way_out) __attribute__((noreturn));
/* Stores a list of the tensors that the program does not have, and returns their number. */
int64_t weights_unused(const StFile *f, const RtProgram *p, const char ***name);
/* Loads them; dies if the file is damaged. */
void weights_take(Net *n, const StFile *f, const bool *take);

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
