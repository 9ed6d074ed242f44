/* bench.h -- `tenon sweep` and `tenon results`: started from here, done by a program of their own. */
#ifndef TOOL_BENCH_H
#define TOOL_BENCH_H
#include "tool/command.h"

/* Becomes tenon-bench.  Returns, false, only after an error. */
bool bench_start(const Command *c, Diag *d);

#endif
