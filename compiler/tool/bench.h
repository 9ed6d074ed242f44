/* bench.h -- `tenon sweep`, `results` and `watch`, which the program tenon-bench executes. */
#ifndef TOOL_BENCH_H
#define TOOL_BENCH_H
#include "tool/command.h"

/* Replaces this process by tenon-bench.  Returns only after an error, with false. */
bool bench_start(const Command *c, Diag *d);
/* The same for `tenon watch`, whose options are read already. */
bool bench_watch(const Command *c, Diag *d);

#endif
