/* team.h -- the barrier of a team: the threads that compute one unit of a phase together. */
#ifndef TEAM_H
#define TEAM_H
#include <stdbool.h>
#include <stdint.h>

typedef struct Barrier Barrier;

/* Makes a barrier for each of `threads` threads.  NULL: out of memory. */
Barrier *barriers_new(int threads);
/* The barrier of a thread for a job; the members of a team are consecutive threads.  Jobs are
 * numbered in ascending order, from 1. */
Barrier *barriers_at(Barrier *all, int thread, uint64_t job);
void barriers_free(Barrier *all);

/* Waits instead of rt_team_wait if it returns true; simulation.c sets it.  NULL: nothing does. */
extern bool (*team_wait_instead)(void);

#endif
