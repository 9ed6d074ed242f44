/* teams.c -- which units of a slice phase are computed by teams, and by how many.
 *
 * One thread that computes a whole unit keeps the unit's values in its cache and never waits inside
 * the unit.  But with U units and T threads, ceil(U / T) units follow each other on the slowest
 * thread: 64 units on 56 threads take as long as 112.  Teams divide the calls of a unit among their
 * members, at the price of a barrier after each call.
 *
 * Predicted time of U units on g teams of m = floor(T / g) members:
 *
 *   ceil(U / g) (alone + (unit - alone) / (m E(m)) + barriers b(m)),   b(m) = 2 ceil(log2 m) 70 ns
 *
 * with E(1) = 1, b(1) = 0, and E(m) = 0.8: parts of a call are not equal.  Either teams compute all
 * units, or only those that are left after as many as possible were computed in whole rounds.  No
 * bit depends on the choice.
 */
#include "step/step.h"

static const double LINE_US = 0.07; /* move of a cache line between cores of one socket */
static const double EQUAL = 0.8;    /* mean part of a call, divided by the largest part */

static double barrier_us(int members)
{
    int levels = 0;
    for (int n = 1; n < members; n *= 2)
        levels++;
    return 2 * levels * LINE_US;
}

static double predicted_us(const RtPhase *p, int units, int threads, int teams)
{
    const int members = threads / teams, rounds = (units + teams - 1) / teams;
    if (members == 1)
        return rounds * p->unit_us;
    return rounds * (p->alone_us + (p->unit_us - p->alone_us) / (members * EQUAL) +
                     p->barriers * barrier_us(members));
}

/* The best number of teams for `units` units, and its predicted time. */
static int best_teams(const RtPhase *p, int units, int threads, double *us)
{
    int best = units < threads ? units : threads;
    *us = predicted_us(p, units, threads, best);
    for (int teams = best - 1; teams > 0; teams--) {
        const double t = predicted_us(p, units, threads, teams);
        if (t < *us)
            *us = t, best = teams;
    }
    return best;
}

TeamPlan teams_plan(const RtPhase *phase, int units, int threads)
{
    const int whole = units / threads * threads, rest = units - whole;
    double all = 0, part = 0;
    if (units == 0)
        return (TeamPlan){0, 0};
    const int teams = best_teams(phase, units, threads, &all);
    const int few = rest > 0 ? best_teams(phase, rest, threads, &part) : 0;
    const double rounds = whole / threads * phase->unit_us;
    if (teams == threads || rounds + part <= all)
        return few == threads ? (TeamPlan){units, 0} : (TeamPlan){whole, few};
    return (TeamPlan){0, teams};
}
