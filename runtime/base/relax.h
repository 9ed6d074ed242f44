/* relax.h -- tells the processor that a thread waits in a loop.
 *
 * The pause lowers power, and leaves more of the core to its other hardware thread.
 */
#ifndef RELAX_H
#define RELAX_H

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
