/* standin.c -- a libnvidia-ml.so.1 with two GPUs: at each call the first has used 5 J more, and the
 * second 700 J more. */
#include <stdint.h>
#include <stdio.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, UNINITIALIZED = 1, GPUS = 2 };

typedef struct Memory {
    unsigned long long total, free, used;
} Memory;

static int begun;
static unsigned long long used[GPUS] = {1000000, 2000000};
static const unsigned step[GPUS] = {5000, 700000};

int nvmlInit_v2(void)
{
    begun = 1;
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = GPUS;
    return begun ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **gpu)
{
    *gpu = (void *)(uintptr_t)(i + 1);
    return !begun ? UNINITIALIZED : i < GPUS ? SUCCESS : INVALID_ARGUMENT;
}

static unsigned index_of(const void *gpu)
{
    return (unsigned)(uintptr_t)gpu - 1;
}

int nvmlDeviceGetName(void *gpu, char *name, unsigned size)
{
    snprintf(name, size, "Stand-in %c", 'A' + (int)index_of(gpu));
    return SUCCESS;
}

int nvmlDeviceGetMemoryInfo(void *gpu, Memory *memory)
{
    *memory = (Memory){.total = (80ull + index_of(gpu)) << 30};
    return SUCCESS;
}

int nvmlDeviceGetMaxClockInfo(void *gpu, int type, unsigned *mhz)
{
    *mhz = 1980 + index_of(gpu);
    return type == 1 ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetTotalEnergyConsumption(void *gpu, unsigned long long *mj)
{
    *mj = used[index_of(gpu)] += step[index_of(gpu)];
    return SUCCESS;
}
