/* fanout.c -- see fanout.h. */
#include "base/fanout.h"
#include "base/error.h"
#include <stdlib.h>

typedef enum Level { SOCKET, CACHE, GROUP, THREAD, LEVELS } Level;

typedef struct Plan {
    Fanout *f;
    const Processor *p;
} Plan;

/* Returns the end of the part of a level that begins with thread `from`. The whole range ends
 * before `hi`. */
static int end_of_part(const Plan *x, Level level, int from, int lo, int hi)
{
    const Processor *p = x->p;
    const int groups = (hi - lo + FANOUT_GROUP - 1) / FANOUT_GROUP;
    int end = from + 1;
    if (level == THREAD)
        return end;
    if (level == GROUP) /* as equal as possible */
        for (int g = 1; g <= groups && end <= from + 1; g++)
            end = lo + (hi - lo) * g / groups > from ? lo + (hi - lo) * g / groups : end;
    if (level == GROUP)
        return end;
    while (end < hi && (!p || (p[end].socket == p[from].socket &&
                               (level == SOCKET ||
                                (p[end].cache == p[from].cache && p[end].node == p[from].node)))))
        end++;
    return end;
}

static void add_group(const Plan *x, int first, int end)
{
    Fanout *f = x->f;
    f->part[f->groups] =
        (FanoutGroup){first, end, x->p ? x->p[first].cache : 0, x->p ? x->p[first].socket : 0};
    for (int t = first; t < end; t++)
        f->group[t] = f->groups;
    f->groups++;
}

/* Divides threads lo .. hi - 1, which are one part of the level above, into parts of this level,
 * and makes a binomial tree of the leaders of these parts. */
static void connect_parts(const Plan *x, Level level, int lo, int hi)
{
    int parts = 0, *leader = rt_alloc(sizeof *leader * (size_t)(hi - lo + 1));
    for (int t = lo; t < hi; t = end_of_part(x, level, t, lo, hi))
        leader[parts++] = t;
    leader[parts] = hi;
    for (int i = 1; i < parts; i++)
        x->f->parent[leader[i]] = leader[i & (i - 1)];
    for (int i = 0; i < parts && level < THREAD; i++) {
        if (level == GROUP)
            add_group(x, leader[i], leader[i + 1]);
        connect_parts(x, level + 1, leader[i], leader[i + 1]);
    }
    free(leader);
}

/* Lists the children in the order of messages, the largest part first: that is the descending order
 * of their numbers, because parts of higher levels, and larger parts, have leaders with higher
 * numbers. */
static void list_children(Fanout *f)
{
    for (int t = 1; t < f->threads; t++)
        f->nchild[f->parent[t]]++;
    for (int t = 0; t < f->threads; t++) {
        f->child[t] = rt_alloc(sizeof **f->child * (size_t)(f->nchild[t] + 1));
        f->nchild[t] = 0;
    }
    for (int t = f->threads - 1; t > 0; t--)
        f->child[f->parent[t]][f->nchild[f->parent[t]]++] = t;
}

void fanout_plan(Fanout *f, const Processor *p, int threads)
{
    const size_t n = (size_t)threads;
    *f = (Fanout){.threads = threads,
                  .group = rt_alloc(sizeof *f->group * n),
                  .part = rt_alloc(sizeof *f->part * n),
                  .parent = rt_alloc(sizeof *f->parent * n),
                  .nchild = rt_alloc(sizeof *f->nchild * n),
                  .child = rt_alloc(sizeof *f->child * n)};
    f->parent[0] = -1;
    connect_parts(&(Plan){f, p}, SOCKET, 0, threads);
    list_children(f);
}

void fanout_free(Fanout *f)
{
    for (int t = 0; t < f->threads; t++)
        free(f->child[t]);
    free(f->group);
    free(f->part);
    free(f->parent);
    free(f->nchild);
    free(f->child);
}
