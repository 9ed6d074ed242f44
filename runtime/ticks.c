/* ticks.c -- a clock behind each call of a step, and the account that it adds up to.
 *
 * The clock costs about 25 ns a call and only where somebody measures: otherwise a call is followed
 * by one test of a thread-local pointer.
 */
#include "ticks.h"
#include <stdio.h>
#include <time.h>

_Thread_local int64_t *rt_ticks;
static _Thread_local int64_t last;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void ticks_begin(int64_t *sums)
{
    rt_ticks = sums;
    if (sums)
        last = now();
}

void rt_tick(int call)
{
    const int64_t t = now();
    rt_ticks[call] += t - last;
    last = t;
}

static void row(const char *what, const char *kernel, const char *place, double ms, double share,
                double gflops, double peak)
{
    printf("  %9.3f ms %5.1f %%", ms, 100 * share);
    if (gflops > 0)
        printf(" %8.1f %4.0f %%", gflops, 100 * gflops / peak);
    else
        printf(" %8s %6s", "", "");
    printf("  %-24s %-26s %s\n", what, kernel, place);
}

void ticks_print(const RtProgram *p, const int64_t *sums, int threads, int64_t steps, double wall,
                 double peak)
{
    const double all = wall * threads, scale = 1e3 / (double)steps / threads;
    double busy = 0;

    printf("\n     a step, %d thread%s   GFLOP/s   peak  layer                    kernel           "
           "          place\n",
           threads, threads > 1 ? "s" : " ");
    for (int k = 0; k < p->ncall; k++) {
        const RtCall *c = &p->call[k];
        double t = 0;
        for (int i = 0; i < threads; i++)
            t += 1e-9 * (double)sums[(int64_t)i * p->ncall + k];
        if (t == 0)
            continue; /* did not run: the update after a reduction */
        busy += t;
        row(c->what, c->kernel, c->place, scale * t, t / all,
            t > 0 ? 1e-9 * c->flops * p->batch * (double)steps / t * threads : 0, peak);
    }
    row("barriers, idle, the rest", "", "", scale * (all - busy), (all - busy) / all, 0, peak);
    printf("  %9.3f ms 100.0 %%  in all\n", 1e3 * wall / (double)steps);
    printf("  GFLOP/s and peak count the textbook's operations: calls that need fewer of them, such as\n"
           "  convolutions joined with their pooling or by Winograd's algorithm, may show above 100 %%\n");
}
