/* team.h -- the part of a result that a member of a team computes (RtTeam in rt.h).
 *
 * A part is a range of whole outputs: rows, columns, panels or samples.  The order in which the
 * terms of an output are added does not depend on the part, so bits do not depend on the number of
 * members.
 */
#ifndef CPU_TEAM_H
#define CPU_TEAM_H
#include "cpu/vec.h"

/* Items first .. end - 1. */
typedef struct TeamRange {
    int64_t first, end;
} TeamRange;

RT_INLINE TeamRange team_range(int64_t items)
{
    TeamRange r = {0, items};
    if (__builtin_expect(rt_team.of > 1, 0))
        r = (TeamRange){items * rt_team.at / rt_team.of, items * (rt_team.at + 1) / rt_team.of};
    return r;
}

/* Whether item i belongs to the part.  A loop over all items with this test keeps its literal
 * bounds, and so its unrolled body; a loop over the part does not. */
RT_INLINE bool team_has(TeamRange r, int64_t i)
{
    return i >= r.first && i < r.end;
}

/* A member's part of a table of rows by columns, as equal as can be. */
RT_INLINE RtGrid team_grid(int64_t rows, int64_t columns)
{
    if (__builtin_expect(rt_team.of > 1, 0))
        return rt_team_grid(rows, columns);
    return (RtGrid){0, 1, 0, 1};
}
RT_INLINE TeamRange team_rows(RtGrid g, int64_t rows)
{
    if (g.rows == 1)
        return (TeamRange){0, rows};
    return g.rows ? (TeamRange){rows * g.row / g.rows, rows * (g.row + 1) / g.rows}
                  : (TeamRange){0};
}
RT_INLINE TeamRange team_columns(RtGrid g, int64_t columns)
{
    if (g.columns == 1)
        return (TeamRange){0, columns};
    return g.columns
               ? (TeamRange){columns * g.column / g.columns, columns * (g.column + 1) / g.columns}
               : (TeamRange){0};
}

/* for (int i ...): a member's part of 0 .. count - 1. */
#define TEAM_FOR(i, count)                                                                         \
    for (int i = (int)team_range(count).first, i##_end = (int)team_range(count).end; i < i##_end;  \
         i++)

/* RT_MAP of a member's part: whole vectors. */
#define TEAM_MAP(count, ...)                                                                       \
    do {                                                                                           \
        const TeamRange part_ = team_range(((int64_t)(count) + V - 1) / V);                        \
        const int64_t end_ = part_.end * V < (int64_t)(count) ? part_.end * V : (int64_t)(count);  \
        RT_MAP_FROM(part_.first *V, end_, __VA_ARGS__);                                            \
    } while (0)

#endif
