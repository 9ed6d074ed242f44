/* peak.c -- tenon-peak THREADS: prints the machine's FMA peak in GFLOP/s, by the loop that every program's `bench` runs.
 *
 * A program of its own: it is the only one here that looks into the runtime, and its threads are gone when it ends.
 */
#include "fma_peak.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BURSTS = 8 }; /* fma_peak is some ms; the best of so many */

/* The widest vectors of this processor, in f32. */
static RtProgram widest(void)
{
    RtProgram p = {.real_bytes = 4};
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        p.isa = RT_ISA_X86_V4;
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        p.isa = RT_ISA_X86_V3;
#endif
    return p;
}

int main(int argc, char **argv)
{
    const int threads = argc == 2 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > 4096) {
        fprintf(stderr, "error: tenon-peak THREADS\n");
        return 1;
    }
    const RtProgram p = widest();
    Pool *pool = pool_new(threads);
    double best = 0;
    for (int i = 0; i < BURSTS; i++)
        best = fmax(best, fma_peak(&p, pool));
    return printf("%.1f\n", best) < 0;
}
