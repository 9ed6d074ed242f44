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

/* Hides from the compiler where a range comes from, but not that it lies within the items.
 * Otherwise gcc compiles each kernel twice: for a team, and for a thread alone. */
RT_LEAF TeamRange team_bounds(TeamRange r, int64_t items)
{
    __asm__("" : "+r"(r.first), "+r"(r.end));
    if (r.first < 0 || r.first > r.end || r.end > items)
        __builtin_unreachable();
    return r;
}

/* Part `at` of `of` parts; of = 0: nothing. */
RT_LEAF TeamRange team_part(int64_t items, int at, int of)
{
    TeamRange r = {0, items};
    if (of != 1)
        r = (TeamRange){of ? items * at / of : 0, of ? items * (at + 1) / of : 0};
    return team_bounds(r, items);
}

RT_LEAF TeamRange team_range(int64_t items)
{
    TeamRange r = {0, items};
    if (__builtin_expect(rt_team.of > 1, 0))
        r = (TeamRange){items * rt_team.at / rt_team.of, items * (rt_team.at + 1) / rt_team.of};
    return team_bounds(r, items);
}

/* Whether item i belongs to the part.  A loop over all items with this test keeps its literal
 * bounds, and so its unrolled body; a loop over the part does not. */
RT_LEAF bool team_has(TeamRange r, int64_t i)
{
    return i >= r.first && i < r.end;
}

/* A member's part of a table of rows by columns, as equal as can be. */
RT_LEAF RtGrid team_grid(int64_t rows, int64_t columns)
{
    RtGrid g = {0, 1, 0, 1};
    if (__builtin_expect(rt_team.of > 1, 0))
        g = rt_team_grid(rows, columns);
    __asm__("" : "+r"(g.row), "+r"(g.rows), "+r"(g.column), "+r"(g.columns)); /* as team_bounds */
    return g;
}
RT_LEAF TeamRange team_rows(RtGrid g, int64_t rows)
{
    return team_part(rows, g.row, g.rows);
}
RT_LEAF TeamRange team_columns(RtGrid g, int64_t columns)
{
    return team_part(columns, g.column, g.columns);
}

/* The same as team_grid and team_range; a member gets everything if members do not share it. */
RT_LEAF RtGrid team_grid_if(bool shared, int64_t rows, int64_t columns)
{
    RtGrid g = {0, 1, 0, 1};
    if (__builtin_expect(shared, 0))
        g = rt_team_grid(rows, columns);
    __asm__("" : "+r"(g.row), "+r"(g.rows), "+r"(g.column), "+r"(g.columns)); /* as team_bounds */
    return g;
}
RT_LEAF TeamRange team_range_if(bool shared, int64_t items)
{
    TeamRange r = {0, items};
    if (__builtin_expect(shared, 0))
        r = (TeamRange){items * rt_team.at / rt_team.of, items * (rt_team.at + 1) / rt_team.of};
    return team_bounds(r, items);
}

/* The scratch of a kernel: its own array or, if members share it, that of the first member.  Then
 * the kernel itself needs a barrier after the last use, because the array is on that member's
 * stack. */
RT_LEAF real *team_scratch(real *own, bool shared)
{
    return __builtin_expect(shared, 0) ? rt_team_share(own) : own;
}

/* for (int i ...): the items of 0 .. count - 1 in the part.  Up to TEAM_FEW items, the loop
 * visits all and skips those of other members: gcc knows the count, unrolls as it does without
 * teams, and compiles faster. */
enum { TEAM_FEW = 64 };
#define TEAM_IN(i, count, part)                                                                    \
    for (int i = (count) > TEAM_FEW ? (int)(part).first : 0;                                       \
         i < (count) && ((count) <= TEAM_FEW || i < (part).end); i++)                              \
        if (team_has(part, i))
/* for (int i ...): a member's part of 0 .. count - 1. */
#define TEAM_FOR(i, count)                                                                         \
    for (TeamRange i##_part = team_range(count), *i##_once = &i##_part; i##_once; i##_once = NULL) \
        TEAM_IN(i, count, i##_part)

/* RT_MAP of vectors part.first .. part.end - 1 of `count` elements. */
#define RT_MAP_PART(count, part, ...)                                                              \
    do {                                                                                           \
        const int64_t whole_ = (int64_t)(count) / V, end_ = (part).end;                            \
        for (int64_t AT = (part).first * V; AT < whole_ * V && AT < end_ * V; AT += V) {           \
            enum { rt_lanes = V };                                                                 \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        if ((count) % V && end_ > whole_) {                                                        \
            const int64_t AT = whole_ * V;                                                         \
            const int rt_lanes = (int)((count) % V);                                               \
            (void)rt_lanes;                                                                        \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
    } while (0)
/* RT_MAP of a member's part: whole vectors. */
#define TEAM_MAP(count, ...)                                                                       \
    do {                                                                                           \
        const TeamRange part_ = team_range(((int64_t)(count) + V - 1) / V);                        \
        RT_MAP_PART(count, part_, __VA_ARGS__);                                                    \
    } while (0)
/* RT_MAP of the whole samples of a member; a sample has whole vectors. */
#define TEAM_SAMPLES(samples, count, ...)                                                          \
    do {                                                                                           \
        const TeamRange own_ = team_range(samples),                                                \
                        part_ = {own_.first * ((count) / (samples) / V),                           \
                                 own_.end * ((count) / (samples) / V)};                            \
        RT_MAP_PART(count, part_, __VA_ARGS__);                                                    \
    } while (0)

#ifdef RT_BF16
/* ------------------------------------------------------------------------ y = x, of the other type
 * Processors with tiles of AMX also have an instruction that rounds to bf16 (base/tiles.c).  Its
 * bits are those of v_store_bf16, which takes nine instructions. */
#define convert(y, x, count)                                                                       \
    _Generic((y), bf16 * : convert_narrow, default : convert_wide)(y, x, count)

RT_LEAF void convert_wide(real *y, const bf16 *x, int64_t count)
{
    TEAM_MAP(count, STORE(y, LOAD(x)));
}

RT_LEAF void convert_narrow(bf16 *y, const real *x, int64_t count)
{
#if defined(RT_AVX512) && !defined(RT_TILES_STAND_IN)
    if (rt_tiles == RT_TILES_UNKNOWN)
        rt_tiles_begin();
    if (rt_tiles == RT_TILES_READY) {
        TEAM_MAP(count, vbf16 z; __asm__("vcvtneps2bf16 %1, %0"
                                         : "=v"(z)
                                         : "v"(LOAD(x)));
                 if ((int)rt_lanes == (int)V) * (vbf16_memory *)(y + AT) = z;
                 else memcpy(y + AT, &z, sizeof *y * (size_t)rt_lanes));
        return;
    }
#endif
    TEAM_MAP(count, STORE(y, LOAD(x)));
}
#endif

#endif
