/* machine.c -- the processor of a program: its name, its C flags, the width of its vectors.
 *
 * The flags name a level of the architecture, never the exact model of the host.  So the same
 * command gives the same bits on every machine.
 */
#define _GNU_SOURCE /* sched_getaffinity */
#include "tool/machine.h"
#include <sched.h>
#include <string.h>

static const Machine machine[] = {{"x86-64-v4", "-march=x86-64-v4 -mprefer-vector-width=512", 64,
                                   true, false},
                                  {"x86-64-v3", "-march=x86-64-v3", 32, true, false},
                                  {"armv8-a", "-march=armv8-a", 16, false, false},
                                  {"generic", "", 0, false, true},
                                  {0}};

static const char *native(void)
{
#if defined __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512cd"))
        return "x86-64-v4";
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2"))
        return "x86-64-v3";
    return "generic";
#elif defined __aarch64__
    return "armv8-a";
#else
    return "generic";
#endif
}

const Machine *machine_find(const char *cpu)
{
    const char *name = strcmp(cpu, "native") == 0 ? native() : cpu;
    const Machine *m = machine;
    while (m->name && strcmp(m->name, name) != 0)
        m++;
    return m->name ? m : NULL;
}

int machine_lanes(const Machine *m, int bytes)
{
    return m->vector_bytes ? m->vector_bytes / bytes : 1;
}

bool machine_fits_host(const Machine *m)
{
#if defined __x86_64__
    return m->any || m->x86;
#else
    return m->any || !m->x86;
#endif
}

int machine_threads(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}
