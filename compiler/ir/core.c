/* core.c -- nominal cores.  Peaks were measured by chains of FMA in registers, bandwidths by
 * repeated reads of one array (one thread).
 *
 *   x86-64-v4   Zen 4 server, 3.7 GHz: 118 GF/s, 512 bits wide in two halves; L1 32 K, L2 1 M,
 *               L3 32 M for two cores
 *   x86-64-v3   Zen 3 server, 3.1 GHz: 99 GF/s; L1 32 K: 134 GB/s, L2 512 K: 103 GB/s, L3 32 M:
 *               55 GB/s (33 GB/s for an array of 32 MiB), memory: 20 GB/s
 *   armv8-a     Neoverse N1, 2.6 GHz, from its optimization guide: two 128-bit FMA, two loads a
 *               cycle
 *   generic     the x86-64-v3 core without vectors; a product and a sum replace an FMA
 */
#include "ir/core.h"
#include <string.h>

enum { K = 1024, M = 1024 * 1024 };

static const Core core[] = {{"x86-64-v4", "Zen 4", 3.7, 64, 1, .8, .5, 4, 1, 32 * K,
                             M,           16 * M,  28,  14, 6, 8,  16, 8, 3, 14},
                            {"x86-64-v3", "Zen 3", 3.1, 32, 2,   2, 1,  4, 2, 32 * K,
                             M / 2,       16 * M,  30,  16, 6.5, 6, 12, 4, 1, 13},
                            {"armv8-a", "Neoverse N1", 2.6, 16, 2, 2, 1,  4, 2, 64 * K,
                             M,         4 * M,         30,  12, 6, 8, 16, 8, 3, 14},
                            {"generic", "Zen 3, scalar", 3.1, 0,  1,   2, 1, 7, 2, 32 * K,
                             M / 2,     16 * M,          30,  16, 6.5, 4, 6, 8, 1, 14}};

const Core *core_of(const char *cpu)
{
    const Core *c = core;
    while (strcmp(c->cpu, cpu) && c + 1 < core + sizeof core / sizeof *core)
        c++;
    return c;
}

double core_stream(const Core *c, double bytes, double resident)
{
    return resident <= (double)c->l1   ? 0
           : resident <= (double)c->l2 ? bytes / c->from_l2
           : resident <= (double)c->l3 ? bytes / c->from_l3
                                       : bytes / c->from_memory;
}

double core_peak_gflops(const Core *c, int real_bytes)
{
    const int lanes = c->vector_bytes ? c->vector_bytes / real_bytes : 1;
    return 2 * lanes * c->fma * c->ghz;
}
