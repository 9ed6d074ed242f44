/* team.h -- the barrier of a team: the threads that compute one unit of a phase together. */
#ifndef TEAM_H
#define TEAM_H

typedef struct Barrier Barrier;

/* Barriers for `count` teams.  NULL: out of memory. */
Barrier *barriers_new(int count);
Barrier *barriers_at(Barrier *all, int i);
void barriers_free(Barrier *all);

#endif
