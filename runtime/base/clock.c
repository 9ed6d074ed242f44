/* clock.c -- the process began at the first constructor, less the processor time that it had used
 * by then (the kernel's exec and the loader); /proc/self/stat knows the moment only to 10 ms. */
#include "base/clock.h"
#include <time.h>

static double start;

static double read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((constructor(101))) static void begin(void)
{
    start = read_clock(CLOCK_MONOTONIC) - read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

double clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

double clock_start(void)
{
    return start;
}
