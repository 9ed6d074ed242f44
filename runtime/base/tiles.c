/* tiles.c -- permission to use the tiles of AMX, and their configuration; see rt.h.
 *
 * Linux saves the 8 KB of a thread's tiles only if the process has asked for permission.
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

static const char *wanted; /* --isa, or NULL */
static bool chains_known;  /* the program contains products by VDPBF16PS */
static int form = RT_TILES_REFUSED;

#if defined(__x86_64__) && defined(__linux__)
static bool has_bf16(void)
{
    enum { AVX512_BF16 = 1 << 5 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & AVX512_BF16;
}

/* Whether the processor has tiles, products of bf16 tiles, and conversions to bf16. */
static bool exist(void)
{
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & AMX_BF16 && d & AMX_TILE && has_bf16();
}

/* Compared with an FMA, VDPBF16PS has twice the speed on AMD's processors and half the speed on
 * Intel's. */
static bool has_fast_chains(void)
{
    __builtin_cpu_init();
    return has_bf16() && __builtin_cpu_is("amd");
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
static bool has_bf16(void)
{
    return false;
}
static bool has_fast_chains(void)
{
    return false;
}
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

static bool is(const char *isa)
{
    return wanted && strcmp(wanted, isa) == 0;
}

static void decide(void)
{
    const bool may = (!wanted || is("amx")) && exist();
    if (may && ask())
        form = RT_TILES_READY;
    else if (may)
        rt_note("this system gives no permission for the tiles of AMX; products in bf16 use "
                "AVX-512, which is slower and gives the same bits");
    if (form != RT_TILES_READY && chains_known &&
        ((!wanted && has_fast_chains()) || (is("avx512_bf16") && has_bf16())))
        form = RT_TILES_CHAINS;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

void rt_tiles_begin(void)
{
    pthread_once(&once, decide);
    if (form == RT_TILES_READY)
        configure();
    rt_tiles = form;
}

void rt_tiles_choose(const char *isa, bool fast)
{
    wanted = isa, chains_known = fast;
    pthread_once(&once, decide);
    if (is("amx") && form != RT_TILES_READY)
        rt_die("--isa amx: %s; leave it out, or choose --isa avx512, which gives the same bits",
               exist() ? "this system gives no permission for the tiles of AMX"
                       : "this processor has no AMX, or the virtual machine hides it");
    if (is("avx512_bf16") && form != RT_TILES_CHAINS)
        rt_die("--isa avx512_bf16: %s",
               fast ? "this processor has no AVX512_BF16; choose --isa avx512"
                    : "no product of this program uses AVX512_BF16; build it with --fast");
}

int rt_tiles_form(void)
{
    return form;
}
