/* scale.c -- see scale.h. */
#include "measure/scale.h"
#include <math.h>
#include <stdio.h>

static const double FORWARD = 1.0 / 3, LATE = 0.01; /* parts of a rank's own step (scale.h) */

static const struct {
    const char *name;
    Link link;
} network[] = {{"10 Gbit/s, 30 us", {30e-6, 8 / 10e9}},
               {"100 Gbit/s, 5 us", {5e-6, 8 / 100e9}},
               {"400 Gbit/s, 2 us", {2e-6, 8 / 400e9}}};
enum { NETWORKS = sizeof network / sizeof *network, RANKS_MOST = 1024 };

double scale_messages(int ranks)
{
    const bool halves = (ranks & (ranks - 1)) == 0;
    return halves ? 2 * log2(ranks) : 2.0 * (ranks - 1);
}

double scale_moved(int ranks, double bytes)
{
    return 2 * (ranks - 1.0) / ranks * bytes;
}

double scale_sum(Link l, int ranks, double bytes)
{
    return scale_messages(ranks) * l.alpha + scale_moved(ranks, bytes) * l.beta;
}

/* Whether sums of a step may still be pending during the forward pass of the next step. */
static bool sums_go_on(int ranks, const RtBucket *bucket, int nbucket)
{
    return (ranks & (ranks - 1)) == 0 && nbucket > 0 && bucket[0].due > bucket[nbucket - 1].due;
}

Scaled scale_step(Link l, int ranks, const RtBucket *bucket, int nbucket, double own)
{
    const bool late = sums_go_on(ranks, bucket, nbucket);
    Scaled s = {.step = own};
    double end = own;
    if (ranks == 1)
        return s;
    for (int b = nbucket - 1; b >= 0; b--) {
        /* share of the step's work that runs during the sums of b and of the buckets after it */
        const double rest = 1 - (b + 1.0) / nbucket;
        s.sums += scale_sum(l, ranks, (double)bucket[b].bytes);
        end = fmax(end, own * (1 - (late ? 1 : 1 - FORWARD) * rest) + s.sums);
    }
    s.bare = end - own;
    s.step = end + LATE * own * sqrt(2 * log(ranks));
    return s;
}

void scale_print(const RtProgram *p, double own)
{
    double bytes = 0;
    for (int b = 0; b < p->nbucket; b++)
        bytes += (double)p->bucket[b].bytes;
    printf("%s: %.2f MB in %d buckets, the last %.2f MB; a rank's own step %.1f ms\n\n| ranks |",
           p->model, bytes / 1e6, p->nbucket, (double)p->bucket[p->nbucket - 1].bytes / 1e6,
           1e3 * own);
    for (int k = 0; k < NETWORKS; k++)
        printf(" %s: step, efficiency, not hidden |", network[k].name);
    printf("\n|---|");
    for (int k = 0; k < NETWORKS; k++)
        printf("---|");
    for (int ranks = 1; ranks <= RANKS_MOST; ranks *= 2) {
        printf("\n| %d |", ranks);
        for (int k = 0; k < NETWORKS; k++) {
            const Scaled s = scale_step(network[k].link, ranks, p->bucket, p->nbucket, own);
            printf(" %.1f ms, %.0f %%, %.2f ms |", 1e3 * s.step, 100 * own / s.step, 1e3 * s.bare);
        }
    }
    printf("\n");
}
