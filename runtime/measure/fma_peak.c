/* fma_peak.c -- chains of fused multiply-adds in registers, enough chains to hide their latency. */
#include "measure/fma_peak.h"
#include "base/clock.h"

enum { CHAINS = 12, ROUNDS = 200000, REPEATS = 7 };

/* Every loop over the chains is unrolled; otherwise, the chains would lie in memory.
 * CHAINS independent v = v * a + b, ROUNDS times: x converges to b / (1 - a), never to a
 * denormal. */
#define DEFINE(NAME, TARGET, VECTOR, FMA)                                                          \
    TARGET static double NAME(void)                                                                \
    {                                                                                              \
        VECTOR x[CHAINS], a = {0}, b = {0};                                                        \
        a += 0.5f;                                                                                 \
        b += 1.0f;                                                                                 \
        _Pragma("GCC unroll 12") for (int k = 0; k < CHAINS; k++) x[k] = b * (float)k;             \
        for (int i = 0; i < ROUNDS; i++) {                                                         \
            _Pragma("GCC unroll 12") for (int k = 0; k < CHAINS; k++)                              \
            {                                                                                      \
                FMA(x[k], a, b);                                                                   \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 12") for (int k = 1; k < CHAINS; k++) x[0] += x[k];                    \
        return (double)x[0][0];                                                                    \
    }

typedef float f16x __attribute__((vector_size(64)));
typedef float f8x __attribute__((vector_size(32)));
typedef float f4x __attribute__((vector_size(16)));
typedef double d8x __attribute__((vector_size(64)));
typedef double d4x __attribute__((vector_size(32)));
typedef double d2x __attribute__((vector_size(16)));

#if defined(__x86_64__)
#define V4              __attribute__((target("avx512f"), noinline))
#define V3              __attribute__((target("avx2,fma"), noinline))
#define FMA_PS(x, a, b) __asm__ volatile("vfmadd213ps %2, %1, %0" : "+v"(x) : "v"(a), "v"(b))
#define FMA_PD(x, a, b) __asm__ volatile("vfmadd213pd %2, %1, %0" : "+v"(x) : "v"(a), "v"(b))
DEFINE(f32_v4, V4, f16x, FMA_PS)
DEFINE(f32_v3, V3, f8x, FMA_PS)
DEFINE(f64_v4, V4, d8x, FMA_PD)
DEFINE(f64_v3, V3, d4x, FMA_PD)
#endif

#if defined(__x86_64__) /* no fused instruction: a product and a sum */
#define ANY_FMA_F(x, a, b)                                                                         \
    x = x * a + b;                                                                                 \
    __asm__ volatile("" : "+x"(x))
#define ANY_FMA_D ANY_FMA_F
#elif defined(__aarch64__)
#define ANY_FMA_F(x, a, b) __asm__ volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(x) : "w"(a), "w"(b))
#define ANY_FMA_D(x, a, b) __asm__ volatile("fmla %0.2d, %1.2d, %2.2d" : "+w"(x) : "w"(a), "w"(b))
#else
#define ANY_FMA_F(x, a, b)                                                                         \
    x = x * a + b;                                                                                 \
    __asm__ volatile("" : "+m"(x))
#define ANY_FMA_D ANY_FMA_F
#endif
#define ANY __attribute__((noinline))
DEFINE(f32_any, ANY, f4x, ANY_FMA_F)
DEFINE(f64_any, ANY, d2x, ANY_FMA_D)

typedef struct Peak {
    double (*burst)(void);
    int lanes;
} Peak;

static Peak peak_of(const RtProgram *p)
{
    const bool f64 = p->real_bytes == 8;
#if defined(__x86_64__)
    if (p->isa == RT_ISA_X86_V4)
        return f64 ? (Peak){f64_v4, 8} : (Peak){f32_v4, 16};
    if (p->isa == RT_ISA_X86_V3)
        return f64 ? (Peak){f64_v3, 4} : (Peak){f32_v3, 8};
#endif
    return f64 ? (Peak){f64_any, 2} : (Peak){f32_any, 4};
}

static void run_fma(void *arg, int thread, int unit)
{
    (void)thread, (void)unit;
    volatile double result = ((const Peak *)arg)->burst();
    (void)result;
}

double fma_peak(const RtProgram *p, Pool *pool)
{
    Peak peak = peak_of(p);
    const int threads = pool_threads(pool);
    const double flops = 2.0 * peak.lanes * CHAINS * ROUNDS * threads;
    double best = 0;
    for (int i = 0; i < REPEATS; i++) {
        const double began = clock_now();
        pool_run(pool, run_fma, &peak, threads);
        const double rate = flops / (clock_now() - began) / 1e9;
        best = rate > best ? rate : best;
    }
    return best;
}
