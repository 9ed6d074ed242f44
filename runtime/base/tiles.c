/* tiles.c -- permission to use the tiles of AMX, and their configuration; see rt.h.
 *
 * Linux saves the 8 KB of a thread's tiles only for processes that have asked for it.
 * Source: Linux, Documentation/arch/x86/xstate.rst.
 */
#define _GNU_SOURCE
#include "base/error.h"
#include "rt.h"
#include <pthread.h>
#include <string.h>
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

_Thread_local int rt_tiles = RT_TILES_UNKNOWN;

static bool permitted, unwanted;

#if defined(__x86_64__) && defined(__linux__)
/* Whether the processor has tiles, products of bf16 tiles, and conversions to bf16. */
static bool exist(void)
{
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24, AVX512_BF16 = 1 << 5 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & AMX_BF16 && d & AMX_TILE &&
           __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & AVX512_BF16;
}

static bool ask(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static void configure(void)
{
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++)
        config.bytes[i] = 64, config.rows[i] = 16;
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}
#else
static bool exist(void)
{
    return false;
}
static bool ask(void)
{
    return false;
}
static void configure(void)
{
}
#endif

static void decide(void)
{
    const bool may = !unwanted && exist();
    permitted = may && ask();
    if (may && !permitted)
        rt_note("this system gives no permission for the tiles of AMX; products in bf16 use "
                "AVX-512, which is slower and gives the same bits");
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

void rt_tiles_begin(void)
{
    pthread_once(&once, decide);
    if (permitted)
        configure();
    rt_tiles = permitted ? RT_TILES_READY : RT_TILES_REFUSED;
}

void rt_tiles_choose(const char *isa)
{
    unwanted = isa && strcmp(isa, "amx") != 0;
    pthread_once(&once, decide);
    if (isa && !unwanted && !permitted)
        rt_die("--isa amx: %s; leave it out, or choose --isa avx512, which gives the same bits",
               exist() ? "this system gives no permission for the tiles of AMX"
                       : "this processor has no AMX, or the virtual machine hides it");
}

bool rt_tiles_used(void)
{
    return permitted;
}
