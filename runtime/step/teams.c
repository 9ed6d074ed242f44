/* teams.c -- which units of a slice phase are computed by teams, and by how many.
 *
 * One thread that computes a whole unit keeps the unit's values in its cache and never waits inside
 * the unit.  But with U units and T threads, ceil(U / T) units follow each other on the slowest
 * thread: 64 units on 56 threads take as long as 112.  Teams divide the calls of a unit among their
 * members, at the price of a barrier after each call.  Teams compute all units, or only the units
 * that are left after rounds in which each thread computes a whole unit; constants.h has the
 * formula.  No bit depends on the choice.
 */
#include "step/step.h"

RtTeamPlan teams_plan(const RtPhase *p, int units, int threads, int regions)
{
    return rt_team_plan(p->unit_us, p->alone_us, p->barriers, units, threads, regions);
}
