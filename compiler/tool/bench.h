/* bench.h -- `tenon sweep` and `tenon results`, which the program tenon-bench executes. */
#ifndef TOOL_BENCH_H
#define TOOL_BENCH_H
#include "tool/command.h"

/* Replaces this process by tenon-bench.  Returns only after an error, with false. */
bool bench_start(const Command *c, Diag *d);

#endif
