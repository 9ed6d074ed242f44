/* processor.c -- see processor.h. */
#include "base/processor.h"
#include "base/error.h"

void processor_check(const RtProgram *p)
{
    const char *missing = NULL;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
    const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    if (p->isa == RT_ISA_X86_V3 && !v3)
        missing = "AVX2 and FMA (x86-64-v3)";
    if (p->isa == RT_ISA_X86_V4 && !(v3 && v4))
        missing = "AVX-512 (x86-64-v4)";
#else
    (void)p; /* each processor on which the program starts has the instructions */
#endif
    if (missing)
        rt_die("this program needs a processor with %s, which this machine does not have: build it "
               "here with --cpu native, or anywhere with --cpu generic",
               missing);
}

double processor_half_ratio(const RtProgram *p)
{
    const bool v3 = p->isa == RT_ISA_X86_V3,
               v4 = p->isa == RT_ISA_X86_V4 && rt_tiles_form() == RT_TILES_REFUSED;
    return v3 || v4 ? rt_half_ratio(v3, p->us_f32, p->us_half) : 0;
}
