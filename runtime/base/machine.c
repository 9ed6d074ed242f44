/* machine.c -- the table of machine.h.
 *
 * Nobody has measured these figures with Tenon.  Public measurements are named; "estimate" marks
 * a figure that was derived or taken from general knowledge.
 *
 *   line     time to move a cache line between cores of one cache, of two caches, of two sockets:
 *            github.com/nviennot/core-to-core-latency (README, issue 132); AnandTech's and
 *            chipsandcheese's reviews
 *   memory   STREAM, all cores, without the bytes that write-allocate reads: 8480+ 186 GB/s
 *            (github.com/simon-r/My_Stream_Benchmark); EPYC 9654 375 (Microsoft's HBv4 page:
 *            750-780 for two sockets)
 *   clock    of all cores with 512-bit multiply-adds; 64 operations a cycle of two 512-bit units,
 *            32 of two 256-bit ones (Zen 4)
 */
#include "base/machine.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

static const double M = 1 << 20;

static const Machine table[] = {
    {"2-core",
     "a virtual machine with two cores of a Zen 4 server",
     1,
     1,
     2,
     {140, 90, 40},
     32 * M,
     40,
     3.7,
     32,
     "clock measured; line 22 ns (9274F) to 51 ns (8375C); memory 42-47 GB/s of two threads "
     "measured"},
    {"16-core",
     "AMD Ryzen 9 7950X",
     1,
     2,
     8,
     {80, 80, 17},
     64 * M,
     65,
     5.0,
     32,
     "line 15-19 and 80 ns (AnandTech); memory 60-70 GB/s (estimate); clock (estimate)"},
    {"c5.18xlarge",
     "Intel Xeon Platinum 8124M, two sockets",
     2,
     1,
     18,
     {134, 47, 47},
     25 * M,
     100,
     2.5,
     64,
     "line 47 and 134 ns (8275CL); memory 100 of 128 GB/s (estimate); clock (estimate)"},
    {"32-core",
     "AMD EPYC 9354",
     1,
     8,
     4,
     {194, 100, 22},
     256 * M,
     378,
     3.5,
     32,
     "line 22 and 97-104 ns (9274F); memory like 9654; clock between base 3.25 and boost 3.8 GHz"},
    {"56-core",
     "Intel Xeon Platinum 8480+",
     1,
     1,
     56,
     {139, 70, 70},
     105 * M,
     186,
     2.6,
     64,
     "line 60-80 ns (estimate); memory measured; clock measured (8480+ under AVX-512)"},
    {"2x56-core",
     "Intel Xeon Platinum 8480+, two sockets",
     2,
     1,
     56,
     {139, 70, 70},
     105 * M,
     186,
     2.6,
     64,
     "like 56-core; line between sockets 139 ns"},
    {"2x96-core",
     "AMD EPYC 9654, two sockets",
     2,
     12,
     8,
     {194, 100, 22},
     384 * M,
     375,
     3.2,
     32,
     "line 22, 97-104 and 188-200 ns (9274F); memory measured (HBv4); clock (estimate)"},
};
enum { MACHINES = sizeof table / sizeof *table };

const Machine *machine_named(const char *name)
{
    for (int i = 0; i < MACHINES; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

int machine_cores(const Machine *m)
{
    return m->sockets * m->caches * m->cores;
}

const Machine *machine_for(int threads)
{
    const Machine *largest = table;
    for (int i = 0; i < MACHINES; i++) {
        if (machine_cores(&table[i]) >= threads)
            return &table[i];
        if (machine_cores(&table[i]) > machine_cores(largest))
            largest = &table[i];
    }
    return largest;
}

const char *machine_names(void)
{
    static char names[256];
    size_t at = 0;
    for (int i = 0; i < MACHINES && at < sizeof names; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", table[i].name);
    return names;
}

int machine_distance(const Machine *m, int a, int b)
{
    const int socket = m->caches * m->cores;
    return a / socket != b / socket       ? MACHINE_SOCKET
           : a / m->cores != b / m->cores ? MACHINE_CACHE
                                          : MACHINE_CORE;
}

Processor *machine_processors(const Machine *m, int threads)
{
    Processor *p = rt_alloc(sizeof *p * (size_t)threads);
    for (int t = 0; t < threads; t++) {
        const int socket = t / (m->caches * m->cores);
        p[t] = (Processor){t, 0, socket, socket, t / m->cores, t};
    }
    return p;
}
