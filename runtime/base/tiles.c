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

static bool permitted;

#if defined(__x86_64__) && defined(__linux__)
static bool ask(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18, AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & AMX_BF16 && d & AMX_TILE &&
           syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
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
    permitted = ask();
    if (!permitted)
        rt_note("this system gives no permission for the tiles of AMX; products in bf16 use "
                "AVX-512, which is slower and gives the same bits");
}

void rt_tiles_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, decide);
    if (permitted)
        configure();
    rt_tiles = permitted ? RT_TILES_READY : RT_TILES_REFUSED;
}
