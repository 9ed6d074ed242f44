/* scripts.h -- scripts that Tenon writes beside its programs: training scripts in Python for other
 * frameworks, and job scripts for Slurm. */
#ifndef SCRIPTS_H
#define SCRIPTS_H
#include "base/diag.h"
#include "base/text.h"
#include "ir/graph.h"

/* A training script for another framework; reports what the framework has no form for. */
bool script_pytorch(const Graph *forward, const char *source, Text *out, Diag *d);
bool script_mxnet(const Graph *forward, const char *source, Text *out, Diag *d); /* MXNet 1.9, Gluon */
bool script_keras(const Graph *forward, const char *source, Text *out, Diag *d); /* Keras 3, all backends */

/* A job script for a planned step; gpus: one rank for each GPU (--comm nccl), else --comm mpi. */
void script_slurm(const Graph *g, const char *source, bool gpus, Text *out);

#endif
