/* scripts.h -- scripts that Tenon writes beside its programs: training scripts in Python for other
 * frameworks, and job scripts for Slurm. */
#ifndef SCRIPTS_H
#define SCRIPTS_H
#include "base/diag.h"
#include "base/text.h"
#include "ir/graph.h"

/* Whether `to` is a framework: "pytorch", "keras" (3, all backends) or "mxnet" (1.9, Gluon). */
bool script_known(const char *to);
/* A training script for this framework; reports operations that the framework cannot express. */
bool script_python(const Graph *forward, const char *to, const char *source, Text *out, Diag *d);

/* Writes a job script for a planned step; gpus: one rank for each GPU (--comm nccl), else --comm
 * mpi. */
void script_slurm(const Graph *g, const char *source, bool gpus, Text *out);

#endif
