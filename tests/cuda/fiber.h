/* fiber.h -- runs all threads of a launch, block after block. */
#ifndef FIBER_H
#define FIBER_H
#include "task.h"

void fiber_run(const char *kernel, int blocks, int threads, const Task &thread, int chip_bytes = 0);
/* Runs all blocks at the same time. */
void fiber_run_together(const char *kernel, int blocks, int threads, int chip_bytes, const Task &thread);

#endif
