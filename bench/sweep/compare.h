/* compare.h -- what changed from one group of runs to another: the statistics, without a store. */
#ifndef SWEEP_COMPARE_H
#define SWEEP_COMPARE_H
#include "sweep/results.h"
#include "sweep/stats.h"

/* The contribution of a layer to the change of a step. */
typedef struct Part {
    const Layer *layer;
    Interval ms;  /* ms that it takes more in a step of B */
    double share; /* the same relative to its time in A: 0.1 = 10 % more */
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
    Part *part; /* the sure ones, the largest first; needs runs with layers */
    int npart;
} Change;

enum {
    COMPARE_LEAST = 4
}; /* runs of each group: with 3, one in ten comparisons of equal programs would look sure */

void compare_groups(Arena *a, const Group *x, const Group *y, double floor, Change *c);

/* The group with the configuration of `like`, in another version; NULL if there is none. */
const Group *compare_partner(const Group *group, int n, const Group *like);

/* Adds a line for each pair of groups of one label whose weights differ although only threads, ranks or repeats differ. */
int compare_bits(Arena *a, const Group *group, int n, const char ***line);

#endif
