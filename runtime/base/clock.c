/* clock.c -- see clock.h.
 *
 * /proc/self/stat gives the start of the process only to 10 ms.  So the start is computed in the
 * first constructor: the time then, minus the processor time used so far (exec and the loader).
 */
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
