/* gpus.c -- NVML, opened at the first use: it comes with the driver, not with the toolkit, and tenon-bench works without it.
 *
 * The declarations are those of NVML's reference manual; its calls return 0 for success.
 */
#include "sweep/gpus.h"
#include "base/environment.h"
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

typedef struct Memory {
    unsigned long long total, free, used; /* bytes */
} Memory;

static struct Nvml {
    int (*init)(void);
    int (*count)(unsigned *);
    int (*handle)(unsigned, void **);
    int (*name)(void *, char *, unsigned);
    int (*memory)(void *, Memory *);
    int (*max_clock)(void *, int, unsigned *);   /* MHz */
    int (*energy)(void *, unsigned long long *); /* mJ */
} nvml;

enum { CLOCK_SM = 1 };

/* Opens NVML once; false: there is no driver, or it does not answer. */
static bool opened(void)
{
    static const struct {
        const char *name;
        void **to;
    } symbol[] = {
        {"nvmlInit_v2", (void **)&nvml.init},
        {"nvmlDeviceGetCount_v2", (void **)&nvml.count},
        {"nvmlDeviceGetHandleByIndex_v2", (void **)&nvml.handle},
        {"nvmlDeviceGetName", (void **)&nvml.name},
        {"nvmlDeviceGetMemoryInfo", (void **)&nvml.memory},
        {"nvmlDeviceGetMaxClockInfo", (void **)&nvml.max_clock},
        {"nvmlDeviceGetTotalEnergyConsumption", (void **)&nvml.energy},
    };
    static enum { UNKNOWN, NO, YES } state;
    if (state == UNKNOWN) {
        void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
        state = library ? YES : NO;
        for (size_t i = 0; state == YES && i < sizeof symbol / sizeof *symbol; i++)
            if (!(*symbol[i].to = dlsym(library, symbol[i].name)))
                state = NO;
        if (state == YES && nvml.init() != 0)
            state = NO;
    }
    return state == YES;
}

void gpus_look(Text *t)
{
    unsigned n = 0, mhz;
    if (!opened() || nvml.count(&n) != 0)
        return;
    for (unsigned i = 0; i < n; i++) {
        char name[96];
        void *gpu;
        Memory memory;
        if (nvml.handle(i, &gpu) != 0 || nvml.name(gpu, name, sizeof name) != 0)
            continue;
        text_printf(t, "gpu %u: %s", i, name);
        if (nvml.memory(gpu, &memory) == 0)
            text_printf(t, ", %.0f GiB", (double)memory.total / (1 << 30));
        if (nvml.max_clock(gpu, CLOCK_SM, &mhz) == 0)
            text_printf(t, ", at most %u MHz", mhz);
        text_add(t, "\n");
    }
}

/* The i-th number in $CUDA_VISIBLE_DEVICES; i itself if the variable is not set, or contains names. */
static unsigned visible(int i)
{
    const char *s = environment(ENV_CUDA_VISIBLE_DEVICES);
    for (int k = 0; s && *s; k++) {
        char *end;
        const long number = strtol(s, &end, 10);
        if (end == s || number < 0 || (*end && *end != ','))
            break;
        if (k == i)
            return (unsigned)number;
        s = *end ? end + 1 : end;
    }
    return (unsigned)i;
}

double gpus_joules(int n)
{
    double sum = 0;
    if (n > 0 && !opened())
        return NAN;
    for (int i = 0; i < n; i++) {
        void *gpu;
        unsigned long long mj;
        if (nvml.handle(visible(i), &gpu) != 0 || nvml.energy(gpu, &mj) != 0)
            return NAN;
        sum += 1e-3 * (double)mj;
    }
    return sum;
}
