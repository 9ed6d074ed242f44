/* bench.h -- `tenon sweep` and `tenon results`, which the program tenon-bench does. */
#ifndef TOOL_BENCH_H
#define TOOL_BENCH_H
#include "tool/command.h"

/* Replaces this process by tenon-bench.  Returns, false, only after an error. */
bool bench_start(const Command *c, Diag *d);

#endif
