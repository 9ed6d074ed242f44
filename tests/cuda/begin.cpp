/* begin.cpp -- the first kernel of a launch: the samples that it finds for the batches
 * (cuda/begin.cuh) equal the host's lists (order.h).
 *
 * Batches of several steps from the start, the middle and the end of an epoch, where they continue
 * from its start; shuffled and in stored order; of one sample, and of more samples than a list can
 * have.  Status 0 if all are equal, and if nothing but the metrics is cleared.
 */
#include "rt.h"
#include "cuda/launch.cuh"
#include "cuda/threads.cuh"
#include "cuda/begin.cuh"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern "C" {
#include "device/device.h"
RtOrder order_by(int64_t n, uint64_t seed, int64_t epoch, bool shuffle); /* order.h is C */
void order_fill(const RtOrder *by, uint32_t *sample, int64_t count);
}

enum { BATCH = 48, STEPS = 5, STRIDE = 192, WORDS = 20, PLACES = BATCH * STEPS };

static bool as_expected(const RtOrder *by, int64_t first, const uint32_t *want)
{
    static char *places, *metrics;
    static uint32_t *index;
    char here[STEPS * STRIDE] = {};
    uint32_t got[PLACES];
    int cleared[WORDS + 1];
    if (!index) {
        places = (char *)rt_cuda.memory(sizeof here, "places");
        index = (uint32_t *)rt_cuda.memory(sizeof got, "an index");
        metrics = (char *)rt_cuda.memory(sizeof cleared, "metrics");
    }
    for (int s = 0; s < STEPS; s++) {
        const RtPlaces p = {*by, first + s * BATCH};
        memcpy(here + s * STRIDE, &p, sizeof p);
    }
    memset(cleared, 0x55, sizeof cleared);
    rt_cuda.put(places, here, sizeof here);
    rt_cuda.put(metrics, cleared, sizeof cleared);
    rt_cuda.begin(index, (const RtPlaces *)places, STRIDE, BATCH, STEPS, (int *)metrics, WORDS * sizeof(int));
    rt_cuda.get(got, index, sizeof got);
    rt_cuda.get(cleared, metrics, sizeof cleared);
    bool same = cleared[WORDS] == 0x55555555;
    for (int i = 0; i < WORDS; i++)
        same = same && cleared[i] == 0;
    return same && memcmp(got, want, sizeof got) == 0;
}

int main()
{
    static const int64_t n[] = {1, 7, PLACES - 1, PLACES, 4095, 4096, 60000, 1281167};
    RtProgram p = {};
    p.cpu = "sm_80";
    rt_cuda.open(&p, 0);
    for (const int64_t samples : n)
        for (int epoch = 0; epoch < 3; epoch++) {
            const RtOrder by = order_by(samples, 11, epoch, epoch < 2);
            uint32_t *list = (uint32_t *)malloc(sizeof *list * (samples + PLACES));
            order_fill(&by, list, samples + PLACES);
            const int64_t first[] = {0, samples / 2, samples > PLACES / 2 ? samples - PLACES / 2 : 0};
            for (const int64_t at : first)
                if (!as_expected(&by, at, list + at)) {
                    fprintf(stderr, "epoch %d of %lld samples, from place %lld on\n", epoch, (long long)samples, (long long)at);
                    return 1;
                }
            free(list);
        }
    const RtOrder by = order_by((int64_t)1 << 32, 11, 0, true);
    const int64_t end = by.n - PLACES / 3;
    uint32_t want[PLACES];
    for (int i = 0; i < PLACES; i++)
        want[i] = rt_order_at(&by, end + i);
    return !as_expected(&by, end, want);
}
