/* compare.h -- what changed from one group of runs to another: the statistics, without a store. */
#ifndef SWEEP_COMPARE_H
#define SWEEP_COMPARE_H
#include "sweep/results.h"
#include "sweep/stats.h"

/* A layer's part in the change of a step. */
typedef struct Part {
    const Layer *layer;
    Interval ms;  /* what it takes more in B, a step */
    double share; /* of its time in A: 0.1 = 10 % more */
    bool sure;    /* the interval excludes 0 */
} Part;

typedef struct Change {
    const Group *a, *b;
    Interval ratio; /* samples/s of B over those of A */
    enum {
        CHANGE_NONE,
        CHANGE_SLOWER,
        CHANGE_FASTER,
        CHANGE_UNKNOWN
    } kind;     /* UNKNOWN: too few runs */
    Part *part; /* sure ones, the largest first; needs runs with layers */
    int npart;
} Change;

enum {
    COMPARE_LEAST = 4
}; /* runs a side: with 3, one comparison of equals in ten would look sure */

void compare_groups(Arena *a, const Group *x, const Group *y, double floor, Change *c);

/* The group that measures the same as `like`, whatever its version; NULL. */
const Group *compare_partner(const Group *group, int n, const Group *like);

/* Weights that differ inside one label where threads, ranks and repeats must not matter: a line each. */
int compare_bits(Arena *a, const Group *group, int n, const char ***line);

#endif
